/* Money goes both ways at once: each account has a lock of its own, taken in the order of the arguments. */
#include <map>
#include <mutex>
#include <string>
#include <thread>

struct Account {
	std::mutex m;
	long balance = 100;
};

static std::map<std::string, Account> accounts;

static void transfer(const std::string &from, const std::string &to)
{
	Account &a = accounts.at(from), &b = accounts.at(to);
	std::unique_lock<std::mutex> first(a.m), second(b.m); /* @locks */

	a.balance--;
	b.balance++;
}

int main()
{
	accounts["alice"];
	accounts["bob"];
	std::thread t([] { for (int i = 0; i < 5; i++) transfer("alice", "bob"); });
	std::thread u([] { for (int i = 0; i < 5; i++) transfer("bob", "alice"); });
	t.join();
	u.join();
}
