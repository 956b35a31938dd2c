//! Names inside a run: hosts and routers are found by theirs, and what lies outside is out of reach at once.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::thread;

use crate::common::{Finished, Scratch, finish, narrows, run};
use crate::internet::World;
use crate::ordinary_user::as_nobody;

/// The lines that look up names say `NAME: ADDRESS …`, sorted, each address once.
const LOOK_UP: &str =
    "look() { for name; do echo $name: $(getent ahosts $name | cut -d ' ' -f 1 | sort -u); done; }";

const ROUTED: &str = "[hosts.client]\n[hosts.server]\n[hosts.Spare]\n[routers.r1]\n\
    [links.near]\nbetween = ['client', 'r1']\n[links.far]\nbetween = ['r1', 'server']\n\
    [links.side]\nbetween = ['client', 'Spare']\n";

#[test]
#[ignore = "needs namespaces"]
fn hosts_and_routers_are_found_by_name_from_every_host() {
    let scratch = Scratch::new();
    let scenario = scratch.write("routed.toml", ROUTED);
    let line = format!("{LOOK_UP}; look client server Spare r1");
    let mut seen = Vec::new();
    for host in ["client", "server", "Spare"] {
        let arguments =
            ["run", scenario.to_str().unwrap(), "--quiet", "--host", host, "--", "sh", "-c", &line];
        seen.push(finish(&mut narrows(arguments)).expect(0).out);
    }
    let wanted = "client: 10.213.0.1 10.213.1.1 fd6e:6172:726f:1::1 fd6e:6172:726f::1\n\
                  server: 10.213.2.1 fd6e:6172:726f:2::1\n\
                  Spare: 10.213.1.2 fd6e:6172:726f:1::2\n\
                  r1: 10.213.0.2 10.213.2.2 fd6e:6172:726f:2::2 fd6e:6172:726f::2\n";
    let sorted = |text: &str| {
        let words = |line: &str| {
            let mut words: Vec<_> = line.split_whitespace().map(String::from).collect();
            words.sort();
            words
        };
        text.lines().map(words).collect::<Vec<_>>()
    };
    for said in &seen {
        assert_eq!(sorted(said), sorted(wanted), "{said}");
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_name_is_an_address_to_programs() {
    let before = fs::read("/etc/hosts").ok();
    // A program beside CMD finds them, too.
    let scratch = Scratch::new();
    let found = scratch.file("found");
    let beside = format!("ping -c 1 client > {}", found.display());
    let line = "ping -c 1 server && ping -4 -c 1 server && getent hosts localhost";
    finish(&mut run(["--on", "server", &beside], line)).expect(0);
    assert!(fs::read_to_string(found).unwrap().contains("1 received"));
    assert_eq!(fs::read("/etc/hosts").ok(), before, "the host's own file is as it was");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn hosts_in_a_chain_reach_their_neighbours_on_any_link() {
    let scratch = Scratch::new();
    let scenario = scratch.write(
        "chain.toml",
        "[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.one]\nbetween = ['a', 'b']\n[links.two]\nbetween = ['b', 'c']\n",
    );
    let file = scenario.to_str().unwrap();
    let line = "ping -c 1 b && ping -c 1 -W 5 $NARROWS_HOST_B && ping -c 1 -W 5 $NARROWS_HOST_B6";
    finish(&mut narrows(["run", file, "--quiet", "--host", "c", "--", "sh", "-c", line])).expect(0);
}

#[test]
#[ignore = "needs namespaces, ping"]
fn without_a_way_outside_nothing_there_is_waited_for() {
    let line = "ping -c 1 192.0.2.1; ping -c 1 2001:db8::1; getent ahosts name.example && echo found; cat /etc/resolv.conf";
    let ended = finish(&mut run(["--quiet", "--delay", "1ms"], line)).expect(0);
    let unreachable = ended.err.lines().filter(|line| line.contains("Network is unreachable")).count();
    assert_eq!(unreachable, 2, "{ended}");
    assert!(!ended.out.contains("found") && !ended.out.contains("nameserver"), "{ended}");
    assert!(!ended.out.contains("search"), "{ended}");
    assert!(!ended.err.contains("Redirect"), "{ended}");
}

#[test]
#[ignore = "needs root, user namespaces, su, ping"]
fn an_ordinary_user_has_names_too() {
    let line = "narrows run --quiet --on server 'ping -c 1 client >&2' -- ping -c 1 server";
    let ended = as_nobody(line).expect(0);
    assert!(ended.out.contains("1 received") && ended.err.contains("1 received"), "{ended}");
}

#[test]
#[ignore = "needs guest kernel, ping"]
fn names_are_known_in_exact_virtual_time() {
    let line = "ping -c 1 server; ping -c 1 192.0.2.1; getent ahosts name.example";
    let ended = finish(&mut run(["--virtual", "--quiet"], line)).expect(2);
    assert!(ended.out.contains("1 received") && ended.err.contains("Network is unreachable"), "{ended}");
}

/// A name server that knows one name, in this namespace.
fn serve_names(address: &str, known: [u8; 4]) {
    let here: IpAddr = address.parse().unwrap();
    let queries = UdpSocket::bind((here, 53)).unwrap();
    let connections = TcpListener::bind((here, 53)).unwrap();
    let answer = move |query: &[u8]| {
        // The header and the question as they came; then the answer, whose name is that of the question.
        let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        let is_ipv4 = query[end - 4..end - 2] == [0, 1];
        let mut message = query[..end].to_vec();
        message[2..4].copy_from_slice(&[0x81, 0x80]);
        message[6..12].copy_from_slice(&[0, u8::from(is_ipv4), 0, 0, 0, 0]);
        if is_ipv4 {
            message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            message.extend(known);
        }
        message
    };
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = queries.recv_from(&mut buffer) {
            queries.send_to(&answer(&buffer[..length]), from).unwrap();
        }
    });
    thread::spawn(move || {
        for mut connection in connections.incoming().map_while(Result::ok) {
            let mut length = [0; 2];
            while connection.read_exact(&mut length).is_ok() {
                let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                connection.read_exact(&mut query).unwrap();
                let message = answer(&query);
                connection.write_all(&(message.len() as u16).to_be_bytes()).unwrap();
                connection.write_all(&message).unwrap();
            }
        }
    });
}

/// A run in a host of the test's own whose `/etc/resolv.conf` says this.
fn resolving(world: &World, resolv_conf: &str, line: &str) -> Finished {
    let scratch = Scratch::new();
    let file = scratch.write("resolv.conf", resolv_conf);
    let inner = run(["--delay", "1ms", "--internet", "--quiet"], line);
    let mount = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", file.display());
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", &mount, "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(std::process::Stdio::null());
    world.host.run(|| finish(&mut command)).unwrap()
}

#[test]
#[ignore = "needs root, ping"]
fn a_resolver_on_a_loopback_address_is_reached_with_internet() {
    for (address, options) in [("127.0.0.53", ""), ("127.0.0.53", "options use-vc\n"), ("::1", "")] {
        let world = World::new();
        world.host.run(|| serve_names(address, [192, 0, 2, 1])).unwrap();
        let conf = format!("nameserver {address}\n{options}");
        let line = "getent ahostsv4 name.example && ping -c 1 name.example && ping -c 1 server";
        let ended = resolving(&world, &conf, line).expect(0);
        assert!(ended.out.contains("192.0.2.1"), "{ended}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_resolver_that_is_not_there_is_not_waited_for() {
    let world = World::new();
    let line = "getent ahosts name.example; status=$?; grep -c narrows /etc/resolv.conf; exit $status";
    let ended = resolving(&world, "nameserver 127.0.0.53\nsearch lan\n", line).expect(2);
    assert_eq!(ended.out, "1\n", "{ended}");
}

#[test]
#[ignore = "needs root"]
fn a_resolver_elsewhere_is_the_hosts_own() {
    let world = World::new();
    let ended = resolving(&world, "nameserver 192.0.2.1\nsearch lan\n", "cat /etc/resolv.conf").expect(0);
    assert_eq!(ended.out, "nameserver 192.0.2.1\nsearch lan\n");
}
