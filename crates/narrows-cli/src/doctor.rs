//! `narrows doctor`: what this host is like, and which of narrows' modes work here, for this user.

use std::fmt::Write;
use std::{io, thread};

use narrows_guest::kernel::GuestKernel;
use narrows_io::host::{self, Capabilities};
use narrows_io::scheduling::{Priority, RealTimeShare, groups_by_session, set_priority};
use narrows_io::ways;

use crate::output::{Failure, print};

pub(crate) fn doctor() -> Result<u8, Failure> {
    let held = Capabilities::effective();
    let privileged = held.as_ref().is_ok_and(|held| held.all());
    let namespaces = host::user_namespaces();
    let mut page = Page::default();
    page.heading("This host");
    this_host(&mut page);
    page.heading("This user");
    this_user(&mut page, held, &namespaces);
    page.heading("What works here");
    modes(&mut page, privileged, &namespaces);
    let able = privileged || namespaces.is_ok();
    page.heading("In short");
    let short = if able { "live runs work" } else { "only virtual time (`narrows sim`) works" };
    page.line(format_args!("  {short}"));
    print(&page.text)?;
    Ok(if able { 0 } else { 1 })
}

/// Topics at the left, findings in lines of up to a hundred columns.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, heading: &str) {
        let space = if self.text.is_empty() { "" } else { "\n" };
        self.line(format_args!("{space}{heading}"));
    }

    fn say(&mut self, topic: &str, finding: impl AsRef<str>) {
        const INDENT: usize = 24;
        const WIDTH: usize = 100 - INDENT;
        let (mut start, mut line) = (format!("  {topic}"), String::new());
        for word in finding.as_ref().split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(format_args!("{start:INDENT$}{line}"));
                (start, line) = (String::new(), String::new());
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(format_args!("{start:INDENT$}{line}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

fn unknown(error: io::Error) -> String {
    format!("unknown ({error})")
}

fn this_host(page: &mut Page) {
    page.say("kernel", host::kernel_release().unwrap_or_else(unknown));
    page.say("processors", processors());
    page.say("clock", clock());
    let slack = host::timer_slack();
    page.say(
        "timer slack",
        slack.map_or_else(unknown, |nanos| format!("{nanos} ns; runs set it to 1 ns for themselves")),
    );
    page.say("real-time share", real_time_share());
    page.say(
        "kernel's netem",
        match host::has_netem() {
            Some(true) => "there; not needed",
            Some(false) => "missing; not needed",
            None => "unknown; not needed",
        },
    );
}

fn this_user(page: &mut Page, held: io::Result<Capabilities>, namespaces: &io::Result<()>) {
    let who = match (host::user(), ways::in_user_namespace()) {
        (0, Ok(true)) => "root of a user namespace, which is nobody special to the host".into(),
        (0, _) => "root".into(),
        (user, _) => format!("user {user}"),
    };
    page.say("acts as", who);
    page.say("capabilities", held.map_or_else(unknown, describe));
    page.say(
        "user namespaces",
        match namespaces {
            Ok(()) => "can be made: `run` and `shell` work without root, between hosts of the run's own".into(),
            Err(error) => format!(
                "cannot be made ({error}): `run` and `shell` need root, or capabilities of the program's file; or have the \
                 administrator set user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 or \
                 kernel.apparmor_restrict_unprivileged_userns=0, whichever this host has"
            ),
        },
    );
    page.say(
        "locked memory",
        match ways::lockable_memory() {
            Ok(None) => "without a limit".into(),
            Ok(Some(bytes)) => format!(
                "{} kB (`ulimit -l`); counts for AF_XDP's memory, unless CAP_IPC_LOCK is held, as by root",
                bytes / 1024
            ),
            Err(error) => unknown(error),
        },
    );
}

/// What an ordinary user lacks; how to get it stands beside the capabilities.
const PRIVILEGES: &str = "root, or these capabilities";

/// Each mode: whether it works, or what it lacks and who can give it that.
fn modes(page: &mut Page, privileged: bool, namespaces: &io::Result<()>) {
    let here = ways::in_user_namespace().unwrap_or(false);
    let over_what = if here { ", over what is in this user namespace" } else { "" };
    let needs = |what: &str| match privileged {
        true => format!("yes{over_what}"),
        false => format!("no: {what} needs {PRIVILEGES}"),
    };
    page.say(
        "run, shell",
        match (privileged, namespaces) {
            (true, _) => "yes".into(),
            (false, Ok(())) => "yes, in a user namespace".into(),
            (false, Err(_)) => format!("no: without user namespaces they need {PRIVILEGES}"),
        },
    );
    page.say("  existing hosts", needs("a host in a namespace that exists"));
    page.say("  --internet", needs("address translation on this host"));
    page.say("bridge", needs("an interface that exists"));
    page.say("attach", attach(privileged, here));
    page.say("--backend af_packet", packet_sockets(namespaces));
    page.say("--backend af_xdp", af_xdp());
    page.say("--backend tap", tap());
    priorities(page);
    page.say("--virtual", in_a_guest(privileged, namespaces));
    page.say("sim, check and others", "yes: they need nothing");
}

/// Exact virtual time.
fn in_a_guest(privileged: bool, namespaces: &io::Result<()>) -> String {
    match GuestKernel::find(None) {
        _ if host::time_is_virtual() => "yes: this is a guest already".into(),
        _ if !privileged && namespaces.is_err() => "no: it needs user namespaces, or root".into(),
        Ok(kernel) => format!("yes, in the guest kernel {}", kernel.version),
        Err(error) => format!("no: {error}"),
    }
}

fn attach(privileged: bool, here: bool) -> String {
    match host::has_tcx() {
        _ if !privileged => format!("no: an interface that exists needs {PRIVILEGES}"),
        Ok(()) => "yes".into(),
        Err(_) if here => "no: BPF is not allowed in user namespaces: run it as root of the host".into(),
        Err(error) => format!("no: {error}"),
    }
}

fn packet_sockets(namespaces: &io::Result<()>) -> String {
    match (ways::packet_sockets(), namespaces) {
        (Ok(()), _) => "yes".into(),
        (Err(_), Ok(())) => "yes, in the user namespace of a run".into(),
        (Err(error), Err(_)) => format!("no ({error}): it needs {PRIVILEGES}"),
    }
}

fn af_xdp() -> String {
    let bpf = ways::bpf();
    match (ways::xdp_sockets(), &bpf) {
        (Ok(()), Ok(())) => "yes".into(),
        (Err(error), _) if error.kind() != io::ErrorKind::PermissionDenied => {
            format!("no ({error}): this kernel is built without AF_XDP (CONFIG_XDP_SOCKETS)")
        }
        _ => "no: BPF is not allowed to this user, nor in user namespaces: it needs root of the host".into(),
    }
}

fn tap() -> String {
    match narrows_io::tap::available() {
        Ok(()) => "yes".into(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "no: there is no /dev/net/tun: load the module (`modprobe tun`), or let the container have the device".into()
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "no: /dev/net/tun is closed to this user: root can open it with `chmod 666 /dev/net/tun`, as it is on most hosts"
                .into()
        }
        Err(error) => format!("no: /dev/net/tun: {error}"),
    }
}

/// Whether the packet loop may have more than the usual priority. Tried on a thread of its own, which then ends.
fn priorities(page: &mut Page) {
    for (name, priority, limit) in
        [("--priority high", Priority::High, "-e"), ("--priority real-time", Priority::RealTime, "-r")]
    {
        let tried = thread::spawn(move || set_priority(priority)).join();
        let tried = tried.unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")));
        let finding = match tried {
            Ok(()) if priority == Priority::High && groups_by_session() => {
                "yes; counts only against programs of the same session, as kernel.sched_autogroup_enabled is 1".into()
            }
            Ok(()) => "yes".into(),
            Err(error) => format!("no ({error}): it needs CAP_SYS_NICE over the host, or `ulimit {limit}`"),
        };
        page.say(name, finding);
    }
}

/// What the kernel does to real-time threads that never sleep, and what narrows does about that.
fn real_time_share() -> String {
    let share = match RealTimeShare::read() {
        Ok(share) => share,
        Err(error) => {
            return format!("unknown ({error}): the packet loop rests as with the kernel's default");
        }
    };
    match (share.runtime, share.rest()) {
        (None, _) => "without a bound: a packet loop with --wait spin and real-time priority leaves others nothing of its \
                      processor"
            .into(),
        (Some(0), _) => "none (kernel.sched_rt_runtime_us is 0): --priority real-time does not work".into(),
        (Some(runtime), rest) => {
            let (stop, period) = ((share.period - runtime) / 1000, share.period / 1000);
            format!(
                "the kernel stops real-time threads that never sleep for {stop} ms of each {period} ms; the packet loop \
                 avoids that: with --priority real-time it pauses for 100 µs at most, {rest} µs for each ms awake"
            )
        }
    }
}

fn processors() -> String {
    match host::processors() {
        1 => {
            "1: the packet loop and the programs under test share it; expect lateness of milliseconds".into()
        }
        2 => "2: the packet loop takes up to one of them".into(),
        many => many.to_string(),
    }
}

fn clock() -> String {
    match host::clock_source() {
        Ok(source) if source == "tsc" => "tsc: read in some 25 ns".into(),
        Ok(source) if source == "kvm-clock" => "kvm-clock: read in some 25 ns".into(),
        Ok(source) => format!("{source}: slower to read than tsc; expect more lateness"),
        Err(error) => format!("unknown ({error})"),
    }
}

fn describe(capabilities: Capabilities) -> String {
    let missing: Vec<_> = [
        (capabilities.net_admin, "CAP_NET_ADMIN"),
        (capabilities.net_raw, "CAP_NET_RAW"),
        (capabilities.sys_admin, "CAP_SYS_ADMIN"),
    ]
    .into_iter()
    .filter_map(|(held, name)| (!held).then_some(name))
    .collect();
    match missing.as_slice() {
        [] => "all that live runs need: CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN".into(),
        missing => format!(
            "without {}: root has them, and so does a program to which root gave them by its file: `setcap \
             cap_net_admin,cap_net_raw,cap_sys_admin+ep FILE`",
            missing.join(", ")
        ),
    }
}
