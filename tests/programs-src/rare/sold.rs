// SPDX-License-Identifier: GPL-2.0-or-later
// Rust, without unsafe: whether there is one left is asked under the lock, and it is taken under the lock, but not in one go.
use std::sync::{Arc, Mutex};
use std::thread;

fn work(mut x: u64, rounds: u32) -> u64 {
    for _ in 0..rounds {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407).wrapping_add(x >> 29);
    }
    x
}

fn main() {
    let left = Arc::new(Mutex::new(1i32));
    let buyers: Vec<_> = (1..3)
        .map(|i| {
            let left = left.clone();
            thread::spawn(move || {
                std::hint::black_box(work(i, 200000 + 300000 * i as u32));
                let some = *left.lock().unwrap() > 0;
                if some {
                    *left.lock().unwrap() -= 1;
                }
            })
        })
        .collect();
    for b in buyers {
        b.join().unwrap();
    }
    assert!(*left.lock().unwrap() == 0, "sold what was not there");
}
