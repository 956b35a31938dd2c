//! Random bits of the kernel's, for names that nobody else gives by chance. No model draws from here.

use std::io;

use nix::errno::Errno;

/// 128 random bits.
///
/// # Errors
/// When the kernel gives none.
#[expect(unsafe_code, reason = "a system call")]
pub fn bits() -> io::Result<u128> {
    let mut bytes = [0_u8; 16];
    loop {
        // SAFETY: the buffer is live, writable and of the length given.
        let result = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match Errno::result(result) {
            // So few bytes come all at once, once the kernel has any.
            Ok(_) => return Ok(u128::from_ne_bytes(bytes)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_are_alike() {
        assert_ne!(super::bits().unwrap(), super::bits().unwrap());
    }
}
