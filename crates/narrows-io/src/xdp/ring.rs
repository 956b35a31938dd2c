//! Rings between the kernel and us: one side adds entries, the other takes them, without locks.
//!
//! A ring is an array of entries, whose length is a power of two, and two counters that only increase (and wrap):
//! entries added and entries taken. Each side writes its own counter and reads the other's. Data written to entries
//! before a counter is raised is visible to the side that reads that counter (release, acquire).
//!
//! Nothing here makes a system call, so two threads, or Miri, can stand in for the kernel.

use std::ptr::NonNull;

use super::sync::atomic::{AtomicU32, Ordering};

/// `XDP_RING_NEED_WAKEUP`: the kernel does not check the ring by itself.
const NEED_WAKEUP: u32 = 1;

/// The addresses of a ring's parts.
#[derive(Clone, Copy, Debug)]
pub struct Parts<T> {
    /// The number of entries added.
    pub producer: NonNull<AtomicU32>,
    /// The number of entries taken.
    pub consumer: NonNull<AtomicU32>,
    /// The kernel's flags.
    pub flags: NonNull<AtomicU32>,
    /// The first entry.
    pub entries: NonNull<T>,
    /// The number of entries; a power of two.
    pub size: u32,
}

#[expect(unsafe_code, reason = "shared memory is reached by pointers")]
impl<T: Copy> Parts<T> {
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: whoever made a side of the ring promised that its parts outlive it.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    /// The entry for a counter value.
    fn entry(&self, count: u32) -> NonNull<T> {
        // SAFETY: the mask keeps it below `size`, and there are `size` entries.
        unsafe { self.entries.add((count & (self.size - 1)) as usize) }
    }
}

/// The side that adds entries.
#[derive(Debug)]
pub struct Producer<T> {
    parts: Parts<T>,
    /// Entries written so far; those after the shared counter are not submitted yet.
    written: u32,
    /// The other side's counter as last read.
    taken: u32,
}

/// The side that takes entries.
#[derive(Debug)]
pub struct Consumer<T> {
    parts: Parts<T>,
    /// Entries taken so far.
    taken: u32,
    /// The other side's counter as last read.
    written: u32,
}

#[expect(unsafe_code, reason = "shared memory is reached by pointers")]
// SAFETY: the parts are shared memory that any thread may reach; a side is used by one thread at a time.
unsafe impl<T: Send> Send for Producer<T> {}
#[expect(unsafe_code, reason = "shared memory is reached by pointers")]
// SAFETY: as above.
unsafe impl<T: Send> Send for Consumer<T> {}

#[expect(unsafe_code, reason = "shared memory is reached by pointers")]
impl<T: Copy> Producer<T> {
    /// This side of a ring.
    ///
    /// # Safety
    /// The parts lie in memory that outlives this, belong to one ring whose size is a power of two, and nobody else puts
    /// entries in.
    pub unsafe fn new(parts: Parts<T>) -> Self {
        let (written, taken) =
            (parts.producer().load(Ordering::Relaxed), parts.consumer().load(Ordering::Acquire));
        Self { parts, written, taken }
    }

    /// Room for how many more entries. Reads the other side's counter only if the known room is less than `wanted`.
    pub fn room(&mut self, wanted: u32) -> u32 {
        let known = self.known_room();
        if known >= wanted {
            return known;
        }
        self.taken = self.parts.consumer().load(Ordering::Acquire);
        self.known_room()
    }

    /// With an impossible counter (more taken than written, or behind by more than a ring) there is no room.
    fn known_room(&self) -> u32 {
        self.parts.size.saturating_sub(self.written.wrapping_sub(self.taken))
    }

    /// Writes an entry, to be submitted later; `false` if there is no room.
    pub fn push(&mut self, entry: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        // SAFETY: there is room, so the other side has taken what was here and does not read it until it is submitted.
        unsafe { self.parts.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Makes written entries visible to the other side.
    pub fn submit(&mut self) {
        self.parts.producer().store(self.written, Ordering::Release);
    }

    /// How many entries were written and not taken.
    pub fn pending(&mut self) -> u32 {
        self.taken = self.parts.consumer().load(Ordering::Acquire);
        self.written.wrapping_sub(self.taken)
    }

    /// Whether the kernel must be notified.
    pub fn needs_wakeup(&self) -> bool {
        self.parts.needs_wakeup()
    }
}

#[expect(unsafe_code, reason = "shared memory is reached by pointers")]
impl<T: Copy> Consumer<T> {
    /// This side of a ring.
    ///
    /// # Safety
    /// The parts lie in memory that outlives this, belong to one ring whose size is a power of two, every entry that is put in
    /// is a value of `T`, and nobody else takes entries out.
    pub unsafe fn new(parts: Parts<T>) -> Self {
        let (written, taken) =
            (parts.producer().load(Ordering::Acquire), parts.consumer().load(Ordering::Relaxed));
        Self { parts, taken, written }
    }

    /// How many entries can be taken. Reads the other side's counter only if fewer than `wanted` are known.
    pub fn available(&mut self, wanted: u32) -> u32 {
        if self.written.wrapping_sub(self.taken) < wanted {
            self.written = self.parts.producer().load(Ordering::Acquire);
        }
        // With an impossible counter (more than a full ring) there is at most one ring.
        self.written.wrapping_sub(self.taken).min(self.parts.size)
    }

    /// The entry `ahead` places after the next one; `None` if it is not known to be available.
    pub fn peek(&self, ahead: u32) -> Option<T> {
        let known = self.written.wrapping_sub(self.taken).min(self.parts.size);
        // SAFETY: the entry was submitted, and the other side does not write it again until it is released.
        (ahead < known).then(|| unsafe { self.parts.entry(self.taken.wrapping_add(ahead)).read() })
    }

    /// Releases the next entries, all of which were available.
    pub fn release(&mut self, count: u32) {
        self.taken = self.taken.wrapping_add(count);
        self.parts.consumer().store(self.taken, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::thread;

    use super::*;

    /// A ring in ordinary memory.
    struct Memory {
        producer: AtomicU32,
        consumer: AtomicU32,
        flags: AtomicU32,
        entries: [UnsafeCell<u64>; 8],
    }

    #[expect(unsafe_code, reason = "shared by the two sides")]
    // SAFETY: the entries are reached by the two sides of one ring only.
    unsafe impl Sync for Memory {}

    impl Memory {
        /// Counters that wrap soon.
        fn at(count: u32) -> Self {
            Self {
                producer: AtomicU32::new(count),
                consumer: AtomicU32::new(count),
                flags: AtomicU32::new(0),
                entries: Default::default(),
            }
        }

        fn parts(&self) -> Parts<u64> {
            Parts {
                producer: NonNull::from(&self.producer),
                consumer: NonNull::from(&self.consumer),
                flags: NonNull::from(&self.flags),
                entries: NonNull::from(&self.entries).cast(),
                size: 8,
            }
        }

        #[expect(unsafe_code, reason = "both sides of it")]
        fn sides(&self) -> (Producer<u64>, Consumer<u64>) {
            // SAFETY: each test makes each side once, and keeps the memory for longer.
            unsafe { (Producer::new(self.parts()), Consumer::new(self.parts())) }
        }
    }

    #[test]
    fn entries_come_out_in_order_across_the_wrap_of_the_counters() {
        let memory = Memory::at(u32::MAX - 2);
        let (mut into, mut out) = memory.sides();
        for round in 0..10u64 {
            assert_eq!(into.room(8), 8);
            assert!((0..8).all(|n| into.push(round * 8 + n)));
            assert!(!into.push(99), "a ninth has no room");
            assert_eq!(out.available(1), 0, "nothing is seen before it is submitted");
            into.submit();
            assert_eq!((out.available(8), into.pending()), (8, 8));
            let seen: Vec<u64> = (0..8).filter_map(|ahead| out.peek(ahead)).collect();
            assert_eq!(seen, (round * 8..round * 8 + 8).collect::<Vec<_>>());
            assert_eq!(out.peek(8), None);
            out.release(3);
            assert_eq!((into.room(8), out.available(1)), (3, 5));
            out.release(5);
        }
    }

    #[test]
    fn what_one_thread_puts_in_the_other_takes_out() {
        let memory = Arc::new(Memory::at(u32::MAX - 20));
        let (mut into, mut out) = memory.sides();
        let count = if cfg!(miri) { 100 } else { 100_000 };
        let kernel = thread::spawn(move || {
            for number in 0..count {
                while !into.push(number) {
                    into.submit();
                    thread::yield_now();
                }
                if number % 3 == 0 {
                    into.submit();
                }
            }
            into.submit();
        });
        let mut next = 0;
        while next < count {
            let available = out.available(1);
            for ahead in 0..available {
                assert_eq!(out.peek(ahead), Some(next));
                next += 1;
            }
            out.release(available);
            if available == 0 {
                thread::yield_now();
            }
        }
        kernel.join().unwrap();
        assert_eq!(out.available(1), 0);
    }

    /// Every sequence of steps of both sides, against a queue, from counters that wrap at each step.
    #[test]
    fn every_short_sequence_of_steps_is_that_of_a_queue() {
        const STEPS: u32 = if cfg!(miri) { 3 } else { 7 };
        for (size, start) in [1, 2, 4].into_iter().flat_map(|size| (0..4).map(move |n| (size, n))) {
            let start = [0, u32::MAX, u32::MAX - 2, i32::MAX as u32][start];
            for sequence in 0..4_u32.pow(STEPS) {
                let memory = Memory::at(start);
                #[expect(unsafe_code, reason = "both sides of it")]
                // SAFETY: as above; no more places than there are.
                let (mut into, mut out) = unsafe {
                    let parts = Parts { size, ..memory.parts() };
                    (Producer::new(parts), Consumer::new(parts))
                };
                let (mut written, mut visible) = (VecDeque::new(), 0);
                for step in 0..STEPS {
                    match sequence >> (2 * step) & 3 {
                        0 => {
                            let fits = written.len() < size as usize;
                            assert_eq!(into.push(u64::from(step)), fits);
                            written.extend(fits.then_some(u64::from(step)));
                        }
                        1 => {
                            into.submit();
                            visible = written.len();
                        }
                        2 => {
                            assert_eq!(out.available(size), visible as u32);
                            let seen: Vec<_> = (0..=size).map_while(|ahead| out.peek(ahead)).collect();
                            assert!(seen.iter().eq(written.iter().take(visible)), "{seen:?}, {written:?}");
                        }
                        _ if out.available(1) > 0 => {
                            out.release(1);
                            written.pop_front();
                            visible -= 1;
                        }
                        _ => assert_eq!(visible, 0),
                    }
                    assert_eq!(into.room(size), size - written.len() as u32);
                    assert_eq!(into.pending(), written.len() as u32);
                }
            }
        }
    }

    #[test]
    fn whatever_the_counters_are_no_place_is_out_of_reach() {
        let near = |middle: u32| (0..12).map(move |n| middle.wrapping_add(n).wrapping_sub(6));
        let counters = || [0, 8, 1 << 31, u32::MAX].into_iter().flat_map(near);
        for (own, other) in counters().flat_map(|own| counters().map(move |other| (own, other))) {
            let memory = Memory::at(own);
            let (mut into, mut out) = memory.sides();
            memory.consumer.store(other, Ordering::Release);
            memory.producer.store(other, Ordering::Release);
            let (ahead, behind) = (other.wrapping_sub(own), own.wrapping_sub(other));
            assert_eq!(into.room(9), 8_u32.saturating_sub(behind), "taken {other} of {own}");
            assert_eq!(out.available(9), ahead.min(8), "written {other} after {own}");
            assert_eq!(out.peek(8), None);
            assert_eq!(out.peek(7).is_some(), ahead >= 8);
        }
    }

    #[test]
    fn absurd_counters_of_the_other_side_lead_nowhere() {
        let memory = Memory::at(0);
        let (mut into, mut out) = memory.sides();
        memory.producer.store(1000, Ordering::Release);
        assert_eq!(out.available(9), 8, "no more than there are places");
        assert_eq!(out.peek(8), None);
        memory.consumer.store(5, Ordering::Release);
        assert_eq!(into.room(9), 0, "five taken of none written");
        assert!(!into.push(1));
    }

    #[test]
    fn the_kernel_says_whether_it_must_be_woken() {
        let memory = Memory::at(0);
        let (into, _) = memory.sides();
        assert!(!into.needs_wakeup());
        memory.flags.store(NEED_WAKEUP, Ordering::Relaxed);
        assert!(into.needs_wakeup());
    }
}
