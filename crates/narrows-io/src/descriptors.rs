//! How many descriptors this process may have open.
//!
//! A shell usually allows 1024, for the sake of old programs, and up to half a million for the asking. A run needs one or two
//! for each end of a link and one for each host. What is changed here is this process's alone: programs that
//! [`crate::process::spawn`] starts get what it began with.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// What this process began with, once that was changed: the usual bound, and the one that it may be raised to.
static USUAL: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Allows as many as this process may have.
///
/// # Errors
/// When the kernel refuses, which it has no reason for.
pub fn allow_many() -> io::Result<()> {
    let (usual, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let _ = USUAL.set((usual, most));
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

/// Allows the calling process as many as before [`allow_many`]. Makes at most one system call, and allocates nothing.
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
