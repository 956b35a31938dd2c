//! A router between two interfaces of different networks: what it forwards, what it tells senders, and that nothing is
//! left of it.
//!
//! ```text
//! client 193.167.0.100: end ── one ┐ middle .2 ┌ two ── end :server 193.167.100.100
//! ```
//!
//! The addresses are those of quic-interop-runner. All in namespaces of the test's own, which end with it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload::features;
use narrows_io::process::{Signal, spawn};
use narrows_io::route_socket::RouteSocket;
use narrows_io::sysctl::{read_sysctl, write_sysctl};
use serde_json::Value;

use crate::bridge::end;
use crate::common::{NARROWS, Scratch, Started, direction, eventually, finish, narrows, pair, sound, start};
use crate::leftovers::{clean, turn};

/// Each side's host, and the router's address there.
pub(crate) const CLIENT: [&str; 2] = ["193.167.0.100", "fd00:cafe:cafe:0::100"];
pub(crate) const SERVER: [&str; 2] = ["193.167.100.100", "fd00:cafe:cafe:100::100"];
pub(crate) const LEFT: [&str; 2] = ["193.167.0.2", "fd00:cafe:cafe:0::2"];
pub(crate) const RIGHT: [&str; 2] = ["193.167.100.2", "fd00:cafe:cafe:100::2"];
const FORWARDING: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];

pub(crate) struct Bed {
    pub(crate) client: Namespace,
    middle: Namespace,
    pub(crate) server: Namespace,
}

impl Bed {
    /// With these MTUs of the two cables.
    pub(crate) fn new(mtus: [u32; 2]) -> Self {
        let [client, middle, server] = [(); 3].map(|()| Namespace::create().unwrap());
        for (near, name, mtu) in [(&client, "one", mtus[0]), (&server, "two", mtus[1])] {
            let (end, own) = (
                VethEnd { namespace: near, name: "end", mac: None },
                VethEnd { namespace: &middle, name, mac: None },
            );
            create_veth(&end, &own, mtu).unwrap();
            RouteSocket::open(near).unwrap().set_up("end").unwrap();
            RouteSocket::open(&middle).unwrap().set_up(name).unwrap();
            RouteSocket::open(near).unwrap().wait_for_carrier("end", Duration::from_secs(60)).unwrap();
        }
        let bed = Self { client, middle, server };
        let ends = [
            (&bed.client, "end", CLIENT),
            (&bed.middle, "one", LEFT),
            (&bed.middle, "two", RIGHT),
            (&bed.server, "end", SERVER),
        ];
        for (namespace, name, addresses) in ends {
            for (address, length) in addresses.into_iter().zip([24, 64]) {
                let prefix = IpPrefix::new(address.parse::<IpAddr>().unwrap(), length);
                RouteSocket::open(namespace).unwrap().add_address(name, prefix).unwrap();
            }
        }
        for (namespace, gateways) in [(&bed.client, LEFT), (&bed.server, RIGHT)] {
            for gateway in gateways {
                let mut sockets = RouteSocket::open(namespace).unwrap();
                sockets.add_default_route(gateway.parse().unwrap(), "end").unwrap();
            }
        }
        bed
    }

    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.middle.as_fd().as_raw_fd())
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = narrows(["route", "one", "two", "--netns", &self.path()]);
        command.args(flags);
        command
    }

    /// A router that stands.
    pub(crate) fn route(&self, flags: &[&str]) -> Started {
        let mut started = start(&mut self.command(flags));
        started.until_it_complains("a router between one and two");
        started
    }

    /// All that this run must put back.
    fn settings(&self) -> (Vec<String>, Vec<Vec<narrows_io::offload::Feature>>) {
        let forwarding = FORWARDING.map(|key| read_sysctl(&self.middle, key).unwrap()).to_vec();
        (forwarding, ["one", "two"].map(|name| features(&self.middle, name).unwrap()).to_vec())
    }
}

/// Pings with these arguments: whether it succeeded, and what it printed.
pub(crate) fn ping(namespace: &Namespace, arguments: &str) -> (bool, String) {
    let mut command = Command::new("ping");
    command.args(arguments.split(' ')).env("LC_ALL", "C").stdout(Stdio::piped());
    let mut running = spawn(command, namespace).unwrap();
    let mut text = String::new();
    running.child().stdout.take().unwrap().read_to_string(&mut text).unwrap();
    (running.wait().unwrap().success(), text)
}

/// The router's counters, each packet accounted for.
#[track_caller]
fn router(report: &Value) -> &Value {
    let router = report["routers"].as_array().unwrap().iter().find(|router| router["name"] == "one-two");
    let router = router.unwrap_or_else(|| panic!("no router: {report:#}"));
    let of = |key: &str| router[key].as_u64().unwrap();
    let went: u64 = [
        "forwarded_packets",
        "local_packets",
        "hop_limit_packets",
        "no_route_packets",
        "unresolved_packets",
        "malformed_packets",
        "untranslated_packets",
        "waiting_packets",
    ]
    .map(of)
    .iter()
    .sum();
    assert_eq!(of("arrived_packets"), went, "{router:#}");
    assert_eq!(of("forwarded_packets"), report["conservation"]["in_packets"], "{report:#}");
    router
}

#[test]
#[ignore = "needs root, ping"]
fn hosts_of_two_networks_reach_each_other_through_the_link_and_lose_one_hop() {
    for forwards in ["0", "1"] {
        let bed = Bed::new([1500, 1500]);
        for key in FORWARDING {
            write_sysctl(&bed.middle, key, forwards).unwrap();
        }
        let before = bed.settings();
        let scratch = Scratch::new();
        let log = scratch.file("run.log");
        let route = bed.route(&["--delay", "7ms", "--json", "-", "--record", log.to_str().unwrap()]);
        for (from, to) in [(&bed.client, SERVER), (&bed.server, CLIENT)] {
            for to in to {
                let (came, text) = ping(from, &format!("-c 3 -i 0.1 -W 20 {to}"));
                assert!(came && text.contains("ttl=63") && !text.contains("DUP"), "{text}");
            }
        }
        // The router's own addresses, on both sides, are the kernel's.
        let (came, text) = ping(&bed.client, &format!("-c 1 -W 20 {}", RIGHT[0]));
        assert!(came && text.contains("ttl=64"), "{text}");
        let report = end(route).expect(0).json();
        sound(&report);
        let counts = router(&report);
        assert_eq!(counts["forwarded_packets"], 24, "{counts:#}");
        assert!(counts["local_packets"].as_u64() >= Some(1), "{counts:#}");
        for (from, to) in [("client.link", "server.link"), ("server.link", "client.link")] {
            let delay = &pair(&report, from, to)["delay"];
            assert_eq!((&delay["min_ns"], &delay["max_ns"]), (&7_000_000.into(), &7_000_000.into()));
        }
        for link in ["link.up", "link.down"] {
            assert_eq!(direction(&report, link)["delivered"]["packets"], 12);
        }
        assert_eq!(bed.settings(), before, "everything is put back");
        finish(&mut narrows(["sim", "--replay", log.to_str().unwrap(), "--quiet"])).expect(0);
    }
}

#[test]
#[ignore = "needs root, ping"]
fn senders_hear_what_becomes_of_packets_that_cannot_go_on() {
    // Longer packets than the second cable takes, and a kernel that would also forward.
    let bed = Bed::new([1500, 1400]);
    for key in FORWARDING {
        write_sysctl(&bed.middle, key, "1").unwrap();
    }
    let route = bed.route(&["--delay", "1ms", "--json", "-"]);
    let cases = [
        (format!("-c 1 -W 20 -t 1 {}", SERVER[0]), LEFT[0], "Time to live exceeded"),
        (format!("-c 1 -W 20 -t 1 {}", SERVER[1]), "fd00:cafe:cafe::2", "Time exceeded: Hop limit"),
        (format!("-c 1 -W 20 -M do -s 1400 {}", SERVER[0]), LEFT[0], "Frag needed and DF set (mtu = 1400)"),
        (format!("-c 1 -W 20 -s 1400 {}", SERVER[1]), "fd00:cafe:cafe::2", "Packet too big: mtu=1400"),
        (String::from("-c 1 -W 20 193.167.100.77"), LEFT[0], "Destination Host Unreachable"),
        (
            String::from("-c 1 -W 20 fd00:cafe:cafe:100::77"),
            "fd00:cafe:cafe::2",
            "Destination unreachable: Address unreachable",
        ),
    ];
    for (arguments, from, said) in cases {
        let (_, text) = ping(&bed.client, &arguments);
        let told: Vec<_> = text.lines().filter(|line| line.starts_with("From ")).collect();
        assert_eq!(told.len(), 1, "once, by narrows and not by the kernel: {text}");
        assert!(told[0].contains(from) && told[0].contains(said), "{said}: {text}");
    }
    // Without DF the packet is fragmented.
    let (came, text) = ping(&bed.client, &format!("-c 1 -W 20 -M dont -s 1450 {}", SERVER[0]));
    assert!(came, "{text}");
    let report = end(route).expect(0).json();
    let counts = router(&report);
    assert_eq!((&counts["hop_limit_packets"], &counts["unresolved_packets"]), (&2.into(), &2.into()));
    assert!(direction(&report, "link.up")["asked"].as_str().unwrap().contains("1400"), "{report:#}");
}

/// Sends bytes from the client to the server over TCP, and returns what came.
fn transfer(bed: &Bed, to: &str, sent: &[u8]) -> Vec<u8> {
    let listener = bed.server.run(|| TcpListener::bind((to, 5001)).unwrap()).unwrap();
    let receiver = thread::spawn(move || {
        let mut got = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
        got
    });
    bed.client.run(|| TcpStream::connect((to, 5001)).unwrap().write_all(sent).unwrap()).unwrap();
    receiver.join().unwrap()
}

#[test]
#[ignore = "needs root"]
fn connections_cross_with_losses_and_every_packet_is_accounted_for() {
    let bed = Bed::new([1500, 1500]);
    let flags = [
        "--rate",
        "100mbit",
        "--delay",
        "2ms",
        "--loss",
        "1%",
        "--duplicate",
        "2%",
        "--queue",
        "1000 packets",
    ];
    for trains in [&[][..], &["--trains"], &["--nat"], &["--trains", "--nat"]] {
        let route = bed.route(&[&flags[..], trains, &["--json", "-"]].concat());
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
        for to in SERVER {
            assert!(transfer(&bed, to, &sent) == sent, "what was sent came");
        }
        let report = end(route).expect(0).json();
        sound(&report);
        router(&report);
        let up = direction(&report, "link.up");
        let lost = up["drops"].as_array().unwrap().iter().find(|drop| drop["reason"] == "wire loss");
        let (lost, packets) = (lost.map(|drop| &drop["share"]), up["offered"]["packets"].as_u64());
        // Of 1,400 packets or more, none or more than 56 are lost with a probability below 1e-6.
        assert!(
            packets >= Some(1400) && lost.and_then(Value::as_f64).is_some_and(|share| share < 0.04),
            "{up:#}"
        );
        assert!(up["duplicated_packets"].as_u64() >= Some(1), "{up:#}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_router_that_ends_amid_packets_accounts_for_each() {
    let bed = Bed::new([1500, 1500]);
    for _ in 0..5 {
        let route = bed.route(&["--delay", "1ms", "--json", "-"]);
        let floods = AtomicBool::new(true);
        let report = thread::scope(|scope| {
            scope.spawn(|| {
                let client = socket(&bed.client, CLIENT[0]);
                while floods.load(Relaxed) {
                    // The cable may have no room.
                    let _ = client.send_to(&[0; 100], (SERVER[0], 9));
                }
            });
            thread::sleep(Duration::from_millis(100));
            let report = end(route).expect(0).json();
            floods.store(false, Relaxed);
            report
        });
        assert!(router(&report)["forwarded_packets"].as_u64() > Some(0), "{report:#}");
    }
}

/// A socket at any port of an address, with which waiting ends.
pub(crate) fn socket(namespace: &Namespace, at: &str) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((at, 0)).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

#[test]
#[ignore = "needs root"]
fn a_scenario_can_change_while_it_routes() {
    let bed = Bed::new([1500, 1500]);
    let route = bed.route(&["--delay", "3ms", "--json", "-"]);
    let id = route.id().to_string();
    let echo = |payload: &[u8]| {
        let (client, server) = (socket(&bed.client, CLIENT[0]), socket(&bed.server, SERVER[0]));
        client.send_to(payload, server.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&buffer[..length], from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), payload.len());
    };
    echo(b"before");
    finish(&mut narrows(["set", "link.up.delay=9ms", "--run", &id])).expect(0);
    echo(b"after");
    let down = finish(&mut narrows(["down", &id])).expect(0);
    assert!(!down.err.contains("error"), "{down}");
    let report = route.wait().json();
    sound(&report);
    let delay = &pair(&report, "client.link", "server.link")["delay"];
    assert_eq!((&delay["min_ns"], &delay["max_ns"]), (&3_000_000.into(), &9_000_000.into()));
}

#[test]
#[ignore = "needs root"]
fn a_router_that_cannot_stand_says_why_and_changes_nothing() {
    let bed = Bed::new([1500, 1500]);
    let before = bed.settings();
    let path = bed.path();
    let refused = |ends: [&str; 2], flags: &[&str], words: &[&str]| {
        let mut command = narrows(["route", ends[0], ends[1], "--netns", &path]);
        let ended = finish(command.args(flags)).expect(2);
        assert!(words.iter().all(|word| ended.err.contains(word)), "{words:?}: {ended}");
        assert_eq!(bed.settings(), before);
    };
    refused(["one", "one"], &[], &["both ends of the route are `one`"]);
    refused(["one", "three"], &[], &["no interface `three`", "`one`, `two`"]);
    refused(["one", "two"], &["--backend", "af_xdp"], &["only the backend af_packet"]);
    let plain = Namespace::create().unwrap();
    let (end_of_it, own) = (
        VethEnd { namespace: &plain, name: "end", mac: None },
        VethEnd { namespace: &bed.middle, name: "bare", mac: None },
    );
    create_veth(&end_of_it, &own, 1500).unwrap();
    RouteSocket::open(&bed.middle).unwrap().set_up("bare").unwrap();
    refused(["one", "bare"], &[], &["`bare` has no IP address", "ip address add"]);
    let route = bed.route(&[]);
    let ended = finish(&mut bed.command(&["--duration", "1s"])).expect(2);
    assert!(ended.err.contains("another run of narrows is on the interface `one`"), "{ended}");
    end(route).expect(0);
    assert_eq!(bed.settings(), before);
}

#[test]
#[ignore = "needs root, ping"]
fn with_nat_the_outside_sees_the_routers_address_and_reaches_what_answers_it() {
    for forwards in ["0", "1"] {
        let bed = Bed::new([1500, 1500]);
        for key in FORWARDING {
            write_sysctl(&bed.middle, key, forwards).unwrap();
        }
        let before = bed.settings();
        let scratch = Scratch::new();
        let log = scratch.file("run.log");
        let route = bed.route(&["--delay", "1ms", "--nat", "--json", "-", "--record", log.to_str().unwrap()]);
        for (own, (to, outer)) in CLIENT.into_iter().zip(SERVER.into_iter().zip(RIGHT)) {
            let (client, server) = (socket(&bed.client, own), socket(&bed.server, to));
            client.send_to(b"there", server.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 16];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(from.ip(), outer.parse::<IpAddr>().unwrap());
            assert!(from.port() >= 61_000, "{from}");
            server.send_to(&buffer[..length], from).unwrap();
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from), (&b"there"[..], server.local_addr().unwrap()));
            let (came, text) = ping(&bed.client, &format!("-c 2 -i 0.1 -W 20 {to}"));
            assert!(came && !text.contains("DUP"), "{text}");
            let sent: Vec<u8> = (0..200_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
            assert!(transfer(&bed, to, &sent) == sent, "what was sent came");
            // An error about a translated packet reaches its sender.
            client.connect(server.local_addr().unwrap()).unwrap();
            drop(server);
            client.send(b"nobody").unwrap();
            let refused = client.recv(&mut buffer).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            // Without a mapping nobody outside reaches the inside, only the router itself.
            assert!(!ping(&bed.server, &format!("-c 1 -W 1 {own}")).0);
            assert!(ping(&bed.server, &format!("-c 1 -W 20 {outer}")).0);
        }
        let report = end(route).expect(0).json();
        sound(&report);
        assert_eq!(router(&report)["untranslated_packets"], 2);
        assert_eq!(bed.settings(), before);
        finish(&mut narrows(["sim", "--replay", log.to_str().unwrap(), "--quiet"])).expect(0);
    }
}

/// Sends datagrams until the server has seen so many endpoints, and its answer to the last one has come.
pub(crate) fn seen(bed: &Bed, many: usize) -> Vec<std::net::SocketAddr> {
    let (client, server) = (socket(&bed.client, CLIENT[0]), socket(&bed.server, SERVER[0]));
    let short = Some(Duration::from_millis(100));
    client.set_read_timeout(short).unwrap();
    server.set_read_timeout(short).unwrap();
    let mut endpoints = Vec::new();
    eventually("the client is seen elsewhere, and answers reach it", || {
        client.send_to(b"x", server.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let Ok((_, from)) = server.recv_from(&mut buffer) else { return false };
        if !endpoints.contains(&from) {
            endpoints.push(from);
        }
        server.send_to(b"y", from).unwrap();
        client.recv(&mut buffer).is_ok() && endpoints.len() >= many
    });
    endpoints
}

#[test]
#[ignore = "needs root"]
fn mappings_are_forgotten_when_told_and_flows_go_on_from_elsewhere() {
    let bed = Bed::new([1500, 1500]);
    let route = bed.route(&["--delay", "1ms", "--nat", "--rebind", "port=50ms/50ms", "--json", "-"]);
    let endpoints = seen(&bed, 4);
    let outer: IpAddr = RIGHT[0].parse().unwrap();
    assert!(endpoints.iter().all(|from| from.ip() == outer), "{endpoints:?}");
    let report = end(route).expect(0).json();
    assert!(router(&report)["rebindings"].as_u64() >= Some(3), "{report:#}");

    // To an address that this host does not have, and back.
    let pool = "193.167.100.2,193.167.100.3";
    let flags = ["--nat", "--nat-pool", pool, "--rebind", "address=50ms/50ms", "--json", "-"];
    let route = bed.route(&flags);
    let endpoints = seen(&bed, 4);
    for address in pool.split(',') {
        let address: IpAddr = address.parse().unwrap();
        assert!(endpoints.iter().any(|from| from.ip() == address), "{endpoints:?}");
    }
    let id = route.id().to_string();
    let set = |assignment: &str| finish(&mut narrows(["set", assignment, "--run", &id]));
    set("nat.rebind=address").expect(0);
    let refused = set("nat.rebind=ports").expect(2);
    assert!(refused.err.contains("nat.rebind is port or address in this run, not `ports`"), "{refused}");
    let events = finish(&mut narrows(["events", &id, "--no-follow"]));
    assert!(events.out.contains("nat.rebind=address"), "{events}");
    end(route).expect(0);

    for (flags, words) in [
        (&["--nat", "--rebind", "address=1s"][..], &["two outer addresses", "--nat-pool"][..]),
        (&["--nat", "--rebind", "ports=1s"], &["port=5s/10s", "found `ports=1s`"]),
        (&["--nat", "--rebind", "port=1s/0s"], &["the period must be 1ms or more"]),
        (&["--nat", "--rebind", "port=1"], &["rebind", "no unit"]),
        (&["--rebind", "port=1s"], &["--nat"]),
    ] {
        let ended = finish(&mut bed.command(flags)).expect(2);
        assert!(words.iter().all(|word| ended.err.contains(word)), "{words:?}: {ended}");
    }
}

#[test]
#[ignore = "needs root, ping, setpriv, tcpdump"]
fn two_capabilities_are_enough() {
    let bed = Bed::new([1500, 1500]);
    // The kernel forwards, as in a container of Docker, where `/proc/sys` cannot be written.
    for key in FORWARDING {
        write_sysctl(&bed.middle, key, "1").unwrap();
    }
    let scratch = Scratch::new();
    let [out, err] = ["out", "err"].map(|name| scratch.file(name));
    let logs = scratch.path().to_str().unwrap();
    let interop = &["interop", "--left", "one", "--right", "two", "--logs", logs][..];
    // tcpdump gives up its groups.
    let held = "-all,+net_admin,+net_raw";
    let more = format!("{held},+setgid");
    for (held, words) in [(held, &["route", "one", "two", "--nat"][..]), (more.as_str(), interop)] {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", held, "--inh-caps", "-all", NARROWS]);
        command.args(words).args(["--json", "-"]).env_remove("NARROWS_CONTROL");
        command.env("SCENARIO", "simple-p2p --delay=1ms --bandwidth=100Mbps --queue=1000");
        command.env("XDG_STATE_HOME", scratch.path()).stdin(Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut route = spawn(command, &bed.middle).unwrap();
        let said = || fs::read_to_string(&err).unwrap();
        eventually("it stands", || {
            assert!(route.try_wait().unwrap().is_none(), "{}", said());
            said().contains("a router between one and two")
        });
        for to in SERVER {
            let (came, text) = ping(&bed.client, &format!("-c 2 -i 0.1 -W 20 {to}"));
            assert!(came && !text.contains("DUP"), "{text}");
        }
        route.signal(Signal::SIGINT).unwrap();
        assert!(route.wait().unwrap().success(), "{}", said());
        let report = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
        sound(&report);
        router(&report);
    }
    assert!(fs::metadata(scratch.file("trace_node_right.pcap")).unwrap().len() > 100, "headers alone");
}

#[test]
#[ignore = "needs root, ping"]
fn what_leaves_by_a_third_interface_is_the_kernels_and_a_killed_run_leaves_nothing_that_stays() {
    let _turn = turn();
    let bed = Bed::new([1500, 1500]);
    for key in FORWARDING {
        write_sysctl(&bed.middle, key, "1").unwrap();
    }
    let third = Namespace::create().unwrap();
    let (far, own) = (
        VethEnd { namespace: &third, name: "end", mac: None },
        VethEnd { namespace: &bed.middle, name: "three", mac: None },
    );
    create_veth(&far, &own, 1500).unwrap();
    for (namespace, name, address) in [(&third, "end", "10.3.0.2"), (&bed.middle, "three", "10.3.0.1")] {
        let mut sockets = RouteSocket::open(namespace).unwrap();
        sockets.set_up(name).unwrap();
        sockets.add_address(name, IpPrefix::new(address.parse::<IpAddr>().unwrap(), 24)).unwrap();
    }
    RouteSocket::open(&third).unwrap().wait_for_carrier("end", Duration::from_secs(60)).unwrap();
    let gateway = "10.3.0.1".parse().unwrap();
    RouteSocket::open(&third).unwrap().add_default_route(gateway, "end").unwrap();
    let before = bed.settings();
    let route = bed.route(&["--delay", "20ms"]);
    let (came, text) = ping(&bed.client, "-c 1 -W 20 10.3.0.2");
    assert!(came && text.contains("ttl=63"), "{text}");
    assert!(ping(&bed.client, &format!("-c 1 -W 20 {}", SERVER[0])).0);
    route.signal("KILL");
    assert_eq!(route.wait().ended_by(), Some(9));
    // The kernel forwards again at once; offloads are put back by `clean`.
    assert!(ping(&bed.client, &format!("-c 1 -W 20 {}", SERVER[0])).0);
    let cleaned = clean();
    assert!(cleaned.out.contains("restored one") && cleaned.out.contains("restored two"), "{cleaned}");
    assert_eq!(bed.settings(), before);
}

#[test]
#[ignore = "needs root, ip"]
fn a_link_address_that_changes_ends_it() {
    let bed = Bed::new([1500, 1500]);
    let before = bed.settings();
    let route = bed.route(&["--json", "-"]);
    let mut command = Command::new("ip");
    command.args(["link", "set", "one", "address", "02:00:00:00:00:77"]);
    assert!(spawn(command, &bed.middle).unwrap().wait().unwrap().success());
    let ended = route.wait().expect(2);
    assert!(ended.err.contains("the link address of `one` changed"), "{ended}");
    router(&ended.json());
    assert_eq!(bed.settings(), before);
}

#[test]
#[ignore = "needs root, ping, unshare"]
fn the_example_runs() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/route/two-subnets");
    let mut command = Command::new(script.canonicalize().unwrap());
    command.env("NARROWS", NARROWS).env("LC_ALL", "C").env_remove("NARROWS_CONTROL").stdin(Stdio::null());
    let ended = finish(&mut command).expect(0);
    for said in ["3 received", "Time to live exceeded", "Frag needed and DF set (mtu = 1400)"] {
        assert!(ended.out.contains(said), "{said}: {ended}");
    }
}
