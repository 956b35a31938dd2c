//! A network on an interface that exists: connections that cross it live on, and nothing about it is changed.
//!
//! ```text
//! inner: eth0 ── far :outer
//! ```
//!
//! Both in namespaces of the test's own, which end with it; `inner` stands for a host or a container.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::bpf::{Instruction, Link, Program, ProgramKind, Register, XdpMode};
use narrows_io::frame::FramePool;
use narrows_io::link::{InterfaceIndex, VethEnd, create_numbered_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload::features;
use narrows_io::packet_socket::{PacketSocket, PacketSocketOptions, ReceiveBatch};
use narrows_io::process::{Running, spawn};
use narrows_io::route_socket::RouteSocket;
use narrows_io::stack::settle;
use serde_json::Value;

use crate::common::{
    Finished, NARROWS, Scratch, Started, direction, eventually, finish, narrows, pair, sound, start,
};

const INNER: &str = "10.9.7.1";
const OUTER: &str = "10.9.7.2";

struct Bed {
    inner: Namespace,
    outer: Namespace,
    /// Of this test alone, so that `clean` cleans up after it alone.
    folder: Scratch,
}

impl Bed {
    fn new(mtu: u32) -> Self {
        let [inner, outer] = [(); 2].map(|()| Namespace::create().unwrap());
        let end = |namespace, name| VethEnd { namespace, name, mac: None };
        let number = InterfaceIndex(77);
        create_numbered_veth(&end(&inner, "eth0"), number, &end(&outer, "far"), mtu).unwrap();
        for (namespace, name, address) in [(&inner, "eth0", INNER), (&outer, "far", OUTER)] {
            // Addresses do not change any more by themselves.
            settle(namespace, name).unwrap();
            let mut sockets = RouteSocket::open(namespace).unwrap();
            sockets.set_up(name).unwrap();
            let prefix = IpPrefix::new(address.parse::<IpAddr>().unwrap(), 24);
            sockets.add_address(name, prefix).unwrap();
        }
        let patience = Duration::from_secs(60);
        RouteSocket::open(&inner).unwrap().wait_for_carrier("eth0", patience).unwrap();
        let bed = Self { inner, outer, folder: Scratch::new() };
        let mut before = bed.state();
        eventually("the interface is settled", || {
            let now = bed.state();
            let is_settled = !now.contains("tentative") && now == before;
            before = now;
            is_settled
        });
        bed
    }

    /// The path by which another process gets into the inner namespace.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.inner.as_fd().as_raw_fd())
    }

    /// `narrows` with its run folder in the test's.
    fn narrows<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = narrows(arguments);
        command.env("NARROWS_CONTROL", self.folder.file("none.sock"));
        command
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = self.narrows(["attach", "eth0", "--netns", &self.path()]);
        command.args(flags);
        command
    }

    /// A network that stands.
    fn attach(&self, flags: &[&str]) -> Started {
        let mut started = start(&mut self.command(flags));
        started.until_it_complains("on eth0 in ");
        started
    }

    fn clean(&self) -> Finished {
        finish(&mut self.narrows(["clean"])).expect(0)
    }

    /// All that can be seen of the inner namespace's interfaces.
    fn state(&self) -> String {
        let mut state = format!("{:?}\n", features(&self.inner, "eth0").unwrap());
        for line in [
            "ip -d link show",
            "ip address show",
            "ip route show table all",
            "tc qdisc show",
            "tc filter show dev eth0 ingress",
            "tc filter show dev eth0 egress",
        ] {
            let said = self.folder.file("said");
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{line} >{} 2>/dev/null", said.display())]);
            spawn(command, &self.inner).unwrap().wait().unwrap();
            state += &format!("{line}\n{}", fs::read_to_string(&said).unwrap());
        }
        state
    }

    /// A datagram there and back; whether it came.
    fn echo(&self, patience: Duration) -> bool {
        let bind = |namespace: &Namespace, at: &str| {
            let at = format!("{at}:0");
            namespace.run(|| UdpSocket::bind(at).unwrap()).unwrap()
        };
        let (inner, outer) = (bind(&self.inner, INNER), bind(&self.outer, OUTER));
        // Where nothing passes, the kernel may say so at once.
        let Ok(_) = inner.send_to(b"there", outer.local_addr().unwrap()) else { return false };
        outer.set_read_timeout(Some(patience)).unwrap();
        inner.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 16];
        let Ok((_, from)) = outer.recv_from(&mut buffer) else { return false };
        let Ok(_) = outer.send_to(b"back", from) else { return false };
        inner.recv_from(&mut buffer).is_ok()
    }

    /// Both ways cross by now.
    fn passes(&self) {
        eventually("a datagram comes back", || self.echo(Duration::from_millis(500)));
    }

    /// A connection from inside, whose other end sends everything back.
    fn connect(&self) -> TcpStream {
        let listener = self.outer.run(|| TcpListener::bind(format!("{OUTER}:5001")).unwrap()).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut other = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut stream, &mut other);
        });
        let stream = self.inner.run(|| TcpStream::connect(format!("{OUTER}:5001")).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn process(&self) -> Running {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null());
        spawn(command, &self.inner).unwrap()
    }
}

/// Sends so many bytes and has them back.
fn exchange(stream: &mut TcpStream, count: u32) {
    let sent: Vec<u8> = (0..count).map(|n| ((n * 7) >> 3) as u8).collect();
    let mut sender = stream.try_clone().unwrap();
    let bytes = sent.clone();
    let sending = thread::spawn(move || sender.write_all(&bytes).unwrap());
    let mut back = vec![0; sent.len()];
    stream.read_exact(&mut back).unwrap();
    sending.join().unwrap();
    assert!(back == sent, "what was sent came back");
}

/// Ends it as a Ctrl-C does.
fn end(started: Started) -> Finished {
    started.signal("INT");
    started.wait()
}

fn packets(report: &Value, link: &str) -> u64 {
    direction(report, link)["delivered"]["packets"].as_u64().unwrap()
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[test]
#[ignore = "needs root, bpf"]
fn a_network_in_the_background_outlives_the_command_and_is_ended_by_name() {
    let bed = Bed::new(1500);
    let ended = finish(&mut bed.command(&["--delay", "1ms", "--name", "apart", "--detach"])).expect(0);
    assert_eq!((&*ended.out, &*ended.err), ("apart\n", ""));
    let listed = finish(&mut bed.narrows(["ls", "--json"])).expect(0).json();
    assert_eq!(listed["runs"][0]["state"], "running");
    // One that cannot be attached says why, in the foreground.
    let second = finish(&mut bed.command(&["--delay", "1ms", "--detach"])).expect(2);
    assert!(second.err.contains("eth0") && second.out.is_empty(), "{}", second.err);
    finish(&mut bed.narrows(["down", "apart"])).expect(0);
    assert_eq!(bed.clean().out, "nothing to clean up\n");
}

#[test]
#[ignore = "needs root, ip"]
fn a_connection_lives_through_attach_and_detach_and_the_replay_is_the_same() {
    let bed = Bed::new(1500);
    let before = bed.state();
    let mut stream = bed.connect();
    exchange(&mut stream, 100_000);
    let log = bed.folder.file("run.log");
    let network = bed.attach(&["--delay", "3ms", "--json", "-", "--record", log.to_str().unwrap()]);
    // Offloads are on at both ends: up to 64 KiB in a frame, and no checksum made.
    exchange(&mut stream, 1_000_000);
    assert!(bed.state().contains("nrw-"), "its cables are there meanwhile");
    let report = end(network).expect(0).json();
    exchange(&mut stream, 100_000);
    assert_eq!(bed.state(), before);
    sound(&report);
    for link in ["link.up", "link.down"] {
        let delivered = &direction(&report, link)["delivered"];
        let (packets, bytes) = (delivered["packets"].as_u64().unwrap(), delivered["bytes"].as_u64().unwrap());
        assert!(bytes > 1_000_000 && bytes / packets <= 1500, "{delivered:#}");
    }
    assert_eq!(pair(&report, "client.link", "server.link")["delay"]["min_ns"], 3_000_000);
    assert_eq!(report["conservation"]["inside_packets"], 0, "all came out in the end");
    let replay = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap(), "--quiet"]));
    replay.expect(0);
}

#[test]
#[ignore = "needs root"]
fn trains_cross_whole_and_their_bytes_are_right() {
    let bed = Bed::new(1500);
    let mut stream = bed.connect();
    let network = bed.attach(&["--delay", "2ms", "--trains", "--json", "-"]);
    exchange(&mut stream, 2_000_000);
    let report = end(network).expect(0).json();
    exchange(&mut stream, 10_000);
    sound(&report);
    let up = &direction(&report, "link.up")["delivered"];
    let (packets, bytes) = (up["packets"].as_u64().unwrap(), up["bytes"].as_u64().unwrap());
    assert!(bytes > 2_000_000 && bytes / packets <= 1500, "{up:#}");
}

#[test]
#[ignore = "needs root"]
fn one_direction_alone_makes_the_detour() {
    let bed = Bed::new(1500);
    for (asked, crossed, direct) in [("out", "link.up", "link.down"), ("in", "link.down", "link.up")] {
        let network = bed.attach(&["--direction", asked, "--delay", "1ms", "--json", "-"]);
        bed.passes();
        let report = end(network).expect(0).json();
        sound(&report);
        assert!(packets(&report, crossed) > 0, "{asked}: {report:#}");
        assert_eq!(packets(&report, direct), 0, "{asked}: {report:#}");
    }
}

#[test]
#[ignore = "needs root"]
fn rules_and_disciplines_mean_the_interface() {
    let bed = Bed::new(1500);
    let most = |report: &Value, from: &str| {
        let mut pairs = report["pairs"].as_array().unwrap().iter();
        let pair = pairs.find(|pair| pair["from_port"].as_str().unwrap().starts_with(from)).unwrap();
        pair["delay"]["max_ns"].as_u64().unwrap() / 1_000_000
    };
    let rules = bed.folder.write("rules", "pipe 1 config delay 4ms\nadd 100 pipe 1 udp from me to any out\n");
    let script = bed.folder.write("script", "tc qdisc add dev eth0 root netem delay 5ms\n");
    let (rules, script) = (rules.to_str().unwrap(), script.to_str().unwrap());
    let log = bed.folder.file("run.log");
    let log = log.to_str().unwrap();
    for (flags, up, down) in
        [(&["--ipfw", rules][..], 4, 0), (&["--tc", script], 5, 0), (&["--netem-down", "delay 6ms"], 0, 6)]
    {
        let network = bed.attach(&[flags, &["--json", "-", "--record", log]].concat());
        bed.passes();
        let report = end(network).expect(0).json();
        assert_eq!((most(&report, "client"), most(&report, "server")), (up, down), "{flags:?}: {report:#}");
        finish(&mut narrows(["sim", "--replay", log, "--quiet"])).expect(0);
    }
}

#[test]
#[ignore = "needs root"]
fn a_feed_drives_it_and_the_replay_agrees() {
    let bed = Bed::new(1500);
    let log = bed.folder.file("run.log");
    let feed = "link.up.delay={ feed = \"radio\" }";
    let flags = ["--set", feed, "--json", "-", "--record", log.to_str().unwrap()];
    let network = bed.attach(&flags);
    let values: String = (0..500).map(|n| format!("{}us\n", 500 + n)).collect();
    let file = bed.folder.write("values", &values);
    let mut command = bed.narrows(["feed", "--run", &network.id().to_string()]);
    command.stdin(fs::File::open(file).unwrap());
    finish(&mut command).expect(0);
    bed.passes();
    exchange(&mut bed.connect(), 100_000);
    let report = end(network).expect(0).json();
    sound(&report);
    assert!(pair(&report, "client.link", "server.link")["delay"]["max_ns"].as_u64() >= Some(500_000));
    let replay = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap(), "--quiet"]));
    replay.expect(0);
}

#[test]
#[ignore = "needs root"]
fn vlans_and_jumbo_frames_cross() {
    let bed = Bed::new(9000);
    let network = bed.attach(&["--json", "-", "--delay", "1ms"]);
    exchange(&mut bed.connect(), 400_000);
    // As long as the MTU allows.
    let bind = |namespace: &Namespace, at: &str| namespace.run(|| UdpSocket::bind(at).unwrap()).unwrap();
    let (from, to) = (bind(&bed.inner, "10.9.7.1:0"), bind(&bed.outer, "10.9.7.2:0"));
    to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    from.send_to(&[9; 8972], to.local_addr().unwrap()).unwrap();
    assert_eq!(to.recv(&mut [0; 9000]).unwrap(), 8972);
    // Frames of no protocol that the hosts know, with no tag, one and two, of the full length behind one.
    let options = PacketSocketOptions { through_qdisc: true, ..PacketSocketOptions::default() };
    let mut inner = PacketSocket::open_with(&bed.inner, "eth0", options).unwrap();
    let mut outer = PacketSocket::open(&bed.outer, "far").unwrap();
    let kinds: [(&[u8], usize); 3] = [
        (&[0x12, 0x34], 9000),
        (&[0x81, 0x00, 0x00, 0x0a, 0x12, 0x34], 9000),
        (&[0x88, 0xa8, 0x00, 0x14, 0x81, 0x00, 0x00, 0x0a, 0x12, 0x34], 60),
    ];
    for (kind, length) in kinds {
        let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7];
        frame.extend(kind);
        frame.extend((0..length).map(|n| (n * 13) as u8));
        assert_eq!(inner.send(&[&frame]).count, 1);
        comes(&mut outer, &frame, 1);
        assert_eq!(outer.send(&[&frame]).count, 1);
        // A socket at the interface sees it as it comes and again as it has crossed.
        comes(&mut inner, &frame, 2);
    }
    let report = end(network).expect(0).json();
    sound(&report);
    let up = &direction(&report, "link.up")["delivered"];
    let (packets, bytes) = (up["packets"].as_u64().unwrap(), up["bytes"].as_u64().unwrap());
    assert!(bytes > 400_000 && bytes / packets > 1500, "{up:#}");
}

/// Receives until this very frame has come so many times.
#[track_caller]
fn comes(socket: &mut PacketSocket, wanted: &[u8], times: usize) {
    let (mut batch, mut pool, mut frames) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
    let mut found = 0;
    eventually("the frame comes", || {
        socket.receive(&mut batch, &mut pool, &mut frames).unwrap();
        found += frames
            .drain(..)
            .filter(|received: &narrows_io::packet_socket::Received| received.frame[..] == *wanted)
            .count();
        found >= times
    });
}

#[test]
#[ignore = "needs root, ip"]
fn killed_it_leaves_nothing_and_frames_go_the_direct_way() {
    let bed = Bed::new(1500);
    let before = bed.state();
    let mut stream = bed.connect();
    let network = bed.attach(&["--delay", "2ms"]);
    exchange(&mut stream, 10_000);
    network.signal("KILL");
    assert_eq!(network.wait().ended_by(), Some(9));
    exchange(&mut stream, 10_000);
    eventually("the cables are gone", || !bed.state().contains("nrw-"));
    assert_eq!(bed.state(), before);
    // And at once again.
    let network = bed.attach(&[]);
    network.signal("KILL");
    network.wait();
    let network = bed.attach(&["--json", "-"]);
    exchange(&mut stream, 10_000);
    assert!(packets(&end(network).expect(0).json(), "link.up") > 0);
    exchange(&mut stream, 10_000);
    assert_eq!(bed.state(), before);
    bed.clean();
}

#[test]
#[ignore = "needs root, ip, tc"]
fn closed_it_stays_shut_when_killed_until_it_is_cleaned_or_attached_again() {
    let bed = Bed::new(1500);
    let before = bed.state();
    let kill = |network: Started| {
        network.signal("KILL");
        network.wait();
        eventually("the cables are gone", || !bed.state().contains("nrw-"));
    };
    let is_shut = || {
        assert!(bed.state().contains("narrows-closed"), "{}", bed.state());
        assert!(!bed.echo(Duration::from_millis(200)), "nothing passes");
    };
    let network = bed.attach(&["--fail", "closed", "--delay", "1ms", "--json", "-"]);
    bed.passes();
    let report = end(network).expect(0).json();
    assert!(packets(&report, "link.up") > 0 && packets(&report, "link.down") > 0);
    bed.passes();
    assert_eq!(bed.state(), before, "ended in order it is open");

    let network = bed.attach(&["--fail", "closed"]);
    bed.passes();
    kill(network);
    is_shut();
    let cleaned = bed.clean();
    assert!(cleaned.out.contains("restored eth0"), "{cleaned}");
    bed.passes();
    assert_eq!(bed.state(), before);

    kill(bed.attach(&["--fail", "closed", "--direction", "out"]));
    is_shut();
    let network = bed.attach(&["--fail", "closed"]);
    bed.passes();
    kill(network);
    is_shut();
    let network = bed.attach(&[]);
    bed.passes();
    end(network).expect(0);
    bed.passes();
    assert_eq!(bed.state(), before);
    bed.clean();
}

#[test]
#[ignore = "needs root, ip, tc"]
fn filters_that_are_there_stay_and_see_each_frame_once() {
    let bed = Bed::new(1500);
    let tc = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        assert!(spawn(command, &bed.inner).unwrap().wait().unwrap().success(), "{line}");
    };
    tc("tc qdisc add dev eth0 clsact");
    tc("tc filter add dev eth0 ingress protocol ip pref 7 u32 match u32 0 0 flowid 1:1");
    let before = bed.state();
    for flags in [&[][..], &["--fail", "closed"]] {
        let network = bed.attach(&[flags, &["--json", "-"]].concat());
        bed.passes();
        let report = end(network).expect(0).json();
        assert!(notes(&report).contains("has tc filters"), "{report:#}");
        assert_eq!(bed.state(), before);
    }
    let network = bed.attach(&["--fail", "closed"]);
    network.signal("KILL");
    network.wait();
    bed.clean();
    eventually("the cables are gone", || !bed.state().contains("nrw-"));
    assert_eq!(bed.state(), before);
    bed.passes();
}

#[test]
#[ignore = "needs root"]
fn behind_a_generic_xdp_program_only_what_goes_out_is_diverted() {
    let bed = Bed::new(1500);
    let _xdp = bed.inner.run(|| {
        let code = [Instruction::mov(Register::R0, 2), Instruction::exit()];
        let passes = Program::load(ProgramKind::Xdp, "passes", &code).unwrap();
        let number = RouteSocket::open(&bed.inner).unwrap().interface_index("eth0").unwrap();
        Link::xdp(&passes, number, XdpMode::Generic).unwrap()
    });
    for direction in ["in", "both"] {
        let refused = finish(&mut bed.command(&["--direction", direction])).expect(2);
        assert!(refused.err.contains("ip link set eth0 xdpgeneric off"), "{refused}");
    }
    let network = bed.attach(&["--direction", "out"]);
    bed.passes();
    end(network).expect(0);
}

#[test]
#[ignore = "needs root"]
fn what_becomes_of_the_interface_is_told() {
    let bed = Bed::new(1500);
    let network = bed.attach(&["--json", "-"]);
    let mut sockets = RouteSocket::open(&bed.inner).unwrap();
    let wait_for = |text: &str| {
        eventually(text, || {
            let stats = finish(&mut bed.narrows(["stats", "--run", &network.id().to_string()]));
            stats.out.contains(text)
        });
    };
    sockets.set_down("eth0").unwrap();
    wait_for("eth0 went down; nothing crosses until it is up again");
    sockets.set_up("eth0").unwrap();
    wait_for("eth0 is up");
    sockets.set_mtu("eth0", 4000).unwrap();
    RouteSocket::open(&bed.outer).unwrap().set_mtu("far", 4000).unwrap();
    wait_for("the MTU of eth0 changed from 1500 to 4000");
    bed.passes();
    let bind = |namespace: &Namespace, at: &str| namespace.run(|| UdpSocket::bind(at).unwrap()).unwrap();
    let (from, to) = (bind(&bed.inner, "10.9.7.1:0"), bind(&bed.outer, "10.9.7.2:0"));
    to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    from.send_to(&[9; 3972], to.local_addr().unwrap()).unwrap();
    assert_eq!(to.recv(&mut [0; 4000]).unwrap(), 3972, "the cables are as wide");
    sockets.delete_interface("eth0").unwrap();
    let ended = network.wait().expect(2);
    assert!(ended.err.contains("the interface `eth0` was removed, or moved to another namespace"), "{ended}");
    sound(&ended.json());
}

#[test]
#[ignore = "needs root"]
fn a_process_or_container_that_ends_ends_it_in_order() {
    let bed = Bed::new(1500);
    let mut process = bed.process();
    let mut command = bed.narrows(["attach", "eth0", "--pid", &process.id().to_string(), "--json", "-"]);
    let mut network = start(&mut command);
    network.until_it_complains("on eth0 in process");
    bed.passes();
    process.signal(narrows_io::process::Signal::SIGKILL).unwrap();
    process.wait().unwrap();
    let ended = network.wait().expect(2);
    assert!(ended.err.contains("has ended"), "{ended}");
    assert!(packets(&ended.json(), "link.up") > 0);
    bed.passes();

    // An engine that knows one container.
    let process = bed.process();
    let socket = bed.folder.file("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let number = process.id();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 512];
            let length = stream.read(&mut request).unwrap();
            let answer = if request[..length].starts_with(b"GET /containers/web/json ") {
                format!("HTTP/1.0 200 OK\r\n\r\n{{\"State\":{{\"Running\":true,\"Pid\":{number}}}}}")
            } else {
                "HTTP/1.0 404 Not Found\r\n\r\n{}".to_owned()
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let engine = format!("unix://{}", socket.display());
    let mut command = bed.narrows(["attach", "eth0", "--container", "web", "--json", "-"]);
    let mut network = start(command.env("DOCKER_HOST", &engine));
    network.until_it_complains("on eth0 in the container web");
    bed.passes();
    assert!(packets(&end(network).expect(0).json(), "link.up") > 0);
    let mut command = bed.narrows(["attach", "eth0", "--container", "wob"]);
    let refused = finish(command.env("DOCKER_HOST", &engine)).expect(2);
    assert!(refused.err.contains("no container `wob`"), "{refused}");
    drop(process);
}

#[test]
#[ignore = "needs root, ip"]
fn what_cannot_be_attached_to_is_told_and_left_alone() {
    let bed = Bed::new(1500);
    let mut command = Command::new("sh");
    command.args(["-c", "ip tuntap add mode tun name tun0 && ip link set tun0 up"]);
    let has_tun = spawn(command, &bed.inner).unwrap().wait().unwrap().success();
    let before = bed.state();
    let path = bed.path();
    let refused = |interface: &str, flags: &[&str], words: &[&str]| {
        let mut command = bed.narrows(["attach", interface]);
        let ended = finish(command.args(flags)).expect(2);
        assert!(words.iter().all(|word| ended.err.contains(word)), "{words:?}: {ended}");
    };
    let here = ["--netns", &path];
    refused("eth9", &here, &["no interface `eth9`", "`eth0`"]);
    refused("lo", &here, &["loopback"]);
    if has_tun {
        refused("tun0", &here, &["carries no Ethernet frames"]);
    }
    refused("eth0", &["--pid", "4194303"], &["4194303"]);
    refused("eth0", &["--container", "a/b"], &["not a container's name"]);
    let scenario = "[hosts.a]\n[hosts.b]\n[routers.r]\n[links.x]\nbetween = [\"a\", \"r\"]\n[links.y]\nbetween = [\"r\", \"b\"]\n";
    let file = bed.folder.write("routed.toml", scenario);
    refused("eth0", &["--netns", &path, file.to_str().unwrap()], &["the router `r`"]);
    let stays = |flags: &[&'static str]| [&here[..], flags].concat();
    refused(
        "eth0",
        &stays(&["--persist", "--duration", "1s"]),
        &["--persist", "cannot be used with", "--duration"],
    );
    refused("eth0", &stays(&["--persist", "--backend", "af_packet"]), &["--backend kernel alone"]);
    refused("eth0", &stays(&["--persist", "--duplicate", "1%"]), &["link.up.duplicate"]);
    // Hosts may lack the file system for pins, and these tests' program has no program for the kernel.
    let ended =
        finish(bed.narrows(["attach", "eth0"]).args(stays(&["--persist", "--delay", "1ms"]))).expect(2);
    let words = ["is not a BPF file system", "the kernel backend is not available"];
    assert!(words.iter().any(|word| ended.err.contains(word)), "{ended}");
    refused("eth0", &stays(&["--remove"]), &["no network of --persist is at the interface `eth0`"]);
    refused("eth0", &stays(&["--remove", "--delay", "1ms"]), &["no description of a network"]);
    let network = bed.attach(&[]);
    refused("eth0", &here, &["another run of narrows is on the interface `eth0`"]);
    // Of another run folder, where nobody knows of the first.
    let mut command = narrows(["attach", "eth0", "--netns", &path]);
    let elsewhere = Scratch::new();
    command.env("NARROWS_CONTROL", elsewhere.file("none.sock"));
    let ended = finish(&mut command).expect(2);
    assert!(ended.err.contains("attached to already"), "{ended}");
    bed.passes();
    end(network).expect(0);
    assert_eq!(bed.state(), before);
    RouteSocket::open(&bed.inner).unwrap().set_down("eth0").unwrap();
    refused("eth0", &here, &["`eth0` is down", "ip link set eth0 up"]);
}

#[test]
#[ignore = "needs root, ip, unshare"]
fn in_a_user_namespace_it_says_that_the_kernel_does_not_let_it() {
    let line = format!(
        "ip link add eth0 type veth peer name far && ip link set far up && ip link set eth0 up && \
         exec {NARROWS} attach eth0"
    );
    let folder = Scratch::new();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", &line]);
    let ended = finish(command.env("NARROWS_CONTROL", folder.file("none.sock"))).expect(2);
    assert!(ended.err.contains("a user namespace does not give; run it as root"), "{ended}");
}

/// The barrier of a run that was killed is not a filter of others.
#[test]
#[ignore = "needs root, ip"]
fn a_barrier_is_not_told_as_a_filter() {
    let bed = Bed::new(1500);
    let killed = bed.attach(&["--fail", "closed"]);
    killed.signal("KILL");
    killed.wait();
    eventually("the cables are gone", || !bed.state().contains("nrw-"));
    let network = bed.attach(&["--json", "-"]);
    bed.passes();
    let report = end(network).expect(0).json();
    assert!(!notes(&report).contains("tc filters"), "{report:#}");
}

#[test]
#[ignore = "needs root, ip"]
fn closed_it_says_that_the_barrier_is_gone_with_an_interface_that_moved() {
    for killed in [false, true] {
        let bed = Bed::new(1500);
        let network = bed.attach(&["--fail", "closed"]);
        bed.passes();
        if killed {
            network.signal("KILL");
            eventually("the cables are gone", || !bed.state().contains("nrw-"));
        }
        let mut command = Command::new("ip");
        let outer = format!("/proc/{}/fd/{}", std::process::id(), bed.outer.as_fd().as_raw_fd());
        command.args(["link", "set", "eth0", "netns", &outer]);
        assert!(spawn(command, &bed.inner).unwrap().wait().unwrap().success());
        let ended = network.wait();
        let said = if killed { bed.clean().out } else { ended.expect(2).err };
        assert!(!said.contains("nothing passes there now") && !said.contains("put eth0 back"), "{said}");
        assert!(said.contains("its barrier is gone too, so everything passes there now"), "{said}");
        // What is said to be so is so.
        let filters = spawn_out("tc qdisc show dev eth0; tc filter show dev eth0 ingress", &bed);
        assert!(!filters.contains("clsact") && !filters.contains("narrows"), "{filters}");
        assert!(bed.clean().out.contains("nothing to clean up"));
    }
}

#[test]
#[ignore = "needs root, ip"]
fn open_there_is_nothing_to_put_back_of_an_interface_that_moved() {
    let bed = Bed::new(1500);
    let network = bed.attach(&[]);
    let mut command = Command::new("ip");
    let outer = format!("/proc/{}/fd/{}", std::process::id(), bed.outer.as_fd().as_raw_fd());
    command.args(["link", "set", "eth0", "netns", &outer]);
    assert!(spawn(command, &bed.inner).unwrap().wait().unwrap().success());
    let ended = network.wait().expect(2);
    assert!(ended.err.contains("was removed, or moved to another namespace; attach again"), "{ended}");
    assert!(!ended.err.contains("not put back"), "{ended}");
}

/// A network that does not look while its interface changes.
fn unseen(bed: &Bed, network: &Started, line: &str) {
    network.signal("STOP");
    let stat = format!("/proc/{}/stat", network.id());
    eventually("it has stopped", || fs::read_to_string(&stat).unwrap().contains(") T "));
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    assert!(spawn(command, &bed.inner).unwrap().wait().unwrap().success(), "{line}");
}

#[test]
#[ignore = "needs root, ip"]
fn closed_it_is_shut_again_at_an_interface_that_was_away_for_a_while() {
    let bed = Bed::new(1500);
    let network = bed.attach(&["--fail", "closed"]);
    bed.passes();
    let [inner, outer] = [&bed.inner, &bed.outer]
        .map(|namespace| format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd()));
    let there_and_back = format!(
        "ip link set eth0 netns {outer} && nsenter --net={outer} ip link set eth0 netns {inner} &&
         ip address add {INNER}/24 dev eth0 && ip link set eth0 up"
    );
    unseen(&bed, &network, &there_and_back);
    network.signal("CONT");
    let ended = network.wait().expect(2);
    assert!(ended.err.contains("nothing passes there now"), "{ended}");
    assert!(!ended.err.contains("not put back"), "{ended}");
    // What is said to be so is so.
    assert_eq!(bed.state().matches("narrows-closed").count(), 2, "{}", bed.state());
    assert!(!bed.echo(Duration::from_millis(200)));
    assert!(bed.clean().out.contains("restored eth0"));
    bed.passes();
}

#[test]
#[ignore = "needs root, ip"]
fn a_ctrl_c_with_an_interface_that_is_gone_gives_the_report() {
    for fail in ["open", "closed"] {
        let bed = Bed::new(1500);
        let network = bed.attach(&["--fail", fail, "--json", "-"]);
        bed.passes();
        unseen(&bed, &network, "ip link del eth0");
        network.signal("INT");
        network.signal("CONT");
        let ended = network.wait().expect(0);
        assert!(packets(&ended.json(), "link.up") > 0, "{ended}");
        assert_eq!(ended.err.contains("its barrier is gone too"), fail == "closed", "{ended}");
        assert!(bed.clean().out.contains("nothing to clean up"));
    }
}

/// What a line for the shell prints in the outer namespace.
fn spawn_out(line: &str, bed: &Bed) -> String {
    let said = bed.folder.file("said");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{{ {line}; }} >{}", said.display())]);
    spawn(command, &bed.outer).unwrap().wait().unwrap();
    fs::read_to_string(&said).unwrap()
}
