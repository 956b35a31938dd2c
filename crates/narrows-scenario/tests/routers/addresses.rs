//! Addresses of ends, and what hosts and routers know of them.

use std::net::IpAddr;

use narrows_scenario::{Address, Scenario};

use super::parse;

/// One host on two routers, another behind the second, and two hosts apart from all that.
const TEXT: &str = r#"
[hosts.a]
[hosts.b]
[hosts.c]
[hosts.d]
[routers.r1]
[routers.r2]
[junctions.j]
[links.a1]
between = ["a", "r1"]
[links.a2]
between = ["r2", "a"]
cost = 5
[links.half]
between = ["r1", "j"]
[links.other-half]
between = ["j", "r2"]
[links.b2]
between = ["b", "r2"]
[links.apart]
between = ["c", "d"]
"#;

fn addresses(scenario: &Scenario, name: &str) -> Vec<String> {
    let ports = scenario.ports().iter().map(|port| (&port.name, &port.addresses));
    let ends = scenario.interfaces().iter().map(|end| (&end.name, &end.addresses));
    let (_, found) = ports.chain(ends).find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no {name}"));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn each_segment_is_a_network_of_its_own() {
    let scenario = parse(TEXT);
    for (name, network, end) in [
        ("a.a1", 0, 1),
        ("r1.a1", 0, 2),
        ("a.a2", 1, 1),
        ("r2.a2", 1, 2),
        ("b.b2", 2, 1),
        ("r2.b2", 2, 2),
        ("c.apart", 3, 1),
        ("d.apart", 3, 2),
        // Two links with a junction between them are one segment.
        ("r1.half", 4, 1),
        ("r2.other-half", 4, 2),
    ] {
        let expected = [format!("10.213.{network}.{end}/24"), format!("fd6e:6172:726f:{network}::{end}/64")];
        // Zeroes in a row are written once.
        let expected = expected.map(|text| text.replace(":0::", "::"));
        assert_eq!(addresses(&scenario, name), expected, "{name}");
    }
    let interface = &scenario.interfaces()[1];
    assert_eq!((interface.name.as_str(), interface.peer.as_str()), ("r1.half", "r2.other-half"));
    assert_eq!((interface.router.as_str(), interface.link.as_str(), interface.path.len()), ("r1", "half", 2));
}

#[test]
fn hosts_know_what_lies_behind_their_routers() {
    let mut scenario = parse(TEXT);
    let routes = |scenario: &Scenario, port: &str| -> Vec<String> {
        let port = scenario.ports().iter().find(|own| own.name == port).unwrap();
        scenario.routes(port).iter().map(|route| format!("{} via {}", route.to, route.via)).collect()
    };
    // From a to b by r1 costs 1 and 2, by r2 itself 5; what is between the routers is at both.
    let behind = [
        "10.213.2.0/24 via 10.213.0.2",
        "fd6e:6172:726f:2::/64 via fd6e:6172:726f::2",
        "10.213.4.0/24 via 10.213.0.2",
        "fd6e:6172:726f:4::/64 via fd6e:6172:726f::2",
    ];
    assert_eq!(routes(&scenario, "a.a1"), behind);
    assert!(routes(&scenario, "a.a2").is_empty());
    assert_eq!(routes(&scenario, "b.b2").len(), 6);
    assert!(routes(&scenario, "c.apart").is_empty());
    // Numbered anew, the routes follow.
    scenario.renumber(|address: Address| !address.to_string().starts_with("10.213.0."));
    assert_eq!(addresses(&scenario, "a.a1")[0], "10.213.1.1/24");
    assert_eq!(routes(&scenario, "a.a1")[0], "10.213.3.0/24 via 10.213.1.2");
    let route = scenario.network().routers[0].routes.iter().any(|(prefix, _)| prefix.bits() == 96 + 24);
    assert!(route);
}

#[test]
fn a_router_answers_from_the_end_that_leads_there() {
    let scenario = parse(TEXT);
    let towards =
        |router, to: &str| scenario.router_address(router, to.parse().unwrap()).map(|ip| ip.to_string());
    assert_eq!(towards("r1", "10.213.0.1").as_deref(), Some("10.213.0.2"));
    assert_eq!(towards("r1", "10.213.2.1").as_deref(), Some("10.213.4.1"));
    assert_eq!(towards("r1", "fd6e:6172:726f:2::1").as_deref(), Some("fd6e:6172:726f:4::1"));
    assert_eq!(towards("r1", "192.0.2.1"), None);
    assert_eq!(towards("r1", "10.213.0.2"), None);
    assert_eq!(towards("nobody", "10.213.0.1"), None);
}

#[test]
fn given_addresses_are_those_in_force_and_are_routed() {
    let scenario = parse(
        "[hosts.a]\naddresses = [\"192.0.2.7/25\", \"203.0.113.5/32\"]\n[hosts.b]\n\
         [routers.r]\naddresses = { one = [\"192.0.2.1/25\"], two = [\"fd00::1/64\"] }\n\
         [links.one]\nbetween = [\"a\", \"r\"]\n[links.two]\nbetween = [\"b\", \"r\"]\n"
            .replace("[hosts.b]", "[hosts.b]\naddresses = [\"fd00::2/64\"]")
            .as_str(),
    );
    assert_eq!(addresses(&scenario, "r.one"), ["192.0.2.1/25"]);
    let port = &scenario.ports()[1];
    // No IPv4 at b, so no gateway for the networks of a.
    assert!(scenario.routes(port).is_empty());
    let lone: IpAddr = "203.0.113.5".parse().unwrap();
    assert_eq!(scenario.router_address("r", lone).map(|ip| ip.to_string()).as_deref(), Some("192.0.2.1"));
}

/// More links than there are /24 networks of automatic addresses.
#[test]
fn addresses_of_a_large_network_are_in_small_networks() {
    let hosts = 10_753;
    let mut text = String::from("[routers.r]\n");
    for host in 0..hosts {
        text += &format!("[hosts.h{host}]\n[links.l{host}]\nbetween = [\"h{host}\", \"r\"]\n");
    }
    let scenario = parse(&text);
    assert_eq!(addresses(&scenario, "h0.l0"), ["10.213.0.1/30", "fd6e:6172:726f::1/80"]);
    assert_eq!(addresses(&scenario, "r.l0"), ["10.213.0.2/30", "fd6e:6172:726f::2/80"]);
    let networks = scenario.ports().iter().flat_map(|port| &port.addresses).map(|address| address.network());
    let networks: std::collections::BTreeSet<Address> = networks.collect();
    assert_eq!(networks.len(), 2 * hosts);
}
