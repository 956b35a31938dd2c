//! One packet socket for the cables of many hosts.

use std::fmt::Write;

use crate::common::{NARROWS, Scratch, direction, finish, narrows, quoted, sound};

/// Hosts around a router.
fn star(hosts: usize) -> String {
    let mut text = String::from("seed = 3\n[routers.middle]\n");
    for host in 1..=hosts {
        writeln!(
            text,
            "[hosts.h{host}]\n[links.l{host}]\nbetween = [\"h{host}\", \"middle\"]\ndelay = \"1ms\""
        )
        .unwrap();
    }
    text
}

/// What the interface of a host has received: bytes and packets.
const COUNTS: &str = "ip -s link show dev l9 | awk 'NR == 4 {print \\$1, \\$2}'";

#[test]
#[ignore = "needs namespaces, ping"]
fn many_hosts_share_one_and_each_gets_its_own_frames() {
    let scratch = Scratch::new();
    let scenario = scratch.write("star.toml", &star(40));
    let itself = quoted(NARROWS);
    // From the first host to two others; a third one hears nothing of it.
    let line = format!(
        "exec >&2; before=$({itself} exec $NARROWS_RUN h9 -- sh -c \"{COUNTS}\"); \
         ping -q -c 20 -i 0.01 $NARROWS_HOST_H2; ping -q -c 10 -i 0.01 $NARROWS_HOST_H40; \
         after=$({itself} exec $NARROWS_RUN h9 -- sh -c \"{COUNTS}\"); \
         [ -n \"$before\" -a \"$before\" = \"$after\" ] && echo silent; {itself} set l40.down.loss=100%; \
         ping -q -c 5 -i 0.01 -W 0.2 $NARROWS_HOST_H40; ping -q -c 5 -i 0.01 $NARROWS_HOST_H3; true"
    );
    for sockets in ["auto", "own"] {
        let scenario = scenario.to_str().unwrap();
        let mut arguments = vec!["run", scenario, "--sockets", sockets, "--backend", "af_packet"];
        arguments.extend(["--json", "-", "--", "sh", "-c", &line]);
        let ended = finish(&mut narrows(arguments)).expect(0);
        for came in ["20 received", "10 received", "0 received", "5 received"] {
            assert!(ended.err.contains(came), "{came}, {sockets}: {ended}");
        }
        let report = ended.json();
        sound(&report);
        assert!(ended.err.contains("\nsilent\n"), "{sockets}: {ended}");
        let notes = report["notes"].to_string();
        assert_eq!(notes.contains("one packet socket served 40 cables"), sockets == "auto", "{notes}");
        assert_eq!(report["host"]["threads"][0]["ports"], 40);
        // Echoes, and their answers.
        assert_eq!(direction(&report, "l2.up")["offered"]["packets"], 20);
        assert_eq!(direction(&report, "l40.up")["offered"]["packets"], 10);
        assert_eq!(direction(&report, "l40.down")["offered"]["packets"], 15);
        assert_eq!(direction(&report, "l1.up")["offered"]["packets"], 40);
    }
}

/// Frames to an interface that is down wait, and are refused in the end; the others' do not wait for it.
#[test]
#[ignore = "needs namespaces, ping"]
fn a_host_that_takes_its_interface_down_harms_nobody_else() {
    let scratch = Scratch::new();
    let scenario = scratch.write("star.toml", &star(3));
    let itself = quoted(NARROWS);
    let line = format!(
        "exec >&2; {itself} exec $NARROWS_RUN h3 -- ip link set l3 down; \
         ping -q -c 40 -i 0.01 -W 0.1 $NARROWS_HOST_H3 >/dev/null & ping -q -c 30 -i 0.02 $NARROWS_HOST_H2; wait; true"
    );
    let arguments =
        ["run", scenario.to_str().unwrap(), "--sockets", "shared", "--json", "-", "--", "sh", "-c", &line];
    let ended = finish(&mut narrows(arguments)).expect(0);
    assert!(ended.err.contains("30 packets transmitted, 30 received"), "{ended}");
    let report = ended.json();
    sound(&report);
    assert_eq!(direction(&report, "l2.down")["delivered"]["packets"], 30);
}

#[test]
fn where_there_can_be_none_an_error_says_why() {
    for (flags, why) in [
        (&["--trains"][..], "--trains needs one for each cable"),
        (&["--backend", "tap"], "only those of --backend af_packet can be"),
        (&["--backend", "af_xdp"], "only those of --backend af_packet can be"),
    ] {
        let mut arguments = vec!["run", "--sockets", "shared"];
        arguments.extend(flags);
        arguments.extend(["--", "true"]);
        let ended = finish(&mut narrows(arguments));
        assert!(ended.code() == 2 && ended.err.contains(&format!("--sockets shared: {why}")), "{ended}");
    }
}
