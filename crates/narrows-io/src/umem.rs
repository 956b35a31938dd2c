//! Frame memory shared with the kernel, in chunks of one size.
//!
//! Each chunk is in exactly one place at any time: free here, lent to the kernel by a port ([`Lent`] records which),
//! or held as a [`Chunk`] by the owner of the frame in it. A chunk that is dropped becomes free.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kernels use large pages for memory with this alignment, if asked to.
const ALIGNMENT: usize = 2 << 20;
const PAGE: usize = 4096;
/// `XDP_PACKET_HEADROOM`: what the kernel always reserves before a frame.
const KERNEL_HEADROOM: usize = 256;
/// Our additional headroom: it holds the timestamp, in the cache line where the frame begins.
pub(crate) const HEADROOM: usize = 16;
/// The offset of frames in a chunk.
pub(crate) const FRAME_AT: usize = KERNEL_HEADROOM + HEADROOM;

/// Frame memory, and which of its chunks are free.
pub struct Umem {
    memory: NonNull<u8>,
    layout: Layout,
    chunk_size: usize,
    chunks: u32,
    /// Last used, first reused: it is still in the cache.
    free: Mutex<Vec<u32>>,
}

#[expect(unsafe_code, reason = "the memory is reached by a pointer")]
// SAFETY: a chunk's bytes are reached by its one owner only; the list of the free ones has a lock.
unsafe impl Send for Umem {}
#[expect(unsafe_code, reason = "the memory is reached by a pointer")]
// SAFETY: as above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Memory for `chunks` frames of up to `chunk_size` bytes minus [`FRAME_AT`]; `chunk_size` is 2048 or 4096.
    #[expect(unsafe_code, reason = "the memory is the kernel's and ours")]
    pub(crate) fn new(chunks: u32, chunk_size: usize) -> Arc<Self> {
        assert!(chunks > 0 && chunk_size.is_power_of_two() && chunk_size > FRAME_AT);
        let alignment = if cfg!(miri) { PAGE } else { ALIGNMENT };
        // None of its pages is shared with anything else.
        let size = (chunks as usize * chunk_size).next_multiple_of(PAGE);
        let layout = Layout::from_size_align(size, alignment)
            .expect("the memory for frames is far below what can be addressed");
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        advise(memory, layout, libc::MADV_DONTFORK);
        // The lowest are taken first.
        let free = Mutex::new((0..chunks).rev().collect());
        Arc::new(Self { memory, layout, chunk_size, chunks, free })
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.chunks as usize
    }

    /// The number of free chunks.
    pub fn free(&self) -> usize {
        self.list().len()
    }

    /// The maximum length of a frame in one chunk.
    pub(crate) fn capacity(&self) -> usize {
        self.chunk_size - FRAME_AT
    }

    pub(crate) fn chunk_size(&self) -> usize {
        self.chunk_size
    }

    /// Its address range, for the kernel.
    pub(crate) fn region(&self) -> (u64, u64) {
        (self.memory.as_ptr() as u64, self.layout.size() as u64)
    }

    /// The chunk that contains one of the kernel's addresses; `None` beyond the last.
    pub(crate) fn index(&self, address: u64) -> Option<u32> {
        let index = u32::try_from(address / self.chunk_size as u64).ok()?;
        (index < self.chunks).then_some(index)
    }

    /// The address of a frame in a chunk, as the kernel counts.
    pub(crate) fn frame_address(&self, index: u32) -> u64 {
        u64::from(index) * self.chunk_size as u64 + FRAME_AT as u64
    }

    /// Takes up to `count` free chunks, as long as more than `leaving` remain free.
    pub(crate) fn take(&self, count: usize, leaving: usize, into: &mut Vec<u32>) {
        let mut free = self.list();
        let count = count.min(free.len().saturating_sub(leaving));
        let from = free.len() - count;
        into.extend(free.drain(from..).rev());
    }

    /// Returns chunks to the free list.
    pub(crate) fn give(&self, chunks: impl IntoIterator<Item = u32>) {
        self.list().extend(chunks);
    }

    /// The `length` bytes at an address; `None` if they are not all in one chunk. Only the owner of the chunk may
    /// read or write there.
    #[expect(unsafe_code, reason = "the memory is reached by a pointer")]
    pub(crate) fn place(&self, address: u64, length: usize) -> Option<NonNull<u8>> {
        self.index(address)?;
        let within = address as usize & (self.chunk_size - 1);
        if length > self.chunk_size - within {
            return None;
        }
        // SAFETY: the chunk is one of those that were allocated.
        Some(unsafe { self.memory.add(address as usize) })
    }

    fn list(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Umem {
    #[expect(unsafe_code, reason = "the memory was allocated by hand")]
    fn drop(&mut self) {
        advise(self.memory, self.layout, libc::MADV_DOFORK);
        // SAFETY: allocated with this layout; no chunk is left, or it would keep `self` alive.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// Sets whether a child process gets the memory. While the kernel has it pinned, each `fork` would copy all of it,
/// which takes tens of milliseconds; a child that starts another program does not need it.
#[expect(unsafe_code, reason = "a system call about memory")]
fn advise(memory: NonNull<u8>, layout: Layout, advice: i32) {
    if !cfg!(miri) {
        // SAFETY: whole pages that were allocated with this layout; a parent keeps them in any case. Refused, it is slower.
        unsafe { libc::madvise(memory.as_ptr().cast(), layout.size(), advice) };
    }
}

impl fmt::Debug for Umem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Umem({} chunks of {} bytes, {} free)", self.chunks, self.chunk_size, self.free())
    }
}

/// A chunk that we own, and the position of the frame in it.
pub struct Chunk {
    umem: Arc<Umem>,
    /// The kernel's address of the frame.
    address: u32,
    length: u32,
    /// Our address of the frame.
    memory: NonNull<u8>,
}

#[expect(unsafe_code, reason = "the memory is reached by a pointer")]
// SAFETY: the chunk has one owner, whatever thread that is in.
unsafe impl Send for Chunk {}
#[expect(unsafe_code, reason = "the memory is reached by a pointer")]
// SAFETY: a shared chunk can only be read.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// The frame with this length at this address, as the kernel counts; `None` if it is not within one chunk.
    ///
    /// # Safety
    /// The caller alone has the chunk, and has it no longer.
    #[expect(unsafe_code, reason = "a chunk's owner is known to the caller only")]
    pub(crate) unsafe fn new(umem: &Arc<Umem>, address: u64, length: u32) -> Option<Self> {
        let memory = umem.place(address, length as usize)?;
        let address = u32::try_from(address).ok()?;
        Some(Self { umem: Arc::clone(umem), memory, address, length })
    }

    /// Whether it belongs to this memory.
    pub(crate) fn is_of(&self, umem: &Arc<Umem>) -> bool {
        Arc::ptr_eq(&self.umem, umem)
    }

    /// The address of the frame. The chunk is then the caller's to lend or to return.
    pub(crate) fn into_address(self) -> u64 {
        let address = u64::from(self.address);
        let mut chunk = std::mem::ManuallyDrop::new(self);
        // The reference count is decremented; the chunk stays taken.
        drop_in_place(&mut chunk.umem);
        address
    }
}

#[expect(unsafe_code, reason = "one field of a value that is not dropped")]
fn drop_in_place(umem: &mut Arc<Umem>) {
    // SAFETY: the chunk is never dropped nor used again, so this is the reference's one end.
    unsafe { std::ptr::drop_in_place(umem) };
}

impl Deref for Chunk {
    type Target = [u8];

    #[expect(unsafe_code, reason = "the chunk's memory")]
    fn deref(&self) -> &[u8] {
        // SAFETY: the chunk is ours alone, and nobody writes while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.length as usize) }
    }
}

impl DerefMut for Chunk {
    #[expect(unsafe_code, reason = "the chunk's memory")]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the chunk is ours alone, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.length as usize) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.umem.give(self.umem.index(u64::from(self.address)));
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The chunks that a port has lent to the kernel. Chunks returned by the kernel are only accepted if they were lent.
#[derive(Debug)]
pub(crate) struct Lent {
    bits: Vec<u64>,
    count: usize,
}

impl Lent {
    pub(crate) fn new(chunks: usize) -> Self {
        Self { bits: vec![0; chunks.div_ceil(64)], count: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn lend(&mut self, index: u32) {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        debug_assert_eq!(self.bits[word] & bit, 0, "chunk {index} is lent already");
        self.bits[word] |= bit;
        self.count += 1;
    }

    /// Takes a chunk back; `false` if it was not lent.
    pub(crate) fn take_back(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        let was = self.bits.get(word).is_some_and(|bits| bits & bit != 0);
        if was {
            self.bits[word] &= !bit;
            self.count -= 1;
        }
        was
    }

    /// Takes all chunks back.
    pub(crate) fn drain(&mut self) -> Vec<u32> {
        self.count = 0;
        let mut all = Vec::new();
        for (word, bits) in self.bits.iter_mut().enumerate() {
            let bits = std::mem::take(bits);
            all.extend((0..64).filter(|bit| bits & (1 << bit) != 0).map(|bit| word as u32 * 64 + bit));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(umem: &Arc<Umem>, count: usize, leaving: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        umem.take(count, leaving, &mut taken);
        taken
    }

    #[expect(unsafe_code, reason = "what the port does")]
    fn chunk(umem: &Arc<Umem>, index: u32, length: u32) -> Option<Chunk> {
        // SAFETY: the index was taken from the list.
        unsafe { Chunk::new(umem, umem.frame_address(index), length) }
    }

    #[test]
    fn a_chunk_is_free_again_when_its_frame_is_dropped() {
        let umem = Umem::new(8, 2048);
        let taken = take(&umem, 5, 0);
        assert_eq!((taken.as_slice(), umem.free()), (&[0, 1, 2, 3, 4][..], 3));
        let mut frames: Vec<Chunk> =
            taken.iter().filter_map(|&index| chunk(&umem, index, 100 + index)).collect();
        for (number, frame) in frames.iter_mut().enumerate() {
            frame.fill(number as u8);
        }
        for (number, frame) in frames.iter().enumerate() {
            assert_eq!(**frame, vec![number as u8; 100 + number]);
        }
        drop(frames);
        assert_eq!(umem.free(), 8);
    }

    #[test]
    fn a_reserve_is_left() {
        let umem = Umem::new(8, 2048);
        assert_eq!(take(&umem, 8, 3).len(), 5);
        assert_eq!(take(&umem, 8, 3).len(), 0);
        assert_eq!(take(&umem, 8, 0).len(), 3);
    }

    #[test]
    fn a_chunk_given_up_by_address_is_the_taker_s() {
        let umem = Umem::new(4, 2048);
        let [index] = take(&umem, 1, 0)[..] else { panic!("one was asked for") };
        let address = chunk(&umem, index, 64).unwrap().into_address();
        assert_eq!((umem.free(), Arc::strong_count(&umem)), (3, 1));
        assert_eq!((umem.index(address), address), (Some(index), umem.frame_address(index)));
        umem.give([index]);
        assert_eq!(umem.free(), 4);
    }

    #[test]
    fn addresses_that_cannot_be_are_refused() {
        let umem = Umem::new(4, 2048);
        assert_eq!(umem.index(4 * 2048), None);
        assert_eq!(umem.index(u64::MAX), None);
        let taken = take(&umem, 4, 0);
        assert!(chunk(&umem, taken[3], 1776).is_some_and(|chunk| chunk.len() == 1776));
        assert!(chunk(&umem, taken[2], 1777).is_none(), "a frame ends with its chunk");
    }

    #[test]
    fn frames_are_given_back_by_any_thread() {
        let umem = Umem::new(64, 2048);
        let frames: Vec<Chunk> =
            take(&umem, 64, 0).into_iter().filter_map(|index| chunk(&umem, index, 60)).collect();
        let mut halves = frames.into_iter();
        let one: Vec<_> = halves.by_ref().take(32).collect();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(one));
            halves.for_each(drop);
        });
        assert_eq!(umem.free(), 64);
    }

    #[test]
    fn what_was_not_lent_does_not_come_back() {
        let mut lent = Lent::new(100);
        [0, 63, 64, 99].into_iter().for_each(|index| lent.lend(index));
        assert!(lent.take_back(63));
        assert!(!lent.take_back(63), "once is enough");
        assert!(!lent.take_back(1));
        assert!(!lent.take_back(5000));
        assert_eq!(lent.count(), 3);
        assert_eq!(lent.drain(), [0, 64, 99]);
        assert_eq!((lent.count(), lent.drain().len()), (0, 0));
    }
}
