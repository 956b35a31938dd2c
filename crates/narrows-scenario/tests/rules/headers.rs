//! Conditions on header fields and tables of other keys than addresses: which packets they match, by ipfw(8).

use narrows_core::{DropReason, FlowKey, Headers, Protocol, Time};
use narrows_scenario::ipfw::Script;
use narrows_scenario::{Interfaces, Scenario};

use crate::bed::{Bed, at, from, net};

/// Whether a rule with this condition drops such a packet of the client.
fn drops(condition: &str, key: FlowKey, headers: Headers) -> bool {
    let mut bed = Bed::new(&net(&format!("rules = [\"deny {condition}\"]")));
    bed.send_with(Time::ZERO, "client", key, headers, 1000);
    bed.rest()[0].dropped.is_some()
}

#[test]
fn fields_of_ipv4() {
    let key = from([10, 0, 0, 2]);
    let whole = FlowKey { network: Protocol::Ipv4DontFragment, ..key };
    let v6 = FlowKey { network: Protocol::Ipv6, ..key };
    let headers = |fragment, ip_id, ip_options| Headers { fragment, ip_id, ip_options, ..Headers::default() };
    let first = headers(0x20, 7, 0);
    let last = Headers { is_later_fragment: true, ..headers(0x01, 7, 0) };
    for (condition, key, headers, expected) in [
        ("frag", key, last, true),
        ("frag", key, first, false),
        ("frag mf", key, first, true),
        ("frag mf", key, last, false),
        ("frag offset,!mf", key, last, true),
        ("frag df", whole, headers(0, 0, 0), true),
        ("frag df", key, headers(0, 0, 0), false),
        ("frag !df", key, headers(0, 0, 0), true),
        ("frag !df", v6, headers(0, 0, 0), false),
        ("frag rf", key, headers(0x80, 0, 0), true),
        ("ipid 7", key, first, true),
        ("ipid 0-6,8", key, first, false),
        ("ipid 0", v6, headers(0, 0, 0), false),
        ("ipoptions ssrr", key, headers(0, 0, 2), true),
        ("ipoptions ssrr,lsrr", key, headers(0, 0, 2), false),
        ("ipoptions ssrr,!lsrr", key, headers(0, 0, 6), true),
        ("ipoptions !rr", key, headers(0, 0, 0), true),
        // ipfw matches no condition on options that it cannot read.
        ("ipoptions !rr", key, headers(0, 0, Headers::MALFORMED_OPTIONS), false),
        ("not ipoptions rr", key, headers(0, 0, Headers::MALFORMED_OPTIONS), true),
    ] {
        assert_eq!(drops(condition, key, headers), expected, "{condition}: {headers:?}");
    }
}

#[test]
fn extension_headers() {
    let v6 = FlowKey { network: Protocol::Ipv6, ..from([10, 0, 0, 2]) };
    let headers = Headers { extension_headers: 0x02 | 0x04 | 0x80, ..Headers::default() };
    for (condition, expected) in [
        ("ext6hdr hopopt", true),
        ("ext6hdr rthdr2", true),
        // One of them is enough, unlike with flags.
        ("ext6hdr frag,ah,route", true),
        ("ext6hdr rthdr0", false),
        ("not ext6hdr esp,dstopt", true),
    ] {
        assert_eq!(drops(condition, v6, headers), expected, "{condition}");
    }
    assert!(!drops("ext6hdr hopopt", from([10, 0, 0, 2]), headers));
}

#[test]
fn fields_of_tcp() {
    let udp = from([10, 0, 0, 2]);
    let tcp = FlowKey { transport: 6, ..udp };
    let headers = Headers {
        tcp_sequence: 4_000_000_000,
        tcp_acknowledgement: 9,
        tcp_window: 512,
        tcp_mss: 1460,
        tcp_options: 1 | 4 | 8,
        ..Headers::default()
    };
    for (condition, expected) in [
        ("tcpseq 4000000000", true),
        ("tcpseq 9", false),
        ("tcpack 9", true),
        ("tcpack 4000000000", false),
        ("tcpwin 0-511,513-65535", false),
        ("tcpwin 500-600", true),
        ("tcpmss 1400-1460", true),
        ("tcpmss 536", false),
        ("tcpoptions mss,sack,ts", true),
        ("tcpoptions mss,!window", true),
        ("tcpoptions window", false),
        ("tcpoptions !ts", false),
    ] {
        assert_eq!(drops(condition, tcp, headers), expected, "{condition}");
        assert!(!drops(condition, udp, headers), "{condition}");
        let later = Headers { is_later_fragment: true, ..headers };
        assert!(!drops(condition, tcp, later), "{condition}");
    }
    // A segment without the option has no such size.
    assert!(!drops("tcpmss 0-65535", tcp, Headers::default()));
}

/// The number of the pipe by its delay of as many milliseconds, 0 for none.
fn pipe(bed: &mut Bed, now: Time, host: &str, headers: Headers) -> u64 {
    bed.send_with(now, host, from([10, 0, 0, 2]), headers, 1000);
    let left = bed.rest();
    assert_eq!(left[0].dropped, None);
    (left[0].at.nanos() - now.nanos()) / 1_000_000
}

fn of_script(text: &str) -> Scenario {
    let mut interfaces = Interfaces::default();
    for interface in ["em0=client", "em1=server"] {
        interfaces.add(interface).unwrap();
    }
    Script::at_interfaces(text, "script", &interfaces).unwrap().scenario("script").unwrap()
}

const PIPES: &str = "pipe 1 config delay 1ms\npipe 2 config delay 2ms\n";

#[test]
fn tables_of_interfaces() {
    // What the client sends leaves by em0 and comes by em1.
    for (condition, from_client, from_server) in [
        ("recv table(lan)", 2, 1),
        ("xmit table(lan)", 1, 2),
        ("in via table(lan)", 2, 1),
        ("out via table(lan)", 1, 2),
        ("via table(lan,2)", 2, 2),
        ("recv table(lan,2)", 2, 0),
        ("recv table(lan,7)", 0, 0),
        ("not recv table(lan,2) recv table(lan)", 0, 1),
    ] {
        let text = format!(
            "{PIPES}table lan create type iface\ntable lan add em0 1 em1 2 em7 7\n\
             add pipe tablearg ip from any to any {condition}"
        );
        let mut bed = Bed::new(&of_script(&text));
        assert_eq!(pipe(&mut bed, at(0), "client", Headers::default()), from_client, "{condition}");
        assert_eq!(pipe(&mut bed, at(100_000), "server", Headers::default()), from_server, "{condition}");
    }
}

/// On a run, too: the link's own interface, and those that a script has put into a table.
#[test]
fn tables_of_interfaces_change_on_a_run() {
    let text =
        format!("{PIPES}table lan create type iface\ntable lan add em1 2\nadd pipe tablearg recv table(lan)");
    let mut scenario = of_script(&text);
    let mut bed = Bed::new(&scenario);
    let mut command = |bed: &mut Bed, now, text: &str| {
        for (command, _) in scenario.ipfw_commands(None, "ipfw", text).unwrap().commands {
            for change in scenario.ipfw_at(now, None, &command).unwrap() {
                change.make(&mut bed.engine, now).unwrap();
            }
        }
    };
    assert_eq!(pipe(&mut bed, at(0), "client", Headers::default()), 2);
    assert_eq!(pipe(&mut bed, at(10_000), "server", Headers::default()), 0);
    command(&mut bed, at(20_000), "table lan delete em1");
    assert_eq!(pipe(&mut bed, at(20_000), "client", Headers::default()), 0);
    command(&mut bed, at(30_000), "table lan add net 1 em5 3");
    assert_eq!(pipe(&mut bed, at(30_000), "client", Headers::default()), 0);
    assert_eq!(pipe(&mut bed, at(40_000), "server", Headers::default()), 1);
    command(&mut bed, at(50_000), "table lan flush");
    assert_eq!(pipe(&mut bed, at(50_000), "server", Headers::default()), 0);
}

#[test]
fn tables_of_link_addresses() {
    let text = format!(
        "{PIPES}table m create type mac\ntable m add 02:00:00:00:00:00/40 2 02:00:00:00:00:05 1\n\
         add pipe tablearg src-mac table(m)\nadd deny lookup dst-mac m"
    );
    let mut bed = Bed::new(&of_script(&text));
    let of = |link_source, link_destination| Headers { link_source, link_destination, ..Headers::default() };
    let (known, listed, other) = ([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 5], [2, 0, 0, 0, 1, 5]);
    assert_eq!(pipe(&mut bed, at(0), "client", of(known, other)), 2);
    assert_eq!(pipe(&mut bed, at(10_000), "client", of(listed, other)), 1);
    assert_eq!(pipe(&mut bed, at(20_000), "client", of(other, other)), 0);
    bed.send_with(at(30_000), "client", from([10, 0, 0, 2]), of(other, known), 1000);
    assert_eq!(bed.rest()[0].dropped, Some(DropReason::Denied));
}

#[test]
fn a_table_of_rules() {
    let text = format!(
        "{PIPES}table r create type number\ntable r add 200 2\nadd 100 pipe tablearg lookup rulenum r\n\
         add 200 pipe tablearg lookup rulenum r"
    );
    let mut bed = Bed::new(&of_script(&text));
    assert_eq!(pipe(&mut bed, at(0), "client", Headers::default()), 2);
}
