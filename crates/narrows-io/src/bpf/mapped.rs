//! The values of an array in our own memory: read and written without system calls, at the same time as by programs.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{BpfError, Map};

const PAGE: usize = 4096;

/// A mapped array ([`super::MapValue::Mapped`]). All values lie one after the other, each from a multiple of eight bytes.
#[derive(Debug)]
pub struct MappedMap {
    memory: NonNull<u8>,
    length: usize,
}

#[expect(unsafe_code, reason = "the memory is reached by a pointer")]
// SAFETY: all accesses are atomic, or copies of bytes; the memory is shared with the kernel anyway.
unsafe impl Send for MappedMap {}

impl MappedMap {
    /// Maps an array with this many bytes.
    ///
    /// # Errors
    /// If the array cannot be mapped, or there is not enough memory.
    #[expect(unsafe_code, reason = "mapped memory has no owner in Rust")]
    pub fn new(map: &Map, bytes: usize) -> Result<Self, BpfError> {
        let length = bytes.next_multiple_of(PAGE);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let descriptor = map.as_fd().as_raw_fd();
        // SAFETY: a new mapping, wherever the kernel puts it.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, descriptor, 0) };
        let memory = if memory == libc::MAP_FAILED { None } else { NonNull::new(memory) };
        let memory = memory.ok_or_else(|| BpfError::new("map an array", io::Error::last_os_error()))?;
        Ok(Self { memory: memory.cast(), length })
    }

    /// The 64-bit number at a place, a multiple of eight below the length.
    ///
    /// # Panics
    /// If it is not: an error of the caller.
    pub fn number(&self, place: usize) -> u64 {
        self.atomic(place).load(Ordering::Acquire)
    }

    /// Sets the 64-bit number at a place.
    ///
    /// # Panics
    /// As [`MappedMap::number`].
    pub fn set_number(&self, place: usize, value: u64) {
        self.atomic(place).store(value, Ordering::Release);
    }

    /// The 32-bit number at a place, a multiple of four below the length.
    ///
    /// # Panics
    /// If it is not.
    #[expect(unsafe_code, reason = "the memory is reached by a pointer")]
    pub fn word(&self, place: usize) -> u32 {
        assert!(place.is_multiple_of(4) && place + 4 <= self.length);
        // SAFETY: inside the mapping, and aligned, since that begins at a page.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(place).cast()) }.load(Ordering::Acquire)
    }

    /// Copies bytes from a place on. Programs must not be writing there.
    ///
    /// # Panics
    /// If they end behind the length.
    #[expect(unsafe_code, reason = "the memory is reached by a pointer")]
    pub fn copy(&self, place: usize, to: &mut [u8]) {
        assert!(place.checked_add(to.len()).is_some_and(|end| end <= self.length));
        // SAFETY: inside the mapping; `to` is our own. If a program writes meanwhile, the bytes are any bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.memory.as_ptr().add(place), to.as_mut_ptr(), to.len()) };
    }

    /// Writes bytes from a place on. Programs must not be reading there.
    ///
    /// # Panics
    /// If they end behind the length.
    #[expect(unsafe_code, reason = "the memory is reached by a pointer")]
    pub fn write(&self, place: usize, bytes: &[u8]) {
        assert!(place.checked_add(bytes.len()).is_some_and(|end| end <= self.length));
        // SAFETY: as in `copy`.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.as_ptr().add(place), bytes.len())
        };
    }

    #[expect(unsafe_code, reason = "the memory is reached by a pointer")]
    fn atomic(&self, place: usize) -> &AtomicU64 {
        assert!(place.is_multiple_of(8) && place + 8 <= self.length);
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned, since that begins at a page.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(place).cast()) }
    }
}

impl Drop for MappedMap {
    #[expect(unsafe_code, reason = "mapped memory has no owner in Rust")]
    fn drop(&mut self) {
        // SAFETY: it is our own mapping, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}
