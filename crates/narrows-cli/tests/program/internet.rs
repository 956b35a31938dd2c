//! `--internet`: hosts of a run reach what the host of narrows reaches, whatever that host is set to.
//!
//! ```text
//! client ── link ── server ── cable ── host ── uplink ── internet
//! ```
//!
//! Host and internet are namespaces of the test's own, which end with it.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::route_socket::RouteSocket;
use narrows_io::stack::settle;
use narrows_io::sysctl::{read_sysctl, write_sysctl};

use crate::common::{Finished, finish, run};

const INTERNET: &str = "192.0.2.1";
const FORWARDING: &str = "net/ipv4/conf/uplink/forwarding";

pub(crate) struct World {
    pub(crate) host: Namespace,
    _internet: Namespace,
}

impl World {
    pub(crate) fn new() -> Self {
        let [host, internet] = [(); 2].map(|()| Namespace::create().unwrap());
        let end = |namespace, name| VethEnd { namespace, name, mac: None };
        create_veth(&end(&host, "uplink"), &end(&internet, "far"), 1500).unwrap();
        for (namespace, name, address) in [(&host, "uplink", "192.0.2.10"), (&internet, "far", INTERNET)] {
            settle(namespace, name).unwrap();
            let mut sockets = RouteSocket::open(namespace).unwrap();
            sockets.set_up(name).unwrap();
            sockets
                .add_address(name, IpPrefix::new(address.parse::<std::net::IpAddr>().unwrap(), 24))
                .unwrap();
        }
        let mut sockets = RouteSocket::open(&host).unwrap();
        sockets.wait_for_carrier("uplink", Duration::from_secs(60)).unwrap();
        sockets.add_default_route(INTERNET.parse().unwrap(), "uplink").unwrap();
        Self { host, _internet: internet }
    }

    /// A run in the host.
    fn run(&self, line: &str) -> Finished {
        let mut command = run(["--delay", "1ms", "--internet"], line);
        self.host.run(|| finish(&mut command)).unwrap()
    }

    /// A command in the host that prepares it.
    fn prepare(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command.args(arguments);
        finish_well(self.host.run(|| finish(&mut command)).unwrap());
    }
}

fn finish_well(ended: Finished) {
    ended.expect(0);
}

#[test]
#[ignore = "needs root, ping"]
fn the_internet_is_reached_whatever_the_host_is_set_to() {
    for (forwarding, ipv6) in [("0", "0"), ("1", "1")] {
        let world = World::new();
        write_sysctl(&world.host, "net/ipv4/ip_forward", forwarding).unwrap();
        write_sysctl(&world.host, "net/ipv6/conf/all/disable_ipv6", ipv6).unwrap();
        write_sysctl(&world.host, "net/ipv6/conf/default/disable_ipv6", ipv6).unwrap();
        let ended = world.run(&format!("ping -c 1 {INTERNET} && ping -c 1 $NARROWS_SERVER6")).expect(0);
        assert!(ended.err.contains("round trip"), "{ended}");
        assert_eq!(read_sysctl(&world.host, FORWARDING).unwrap(), forwarding, "it is as it was");
    }
}

#[test]
#[ignore = "needs root, ip, ping"]
fn an_uplink_that_is_renamed_or_gone_is_handled() {
    let world = World::new();
    write_sysctl(&world.host, "net/ipv4/ip_forward", "0").unwrap();
    // As another program of the host does.
    let host = format!("/proc/{}/fd/{}", std::process::id(), world.host.as_fd().as_raw_fd());
    let link = |what: &str| format!("nsenter --net={host} ip link {what}");
    let ended = world.run(&link("set uplink name wan")).expect(0);
    assert!(!ended.err.contains("was removed, or moved"), "{ended}");
    assert_eq!(read_sysctl(&world.host, "net/ipv4/conf/wan/forwarding").unwrap(), "0", "it is as it was");
    let ended = world.run(&link("del wan")).expect(0);
    let said = "the uplink wan was removed, or moved to another namespace, during the run";
    assert!(ended.err.contains(said), "{ended}");
}

#[test]
#[ignore = "needs root, nft, ping"]
fn a_firewall_of_the_host_that_is_in_the_way_is_named() {
    let world = World::new();
    let rules = "table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; iifname \"docker0\" accept; }; }";
    world.prepare("nft", &[rules]);
    let ended = world.run(&format!("ping -c 1 -W 1 {INTERNET}")).expect(1);
    assert!(
        ended.err.contains("the host's firewall drops") && ended.err.contains("filter FORWARD"),
        "{ended}"
    );

    let rule = "insert rule ip filter FORWARD iifname \"narrows*\" accept; insert rule ip filter FORWARD oifname \"narrows*\" accept";
    world.prepare("nft", &[rule]);
    world.run(&format!("ping -c 1 {INTERNET}")).expect(0);
}
