//! `narrows doctor`: what this host can do, and what it lacks.

use std::fmt::Write;

use narrows_io::host::{self, Capabilities};

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
    say(
        "kernel's netem",
        match host::has_netem() {
            Some(true) => "there; not needed".into(),
            Some(false) => "missing; not needed".into(),
            None => "unknown; not needed".into(),
        },
    );
    let able = privileged || namespaces.is_ok();
    say(
        "in short",
        if able { "live runs work".into() } else { "only virtual time (`narrows sim`) works".into() },
    );
    print(&text)?;
    Ok(if able { 0 } else { 1 })
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
