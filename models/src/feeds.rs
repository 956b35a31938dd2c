//! A feed's thread sleeps until values are gone, and the packet loop that takes them calls it.

#[path = "../../crates/narrows-live/src/feeds/call.rs"]
mod call;

use call::Call;
use shuttle::sync::mpsc::channel;
use shuttle::sync::{self, Arc};
use shuttle::thread;

/// Values that the loop takes, one a turn.
const VALUES: u64 = 2;

/// The thread wants a call for each value. If one were lost, it would sleep for ever: a deadlock, which shuttle finds.
pub(crate) fn no_call_is_lost() {
    let call = Arc::new(Call::new());
    // The kernel's counter of calls: one that comes before the thread sleeps is kept.
    let (wake, sleep) = channel();
    let of_thread = Arc::clone(&call);
    let thread = thread::spawn(move || {
        for due in 1..=VALUES {
            while of_thread.want(due) {
                sleep.recv().expect("a call while values are wanted");
                of_thread.cancel();
            }
        }
        assert_eq!(of_thread.gone(), VALUES);
    });
    for gone in 1..=VALUES {
        call.tell(gone);
        if call.is_due() {
            // A thread that is done needs no call.
            let _ = wake.send(());
        }
    }
    thread.join().expect("it ends");
}
