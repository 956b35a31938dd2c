//! Random bits from the kernel, for unique names. No model uses them.

use std::io;

use nix::errno::Errno;

/// 128 random bits.
///
/// # Errors
/// If the kernel provides none.
#[expect(unsafe_code, reason = "a system call")]
pub fn bits() -> io::Result<u128> {
    let mut bytes = [0_u8; 16];
    loop {
        // SAFETY: the buffer is live, writable and of the length given.
        let result = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match Errno::result(result) {
            // So few bytes are returned all at once, once the kernel has any.
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
