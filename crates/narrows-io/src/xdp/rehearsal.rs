//! Rings and frame memory without a kernel: both sides in ordinary memory, driven by arbitrary bytes, with a correct
//! or a misbehaving kernel. For fuzzers, tests and Miri; nothing here makes a system call.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::ring::{Consumer, Parts, Producer};
use crate::umem::{Chunk, Lent, Umem};

const CHUNKS: u32 = 16;
const CHUNK_SIZE: usize = 2048;
const PLACES: u32 = 8;

/// A ring in ordinary memory.
#[derive(Default)]
struct Memory {
    producer: AtomicU32,
    consumer: AtomicU32,
    flags: AtomicU32,
    entries: [UnsafeCell<u64>; PLACES as usize],
}

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

/// Simulates a kernel by the given bytes: lends it chunks, takes back what it returns, and holds, writes and drops
/// frames, one step per byte.
///
/// # Panics
/// If a chunk is in two places or in none: free, lent, or held.
pub fn rehearse(steps: &[u8]) {
    let umem = Umem::new(CHUNKS, CHUNK_SIZE);
    let (fill, back) = (Memory::default(), Memory::default());
    let mut stage = Stage::new(&umem, &fill, &back);
    let mut rest = steps;
    while let Some((&step, more)) = rest.split_first() {
        rest = stage.step(step, more);
        stage.check();
    }
    stage.held.clear();
    umem.give(stage.lent.drain());
    assert_eq!(umem.free(), CHUNKS as usize, "every chunk comes back");
}

struct Stage<'a> {
    umem: Arc<Umem>,
    lent: Lent,
    held: Vec<Chunk>,
    fill: Producer<u64>,
    receive: Consumer<u64>,
    /// The kernel's sides of the two rings.
    kernel: (Consumer<u64>, Producer<u64>),
    memory: [&'a Memory; 2],
}

impl<'a> Stage<'a> {
    #[expect(unsafe_code, reason = "both sides of rings")]
    fn new(umem: &Arc<Umem>, fill: &'a Memory, back: &'a Memory) -> Self {
        // SAFETY: the memory outlives the sides, each of which is made once; its size is a power of two, and any number is
        // an entry.
        let (near, far) = unsafe {
            let near = (Producer::new(fill.parts()), Consumer::new(back.parts()));
            (near, (Consumer::new(fill.parts()), Producer::new(back.parts())))
        };
        let (umem, lent) = (Arc::clone(umem), Lent::new(CHUNKS as usize));
        Self {
            umem,
            lent,
            held: Vec::new(),
            fill: near.0,
            receive: near.1,
            kernel: far,
            memory: [fill, back],
        }
    }

    /// One step; returns the bytes after those it used.
    fn step<'b>(&mut self, step: u8, rest: &'b [u8]) -> &'b [u8] {
        let argument = usize::from(step >> 3);
        match step & 7 {
            0 => self.lend(argument),
            1 => self.kernel_gives(argument as u64 * 50),
            2 => {
                // Any address at all.
                let Some((address, rest)) = rest.split_first_chunk() else { return &[] };
                self.kernel.1.push(u64::from_le_bytes(*address));
                self.kernel.1.submit();
                return rest;
            }
            3 | 4 => self.take(argument),
            5 if argument < self.held.len() => drop(self.held.swap_remove(argument)),
            6 => self.held.iter_mut().for_each(|chunk| chunk.fill(step)),
            7 => {
                // An impossible counter value.
                let Some((count, rest)) = rest.split_first_chunk() else { return &[] };
                let counter =
                    if argument & 1 == 0 { &self.memory[0].consumer } else { &self.memory[1].producer };
                counter.store(u32::from_le_bytes(*count), Ordering::Release);
                return rest;
            }
            _ => {}
        }
        rest
    }

    fn lend(&mut self, count: usize) {
        let mut free = Vec::new();
        let room = self.fill.room(count as u32) as usize;
        self.umem.take(count.min(room), 1, &mut free);
        for index in free {
            assert!(self.fill.push(self.umem.frame_address(index)), "there was room");
            self.lent.lend(index);
        }
        self.fill.submit();
    }

    /// As the real kernel does: a frame in a chunk that was lent to it.
    fn kernel_gives(&mut self, further: u64) {
        if self.kernel.0.available(1) > 0
            && let Some(address) = self.kernel.0.peek(0)
        {
            self.kernel.0.release(1);
            self.kernel.1.push(address.wrapping_add(further));
            self.kernel.1.submit();
        }
    }

    #[expect(unsafe_code, reason = "the kernel gave the chunk back")]
    fn take(&mut self, length: usize) {
        if self.receive.available(1) == 0 {
            return;
        }
        let address = self.receive.peek(0);
        self.receive.release(1);
        let Some(address) = address else { return };
        let Some(index) = self.umem.index(address).filter(|&index| self.lent.take_back(index)) else {
            return;
        };
        // SAFETY: it was lent and is so no longer, and the other side is this thread.
        match unsafe { Chunk::new(&self.umem, address, length as u32 * 64) } {
            Some(chunk) => self.held.push(chunk),
            None => self.umem.give([index]),
        }
    }

    fn check(&self) {
        let places = self.umem.free() + self.lent.count() + self.held.len();
        assert_eq!(places, CHUNKS as usize, "each chunk is in one place");
        let mut held: Vec<_> = self.held.iter().map(|chunk| chunk.as_ptr().addr() / CHUNK_SIZE).collect();
        held.sort_unstable();
        assert!(held.is_sorted_by(|a, b| a < b), "no chunk is held twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_accounted_for_whatever_the_kernel_does() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
            let steps: Vec<u8> = (0..next()).map(|_| next()).collect();
            rehearse(&steps);
        }
        // One that does what it should: lend, give, take, write, drop.
        rehearse(&[0x20, 1, 1, 1, 0x0b, 0x0b, 0x0b, 6, 5, 5, 0x20, 1, 0x0b]);
    }
}
