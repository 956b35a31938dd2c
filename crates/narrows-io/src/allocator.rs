//! Ends the program with an error message when memory is exhausted.
//!
//! The standard library would abort with a backtrace or a core file. No destructor runs in either case, so files that
//! must not outlive the program are registered beforehand, each by a [`RemovedWhenFull`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Paths to remove, and their folders. A run has a socket, a record and feed sockets.
static PATHS: [AtomicPtr<c_char>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];
static FOLDERS: [AtomicPtr<c_char>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];
/// The process that registered them: processes that it forks leave them alone.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// A file that is removed if memory is exhausted while this value lives, together with its folder if that is then
/// empty.
///
/// With more than 64 at once, the remaining files are left for `narrows clean`.
#[derive(Debug)]
pub struct RemovedWhenFull {
    slot: Option<usize>,
}

impl RemovedWhenFull {
    /// The file exists by now, or will soon.
    pub fn new(path: &Path) -> Self {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
        let (Some(file), Some(folder)) = (text(path), path.parent().and_then(text)) else {
            return Self { slot: None };
        };
        OWNER.store(process::id(), Ordering::Relaxed);
        let file = file.into_raw();
        let free = PATHS.iter().position(|place| {
            place.compare_exchange(ptr::null_mut(), file, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        if let Some(slot) = free {
            FOLDERS[slot].store(folder.into_raw(), Ordering::Release);
        }
        Self { slot: free }
    }
}

impl Drop for RemovedWhenFull {
    fn drop(&mut self) {
        // The texts are not freed: another thread may be in `end`, and they are few.
        if let Some(slot) = self.slot {
            FOLDERS[slot].store(ptr::null_mut(), Ordering::Release);
            PATHS[slot].store(ptr::null_mut(), Ordering::Release);
        }
    }
}

/// The system's allocator, with an error message and exit status 2 when memory is exhausted.
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

/// Prints the message and ends the program, without allocating memory.
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
    // SAFETY: it takes nothing.
    if OWNER.load(Ordering::Relaxed) == unsafe { libc::getpid() }.cast_unsigned() {
        for path in &PATHS {
            let path = path.load(Ordering::Acquire);
            if !path.is_null() {
                // SAFETY: a text that ends in a null byte and is never freed.
                unsafe { libc::unlink(path) };
            }
        }
        for folder in &FOLDERS {
            let folder = folder.load(Ordering::Acquire);
            if !folder.is_null() {
                // SAFETY: as above. It is refused where the folder is not empty.
                unsafe { libc::rmdir(folder) };
            }
        }
    }
    // SAFETY: it does not return; nothing is run that could need memory.
    unsafe { libc::_exit(2) }
}
