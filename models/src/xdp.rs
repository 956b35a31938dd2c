//! A ring between the kernel and us, both sides at once.

#[path = "../../crates/narrows-io/src/xdp/ring.rs"]
mod ring;

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use ring::{Consumer, Parts, Producer};
use shuttle::sync::atomic::AtomicU32;
use shuttle::sync::{self, Arc};
use shuttle::thread;

const PLACES: u32 = 2;

struct Memory {
    producer: AtomicU32,
    consumer: AtomicU32,
    flags: AtomicU32,
    entries: [UnsafeCell<u64>; PLACES as usize],
}

#[expect(unsafe_code, reason = "shared by the two sides")]
// SAFETY: the entries are reached by the two sides of one ring only, and shuttle runs one thread at a time.
unsafe impl Sync for Memory {}

impl Memory {
    fn parts(&self) -> Parts<u64> {
        Parts {
            producer: NonNull::from(&self.producer),
            consumer: NonNull::from(&self.consumer),
            flags: NonNull::from(&self.flags),
            entries: NonNull::from(&self.entries).cast(),
            size: PLACES,
        }
    }
}

/// The sides of the ring, which keep its memory.
struct Sides<T>(T, Arc<Memory>);

/// What one side puts in, the other takes out: in order, none twice, and at most as many as there are places are under way.
#[expect(unsafe_code, reason = "both sides of a ring")]
pub(crate) fn entries_arrive_once_and_in_order() {
    let start = u32::MAX; // wraps with the first entry
    let memory = Arc::new(Memory {
        producer: AtomicU32::new(start),
        consumer: AtomicU32::new(start),
        flags: AtomicU32::new(0),
        entries: Default::default(),
    });
    // SAFETY: each side is made once and keeps the memory; the size is a power of two.
    let (into, out) = unsafe { (Producer::new(memory.parts()), Consumer::new(memory.parts())) };
    let (mut into, mut out) = (Sides(into, Arc::clone(&memory)), Sides(out, memory));
    let kernel = thread::spawn(move || {
        let Sides(into, _memory) = &mut into;
        let mut put = 0;
        for _ in 0..3 {
            put += u64::from(into.push(put));
            into.submit();
        }
        put
    });
    let Sides(out, _memory) = &mut out;
    let mut taken = 0;
    let mut take = |out: &mut Consumer<u64>| {
        let available = out.available(1);
        assert!(available <= PLACES);
        for ahead in 0..available {
            assert_eq!(out.peek(ahead), Some(taken));
            taken += 1;
        }
        out.release(available);
    };
    (0..2).for_each(|_| take(out));
    let put = kernel.join().expect("it ends");
    take(out);
    assert_eq!(taken, put);
}
