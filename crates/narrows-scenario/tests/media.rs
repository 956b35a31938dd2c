//! Several links on one medium.

use narrows_core::Target;
use narrows_scenario::{Medium, Scenario};

const CELL: &str = r#"
    [hosts.a]
    [hosts.b]
    [hosts.c]
    [hosts.d]
    [switches.ap]
    [links.air]
    between = ["a", "ap"]
    shared = true
    rate = "11mbit"
    delay = "2ms"
    scheduler = { type = "dcf", classes = [
        { name = "a", match = { from = "a" } },
        { name = "b", match = { from = "b" } },
        { name = "rest" },
    ] }
    [links.b]
    between = ["b", "ap"]
    medium = "air"
    [links.c]
    between = ["c", "ap"]
    medium = "air"
    [links.wire]
    between = ["d", "ap"]
    delay = "1ms"
"#;

fn read(text: &str) -> Scenario {
    match Scenario::parse(text, "net.toml") {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn links_on_a_medium_are_lanes_of_one_link() {
    let scenario = read(CELL);
    let config = scenario.network();
    let names: Vec<&str> = config.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["air", "wire.up", "wire.down"]);
    let port = |number| Target::Switch { name: "ap".into(), port: number };
    let host = |name: &str| Target::Port(name.into());
    let lanes = [port(0), host("a.air"), port(1), host("b.b"), port(2), host("c.c")];
    assert_eq!(config.links[0].lanes, lanes);
    let air = |lane| Target::Link { name: "air".into(), lane };
    let exits: Vec<Target> = config.switches[0].ports.iter().map(|port| port.exit.clone()).collect();
    assert_eq!(exits, [air(1), air(3), air(5), Target::Link { name: "wire.down".into(), lane: 0 }]);
    let entries: Vec<Target> = scenario.ports().iter().map(|port| port.path[0].clone()).collect();
    assert_eq!(entries, [air(0), air(2), air(4), Target::Link { name: "wire.up".into(), lane: 0 }]);
    // Twice over the medium from one station to another.
    let [b, c, d] = [1, 2, 3].map(|host| &scenario.ports()[host]);
    assert_eq!(scenario.mean_delay(b, c).expect("it is known").nanos(), 4_000_000);
    assert_eq!(scenario.mean_delay(c, d).expect("it is known").nanos(), 3_000_000);
    let explained = scenario.explain().to_string();
    assert!(explained.contains("air: a, b, c ↔ ap, one medium"), "{explained}");
}

#[test]
fn the_settings_of_a_medium_are_those_of_its_link() {
    let mut scenario = read(CELL);
    let changes = scenario.assign("air.delay=7ms").expect("it can be changed");
    assert_eq!(changes.iter().map(|(link, _)| link.as_str()).collect::<Vec<_>>(), ["air"]);
    let [b, d] = [1, 3].map(|host| &scenario.ports()[host]);
    assert_eq!(scenario.mean_delay(b, d).expect("it is known").nanos(), 8_000_000);
    let error = scenario.assign("b.delay=1ms").unwrap_err().to_string();
    assert!(error.contains("`b` is on the medium of `air`") && error.contains("write air.delay"), "{error}");
    let mut fresh = read(CELL);
    fresh.set(&["air.delay=7ms"]).expect("it can be changed");
    let again = read(&scenario.to_toml());
    assert!(again.links == fresh.links);
}

#[test]
fn a_switch_may_share_one_medium_with_its_hosts() {
    let scenario = read(
        "[hosts.a]\n[hosts.b]\n[switches.ap]\nhosts = [\"a\", \"b\"]\nshared = true\n\
         link = { rate = \"11mbit\", scheduler = { type = \"dcf\", classes = [\
         { name = \"b\", match = { from = \"b\" } }, { name = \"rest\" }] } }\n",
    );
    assert!(matches!(scenario.links[0].medium, Medium::Shared(_)));
    let Medium::Joined(joined) = &scenario.links[1].medium else { panic!("{:?}", scenario.links[1]) };
    assert_eq!((joined.medium.as_str(), joined.station), ("ap-a", 1));
    assert_eq!(scenario.network().links.len(), 1);
    let again = read(&scenario.to_toml());
    assert!(again.links == scenario.links);
}

#[test]
fn what_is_wrong_with_media_is_said() {
    let more = |lines: &str| format!("{CELL}\n[links.more]\nbetween = [\"d\", \"ap\"]\n{lines}\n");
    let stations: String = (0..130)
        .map(|n| format!("[hosts.s{n}]\n[links.s{n}]\nbetween = [\"s{n}\", \"ap\"]\nmedium = \"air\"\n"))
        .collect();
    for (text, title, help) in [
        (more("medium = \"ether\""), "there is no link `ether`", "links.more.medium"),
        (more("medium = \"wire\""), "`wire` is not a shared medium", "write shared = true in [links.wire]"),
        (more("medium = \"b\""), "`b` is not a shared medium", "links.more.medium"),
        (
            more("medium = \"air\"\nrate = \"1mbit\""),
            "a link on the medium of another has no `rate` of its own",
            "at the link that `medium` names",
        ),
        (more("medium = \"air\"\nrat = 1"), "unknown key `rat`", ""),
        (
            CELL.replace("from = \"b\"", "from = \"e\""),
            "`e` is not a sender",
            "allowed: `up`, `down`, `a`, `b` or `c`",
        ),
        (
            format!("{CELL}[links.again]\nbetween = [\"b\", \"ap\"]\nmedium = \"air\"\n"),
            "two links of `b` are on the medium of `air`",
            "a host of its own",
        ),
        (
            format!(
                "{CELL}[hosts.e]\n[hosts.f]\n[switches.hub]\nhosts = [\"e\", \"f\"]\nshared = true\n\
                 [links.up]\nbetween = [\"ap\", \"hub\"]\n[links.more]\nbetween = [\"d\", \"hub\"]\nmedium = \"hub-e\"\n"
            ),
            "the medium of `hub-e` is for the hosts of a switch only",
            "links.more.medium",
        ),
        (format!("{CELL}{stations}"), "133 links on the medium of `air`", "at most 127"),
    ] {
        let error = match Scenario::parse(&text, "net.toml") {
            Ok(_) => panic!("{title}: it was read\n{text}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(title), "{title}\n{error}");
        assert!(error.contains(help), "{help}\n{error}");
    }
}

/// Interfaces of a host have names of their own, which Linux takes.
#[test]
fn interfaces_are_named_after_links() {
    let mut text = String::from("[hosts.a]\n[hosts.b]\n");
    let links = ["averyveryverylong1", "averyveryverylong2", "averyveryverylong3", "lo", "short"];
    for link in links {
        text += &format!("[links.{link}]\nbetween = [\"a\", \"b\"]\n");
    }
    let scenario = Scenario::parse(&text, "x").unwrap();
    let names: Vec<_> = scenario
        .ports()
        .iter()
        .filter(|port| port.host == "a")
        .map(|port| scenario.interface_name(port))
        .collect();
    assert_eq!(names, ["averyveryverylo", "averyveryvery-2", "averyveryvery-3", "lo-2", "short"]);
}

/// The header of IPv6 takes 40 bytes.
#[test]
fn packets_have_room_for_their_headers() {
    let text = |length: &str, address: &str| {
        format!(
            "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n[[traffic]]\nfrom = \"a\"\nto = \"b\"\n\
             constant = \"1mbit\"\nlength = {length}\n{address}"
        )
    };
    let ipv6 = "source = \"fd00::1\"\ndestination = \"fd00::2\"\n";
    for (length, least) in [("\"47 bytes\"", 47), ("\"imix\"", 40)] {
        Scenario::parse(&text(length, ""), "x").unwrap_or_else(|error| panic!("{error}"));
        let error = Scenario::parse(&text(length, ipv6), "x").unwrap_err().to_string();
        assert!(
            error.contains(&format!("an IPv6 packet of {least} bytes, of which its headers take 48")),
            "{error}"
        );
    }
    Scenario::parse(&text("\"48 bytes\"", ipv6), "x").unwrap_or_else(|error| panic!("{error}"));
}
