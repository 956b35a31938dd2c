//! Drops privileges once everything is set up: capabilities of a thread, and of what it starts without exec.
//!
//! Programs started afterwards get what they would have got before: a program of root gets root's capabilities at
//! exec, because the bounding set is kept (capabilities(7)); inheritable and ambient capabilities are kept, too. If a
//! process may gain nothing at exec (`no_new_privs`), unneeded capabilities are therefore only removed from the
//! effective set.
//!
//! A program that gains capabilities at exec beyond those of its parent process loses its death signal
//! ([`crate::process`]): so start programs first.

use std::fs;
use std::io;

/// Capabilities that may be kept, with the kernel's numbers (`linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Access to other users' files: where the report and the control socket are.
    DacOverride = 1,
    /// Signals to other users' programs: to end those of the run.
    Kill = 5,
    /// Interfaces, offloads, address translation: to restore them.
    NetAdmin = 12,
    /// Packet sockets.
    NetRaw = 13,
    /// To see programs of the run if `/proc` hides those of other users.
    SysPtrace = 19,
    /// To enter namespaces.
    SysAdmin = 21,
}

impl Capability {
    const ALL: [(Self, &str); 6] = [
        (Self::DacOverride, "CAP_DAC_OVERRIDE"),
        (Self::Kill, "CAP_KILL"),
        (Self::NetAdmin, "CAP_NET_ADMIN"),
        (Self::NetRaw, "CAP_NET_RAW"),
        (Self::SysPtrace, "CAP_SYS_PTRACE"),
        (Self::SysAdmin, "CAP_SYS_ADMIN"),
    ];
}

/// Makes the calling thread, and threads that it starts later, keep only these of its capabilities.
///
/// # Errors
/// If the kernel refuses; then nothing has changed.
pub fn keep(needed: &[Capability]) -> io::Result<()> {
    let set = needed.iter().fold(0, |set, capability| set | 1 << *capability as u32);
    reduce(set)
}

/// Drops all capabilities of the calling thread, for a thread that only reads and writes open descriptors.
///
/// # Errors
/// Those of [`keep`].
pub fn give_up() -> io::Result<()> {
    reduce(0)
}

/// The names of the calling thread's effective capabilities; `all others` stands for those that [`keep`] would drop.
///
/// # Errors
/// If the kernel does not report them.
pub fn in_effect() -> io::Result<Vec<&'static str>> {
    let mut left = Sets::of_thread()?.effective;
    let mut names = Vec::new();
    for (capability, name) in Capability::ALL {
        let bit = 1 << capability as u32;
        if left & bit != 0 {
            names.push(name);
            left &= !bit;
        }
    }
    if left != 0 {
        names.push("all others");
    }
    Ok(names)
}

fn reduce(needed: u64) -> io::Result<()> {
    let now = Sets::of_thread()?;
    let effective = now.effective & needed;
    // Ambient capabilities must be permitted; they are meant for programs that are started.
    let permitted =
        if now.no_new_privileges { now.permitted } else { now.permitted & (needed | now.ambient) };
    set(Sets { effective, permitted, ..now })
}

/// The capability sets of a thread, one bit per capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sets {
    effective: u64,
    permitted: u64,
    inheritable: u64,
    ambient: u64,
    no_new_privileges: bool,
}

impl Sets {
    fn of_thread() -> io::Result<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/status")?)
            .ok_or_else(|| io::Error::other("no capabilities in /proc/thread-self/status"))
    }

    fn parse(status: &str) -> Option<Self> {
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let set = |name| u64::from_str_radix(line(name)?, 16).ok();
        Some(Self {
            effective: set("CapEff:")?,
            permitted: set("CapPrm:")?,
            inheritable: set("CapInh:")?,
            // Kernels before 4.3 have none.
            ambient: set("CapAmb:").unwrap_or(0),
            no_new_privileges: line("NoNewPrivs:") == Some("1"),
        })
    }
}

#[expect(unsafe_code, reason = "a system call that no crate wraps")]
fn set(sets: Sets) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        process: i32,
    }
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 bits for each set.
    const VERSION: u32 = 0x2008_0522;
    // Process 0 is the calling thread.
    let header = Header { version: VERSION, process: 0 };
    let word = |set: u64, number: u32| (set >> (32 * number)) as u32;
    let data = [0, 1].map(|number| Data {
        effective: word(sets.effective, number),
        permitted: word(sets.permitted, number),
        inheritable: word(sets.inheritable, number),
    });
    // SAFETY: both pointers are to values that live until the call returns, laid out as of `linux/capability.h`: a header
    // of two words, and for this version two elements of three words each. The kernel only reads them.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    nix::errno::Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nNoNewPrivs:\t0\nCapInh:\t0000000000000001\nCapPrm:\t000001ffffffffff\n\
         CapEff:\t0000000000203000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000400\n";

    #[test]
    fn sets_are_read_from_their_bits() {
        let sets = Sets::parse(STATUS).unwrap();
        let expected = Sets {
            effective: 0x20_3000,
            permitted: 0x1ff_ffff_ffff,
            inheritable: 1,
            ambient: 0x400,
            no_new_privileges: false,
        };
        assert_eq!(sets, expected);
        assert!(Sets::parse(&STATUS.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1")).unwrap().no_new_privileges);
        assert_eq!(Sets::parse("Name:\tx\n"), None);
    }

    /// A thread that gives up what it has does so for itself alone. As an ordinary user there is nothing to give up, and
    /// that works, too.
    #[test]
    fn a_thread_keeps_what_it_was_told_and_others_keep_theirs() {
        let before = Sets::of_thread().unwrap();
        let reduced = std::thread::spawn(|| {
            keep(&[Capability::NetAdmin, Capability::Kill]).unwrap();
            let kept = Sets::of_thread().unwrap();
            let named = in_effect().unwrap();
            give_up().unwrap();
            (kept, named, Sets::of_thread().unwrap(), in_effect().unwrap())
        });
        let (kept, named, given_up, none) = reduced.join().unwrap();
        let wanted = 1 << 12 | 1 << 5;
        assert_eq!(kept.effective, before.effective & wanted);
        if !before.no_new_privileges {
            assert_eq!(kept.permitted, before.permitted & (wanted | before.ambient));
            assert_eq!(given_up.permitted, before.permitted & before.ambient);
        }
        assert_eq!((kept.inheritable, kept.ambient), (before.inheritable, before.ambient));
        assert!(named.iter().all(|name| ["CAP_KILL", "CAP_NET_ADMIN"].contains(name)), "{named:?}");
        assert_eq!((given_up.effective, none.len()), (0, 0));
        assert_eq!(Sets::of_thread().unwrap(), before);
    }
}
