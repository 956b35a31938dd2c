//! Tries every order of the steps of code that works without locks, with the program's own source files.
//!
//! Shuttle runs all threads in one, and switches between them at each access to an atomic; its depth-first scheduler tries
//! every order once. It takes each access as sequentially consistent: what weaker orders allow is Miri's task (`make miri`).

mod data;
mod feeds;
mod xdp;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn main() {
    for (name, model) in [
        ("the call that wakes a feed's thread", feeds::no_call_is_lost as fn()),
        ("the decision on a change", data::all_make_a_change_or_none),
        ("a ring whose counters wrap", xdp::entries_arrive_once_and_in_order),
    ] {
        println!("{name}: {} orders", orders(model));
    }
}

/// Tries all orders, and returns how many there were.
fn orders(model: fn()) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    shuttle::check_dfs(
        move || {
            counted.fetch_add(1, Ordering::Relaxed);
            model();
        },
        None,
    );
    count.load(Ordering::Relaxed)
}
