//! A Ctrl-C that a long computation hears of and ends by itself.
//!
//! The first signal that asks us to end is noted, and whoever computes looks at [`asked`] from time to time. The second one
//! ends the process at once, as if nobody had asked: a computation that does not look, or a pipe that nobody reads, holds no
//! one up. Programs that wait rather than compute use [`crate::wait::EndSignals`].

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The number of the signal that came first, or zero.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// Notes `SIGINT`, `SIGTERM` and `SIGHUP` from now on, instead of being ended by the first of each. One that is ignored, as
/// under `nohup`, stays so.
///
/// # Errors
/// When the kernel refuses, which it has no reason for.
#[expect(unsafe_code, reason = "a signal handler")]
pub fn catch() -> io::Result<()> {
    let note = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESETHAND, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler stores a number in an atomic, and does nothing else.
        let before = unsafe { sigaction(signal, &note)? };
        if matches!(before.handler(), SigHandler::SigIgn) {
            // SAFETY: it is what was there.
            unsafe { sigaction(signal, &before)? };
        }
    }
    Ok(())
}

/// The signal that has asked us to end since [`catch`], if any. Looks at memory alone.
pub fn asked() -> Option<Signal> {
    Signal::try_from(ASKED.load(Ordering::Relaxed)).ok()
}

extern "C" fn note(signal: i32) {
    ASKED.store(signal, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;

    #[test]
    fn the_first_signal_is_noted_and_the_second_is_not_held_back() {
        // SIGHUP may be ignored here (nohup), SIGINT too (a job in the background).
        catch().unwrap();
        assert_eq!(asked(), None);
        raise(Signal::SIGTERM).unwrap();
        assert_eq!(asked(), Some(Signal::SIGTERM));
        // The next one would end us: the default is back.
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let set = |name: &str| {
            let bits = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(bits.trim(), 16).unwrap()
        };
        let bit = |signal: Signal| 1 << (signal as u32 - 1);
        assert_eq!(set("SigCgt:") & bit(Signal::SIGTERM), 0);
        // Of the others the first is still noted, or ignored where the host has us ignore it.
        for signal in [Signal::SIGINT, Signal::SIGHUP] {
            assert_ne!((set("SigCgt:") | set("SigIgn:")) & bit(signal), 0, "{signal}");
        }
    }
}
