// Tickets are sold after a check that another thread's sale can make untrue.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

struct Office { left: AtomicUsize }

impl Office {
    fn sell(&self) -> bool {
        if self.left.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let before = self.left.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "sold a ticket that was not there: {} left", before as isize - 1);
        true
    }
}

fn main() {
    let office = Arc::new(Office { left: AtomicUsize::new(5) });
    let sellers: Vec<_> = (0..2)
        .map(|_| {
            let office = office.clone();
            thread::spawn(move || for _ in 0..10 { office.sell(); })
        })
        .collect();
    for s in sellers {
        s.join().expect("a seller panicked");
    }
}
