// Two accounts, each with a mutex; transfers in both directions lock them in opposite order.
use std::sync::{Arc, Mutex};
use std::thread;

struct Account { balance: i64 }
struct Bank { checking: Mutex<Account>, savings: Mutex<Account> }

fn to_savings(bank: &Bank, amount: i64) {
    let mut from = bank.checking.lock().unwrap();
    let mut to = bank.savings.lock().unwrap();
    from.balance -= amount;
    to.balance += amount;
}

fn to_checking(bank: &Bank, amount: i64) {
    let mut from = bank.savings.lock().unwrap();
    let mut to = bank.checking.lock().unwrap();
    from.balance -= amount;
    to.balance += amount;
}

fn main() {
    let bank = Arc::new(Bank { checking: Mutex::new(Account { balance: 100 }), savings: Mutex::new(Account { balance: 100 }) });
    let (a, b) = (bank.clone(), bank.clone());
    let one = thread::spawn(move || for i in 0..20 { to_savings(&a, i) });
    let two = thread::spawn(move || for i in 0..20 { to_checking(&b, i) });
    one.join().unwrap();
    two.join().unwrap();
    let total = bank.checking.lock().unwrap().balance + bank.savings.lock().unwrap().balance;
    println!("total {}", total);
}
