//! Memory that runs out ends the program with a sentence.
//!
//! The standard library aborts then, with a backtrace or a core file. What a killed program leaves behind is the same either way.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which says that memory has run out, and ends the program with status 2.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaysWhenFull;

#[expect(unsafe_code, reason = "an allocator")]
// SAFETY: all is the system's allocator, but for a null pointer, at which the program ends.
unsafe impl GlobalAlloc for SaysWhenFull {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        or_end(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn or_end(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        end(size);
    }
    memory
}

/// Says so and ends the program, without any memory.
#[cold]
#[expect(unsafe_code, reason = "system calls that need no memory")]
fn end(size: usize) -> ! {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = size;
    while rest > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8; // below ten
        rest /= 10;
    }
    let number: &[u8] = &digits[at..];
    let end = b" bytes more cannot be had (`ulimit -v` may be why)\n";
    for part in [b"narrows: out of memory: ".as_slice(), number, end] {
        // SAFETY: the bytes are live and of this length. Where nobody reads them, the status says it.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: it does not return; nothing is run that could need memory.
    unsafe { libc::_exit(2) }
}
