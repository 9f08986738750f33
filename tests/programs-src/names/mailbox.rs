// The flag is set without the mutex that the waiter holds from its check to its wait.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

struct Mailbox { full: AtomicBool, guard: Mutex<u32>, arrived: Condvar }

fn post(mailbox: &Mailbox) {
    mailbox.full.store(true, Ordering::SeqCst);
    mailbox.arrived.notify_one();
}

fn fetch(mailbox: &Mailbox) -> u32 {
    let mut count = mailbox.guard.lock().unwrap();
    while !mailbox.full.load(Ordering::SeqCst) {
        count = mailbox.arrived.wait(count).unwrap();
    }
    *count += 1;
    *count
}

fn main() {
    let mailbox = Arc::new(Mailbox { full: AtomicBool::new(false), guard: Mutex::new(0), arrived: Condvar::new() });
    let theirs = mailbox.clone();
    let reader = thread::Builder::new().name("reader".into()).spawn(move || fetch(&theirs)).unwrap();
    post(&mailbox);
    println!("{}", reader.join().unwrap());
}
