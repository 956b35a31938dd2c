//! Hosts on switches: address resolution, broadcasts, VLANs and a router between them, in live runs.

use crate::common::{Finished, Scratch, finish, narrows, pair, sound};

const LAN: &str = r#"
seed = 5
[hosts.client]
addresses = ["198.18.1.1/24", "2001:db8:1::1/64"]
[hosts.server]
addresses = ["198.18.1.2/24", "2001:db8:1::2/64"]
[hosts.printer]
addresses = ["198.18.1.3/24", "2001:db8:1::3/64"]
[switches.lan]
hosts = ["server", "printer"]
link = { delay = "1ms" }
[links.client]
between = ["client", "lan"]
delay = "2ms"
"#;

/// Answers a datagram, or says why not.
const LISTENER: &str = "python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((\"\", 5000))
s.settimeout(30)
print(\"bound\", flush=True)
data, sender = s.recvfrom(100)
s.sendto(data.upper(), sender)'";

/// Sends one broadcast until two hosts have answered it.
const CALLER: &str = "python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.settimeout(0.5)
answers = {}
for _ in range(60):
    s.sendto(b\"hello\", (\"255.255.255.255\", 5000))
    try:
        while len(answers) < 2:
            data, sender = s.recvfrom(100)
            answers[sender[0]] = data.decode()
    except TimeoutError:
        continue
    break
print(sorted(answers.items()))'";

fn run_in(scratch: &Scratch, scenario: &str, flags: &[&str], line: &str) -> Finished {
    let file = scratch.write("switch.toml", scenario);
    let mut arguments = vec!["run", file.to_str().unwrap(), "--json", "-"];
    arguments.extend(flags);
    arguments.extend(["--", "sh", "-c", line]);
    finish(&mut narrows(arguments))
}

#[test]
#[ignore = "needs namespaces, ping, python3"]
fn a_switch_is_one_broadcast_domain_and_the_replay_agrees() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let log = log.to_str().unwrap();
    let line = format!(
        "exec >&2
        ping -n -c 3 -i 0.1 198.18.1.2 && ping -n -c 2 -i 0.1 2001:db8:1::3 || exit 3
        ip neigh
        ping -n -c 2 -w 5 ff02::1%client
        {CALLER}"
    );
    let flags = ["--record", log, "--on", "server", LISTENER, "--on", "printer", LISTENER];
    let ended = run_in(&scratch, LAN, &flags, &line).expect(0);
    let report = ended.json();
    sound(&report);
    assert!(ended.err.contains("198.18.1.2 dev client lladdr 02:6e:61:72:00:01"), "resolved by ARP: {ended}");
    assert!(ended.err.contains("[('198.18.1.2', 'HELLO'), ('198.18.1.3', 'HELLO')]"), "{ended}");
    assert!(ended.err.contains("duplicates"), "all nodes answer the multicast: {ended}");
    let switch = &report["switches"][0];
    assert_eq!(switch["name"], "lan");
    let count = |key: &str| switch[key].as_u64().unwrap();
    assert!(count("flooded_packets") > 0, "{switch:#}");
    assert_eq!(count("copied_packets"), count("flooded_packets"), "each to two ports: {switch:#}");
    assert_eq!(count("arrived_packets") + count("copied_packets"), count("forwarded_packets"), "{switch:#}");
    let delay = &pair(&report, "client.client", "server.lan-server")["delay"];
    assert_eq!(delay["min_ns"], 3_000_000);
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

/// Answers a broadcast by a frame with the same VLAN tag, which it names. It reads and writes frames, because not every
/// kernel has VLAN interfaces.
const TAGGED: &str = "python3 -c '
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((\"front-capture\", 0))
s.setsockopt(263, 8, 1)
s.settimeout(30)
print(\"bound\", flush=True)
while True:
    frame, told, _, (_, _, kind, *_) = s.recvmsg(2000, 200)
    if kind == 4 or not frame.endswith(b\"hello\"):
        continue
    tag = struct.unpack(\"IIIHHHH\", told[0][2])[5] & 0xfff
    text = b\"VLAN %d\" % tag
    ends = socket.inet_aton(\"198.18.10.9\") + frame[26:30]
    udp = struct.pack(\"!HHHH\", 5000, int.from_bytes(frame[34:36]), 8 + len(text), 0) + text
    def ip(checksum):
        return struct.pack(\"!BBHHHBBH\", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, checksum) + ends
    total = sum(struct.unpack(\"!10H\", ip(0)))
    total = (total & 0xffff) + (total >> 16)
    s.send(frame[6:12] + s.getsockname()[4] + struct.pack(\"!HHH\", 0x8100, tag, 0x800) + ip(~total & 0xffff) + udp)'";

/// Two VLANs on two switches, a router between the VLANs, and a host that gets both with tags.
const VLANS: &str = r#"
[hosts.sales]
addresses = ["198.18.10.1/24"]
[hosts.clerk]
addresses = ["198.18.10.2/24"]
[hosts.stock]
addresses = ["198.18.20.1/24"]
[hosts.capture]
[routers.gateway]
addresses = { gw10 = ["198.18.10.254/24"], gw20 = ["198.18.20.254/24"] }
[switches.front]
hosts = ["sales", "capture"]
vlans = { sales = 10, capture = [10, 20], gw10 = 10, gw20 = 20 }
[switches.back]
hosts = ["clerk", "stock"]
vlans = { clerk = 10, stock = 20 }
[links.trunk]
between = ["front", "back"]
delay = "1ms"
[links.gw10]
between = ["gateway", "front"]
[links.gw20]
between = ["gateway", "front"]
"#;

#[test]
#[ignore = "needs namespaces, ping, traceroute, python3"]
fn vlans_are_kept_apart_carried_with_tags_and_joined_by_a_router() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let log = log.to_str().unwrap();
    let line = format!(
        "exec >&2
        ping -n -c 2 -i 0.1 198.18.10.2 || exit 3
        ping -n -c 2 -i 0.1 198.18.20.1 || exit 4
        traceroute -n -w 5 -N 1 198.18.20.1
        ping -n -c 1 -W 5 198.18.10.254 || exit 5
        {CALLER}"
    );
    let line = line.replace("255.255.255.255", "198.18.10.255").replace("< 2", "< 1");
    let flags = ["--record", log, "--on", "capture", TAGGED];
    let ended = run_in(&scratch, VLANS, &flags, &line).expect(0);
    let report = ended.json();
    sound(&report);
    assert!(ended.err.contains("ttl=63"), "through the router: {ended}");
    assert!(
        ended.err.contains("[('198.18.10.9', 'VLAN 10')]"),
        "with a tag there, without one here: {ended}"
    );
    // " 2  198.18.20.1  2.123 ms  2.118 ms  2.114 ms"
    let hops = ended.err.lines().filter(|line| line.starts_with(' ') && line.ends_with(" ms"));
    let hops = hops.filter_map(|line| line.split_whitespace().nth(1));
    let found: Vec<&str> = hops.filter(|word| word.parse::<std::net::Ipv4Addr>().is_ok()).collect();
    assert_eq!(found, ["198.18.10.254", "198.18.20.1"], "{ended}");
    let router = &report["routers"][0];
    assert!(router["filtered_packets"].as_u64().unwrap() > 0, "it hears the broadcasts: {router:#}");
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn stations_of_a_radio_cell_share_its_channel() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let log = log.to_str().unwrap();
    let cell = std::fs::read_to_string(crate::common::scenarios().join("radio-cell.toml")).unwrap();
    let line = "exec >&2
        ping -n -c 3 -i 0.2 $NARROWS_HOST_SERVER || exit 3
        ping -n -c 3 -i 0.2 $NARROWS_HOST_PHONE || exit 4";
    let ended = run_in(&scratch, &cell, &["--record", log], line).expect(0);
    let report = ended.json();
    sound(&report);
    let lanes = report["directions"].as_array().unwrap().iter().filter(|one| one["link"] == "ap-laptop");
    let ways: Vec<(&str, &str)> =
        lanes.map(|one| (one["from"].as_str().unwrap(), one["to"].as_str().unwrap())).collect();
    let expected =
        [("laptop", "ap"), ("ap", "laptop"), ("phone", "ap"), ("ap", "phone"), ("tv", "ap"), ("ap", "tv")];
    assert_eq!(ways, expected);
    // A request on the channel takes its preamble and its bits; one to another station, twice that.
    let least = |to: &str| pair(&report, "laptop.ap-laptop", to)["delay"]["min_ns"].as_u64().unwrap();
    let (wired, wireless) = (least("server.wire"), least("phone.ap-phone"));
    assert!(wired > 280_000 && wireless > 560_000, "{wired} {wireless}");
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

#[test]
#[ignore = "needs namespaces"]
fn stations_that_do_not_hear_each_other_lose_frames_live_too() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let log = log.to_str().unwrap();
    let scenario = std::fs::read_to_string(crate::common::scenarios().join("hidden-stations.toml")).unwrap();
    let live = scenario.replace("sim-only = true\n", "").replace("duration = \"20s\"\n", "");
    let ended = run_in(&scratch, &live, &["--record", log], "sleep 2").expect(0);
    let report = ended.json();
    sound(&report);
    for station in ["left", "right"] {
        let lanes = report["directions"].as_array().unwrap().iter();
        let lane = lanes.into_iter().find(|one| one["from"] == station && one["to"] == "ap").unwrap();
        let drops = lane["drops"].as_array().unwrap();
        assert!(drops.iter().any(|drop| drop["reason"] == "retry limit"), "{lane:#}");
    }
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}
