//! `--backend`: the ways of the kernel's by which frames come and go.

use crate::common::{Scratch, direction, finish, narrows, run};

#[test]
#[ignore = "needs namespaces, ping"]
fn the_report_says_that_frames_came_by_packet_sockets() {
    assert_reported("af_packet");
}

#[test]
#[ignore = "needs root, af_xdp, ping"]
fn the_report_says_that_frames_came_by_af_xdp() {
    assert_reported("af_xdp");
}

/// That the report says by which way frames came.
fn assert_reported(way: &str) {
    let line =
        "exec >&2; ping -q -i 0.01 -c 20 $NARROWS_SERVER && ping -q -i 0.01 -s 1400 -c 20 $NARROWS_SERVER6";
    let flags = ["--backend", way, "--delay", "3ms", "--json", "-"];
    let ended = finish(&mut run(flags, line)).expect(0);
    let report = ended.json();
    let backend = report["host"]["backend"].as_str().unwrap();
    assert!(backend == way || backend.starts_with(&format!("{way} (")), "{report:#}");
    assert!(ended.err.contains(&format!("packet I/O: {backend}")), "{ended}");
    for link in ["link.up", "link.down"] {
        let direction = direction(&report, link);
        assert!(direction["delivered"]["packets"].as_u64() >= Some(40), "{report:#}");
    }
    let losses = &report["losses"];
    for key in ["receive_ring_dropped_packets", "send_failed_packets"] {
        assert_eq!(losses[key], 0, "{report:#}");
    }
}

#[test]
#[ignore = "needs root, af_xdp"]
fn where_nothing_is_named_the_best_is_taken() {
    let backend = |flags: &[&str]| {
        let flags = flags.iter().copied().chain(["--json", "-", "--quiet"]);
        let report = finish(&mut run(flags, "true")).expect(0).json();
        (report["host"]["backend"].as_str().unwrap().to_owned(), report["notes"].to_string())
    };
    let (usual, notes) = backend(&[]);
    assert!(usual.starts_with("af_xdp ("), "{usual}");
    assert!(!notes.contains("instead"), "{notes}");
    assert_eq!(backend(&["--trains"]).0, "af_packet");
    // More ends of cables than can share the memory.
    let scratch = Scratch::new();
    let link = |number| format!("[links.l{number}]\nbetween = [\"a\", \"b\"]\ndelay = \"1ms\"\n");
    let links: String = (0..17).map(link).collect();
    let scenario = scratch.file("many.toml");
    std::fs::write(&scenario, format!("[hosts.a]\n[hosts.b]\n{links}")).unwrap();
    let (many, notes) = backend(&[scenario.to_str().unwrap()]);
    assert_eq!(many, "af_packet");
    assert!(notes.contains(" served 34 cables"), "{notes}");
    let (many, notes) = backend(&[scenario.to_str().unwrap(), "--sockets", "own"]);
    assert_eq!(many, "af_packet");
    assert!(notes.contains("af_packet instead of af_xdp: 34 ends of cables"), "{notes}");
    let named = finish(&mut run([scenario.to_str().unwrap(), "--backend", "af_xdp"], "true"));
    let named = named.expect(2).err;
    assert!(named.contains("34 ends of cables are more than the 32"), "{named}");
}

#[test]
#[ignore = "needs root, iperf3, af_xdp"]
fn frames_that_find_the_ring_full_are_held_back_at_the_sender_or_counted() {
    let flags = ["--backend", "af_xdp", "--json", "-", "--quiet", "--on", "server", "iperf3 -s -1 >&2"];
    let line =
        "exec >&2; iperf3 -u -b 1G -l 64 -t 1 -c $NARROWS_SERVER; awk '/link:/ {print $13}' /proc/net/dev";
    let ended = finish(&mut run(flags, line)).expect(0);
    // The server says what it received, too, at any time.
    let dropped: u64 = ended.err.lines().rev().find_map(|line| line.trim().parse().ok()).unwrap();
    let report = ended.json();
    let up = &report["ports"][0];
    assert_eq!(up["name"], "client.link", "{report:#}");
    assert!(up["arrived_packets"].as_u64() >= Some(1000), "{up:#}");
    assert!(up["receive_ring_dropped_packets"].as_u64() >= Some(dropped), "{dropped}: {up:#}");
}

#[test]
fn busy_polling_is_for_af_xdp() {
    let refused = finish(&mut narrows(["run", "--backend", "af_packet", "--busy-poll", "--", "true"]));
    let refused = refused.expect(2).err;
    assert!(
        refused.contains("--busy-poll is for --backend af_xdp, and the backend is af_packet"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs root, af_xdp"]
fn af_xdp_polls_busily_where_asked() {
    finish(&mut run(["--backend", "af_xdp", "--busy-poll"], "true")).expect(0);
}

#[test]
#[ignore = "needs root, ping, af_xdp"]
fn a_run_by_af_xdp_replays_with_the_same_verdicts() {
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
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

#[test]
#[ignore = "needs namespaces, unshare"]
fn af_xdp_in_a_user_namespace_says_what_it_needs() {
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--", crate::common::NARROWS]);
    command.args(["run", "--backend", "af_xdp", "--", "true"]).env_remove("NARROWS_CONTROL");
    let ended = finish(&mut command);
    assert_ne!(ended.code(), 0, "{ended}");
    assert!(ended.err.contains("CAP_BPF") && ended.err.contains("root"), "{ended}");
}

/// `auto` takes the kernel where it is offered and everything fits. What does not fit there runs all the same, and the report says what.
#[test]
#[ignore = "needs namespaces"]
fn auto_says_why_links_are_not_inside_the_kernel() {
    let backend = |flags: &[&str]| {
        let flags =
            flags.iter().copied().chain(["--backend", "auto", "--delay", "1ms", "--json", "-", "--quiet"]);
        let report = finish(&mut run(flags, "true")).expect(0).json();
        (report["host"]["backend"].as_str().unwrap().to_owned(), report["notes"].to_string())
    };
    let (used, notes) = backend(&["--duplicate", "1%"]);
    assert!(used.starts_with("af_"), "{used}");
    assert!(notes.contains("auto: not inside the kernel") && notes.contains("link.up.duplicate"), "{notes}");
    // Whether it fits, is up to this host.
    let (used, notes) = backend(&[]);
    let said = if used == "kernel" {
        "auto: inside the kernel, so that they do not change: link"
    } else {
        "auto: not inside the kernel"
    };
    assert!(notes.contains(said), "{used}: {notes}");
}

#[test]
#[ignore = "needs namespaces"]
fn what_does_not_fit_into_the_kernel_is_refused_before_the_run() {
    let flags =
        ["--backend", "kernel", "--delay", "1ms", "--duplicate", "1%", "--loss", "1%", "--corrupt", "1%"];
    let error = finish(&mut run(flags, "true")).expect(2).err;
    for line in [
        "link.up.duplicate: a BPF qdisc cannot copy a packet",
        "link.down.duplicate",
        "af_packet and af_xdp do",
    ] {
        assert!(error.contains(line), "{error}");
    }
    assert!(!error.contains("loss") && !error.contains("corrupt"), "{error}");
}
