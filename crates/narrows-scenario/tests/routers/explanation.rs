//! What `narrows check` says of routers, paths and circles.

use super::parse;

const TEXT: &str = r#"
[hosts.a]
[hosts.b]
[routers.r1]
routes = [{ to = "b", via = ["slow", "fast"], weights = [30, 70], spread = "packet" }]
[routers.r2]
multipath = "flow"
[links.in]
between = ["a", "r1"]
delay = "1ms"
[links.fast]
between = ["r1", "r2"]
delay = "20ms"
[links.slow]
between = ["r1", "r2"]
delay = "100ms"
[links.out]
between = ["r2", "b"]
rate = "512kbit"
"#;

#[test]
fn paths_are_told_hop_by_hop() {
    let explanation = parse(TEXT).explain();
    let text = explanation.to_string();
    let expected = "
routers
  r1: joins in, fast, slow; to b by slow (weight 30) and fast (weight 70), by packet
  r2: joins fast, slow, out; equal paths are shared by flow

a.in ↔ b.out
  there       30 % of packets: a –in→ r1 –slow→ r2 –out→ b, 102ms
              70 % of packets: a –in→ r1 –fast→ r2 –out→ b, 22ms
  back        50 % of flows: b –out→ r2 –fast→ r1 –in→ a, 22ms
              50 % of flows: b –out→ r2 –slow→ r1 –in→ a, 102ms
  round trip  44ms to 204ms for 64 bytes, 88.875ms to 248.875ms for 1500 bytes both ways, without queueing
";
    assert!(text.contains(expected), "{text}");
    assert!(explanation.warnings.is_empty(), "{text}");
    let path = &explanation.paths[0];
    assert_eq!(path.links, ["in", "slow", "out"]);
    assert_eq!((path.there[0].share, path.there[0].by.as_deref()), (0.3, Some("packet")));
    assert_eq!(path.longest_round_trip_small_ns, Some(204_000_000));
}

#[test]
fn circles_and_wrong_turns_are_warned_of() {
    let circle = TEXT.replace("multipath = \"flow\"", "routes = [{ to = \"b\", via = \"fast\" }]");
    let text = parse(&circle).explain().to_string();
    for part in [
        "there       30 % of packets: a –in→ r1 –slow→ r2 –fast→ r1; it returns to r1 until its hop limit is exhausted",
        "round trip  never: no path both ways",
        "warning: r1: packets to b may loop, r1 → r2 → r1, until their hop limit is exhausted",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text.matches("warning: ").count(), 1, "{text}");

    let wrong = TEXT.replace(
        "via = [\"slow\", \"fast\"], weights = [30, 70]",
        "via = [\"in\", \"fast\"], weights = [1, 3]",
    );
    let text = parse(&wrong).explain().to_string();
    let warning =
        "warning: a.in: not all packets reach b.out: 25 % of packets: a –in→ r1 –in→ a; it ends at a.in";
    assert!(text.contains(warning), "{text}");
    assert_eq!(text.matches("warning: ").count(), 1, "{text}");
}

#[test]
fn a_long_way_is_shown_by_its_ends() {
    // Longer than any hop limit.
    const ROUTERS: usize = 70;
    let mut text = "[hosts.a]\n[hosts.b]\n".to_owned();
    let names: Vec<String> = (1..=ROUTERS).map(|router| format!("r{router}")).collect();
    for name in &names {
        text += &format!("[routers.{name}]\n");
    }
    let nodes = ["a"].into_iter().chain(names.iter().map(String::as_str)).chain(["b"]);
    for (at, (from, to)) in nodes.clone().zip(nodes.skip(1)).enumerate() {
        text += &format!("[links.l{at}]\nbetween = [\"{from}\", \"{to}\"]\n");
    }
    let text = parse(&text).explain().to_string();
    let way = "a –l0→ r1 –l1→ r2 –l2→ r3 –l3→ r4 … 63 links … r67 –l67→ r68 –l68→ r69 –l69→ r70 –l70→ b";
    assert!(text.contains(way), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 300), "{text}");
}

#[test]
fn circles_of_networks_are_found_too() {
    let text = "[hosts.a]\n[hosts.b]\n[routers.r1]\nroutes = [{ to = \"0.0.0.0/0\", via = \"m\" }]\n\
                [routers.r2]\nroutes = [{ to = \"192.0.2.0/24\", via = \"m\" }]\n[links.l]\nbetween = [\"a\", \"r1\"]\n\
                [links.m]\nbetween = [\"r1\", \"r2\"]\n[links.n]\nbetween = [\"b\", \"r2\"]\n";
    let warnings = parse(text).explain().warnings;
    assert_eq!(
        warnings,
        ["r1: packets to 192.0.2.0/24 may loop, r1 → r2 → r1, until their hop limit is exhausted"]
    );
}

#[test]
fn traffic_to_foreign_addresses_and_idle_routers_are_warned_of() {
    let traffic = "[routers.alone]\n[[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"1/s\"\npackets = 5\ndestination = \"10.213.0.1\"\n";
    let warnings = parse(&format!("{TEXT}{traffic}")).explain().warnings;
    assert_eq!(
        warnings,
        [
            "alone: no link ends at this router",
            "traffic-1: 10.213.0.1 is not an address of `b.out`; routers send packets for it wherever their routes lead",
        ]
    );
}
