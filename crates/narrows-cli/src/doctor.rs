//! `narrows doctor`: properties of this host, and which modes of narrows work here for this user.

mod clab;
mod cni;
mod docker;
mod remedies;
mod ssh;

use std::collections::BTreeMap;
use std::{io, thread};

use narrows_guest::kernel::GuestKernel;
use narrows_io::host::{self, Capabilities};
use narrows_io::scheduling::{Priority, RealTimeShare, groups_by_session, set_priority};
use narrows_io::ways;

use serde::Serialize;

use self::remedies::Facts;
use crate::args::{Doctor, Purpose};
use crate::output::{Failure, columns};

/// Version of the JSON output.
const SCHEMA: u32 = 1;

pub(crate) fn doctor(args: &Doctor) -> Result<u8, Failure> {
    args.json.probe()?;
    if let Some(purpose) = args.purpose {
        let mut page = Page::default();
        let (works, what) = match purpose {
            Purpose::Clab => (clab::findings(&mut page), "clab works"),
            Purpose::Docker => (docker::findings(&mut page), "docker watch and compose work"),
            Purpose::Ssh => (ssh::findings(&mut page, &args.ssh), "up --machines works"),
            Purpose::Cni => (cni::findings(&mut page), "the CNI plugin works"),
        };
        let short = if works { what } else { "something is missing: see above" };
        args.json.put(SCHEMA, &page.found(works), || page.text(short))?;
        return Ok(if works { 0 } else { 1 });
    }
    let held = Capabilities::effective();
    let privileged = held.as_ref().is_ok_and(|held| held.all());
    let namespaces = host::user_namespaces();
    let mut page = Page::default();
    page.heading("This host", "host");
    this_host(&mut page);
    page.heading("This user", "user");
    this_user(&mut page, held, &namespaces);
    page.heading("What works here", MODES);
    modes(&mut page, privileged, &namespaces);
    let remedies = Facts::find(privileged, namespaces.is_ok()).remedies();
    if !remedies.is_empty() {
        page.heading("How to fix it", "remedies");
        remedies.iter().for_each(|(problem, remedy)| page.say(problem, remedy));
    }
    let able = privileged || namespaces.is_ok();
    let short = if able { "live runs work" } else { "only virtual time (`narrows sim`) works" };
    args.json.put(SCHEMA, &page.found(able), || page.text(short))?;
    Ok(if able { 0 } else { 1 })
}

/// Findings by topic, in sections.
#[derive(Default)]
struct Page {
    sections: Vec<Section>,
}

struct Section {
    heading: &'static str,
    /// Name in JSON.
    name: &'static str,
    findings: Vec<(String, String)>,
}

/// JSON output: the topics of each section, and whether each mode works.
#[derive(Serialize)]
struct Found<'a> {
    /// Whether live runs work.
    works: bool,
    #[serde(flatten)]
    sections: BTreeMap<&'a str, BTreeMap<&'a str, Finding<'a>>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    /// For modes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    works: Option<bool>,
    finding: &'a str,
}

impl Page {
    fn heading(&mut self, heading: &'static str, name: &'static str) {
        self.sections.push(Section { heading, name, findings: Vec::new() });
    }

    fn say(&mut self, topic: &str, finding: impl AsRef<str>) {
        let words: Vec<_> = finding.as_ref().split_whitespace().collect();
        if let Some(section) = self.sections.last_mut() {
            section.findings.push((topic.into(), words.join(" ")));
        }
    }

    fn found(&self, works: bool) -> Found<'_> {
        let sections = self.sections.iter().map(|section| {
            let findings = section.findings.iter().map(|(topic, finding)| {
                let works = [MODES, "docker", "clab", "ssh", "machines", "cni"]
                    .contains(&section.name)
                    .then(|| finding.starts_with("yes"));
                (topic.trim(), Finding { works, finding })
            });
            (section.name, findings.collect())
        });
        Found { works, sections: sections.collect() }
    }

    /// Topics on the left, findings wrapped at a hundred columns.
    fn text(&self, short: &str) -> String {
        let mut text = String::new();
        for Section { heading, findings, .. } in &self.sections {
            text += &format!("{heading}\n");
            for (topic, finding) in findings {
                text += &columns(INDENT, WIDTH, &format!("  {topic}"), finding);
            }
            text.push('\n');
        }
        text + &format!("Summary\n  {short}\n")
    }
}

/// The section whose findings start with yes or no.
const MODES: &str = "modes";

/// Column of the findings, and page width.
const INDENT: usize = 24;
const WIDTH: usize = 100;

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
        (0, Ok(true)) => "root of a user namespace, unprivileged on the host".into(),
        (0, _) => "root".into(),
        (user, _) => format!("user {user}"),
    };
    page.say("acts as", who);
    page.say("capabilities", held.map_or_else(unknown, describe));
    page.say(
        "user namespaces",
        match namespaces {
            Ok(()) => "available: `run` and `shell` work without root".into(),
            Err(error) => format!(
                "unavailable ({error}): `run` and `shell` need root, or file capabilities on the program; or have the \
                 administrator set user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 or \
                 kernel.apparmor_restrict_unprivileged_userns=0, whichever this host has"
            ),
        },
    );
    page.say(
        "locked memory",
        match ways::lockable_memory() {
            Ok(None) => "unlimited".into(),
            Ok(Some(bytes)) => format!(
                "{} kB (`ulimit -l`); limits AF_XDP memory unless CAP_IPC_LOCK is held, as by root",
                bytes / 1024
            ),
            Err(error) => unknown(error),
        },
    );
}

/// What an ordinary user lacks. The capabilities section tells how to get it.
const PRIVILEGES: &str = "root, or these capabilities";

/// Each mode: whether it works, or what it lacks and who can provide it.
fn modes(page: &mut Page, privileged: bool, namespaces: &io::Result<()>) {
    let here = ways::in_user_namespace().unwrap_or(false);
    let over_what = if here { ", within this user namespace" } else { "" };
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
    page.say("  existing hosts", needs("a host in an existing namespace"));
    page.say("  --internet", needs("NAT on this host"));
    page.say("bridge, route", needs("an existing interface"));
    page.say("attach", attach(privileged, here));
    page.say("--backend af_packet", packet_sockets(namespaces));
    page.say("--backend af_xdp", af_xdp());
    page.say("--backend kernel", in_kernel());
    page.say("--backend tap", tap());
    priorities(page);
    page.say("--virtual", in_a_guest(privileged, namespaces));
    page.say("sim, check and others", "yes: no requirements");
}

/// Exact virtual time.
fn in_a_guest(privileged: bool, namespaces: &io::Result<()>) -> String {
    match GuestKernel::find(None) {
        _ if host::time_is_virtual() => "yes: already inside a guest".into(),
        _ if !privileged && namespaces.is_err() => "no: it needs user namespaces, or root".into(),
        Ok(kernel) => format!("yes, in the guest kernel {}", kernel.version),
        Err(error) => format!("no: {error}"),
    }
}

fn attach(privileged: bool, here: bool) -> String {
    match narrows_io::detour::has_tcx() {
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

/// Tried, since much may be missing: the program in this build, types, BPF qdiscs, the privilege, functions that the program
/// calls.
fn in_kernel() -> String {
    match narrows_kernel::try_out() {
        Ok(()) if jit_is_off() => "yes, slowly: net.core.bpf_jit_enable is 0".into(),
        Ok(()) => "yes".into(),
        Err(error) => format!("no: {error}"),
    }
}

fn jit_is_off() -> bool {
    std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").is_ok_and(|text| text.trim() == "0")
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

/// Whether the packet loop may have a higher priority. Tested in a separate thread, which then ends.
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

/// How the kernel limits real-time threads that never sleep, and what narrows does about it.
fn real_time_share() -> String {
    let share = match RealTimeShare::read() {
        Ok(share) => share,
        Err(error) => {
            return format!("unknown ({error}): the packet thread pauses as for the kernel's default");
        }
    };
    match (share.runtime, share.rest()) {
        (None, _) => "unlimited: a packet thread with --wait spin and real-time priority starves others on its processor"
            .into(),
        (Some(0), _) => "none (kernel.sched_rt_runtime_us is 0): --priority real-time does not work".into(),
        (Some(runtime), rest) => {
            let (stop, period) = ((share.period - runtime) / 1000, share.period / 1000);
            format!(
                "the kernel stops real-time threads that never sleep for {stop} ms of each {period} ms; with --priority real-time the packet thread avoids that by pausing at most 100 µs, {rest} µs per ms awake"
            )
        }
    }
}

fn processors() -> String {
    match host::processors() {
        1 => "1: shared by packet thread and programs under test; expect milliseconds of lateness".into(),
        2 => "2: the packet thread uses up to one of them".into(),
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
            "without {}: run as root, or as a program with file capabilities: `setcap cap_net_admin,cap_net_raw,cap_sys_admin+ep FILE`",
            missing.join(", ")
        ),
    }
}
