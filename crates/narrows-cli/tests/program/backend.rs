//! `--backend`: the ways of the kernel's by which frames come and go.

use crate::common::{Scratch, direction, finish, has, live, narrows, root, run};

/// Where AF_XDP works: as root, outside any container that forbids BPF.
fn has_af_xdp() -> bool {
    root() && {
        let ended = finish(&mut run(["--backend", "af_xdp"], "true"));
        assert!(ended.code() == 0 || ended.err.contains("not allowed"), "{ended}");
        ended.code() == 0
    }
}

#[test]
fn the_report_says_by_which_way_frames_came() {
    if !live() || !has("ping") {
        return;
    }
    let line =
        "exec >&2; ping -q -i 0.01 -c 20 $NARROWS_SERVER && ping -q -i 0.01 -s 1400 -c 20 $NARROWS_SERVER6";
    let ways = if has_af_xdp() { &["af_packet", "af_xdp"][..] } else { &["af_packet"][..] };
    for way in ways {
        let flags = ["--backend", way, "--delay", "3ms", "--json", "-"];
        let ended = finish(&mut run(flags, line)).expect(0);
        let report = ended.json();
        let backend = report["host"]["backend"].as_str().unwrap();
        assert!(backend == *way || backend.starts_with(&format!("{way} (")), "{report:#}");
        assert!(ended.err.contains(&format!("frames by {backend}")), "{ended}");
        for link in ["link.up", "link.down"] {
            let direction = direction(&report, link);
            assert!(direction["delivered"]["packets"].as_u64() >= Some(40), "{report:#}");
        }
        let losses = &report["losses"];
        for key in ["receive_ring_dropped_packets", "send_failed_packets"] {
            assert_eq!(losses[key], 0, "{report:#}");
        }
    }
}

#[test]
fn a_run_by_af_xdp_replays_with_the_same_verdicts() {
    if !has("ping") || !has_af_xdp() {
        return;
    }
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let log = log.to_str().unwrap();
    // Losses, copies, bit errors, and a queue that overflows: frames are shared, copied, changed and dropped.
    let flags = [
        "--backend",
        "af_xdp",
        "--rate",
        "20mbit",
        "--delay",
        "2ms",
        "--loss",
        "5%",
        "--duplicate",
        "5%",
        "--corrupt",
        "5%",
        "--reorder",
        "5%",
        "--queue",
        "20 packets",
        "--record",
        log,
    ];
    let line = "exec >&2; ping -q -f -c 2000 -l 60 -s 1300 $NARROWS_SERVER; ping -q -f -c 2000 -l 60 $NARROWS_SERVER6; true";
    finish(&mut run(flags, line)).expect(0);
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all are the same, to the nanosecond"), "{replayed}");
}

#[test]
fn af_xdp_in_a_user_namespace_says_what_it_needs() {
    if !live() || !has("unshare") {
        return;
    }
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--", crate::common::NARROWS]);
    command.args(["run", "--backend", "af_xdp", "--", "true"]).env_remove("NARROWS_CONTROL");
    let ended = finish(&mut command);
    assert_ne!(ended.code(), 0, "{ended}");
    assert!(ended.err.contains("CAP_BPF") && ended.err.contains("root"), "{ended}");
}
