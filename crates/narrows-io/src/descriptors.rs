//! The limit on open descriptors of this process.
//!
//! The default is usually 1024, for compatibility with old programs, and the maximum up to half a million. A run
//! needs one or two for each link end and one for each host. The change only affects this process: programs started
//! by [`crate::process::spawn`] get the original limit.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// The original soft and hard limit, once they have been changed.
static USUAL: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Raises the limit to the maximum.
///
/// # Errors
/// If the kernel refuses, for which it has no reason.
pub fn allow_many() -> io::Result<()> {
    let (usual, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let _ = USUAL.set((usual, most));
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

/// Restores the limit from before [`allow_many`] for the calling process. Makes at most one system call and no
/// allocation.
pub(crate) fn as_usual() -> io::Result<()> {
    match USUAL.get() {
        None => Ok(()),
        Some(&(usual, most)) => Ok(setrlimit(Resource::RLIMIT_NOFILE, usual, most)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_be_and_then_as_before() {
        let before = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        allow_many().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (before.1, before.1));
        as_usual().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), before);
    }
}
