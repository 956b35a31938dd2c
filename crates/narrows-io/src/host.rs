//! Capabilities of this host: probes for `narrows doctor`. None changes anything.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;

use crate::namespace::Namespace;
use crate::route_socket::RouteSocket;

/// The relevant capabilities that this process has at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// `CAP_NET_ADMIN`: interfaces, addresses, routes.
    pub net_admin: bool,
    /// `CAP_NET_RAW`: packet sockets.
    pub net_raw: bool,
    /// `CAP_SYS_ADMIN`: namespaces.
    pub sys_admin: bool,
}

impl Capabilities {
    /// Reads this process's effective set.
    pub fn effective() -> io::Result<Self> {
        Self::parse(&fs::read_to_string("/proc/self/status")?)
            .ok_or_else(|| io::Error::other("no capabilities in /proc/self/status"))
    }

    /// Whether everything in this crate is allowed.
    pub fn all(self) -> bool {
        self.net_admin && self.net_raw && self.sys_admin
    }

    fn parse(status: &str) -> Option<Self> {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        let set = u64::from_str_radix(line.trim(), 16).ok()?;
        let has = |number: u32| set & (1 << number) != 0;
        Some(Self { net_admin: has(12), net_raw: has(13), sys_admin: has(21) })
    }
}

/// Whether this user can create a user namespace and open a packet socket in it. Tested in a child process; the error
/// is the kernel's.
pub fn user_namespaces() -> io::Result<()> {
    /// Means success: the child never executes a program.
    const WORKED: i32 = libc::EALREADY;
    let mut command = Command::new("/proc/self/exe");
    try_user_namespace(&mut command, WORKED);
    match command.spawn() {
        Err(outcome) if outcome.raw_os_error() == Some(WORKED) => Ok(()),
        Err(outcome) => Err(outcome),
        Ok(_) => unreachable!("the child returns an error on every path before it runs a program"),
    }
}

#[expect(unsafe_code, reason = "code between fork and exec")]
fn try_user_namespace(command: &mut Command, worked: i32) {
    let attempt = move || -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
        // SAFETY: no pointers are passed. The descriptor ends with the process, which ends at once.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
        nix::errno::Errno::result(socket)?;
        Err(io::Error::from_raw_os_error(worked))
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(attempt) };
}

/// The effective user ID; 0 is root.
pub fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The kernel's version, as in (6, 18), if its release begins with one.
pub fn kernel_version() -> Option<(u32, u32)> {
    version(&kernel_release().ok()?)
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The kernel's release, such as `6.18.1`.
pub fn kernel_release() -> io::Result<String> {
    read_trimmed("/proc/sys/kernel/osrelease")
}

/// The ID of the current boot, drawn at each start of the host.
pub fn boot() -> io::Result<String> {
    read_trimmed("/proc/sys/kernel/random/boot_id")
}

/// When the host was started, in seconds since 1970 by its present clock.
pub fn boot_time() -> io::Result<i64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line.and_then(|seconds| seconds.trim().parse().ok())
        .ok_or_else(|| io::Error::other("no start of the host in /proc/stat"))
}

/// The kernel's clock source; anything but `tsc` (or an ARM counter) makes timestamps slow.
pub fn clock_source() -> io::Result<String> {
    read_trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Whether this kernel is user-mode Linux with a virtual clock, which stands still during computation and jumps to
/// the next event when idle: nothing is late there, and no thread may poll without sleeping.
pub fn time_is_virtual() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| fs::read_to_string("/proc/cmdline").is_ok_and(|line| is_virtual(&line)))
}

fn is_virtual(command_line: &str) -> bool {
    let travels =
        |word: &str| word.starts_with("time-travel=inf-cpu") || word.starts_with("time-travel=ext:");
    command_line.split_whitespace().any(travels)
}

/// The number of processors this process may use.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The calling thread's timer slack in nanoseconds: how late the kernel may wake it to coalesce timers; 50,000 by
/// default.
pub fn timer_slack() -> io::Result<u64> {
    Ok(prctl::get_timerslack()?.max(0) as u64)
}

/// CPU time since the host started, over all processors, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    /// The total.
    pub total: u64,
    /// CPU steal: time that the hypervisor gave to other guests while we would have run.
    pub stolen: u64,
}

impl ProcessorTime {
    /// Reads the kernel's counters. The difference of two readings gives the share of CPU steal in between.
    pub fn read() -> io::Result<Self> {
        Self::parse(&fs::read_to_string("/proc/stat")?)
            .ok_or_else(|| io::Error::other("no processor times in /proc/stat"))
    }

    /// CPU steal since an earlier reading, as a share between 0 and 1.
    pub fn stolen_share_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        if total == 0 { 0.0 } else { stolen as f64 / total as f64 }
    }

    /// CPU steal since an earlier reading, over all processors, in nanoseconds.
    pub fn stolen_since(self, earlier: Self) -> u64 {
        /// A tick as reported to programs (`USER_HZ`): a hundredth of a second, on all but one extinct architecture.
        const TICK: u64 = 10_000_000;
        self.stolen.saturating_sub(earlier.stolen).saturating_mul(TICK)
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guest times are parts of the first two.
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        Some(Self { total: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }
}

/// A thread's run-queue wait: how long it was ready to run while others had the processor.
#[derive(Debug)]
pub struct RunDelay(fs::File);

impl RunDelay {
    /// For the calling thread. Any thread of the process may read it.
    ///
    /// # Errors
    /// If the kernel does not count it.
    pub fn of_this_thread() -> io::Result<Self> {
        Ok(Self(fs::File::open("/proc/thread-self/schedstat")?))
    }

    /// Since the thread started, in nanoseconds. CPU steal is only included while other tasks were waited for, too.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn read(&self) -> io::Result<u64> {
        let mut text = [0; 128];
        let length = self.0.read_at(&mut text, 0)?;
        let text = str::from_utf8(&text[..length]).unwrap_or_default();
        // Time on a processor, time in the run queue, how often it ran.
        let second = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        second.ok_or_else(|| io::Error::other("no waiting time in /proc/thread-self/schedstat"))
    }
}

/// Whether this kernel has `sch_netem`.
pub fn has_netem() -> Option<bool> {
    has_qdisc("netem", &[0; 24])
}

/// Whether this kernel has a queueing discipline with these options. Tested on the loopback interface of a temporary
/// namespace; the kernel may load the module for it.
pub fn has_qdisc(kind: &str, options: &[u8]) -> Option<bool> {
    let namespace = Namespace::create().ok()?;
    let outcome = RouteSocket::open(&namespace).ok()?.add_root_qdisc("lo", kind, options);
    match outcome {
        Ok(()) => Some(true),
        Err(crate::route_socket::NetlinkError::NotFound { .. }) => Some(false),
        Err(_) => None,
    }
}

fn read_trimmed(file: &str) -> io::Result<String> {
    Ok(fs::read_to_string(file)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_their_bits() {
        let all = Capabilities::parse("Name:\tx\nCapEff:\t000001ffffffffff\n").unwrap();
        assert!(all.all());
        let some = Capabilities::parse("CapEff:\t0000000000001000\n").unwrap();
        assert_eq!(some, Capabilities { net_admin: true, net_raw: false, sys_admin: false });
        assert_eq!(Capabilities::parse("Name:\tx\n"), None);
    }

    #[test]
    fn stolen_time_is_the_eighth_figure() {
        let stat = "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 2 3\n";
        let time = ProcessorTime::parse(stat).unwrap();
        assert_eq!(time, ProcessorTime { total: 360, stolen: 80 });
        let later = ProcessorTime { total: 460, stolen: 105 };
        assert!((later.stolen_share_since(time) - 0.25).abs() < 1e-12);
        assert_eq!(later.stolen_since(time), 250_000_000);
        assert_eq!(time.stolen_since(later), 0, "the kernel's sum may go back when a processor is taken out");
    }

    #[test]
    fn waiting_for_a_processor_only_grows() {
        let Ok(delay) = RunDelay::of_this_thread() else { return };
        let before = delay.read().unwrap();
        let from_elsewhere = thread::scope(|scope| scope.spawn(|| delay.read().unwrap()).join().unwrap());
        assert!(before <= from_elsewhere && from_elsewhere <= delay.read().unwrap());
    }

    #[test]
    fn virtual_time_is_seen_in_the_kernel_s_command_line() {
        assert!(is_virtual("mem=1G root=/dev/root time-travel=ext:/sys/clock quiet\n"));
        assert!(is_virtual("time-travel=inf-cpu"));
        assert!(!is_virtual("BOOT_IMAGE=/vmlinuz quiet time-travel-start=0"));
        assert!(!time_is_virtual());
    }

    #[test]
    fn this_host_answers() {
        assert!(!kernel_release().unwrap().is_empty());
        assert!(kernel_version().is_some());
        assert_eq!(version("6.18.44-arch1"), Some((6, 18)));
        assert_eq!(version("7.2-rc1"), Some((7, 2)));
        assert_eq!(version("next"), None);
        assert!(processors() > 0);
        assert!(ProcessorTime::read().unwrap().total > 0);
        Capabilities::effective().unwrap();
        timer_slack().unwrap();
        assert_eq!(boot().unwrap().len(), 36);
        assert!(boot_time().unwrap() > 0);
    }
}
