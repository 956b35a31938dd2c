//! When and where the kernel runs the calling thread: its processor and priority.
//!
//! Changes only apply to that one thread. Programs that it starts, and threads that call [`as_usual`], run where the
//! process was allowed to run before; the priority is never inherited (`SCHED_RESET_ON_FORK`).
//!
//! **The kernel's guard against real-time hogs.** Threads under `SCHED_FIFO` have priority over all normal ones, so
//! one that never sleeps would starve the rest. The kernel therefore limits them to `kernel.sched_rt_runtime_us` (950
//! ms) of each `kernel.sched_rt_period_us` (1 s) of a processor: a thread that exceeds this is stopped for the rest,
//! 50 ms at once. Kernels since 6.12 give that time to waiting normal threads, through a deadline server, which stops
//! the hog for as long. A thread that sleeps often enough is affected by neither; [`RealTimeShare`] says how often
//! that is.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::OnceLock;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);
/// The processors that this process was allowed to use before it changed that.
static USUAL: OnceLock<CpuSet> = OnceLock::new();

/// The priority of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Unchanged.
    #[default]
    Usual,
    /// The largest share among normal threads, nice −20: shorter run-queue waits, and nothing starves. It may only
    /// apply within a session ([`groups_by_session`]).
    High,
    /// Before all normal threads, with the lowest priority of `SCHED_FIFO`.
    RealTime,
}

/// Pins the calling thread to this processor.
///
/// # Errors
/// If the processor does not exist, or this process may not use it.
pub fn pin(processor: usize) -> io::Result<()> {
    let usual = sched_getaffinity(SELF)?;
    let _ = USUAL.set(usual);
    let mut only = CpuSet::new();
    only.set(processor)?;
    Ok(sched_setaffinity(SELF, &only)?)
}

/// Pins another process, and those that it starts later, to this processor.
///
/// # Errors
/// If the processor does not exist, or that process may not use it or is gone.
pub fn pin_process(process: u32, processor: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(process as i32), &only)?)
}

/// A processor that no other claim has, preferably the one that the calling thread runs on, for as long as the claim
/// lives. `None` if all usable ones are taken.
///
/// Claims are names of sockets in the network namespace: they end with their process, however that ends.
#[derive(Debug)]
pub struct Claim {
    /// The processor.
    pub processor: usize,
    _name: UnixListener,
}

impl Claim {
    /// Makes a claim for a purpose, which is part of the name.
    ///
    /// # Errors
    /// If the kernel gives no information on processors.
    pub fn make(purpose: &str) -> io::Result<Option<Self>> {
        let mut processors = usable_processors()?;
        let current = sched_getcpu()?;
        processors.sort_by_key(|&processor| processor != current);
        let claim = |processor| {
            let name = format!("narrows/{purpose}/processor-{processor}");
            let address = SocketAddr::from_abstract_name(name).ok()?;
            Some(Self { processor, _name: UnixListener::bind_addr(&address).ok()? })
        };
        Ok(processors.into_iter().find_map(claim))
    }
}

/// The processors that the calling thread may use, in order.
///
/// # Errors
/// If the kernel does not report them.
pub fn usable_processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(SELF)?;
    Ok((0..CpuSet::count()).filter(|&processor| set.is_set(processor).unwrap_or(false)).collect())
}

/// Lets the calling thread run wherever this process was allowed to before [`pin`]. Makes at most one system call,
/// and allocates nothing.
pub fn as_usual() -> io::Result<()> {
    match USUAL.get() {
        None => Ok(()),
        Some(usual) => Ok(sched_setaffinity(SELF, usual)?),
    }
}

/// Changes the calling thread's priority. Threads and programs that it starts later have the normal one.
///
/// # Errors
/// If this process lacks `CAP_SYS_NICE` over the host, and its limits (`ulimit -r`, `ulimit -e`) do not allow it.
#[expect(unsafe_code, reason = "system calls that nix lacks")]
pub fn set_priority(priority: Priority) -> io::Result<()> {
    let (policy, level) = match priority {
        Priority::Usual => return Ok(()),
        Priority::High => (libc::SCHED_OTHER, 0),
        Priority::RealTime => (libc::SCHED_FIFO, 1),
    };
    let level: libc::c_int = level;
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // musl's function does nothing. SAFETY: the level, which is all that the kernel's parameters are, is live; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const level) };
    nix::errno::Errno::result(result)?;
    if priority == Priority::High {
        // SAFETY: no pointers are passed; 0 is the calling thread.
        let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        nix::errno::Errno::result(result)?;
    }
    Ok(())
}

/// A slice of time that [`take_short_slices`] asks for: the shortest that the kernel grants.
const SHORT_SLICE: u64 = 100_000;

/// Lets the calling thread, of normal priority, run soon after it wakes up where others of normal priority run: it
/// takes its share of the processor in short slices. The share stays the same. Returns whether it is so: Linux before
/// 6.12 has one slice for all, some milliseconds. Threads and programs that the calling one starts later have that, too.
#[expect(unsafe_code, reason = "system calls that nix lacks")]
pub fn take_short_slices() -> bool {
    let Some(mut attributes) = attributes() else { return false };
    let is_normal = attributes.sched_policy == libc::SCHED_OTHER as u32;
    // Kernels that have slices show the present one.
    if !is_normal || attributes.sched_runtime == 0 {
        return false;
    }
    attributes.sched_runtime = SHORT_SLICE;
    attributes.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: the attributes are live; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

/// How the kernel schedules the calling thread.
#[expect(unsafe_code, reason = "system calls that nix lacks")]
fn attributes() -> Option<libc::sched_attr> {
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the attributes are live, and the size is theirs; 0 is the calling thread.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (read == 0).then_some(attributes)
}

/// Lets the calling thread run soon after it is woken, however many others are ready: by short slices, or else by
/// nice −20, if allowed and no other nice value was set. For a thread with little work, which lets others run
/// ([`std::thread::yield_now`]) between portions of some ten microseconds where it has more. Threads and programs that
/// it starts later have the normal priority.
#[expect(unsafe_code, reason = "a system call that nix lacks")]
pub fn run_soon() {
    // SAFETY: no pointers are passed; 0 is the calling thread. An error is −1, which is not 0 either.
    if !take_short_slices() && unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) } == 0 {
        // If it is not allowed, nothing changes.
        let _ = set_priority(Priority::High);
    }
}

/// Lets the calling thread give way to others of this process, for files that may lag behind: nice 5, a third of what
/// another thread gets. Threads that it starts later inherit it.
#[expect(unsafe_code, reason = "a system call that nix lacks")]
pub fn give_way() {
    // SAFETY: no pointers are passed; 0 is the calling thread.
    if unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) } < 5 {
        // SAFETY: as above. A thread may always become nicer.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
    }
}

/// Whether the kernel first divides processors among sessions, so that the nice value only applies within one.
pub fn groups_by_session() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1")
}

/// The kernel's limit on CPU time of real-time threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimeShare {
    /// Microseconds in each period; `None` if there is no limit.
    pub runtime: Option<u64>,
    /// The period in microseconds.
    pub period: u64,
}

impl RealTimeShare {
    /// Reads the kernel's settings.
    ///
    /// # Errors
    /// If the kernel does not show them.
    pub fn read() -> io::Result<Self> {
        let setting = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        Self::parse(&setting("sched_rt_runtime_us")?, &setting("sched_rt_period_us")?)
            .ok_or_else(|| io::Error::other("kernel.sched_rt_runtime_us is not a number"))
    }

    /// The rest that a thread needs per 1000 parts of time awake, so that it is never stopped: twice what the kernel
    /// reserves for normal threads. Normal threads must actually get that time, and much of a short pause is spent
    /// switching to them and back.
    pub fn rest(self) -> u64 {
        let Some(runtime) = self.runtime else { return 0 };
        let kept = self.period.saturating_sub(runtime);
        (kept * 2000).div_ceil(self.period.max(1)).min(1000)
    }

    fn parse(runtime: &str, period: &str) -> Option<Self> {
        let runtime: i64 = runtime.trim().parse().ok()?;
        let period = period.trim().parse().ok()?;
        // −1 means no limit, and so does a runtime equal to the period.
        let runtime = u64::try_from(runtime).ok().filter(|&runtime| runtime < period);
        Some(Self { runtime, period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_rests_as_told_stays_below_the_kernels_bound() {
        let usual = RealTimeShare::parse("950000\n", "1000000\n").unwrap();
        assert_eq!((usual.runtime, usual.rest()), (Some(950_000), 100));
        assert_eq!(RealTimeShare::parse("-1", "1000000").unwrap().rest(), 0, "no bound, no rest");
        assert_eq!(RealTimeShare::parse("1000000", "1000000").unwrap().rest(), 0);
        assert_eq!(RealTimeShare::parse("0", "1000000").unwrap().rest(), 1000, "none at all");
        assert_eq!(RealTimeShare::parse("x", "1"), None);
    }

    #[test]
    fn a_thread_that_gives_way_is_nicer_and_short_slices_change_nothing_else() {
        std::thread::spawn(|| {
            give_way();
            let before = attributes().unwrap();
            assert!(before.sched_nice >= 5);
            let has_slices = take_short_slices();
            let after = attributes().unwrap();
            assert_eq!(has_slices, after.sched_runtime == SHORT_SLICE);
            assert_eq!((after.sched_policy, after.sched_nice), (before.sched_policy, before.sched_nice));
            let started = std::thread::spawn(|| attributes().unwrap().sched_runtime).join().unwrap();
            assert_eq!(started, before.sched_runtime);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_pinned_thread_runs_there_and_others_as_usual() {
        std::thread::spawn(|| {
            let before = usable_processors().unwrap();
            let last = *before.last().unwrap();
            pin(last).unwrap();
            assert_eq!(usable_processors().unwrap(), [last]);
            let inherited = std::thread::spawn(|| {
                let inherited = usable_processors().unwrap();
                as_usual().unwrap();
                (inherited, usable_processors().unwrap())
            });
            assert_eq!(inherited.join().unwrap(), (vec![last], before));
            assert!(pin(CpuSet::count() - 1).is_err(), "no host has as many");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn each_claim_has_a_processor_of_its_own_until_it_is_given_up() {
        let purpose = format!("test-{}", std::process::id());
        let claims: Vec<_> = std::iter::from_fn(|| Claim::make(&purpose).unwrap()).collect();
        let mut claimed: Vec<_> = claims.iter().map(|claim| claim.processor).collect();
        claimed.sort_unstable();
        assert_eq!(claimed, usable_processors().unwrap());
        assert!(Claim::make(&purpose).unwrap().is_none());
        drop(claims);
        assert!(Claim::make(&purpose).unwrap().is_some());
    }
}
