//! `narrows doctor`: what this host can do, and what it lacks.

use std::fmt::Write;
use std::{io, thread};

use narrows_io::bpf::Map;
use narrows_io::host::{self, Capabilities};
use narrows_io::scheduling::{Priority, RealTimeShare, groups_by_session, set_priority};

use crate::output::{Failure, print};

pub(crate) fn doctor() -> Result<u8, Failure> {
    let mut text = String::new();
    let mut say = |topic: &str, finding: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{topic:<18}{finding}");
    };
    let unknown = |error: std::io::Error| format!("unknown ({error})");
    say("kernel", host::kernel_release().unwrap_or_else(unknown));
    say("processors", processors());
    say("clock", clock());
    say(
        "timer slack",
        host::timer_slack().map_or_else(unknown, |nanos| format!("{nanos} ns; runs set it to 1 ns")),
    );
    say("priority", priority());
    say("real-time share", real_time_share());
    let capabilities = Capabilities::effective();
    let privileged = capabilities.as_ref().is_ok_and(|c| c.all());
    say("privileges", capabilities.map_or_else(unknown, describe));
    let namespaces = host::user_namespaces();
    say(
        "user namespaces",
        match &namespaces {
            Ok(()) => {
                "can be made: `run` and `shell` work without root, between hosts of the run's own".into()
            }
            Err(error) => format!("cannot be made ({error}): `run` and `shell` need root"),
        },
    );
    say("TAP devices", tap());
    say(
        "attach",
        match host::has_tcx() {
            Ok(()) => "possible: programs can be put onto interfaces".into(),
            Err(error) => format!("not possible: {error}"),
        },
    );
    say(
        "kernel's netem",
        match host::has_netem() {
            Some(true) => "there; not needed".into(),
            Some(false) => "missing; not needed".into(),
            None => "unknown; not needed".into(),
        },
    );
    say("af_xdp", af_xdp());
    let able = privileged || namespaces.is_ok();
    say(
        "in short",
        if able { "live runs work".into() } else { "only virtual time (`narrows sim`) works".into() },
    );
    print(&text)?;
    Ok(if able { 0 } else { 1 })
}

/// Whether `--backend af_xdp` is possible. Tried by making a map, which is then gone.
fn af_xdp() -> String {
    match Map::of_numbers("narrows", 1) {
        Ok(_) => "possible, by --backend af_xdp".into(),
        Err(error) => format!("not possible ({error}); af_packet is there"),
    }
}

/// Whether the packet loop may have more than the usual priority. Tried on a thread of its own, which then ends.
fn priority() -> String {
    let allowed = |priority| {
        let tried = thread::spawn(move || set_priority(priority)).join();
        tried.unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
    };
    match (allowed(Priority::High), allowed(Priority::RealTime)) {
        (Ok(()), Ok(())) if groups_by_session() => {
            "--priority high and real-time are allowed; high counts only against programs of the same session, as \
             kernel.sched_autogroup_enabled is 1"
                .into()
        }
        (Ok(()), Ok(())) => "--priority high and real-time are allowed".into(),
        (Ok(()), Err(error)) => format!("--priority high is allowed, real-time is not ({error})"),
        (Err(error), Ok(())) => format!("--priority real-time is allowed, high is not ({error})"),
        (Err(error), Err(_)) => format!(
            "neither --priority high nor real-time is allowed ({error}): they need CAP_SYS_NICE, or `ulimit -e` and `-r`"
        ),
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

/// Whether `--backend tap` finds its device.
fn tap() -> String {
    match narrows_io::tap::available() {
        Ok(()) => "there: `--backend tap` works where namespaces can be made".into(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "/dev/net/tun may not be opened: `--backend tap` needs root here, or mode 0666 for that".into()
        }
        Err(error) => format!("missing ({error}): `--backend tap` does not work; modprobe tun"),
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
        missing => format!("without {}: existing namespaces and --internet need root", missing.join(", ")),
    }
}
