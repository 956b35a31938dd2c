//! Ctrl-C for long computations, which then end by themselves.
//!
//! The first signal that asks us to end is recorded, and the computation checks [`asked`] from time to time. The
//! second one ends the process at once, as by default: a computation that does not check, or a pipe that nobody
//! reads, cannot block the exit. Programs that wait rather than compute use [`crate::wait::EndSignals`].

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The number of the first signal, or zero.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// From now on, records the first `SIGINT`, `SIGTERM` or `SIGHUP` of each kind instead of being ended by it. Ignored
/// signals, as under `nohup`, stay ignored.
///
/// # Errors
/// If the kernel refuses, for which it has no reason.
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

/// The signal received since [`catch`], if any. Only reads memory.
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
