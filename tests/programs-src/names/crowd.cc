// 64 threads with long names; two of them meet at one cell.
#include <cassert>
#include <string>
#include <thread>
#include <vector>
namespace simulation_of_large_systems::with_many_participants {
template <typename Value> class SharedCellOfTheWholeSimulation {
	Value value_of_the_cell{};
public:
	__attribute__((noinline)) void add_one_to_the_value_of_the_cell() { value_of_the_cell = value_of_the_cell + 1; }
	Value current_value_of_the_cell() const { return value_of_the_cell; }
};
}
int main()
{
	using namespace simulation_of_large_systems::with_many_participants;
	SharedCellOfTheWholeSimulation<unsigned long> cell, own[64];
	std::vector<std::thread> participants;
	for (int i = 0; i < 64; i++)
		participants.emplace_back([&, i] {
			own[i].add_one_to_the_value_of_the_cell();
			if (i == 20 || i == 21)
				for (int k = 0; k < 20; k++)
					cell.add_one_to_the_value_of_the_cell();
		});
	for (auto &p : participants)
		p.join();
	assert(cell.current_value_of_the_cell() == 40);
}
