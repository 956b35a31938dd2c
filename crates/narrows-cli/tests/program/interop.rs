//! The simulator's part in quic-interop-runner: what a scenario of its does to packets between two hosts.

use std::net::TcpStream;
use std::process::Command;

use crate::bridge::end;
use crate::common::{Scratch, Started, direction, eventually, finish, narrows, sound, start};
use crate::route::{Bed, CLIENT, LEFT, RIGHT, SERVER, ping, seen, socket};

const LINK: &str = "--delay=1ms --bandwidth=100Mbps --queue=1000";

/// A simulator that is ready, as an endpoint sees it.
fn interop(bed: &Bed, scenario: &str) -> Started {
    interop_with(bed, scenario, &[])
}

fn interop_with(bed: &Bed, scenario: &str, flags: &[&str]) -> Started {
    let mut command = narrows(["interop", "--left", "one", "--right", "two", "--json", "-"]);
    command.args(["--netns", &bed.path()]).args(flags).env("SCENARIO", scenario);
    let mut started = start(&mut command);
    started.until_it_complains("a router between one and two");
    for (namespace, sides) in [(&bed.client, LEFT), (&bed.server, RIGHT)] {
        for at in sides {
            namespace.run(|| TcpStream::connect((at, 57832)).unwrap()).unwrap();
        }
    }
    started
}

/// Sends numbered datagrams to the server, in order, and returns the numbers that arrive up to the last.
fn arrived(bed: &Bed, numbers: std::ops::RangeInclusive<u8>) -> Vec<u8> {
    let (client, server) = (socket(&bed.client, CLIENT[0]), socket(&bed.server, SERVER[0]));
    let last = *numbers.end();
    for number in numbers {
        client.send_to(&[number], server.local_addr().unwrap()).unwrap();
    }
    let (mut came, mut buffer) = (Vec::new(), [0; 16]);
    while came.last() != Some(&last) {
        server.recv(&mut buffer).unwrap();
        came.push(buffer[0]);
    }
    came
}

#[test]
#[ignore = "needs root, ping"]
fn endpoints_see_that_it_is_ready_and_reach_each_other() {
    let bed = Bed::new([1500, 1500]);
    let run = interop(&bed, &format!("simple-p2p {LINK}"));
    for (from, to) in [(&bed.client, SERVER), (&bed.server, CLIENT)] {
        for to in to {
            let (came, text) = ping(from, &format!("-c 2 -i 0.1 -W 20 {to}"));
            assert!(came && text.contains("ttl=63"), "{text}");
        }
    }
    assert_eq!(arrived(&bed, 1..=20), (1..=20).collect::<Vec<_>>());
    run.signal("TERM");
    let ended = run.wait().expect(0);
    sound(&ended.json());
    let closed = bed.client.run(|| TcpStream::connect((LEFT[0], 57832)).is_err()).unwrap();
    assert!(closed, "nobody is ready");
}

/// The runner judges from captures of both sides: before the losses on the sender's, after them on the receiver's.
#[test]
#[ignore = "needs root, tcpdump, tshark"]
fn each_side_is_captured() {
    let (bed, folder) = (Bed::new([1500, 1500]), Scratch::new());
    let logs = folder.path().to_str().unwrap();
    let run = interop_with(&bed, &format!("droplist {LINK} --drops_to_server=2,3"), &["--logs", logs]);
    assert_eq!(arrived(&bed, 1..=6), [1, 4, 5, 6]);
    end(run).expect(0);
    let seen = |file: &str| {
        let mut tshark = Command::new("tshark");
        tshark.args(["-r", folder.file(file).to_str().unwrap()]);
        tshark.args(["-Y", "udp && ip.dst == 193.167.100.100", "-T", "fields", "-e", "udp.payload"]);
        let output = tshark.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<String>()
    };
    assert_eq!(seen("trace_node_left.pcap"), "010203040506");
    assert_eq!(seen("trace_node_right.pcap"), "01040506");
}

#[test]
#[ignore = "needs root"]
fn listed_packets_are_dropped_and_no_others() {
    let bed = Bed::new([1500, 1500]);
    let run = interop(&bed, &format!("droplist {LINK} --drops_to_server=2,3,7"));
    assert_eq!(arrived(&bed, 1..=10), [1, 4, 5, 6, 8, 9, 10]);
    let report = end(run).expect(0).json();
    assert_eq!(direction(&report, "bottleneck.up")["delivered"]["packets"], 7);
}

#[test]
#[ignore = "needs root, ping"]
fn a_blackhole_opens_and_closes() {
    let bed = Bed::new([1500, 1500]);
    // On from the first instant, and until the end: both at instants that no speed of the host can miss.
    let run = interop(&bed, &format!("blackhole {LINK} --on=1ms --off=10h --direction=toserver"));
    eventually("the blackhole is open", || !ping(&bed.client, &format!("-c 1 -W 1 {}", SERVER[0])).0);
    let report = end(run).expect(0).json();
    let up = direction(&report, "bottleneck.up");
    assert!(up["drops"].as_array().unwrap().iter().any(|drop| drop["reason"] == "wire loss"), "{up:#}");
    let run = interop(&bed, &format!("blackhole {LINK} --on=1ms --off=200ms"));
    eventually("the blackhole is closed", || ping(&bed.client, &format!("-c 1 -W 1 {}", SERVER[0])).0);
    end(run).expect(0);
}

#[test]
#[ignore = "needs root"]
fn the_server_sees_rebindings() {
    let bed = Bed::new([1500, 1500]);
    let often = "--first-rebind=100ms --rebind-freq=100ms";
    let run = interop(&bed, &format!("rebind {LINK} {often}"));
    let endpoints = seen(&bed, 3);
    assert!(endpoints.iter().all(|from| from.ip().to_string() == CLIENT[0]), "{endpoints:?}");
    end(run).expect(0);
    let run = interop(&bed, &format!("rebind {LINK} {often} --rebind-addr"));
    let endpoints = seen(&bed, 3);
    assert!(endpoints.iter().any(|from| from.ip().to_string() != CLIENT[0]), "{endpoints:?}");
    end(run).expect(0);
}

#[test]
fn check_prints_the_scenario_and_errors_say_what_is_allowed() {
    let check = |scenario: &str| finish(&mut narrows(["interop", "--check", scenario]));
    let shown = check(&format!("droplist {LINK} --drops_to_client=4")).expect(0);
    for words in ["[links.bottleneck]", "drops-to-client.pattern", "#   4", "1001 packets"] {
        assert!(shown.out.contains(words), "{words}: {shown}");
    }
    let shown = check(&format!("rebind {LINK} --first-rebind=1s --rebind-freq=5s")).expect(0);
    assert!(shown.out.contains("--nat --rebind port=1s/5s"), "{shown}");
    let refused = check("simple --delay=1ms").expect(2);
    assert!(refused.err.contains("found the scenario `simple`, expected one of `simple-p2p`"), "{refused}");
    let mut command = narrows(["interop"]);
    let refused = finish(command.env_remove("SCENARIO")).expect(2);
    assert!(refused.err.contains("environment variable SCENARIO"), "{refused}");
}
