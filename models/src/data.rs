//! A director tells packet threads of a change, and decides that it is made; a thread that gets to its instant first decides
//! that it is not.

#[path = "../../crates/narrows-live/src/data/decision.rs"]
mod decision;

use decision::Decision;
use shuttle::sync;
use shuttle::sync::mpsc::channel;
use shuttle::thread;

const THREADS: usize = 2;

/// Every thread that was told makes the change, or none; if the director says that it is made, all were told.
pub(crate) fn all_make_a_change_or_none() {
    let decision = Decision::default();
    let mut told = Vec::new();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (tell, orders) = channel::<Decision>();
            told.push(tell);
            thread::spawn(move || {
                // At the instant of the change: whether it was told by now, and what it does then.
                orders.try_recv().ok().map(|decision| decision.give_up())
            })
        })
        .collect();
    for tell in told {
        // A thread that is done takes no more orders.
        let _ = tell.send(decision.clone());
    }
    let is_made = decision.make();
    for thread in threads {
        let made = thread.join().expect("it ends");
        assert!(made.is_none_or(|made| made == is_made), "{made:?}, but {is_made}");
    }
}
