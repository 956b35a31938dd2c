//! A way to the outside: addresses translated, settings put back, nothing left after `kill -9`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::ledger::{RaisedSetting, restore_abandoned};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::nat::{NatError, NftablesError, Outside, WayOut, table_names};
use narrows_io::route_socket::RouteSocket;
use narrows_io::stack;
use narrows_io::sysctl::read_sysctl;

use crate::lab::{PATIENCE, eventually, privileged};
use crate::leftovers::{HOST, copy_of, is_part, path_of};

const FORWARDING: &str = "net/ipv4/conf/up/forwarding";

fn prefix(text: &str) -> IpPrefix {
    let (address, length) = text.split_once('/').unwrap();
    IpPrefix::new(address.parse::<IpAddr>().unwrap(), length.parse().unwrap())
}

/// A host with an uplink to the internet, which has one address of each family and no way back to anything
/// but the host's own.
struct World {
    internet: Namespace,
    host: Namespace,
    ledger: PathBuf,
}

impl World {
    fn new(name: &str) -> Self {
        let internet = Namespace::create().unwrap().labelled("internet");
        let host = Namespace::create().unwrap().labelled("host");
        let up = VethEnd { namespace: &host, name: "up", mac: None };
        let down = VethEnd { namespace: &internet, name: "down", mac: None };
        create_veth(&up, &down, 1500).unwrap();
        let ends = [(up, ["192.0.2.10/24", "2001:db8::10/64"]), (down, ["192.0.2.1/24", "2001:db8::1/64"])];
        for (end, addresses) in ends {
            stack::settle(end.namespace, end.name).unwrap();
            let mut sockets = RouteSocket::open(end.namespace).unwrap();
            sockets.set_up(end.name).unwrap();
            for address in addresses {
                sockets.add_address(end.name, prefix(address)).unwrap();
            }
        }
        let mut sockets = RouteSocket::open(&host).unwrap();
        sockets.wait_for_carrier("up", Duration::from_nanos(PATIENCE)).unwrap();
        sockets.add_default_route("192.0.2.1".parse().unwrap(), "up").unwrap();
        sockets.add_default_route("2001:db8::1".parse().unwrap(), "up").unwrap();
        let folder = std::env::temp_dir().join(format!("narrows-io-{name}-{}", std::process::id()));
        Self { internet, host, ledger: folder.join("settings") }
    }

    /// Whether any setting waits to be put back.
    fn ledger_is_empty(&self) -> bool {
        !self.ledger.parent().unwrap().exists()
    }

    fn forwarding(&self) -> String {
        read_sysctl(&self.host, FORWARDING).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.ledger.parent().unwrap());
    }
}

fn open(host: &Namespace, inner: &Namespace, number: u8, ledger: &Path) -> Result<Outside, NatError> {
    let (outer_name, table) = (format!("out{number}"), format!("narrows-{number}"));
    let pair = |network: &str, length| {
        let end = |end: u8| IpPrefix::new(format!("{network}{end}").parse::<IpAddr>().unwrap(), length);
        (end(2), end(1))
    };
    WayOut {
        inner: VethEnd { namespace: inner, name: "outside", mac: None },
        outer: VethEnd { namespace: host, name: &outer_name, mac: None },
        ipv4: pair(&format!("10.90.{number}."), 30),
        ipv6: Some(pair(&format!("fd90:{number}::"), 64)),
        to_networks: false,
        table: &table,
        ledger,
    }
    .open()
}

/// Sends a datagram from `inner` to the internet and back; the address that the internet saw.
fn seen_as(inner: &Namespace, internet: &Namespace, address: &str) -> Option<IpAddr> {
    let far = internet.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    let near = inner.run(|| UdpSocket::bind(if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" }));
    let near = near.unwrap().unwrap();
    for socket in [&far, &near] {
        socket.set_read_timeout(Some(Duration::from_nanos(PATIENCE))).unwrap();
    }
    near.send_to(b"there", far.local_addr().unwrap()).ok()?;
    let (_, from) = far.recv_from(&mut [0; 10]).unwrap();
    far.send_to(b"back", from).unwrap();
    near.recv(&mut [0; 10]).unwrap();
    Some(from.ip())
}

#[test]
#[ignore = "needs namespaces"]
fn the_inside_reaches_the_internet_under_the_hosts_address() {
    privileged("outside::the_inside_reaches_the_internet_under_the_hosts_address", || {
        let world = World::new("outside");
        let inner = Namespace::create().unwrap().labelled("inside");
        assert_eq!(world.forwarding(), "0");
        let outside = open(&world.host, &inner, 1, &world.ledger).unwrap();
        let seen = seen_as(&inner, &world.internet, "192.0.2.1").unwrap();
        assert_eq!(seen, "192.0.2.10".parse::<IpAddr>().unwrap());
        if outside.has_ipv6() {
            let seen = seen_as(&inner, &world.internet, "2001:db8::1").unwrap();
            assert_eq!(seen, "2001:db8::10".parse::<IpAddr>().unwrap());
        }
        assert_eq!(world.forwarding(), "1");
        assert!(!table_names(&world.host).unwrap().is_empty());
        // The host as a whole has not become a router: net.ipv4.ip_forward is the default for new interfaces.
        assert_eq!(read_sysctl(&world.host, "net/ipv4/ip_forward").unwrap(), "0");

        drop(outside);
        assert_eq!(world.forwarding(), "0");
        eventually("the tables to go", || table_names(&world.host).unwrap().is_empty());
        assert!(world.ledger_is_empty());
    });
}

#[test]
#[ignore = "needs namespaces"]
fn two_runs_share_the_hosts_forwarding_and_the_last_puts_it_back() {
    privileged("outside::two_runs_share_the_hosts_forwarding_and_the_last_puts_it_back", || {
        let world = World::new("share");
        let (one, other) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        let first = open(&world.host, &one, 1, &world.ledger).unwrap();
        let second = open(&world.host, &other, 2, &world.ledger).unwrap();
        drop(first);
        assert_eq!(world.forwarding(), "1", "the second still needs it");
        seen_as(&other, &world.internet, "192.0.2.1").unwrap();
        drop(second);
        assert_eq!(world.forwarding(), "0");
    });
}

#[test]
#[ignore = "needs namespaces"]
fn a_setting_that_was_so_already_is_not_ours() {
    privileged("outside::a_setting_that_was_so_already_is_not_ours", || {
        let world = World::new("already");
        narrows_io::sysctl::write_sysctl(&world.host, FORWARDING, "1").unwrap();
        assert!(RaisedSetting::raise(&world.host, FORWARDING, "1", &world.ledger).unwrap().is_none());
        assert_eq!(world.forwarding(), "1");
        assert!(world.ledger_is_empty());
    });
}

#[test]
#[ignore = "needs namespaces"]
fn what_cannot_be_done_is_said() {
    privileged("outside::what_cannot_be_done_is_said", || {
        let world = World::new("refusals");
        let inner = Namespace::create().unwrap();
        let nowhere = Namespace::create().unwrap().labelled("nowhere");
        let error = open(&nowhere, &inner, 1, &world.ledger).unwrap_err();
        assert!(
            matches!(error, NatError::NoWayOut { .. }) && error.to_string().contains("nowhere"),
            "{error}"
        );

        let _outside = open(&world.host, &inner, 1, &world.ledger).unwrap();
        let error = open(&world.host, &Namespace::create().unwrap(), 1, &world.ledger).unwrap_err();
        assert!(matches!(error, NatError::Nftables(NftablesError::Exists { .. })), "{error}");
    });
}

#[test]
#[ignore = "needs namespaces"]
fn after_a_kill_the_ledger_puts_settings_back() {
    let name = "outside::after_a_kill_the_ledger_puts_settings_back";
    privileged(name, || {
        if is_part("holder") {
            let variable = |name: &str| std::env::var(name).unwrap();
            let host = Namespace::open(&variable(HOST)).unwrap();
            let inner = Namespace::create().unwrap();
            let ledger = PathBuf::from(variable("NARROWS_IO_TEST_LEDGER"));
            let _outside = open(&host, &inner, 1, &ledger).unwrap();
            println!("holding");
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
        let world = World::new("kill");
        let mut holder = copy_of(name, "holder");
        holder.env(HOST, path_of(&world.host)).env("NARROWS_IO_TEST_LEDGER", &world.ledger);
        let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("holding")));
        assert_eq!(world.forwarding(), "1");
        assert!(restore_abandoned(&world.host, &world.ledger).unwrap().is_empty(), "its run still lives");

        holder.kill().unwrap();
        holder.wait().unwrap();
        eventually("the tables to go", || table_names(&world.host).unwrap().is_empty());
        eventually("the cable to go", || RouteSocket::open(&world.host).unwrap().interface("out1").is_err());
        assert_eq!(world.forwarding(), "1", "a sysctl has no owner");
        let restored = restore_abandoned(&world.host, &world.ledger).unwrap().put_back;
        assert!(
            restored.iter().any(|record| record.key == FORWARDING && record.before == "0"),
            "{restored:?}"
        );
        assert_eq!(world.forwarding(), "0");
        assert!(restore_abandoned(&world.host, &world.ledger).unwrap().is_empty());
    });
}
