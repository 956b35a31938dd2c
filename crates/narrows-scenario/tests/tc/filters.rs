//! Filters: which packets they match, in which order, and what they do with them.

use super::hooks::said;
use super::{fails, keys};

/// The scheduler of a script with three bands, of which packets go to the last unless a filter says another.
fn scheduler(filters: &str) -> String {
    let text = format!(
        "tc qdisc add dev eth0 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n{filters}\n"
    );
    keys(&text).remove(2)
}

/// The condition of one filter.
fn condition(filter: &str) -> String {
    let all = scheduler(&format!("tc filter add dev eth0 parent 1: prio 1 {filter} flowid 1:1"));
    let start = all.find("match = ").unwrap_or_else(|| panic!("{filter}: {all}")) + 8;
    all[start..start + all[start..].find(" }").unwrap() + 2].to_string()
}

#[track_caller]
fn refused(filter: &str, title: &str, at: &str, says: &[&str]) {
    let text = format!(
        "tc qdisc add dev eth0 root handle 1: prio\ntc filter add dev eth0 parent 1: prio 1 {filter} flowid 1:1\n"
    );
    fails(&text, title, at, says);
}

#[test]
fn a_protocol_says_which_packets_a_filter_sees() {
    for (filter, expected) in [
        ("protocol ip u32 match u32 0 0", "{ family = \"ipv4\" }"),
        ("protocol 0x0800 u32 match u32 0 0", "{ family = \"ipv4\" }"),
        ("protocol ipv6 matchall", "{ family = \"ipv6\" }"),
        ("protocol arp matchall", "{ family = \"other\" }"),
        ("protocol ip basic", "{ family = \"ipv4\" }"),
        ("protocol ipv6 flower ip_proto udp", "{ protocol = \"udp\", family = \"ipv6\" }"),
        ("protocol all u32 match ip dport 80 0xffff", "{ destination-port = 80, family = \"ipv4\" }"),
        // An address says it.
        ("protocol ip u32 match ip src 10.0.0.1", "{ source = \"10.0.0.1\" }"),
    ] {
        assert_eq!(condition(filter), expected, "{filter}");
    }
    // What compares nothing is not about IPv4.
    for nothing in ["match ip dst 0.0.0.0/0", "match ip protocol 0 0", "match ip dport 80 0"] {
        let all = scheduler(&format!(
            "tc filter add dev eth0 parent 1: protocol all prio 1 u32 {nothing} flowid 1:1"
        ));
        assert!(all.contains("default = \"1:1\""), "{nothing}: {all}");
    }
    // All packets: the others are for the class behind.
    assert!(
        scheduler("tc filter add dev eth0 parent 1: protocol all prio 1 matchall flowid 1:1")
            .contains("default = \"1:1\"")
    );
    refused(
        "protocol 802.1ad matchall",
        "`802.1ad` in `protocol`: packets with a tag of a provider (QinQ)",
        "802.1ad",
        &["match 802.1Q"],
    );
    refused("protocol ppp matchall", "unknown protocol `ppp`", "ppp", &["`arp`"]);
    refused(
        "protocol arp u32 match ip6 dport 80 0xffff",
        "`match ip6` in a filter of other packets",
        "ip6",
        &["protocol ipv6"],
    );
}

/// `f_u32.c`: where the words stand in a header, and what bytes at an offset are.
#[test]
fn bytes_of_a_header_are_its_fields() {
    for (filter, expected) in [
        // The acknowledgements of wondershaper and the LARTC HOWTO.
        (
            "protocol ip u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33",
            "{ protocol = \"tcp\", length = \"..63 bytes\", family = \"ipv4\", tcp-flags = \"ack,!fin,!syn,!rst,!psh,!urg,!ece,!cwr\" }",
        ),
        (
            "protocol ip u32 match u8 0x40 0xf0 at 0 match u8 6 0xff at 9",
            "{ protocol = \"tcp\", family = \"ipv4\" }",
        ),
        (
            "protocol ip u32 match u32 0x00100000 0x00ff0000 at 0",
            "{ dscp = 4, ecn = \"not-ect\", family = \"ipv4\" }",
        ),
        ("protocol ip u32 match u32 0x00060000 0x00ff0000 at 8", "{ protocol = \"tcp\", family = \"ipv4\" }"),
        (
            "protocol ip u32 match u32 0x00160050 0xffffffff at 20",
            "{ source-port = 22, destination-port = 80, family = \"ipv4\" }",
        ),
        (
            "protocol ip u32 match u8 0 0xff at 22 match u8 80 0xff at 23",
            "{ destination-port = 80, family = \"ipv4\" }",
        ),
        ("protocol ip u32 match u16 0x0a09 0xffff at 16", "{ destination = \"10.9.0.0/16\" }"),
        ("protocol ip u32 match u16 0x50 0xffef at 22", "{ destination-port = [64, 80], family = \"ipv4\" }"),
        ("protocol ipv6 u32 match ip6 priority 0xb8 0xfc", "{ dscp = \"ef\", family = \"ipv6\" }"),
        (
            "protocol ipv6 u32 match ip6 protocol 6 0xff match ip6 dport 22 0xffff",
            "{ protocol = \"tcp\", destination-port = 22, family = \"ipv6\" }",
        ),
        ("protocol ipv6 u32 match u16 0 0xff00 at 4", "{ length = \"40..295 bytes\", family = \"ipv6\" }"),
        ("protocol ipv6 u32 match u32 0x20010db8 0xffffffff at 24", "{ destination = \"2001:db8::/32\" }"),
        (
            "protocol ipv6 u32 match u8 6 0xff at 6 match u8 0x02 0x12 at 53",
            "{ protocol = \"tcp\", family = \"ipv6\", tcp-flags = \"syn,!ack\" }",
        ),
        // A later fragment has no ports.
        (
            "protocol ip u32 match ip firstfrag match ip dport 80 0xffff",
            "{ destination-port = 80, family = \"ipv4\" }",
        ),
        // Parts of MAC addresses.
        (
            "protocol ip u32 match u16 5 0xffff at -14",
            "{ family = \"ipv4\", link-destination = \"00:05:00:00:00:00/16\" }",
        ),
        (
            "protocol ip u32 match ether src 2:0:0:0:0:1 match u8 0x01 0x01 at -14",
            "{ family = \"ipv4\", link-source = \"02:00:00:00:00:01\", link-destination = \"01:00:00:00:00:00/01:00:00:00:00:00\" }",
        ),
        (
            "protocol ip u32 match ip protocol 1 0xff match ip icmp_type 8 0xff",
            "{ protocol = \"icmp\", icmp-type = 8, family = \"ipv4\" }",
        ),
        (
            "protocol ip u32 match u8 1 0xff at 9 match u16 0x0304 0xffff at 20",
            "{ protocol = \"icmp\", icmp-type = \"3/4\", family = \"ipv4\" }",
        ),
        (
            "protocol ipv6 u32 match ip6 protocol 58 0xff match ip6 icmp_type 128 0xfe",
            "{ protocol = \"icmpv6\", icmp-type = \"128-129\", family = \"ipv6\" }",
        ),
        // Without a `link`, the next header is the IP header: this is the total length.
        ("protocol ip u32 match tcp dst 443 0xffff", "{ length = \"443 bytes\", family = \"ipv4\" }"),
        ("protocol ip u32 match u16 64 0xffff at nexthdr+2", "{ length = \"64 bytes\", family = \"ipv4\" }"),
    ] {
        assert_eq!(condition(filter), expected, "{filter}");
    }
    for (filter, title, at, says) in [
        ("protocol ip u32 match ip df", "classes do not match the fragmentation of IPv4 packets", "df", ""),
        (
            "protocol ip u32 match u32 1 0xff at 40",
            "the byte at 43 is no field that a class of narrows matches",
            "u32 1",
            "",
        ),
        (
            "protocol ip u32 match u8 0x10 0xff at 33",
            "a byte behind the ports of packets that may not be TCP's",
            "u8",
            "match ip protocol 6 0xff",
        ),
        (
            "protocol ip u32 match ip protocol 47 0xff match ip icmp_type 8 0xff",
            "bytes behind the IP header of packets of protocol 47",
            "icmp_type",
            "",
        ),
        (
            "protocol ip u32 match u32 0x00010101 0x00010101 at 12",
            "the mask 0x00010101 is not a network",
            "u32 0x00010101",
            "leading ones",
        ),
        ("protocol ip u32 match u16 1 0xffff at 3", "an odd offset of a `u16`: 3", "3 flowid", ""),
        (
            "protocol ip u32 match u16 0x0055 0x0055 at 22",
            "the mask 0x0055 stands for more than 256 ranges",
            "u16",
            "",
        ),
    ] {
        refused(filter, title, at, &[says]);
    }
}

/// `cls_u32.c` compares bytes at offsets, whatever header `f_u32.c` took them from.
#[test]
fn fields_of_the_other_header_are_bytes_at_their_offsets() {
    for (filter, raw, expected) in [
        // The second byte of the source.
        (
            "match ip protocol 0x20 0xe0",
            "match u8 0x20 0xe0 at 9",
            condition("protocol ipv6 u32 match u8 0x20 0xe0 at 9"),
        ),
        ("match ip ttl 0x20 0xff", "match u8 0x20 0xff at 8", "{ source = \"2000::/8\" }".to_owned()),
        (
            "match ip tos 0x80 0xf0",
            "match u8 0x80 0xf0 at 1",
            condition("protocol ipv6 u32 match ip6 priority 0x08 0x0f"),
        ),
        // The next header, and the hop limit.
        (
            "match ip firstfrag",
            "match u16 0 0x1fff at 6",
            condition("protocol ipv6 u32 match u8 0 0x1f at 6 match u8 0 0xff at 7"),
        ),
    ] {
        let found = |filter: &str| condition(&format!("protocol ipv6 u32 {filter}"));
        assert_eq!(found(filter), found(raw), "{filter}");
        assert_eq!(found(filter), expected, "{filter}");
    }
    let text = |filter: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc filter add dev eth0 parent 1: {filter} flowid 1:1\n"
        )
    };
    let said = crate::hooks::said(&text("protocol ipv6 u32 match ip ttl 0x20 0xff"));
    assert!(said.contains("whatever header the packets"), "{said}");
    for (filter, title, at) in [
        ("match ip dport 80 0xffff", "the mask 0x0000000000000000000000000000ffff is not a network", "dport"),
        (
            "match ip icmp_type 128 0xff",
            "the mask 0x000000000000000000000000ff000000 is not a network",
            "icmp_type",
        ),
        (
            "match ip6 icmp_type 128 0xff match ip6 protocol 1 0xff",
            "bytes behind the IP header of packets of protocol 1",
            "icmp_type",
        ),
    ] {
        refused(&format!("protocol ipv6 u32 {filter}"), title, at, &[]);
    }
    refused(
        "protocol ip u32 match ip6 dport 80 0xffff",
        "the byte at 42 is no field that a class of narrows matches",
        "dport",
        &["`match ip6` is for `protocol ipv6`"],
    );
}

/// A mask that is no range stands for up to 256 of them.
#[test]
fn masks_of_ports_are_ranges() {
    for filter in ["u32 match ip dport 53 0xff", "flower ip_proto udp dst_port 53/0xff"] {
        let found = condition(&format!("protocol ip {filter}"));
        let (_, list) = found.split_once("destination-port = [").unwrap();
        let ports: Vec<u16> =
            list.split_once(']').unwrap().0.split(", ").map(|port| port.parse().unwrap()).collect();
        let expected: Vec<u16> = (0..=u16::MAX).filter(|port| port & 0xff == 53).collect();
        assert_eq!(ports, expected, "{filter}");
    }
    assert_eq!(
        condition("protocol ip u32 match ip sport 0x8001 0xff01"),
        condition("protocol ip u32 match u16 0x8001 0xff01 at 20")
    );
    let two = "protocol ip flower ip_proto tcp src_port 80/0xffef";
    assert_eq!(condition(two), "{ protocol = \"tcp\", source-port = [64, 80], family = \"ipv4\" }");
}

#[test]
fn hash_tables_are_ways_to_filters() {
    let table = "tc filter add dev eth0 parent 1: prio 5 protocol ip u32\n\
        tc filter add dev eth0 parent 1: prio 5 handle 2: protocol ip u32 divisor 256\n\
        tc filter add dev eth0 protocol ip parent 1: prio 5 u32 ht 2:7b: match ip src 1.2.0.123 flowid 1:1\n\
        tc filter add dev eth0 protocol ip parent 1: prio 5 u32 ht 2:7c: match ip src 1.2.1.124 flowid 1:2\n\
        tc filter add dev eth0 protocol ip parent 1: prio 5 u32 ht 2:7b: match ip src 1.2.3.4 flowid 1:2\n\
        tc filter add dev eth0 protocol ip parent 1: prio 5 u32 ht 800:: match ip src 1.2.0.0/16 hashkey mask 0x000000ff at 12 link 2:"
        .replace("prio 5 protocol ip u32\n", "prio 9 protocol ip matchall flowid 1:3\n");
    let all = scheduler(&table);
    for part in ["match = { source = \"1.2.0.123\" }", "match = { source = \"1.2.1.124\" }"] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    // In its bucket, no packet has this address.
    assert!(!all.contains("1.2.3.4\""), "{all}");
    // The ports are behind the header that the link skips; what matches nothing there goes on.
    let next = "tc filter add dev eth0 parent 1: prio 1 handle 1: protocol ip u32 divisor 1\n\
        tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht 1: match tcp dst 22 0xffff flowid 1:1\n\
        tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match ip protocol 6 0xff link 1: offset at 0 mask 0f00 shift 6 plus 0 flowid 1:2";
    let all = scheduler(next);
    let first = all.find("{ protocol = \"tcp\", destination-port = 22, family = \"ipv4\" }").unwrap();
    let second = all.find("match = { protocol = \"tcp\", family = \"ipv4\" }").unwrap();
    assert!(first < second, "{all}");
    let eaten = next
        .replace(" plus 0 ", " eat ")
        .replace("tcp dst 22", "u16 22")
        .replace("0xffff flowid", "0xffff at 2 flowid");
    assert_eq!(scheduler(&eaten), all);
    // A sample names the bucket.
    let sample = table
        .replace("ht 2:7b:", "ht 2: sample u32 0x7b 0xff at 12")
        .replace("ht 2:7c:", "ht 2: sample ip src 0.0.0.124/32");
    assert!(scheduler(&sample).contains("1.2.0.123"), "{}", scheduler(&sample));
    let root = "tc qdisc add dev eth0 root handle 1: prio\n";
    fails(
        &format!("{root}tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match u32 0 0 link 7:\n"),
        "there is no table 7: of u32",
        "tc filter",
        &["handle 7: u32 divisor 256"],
    );
    let in_bucket = "tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht 2:7b: match ip dport 5 0xffff flowid 1:1\n";
    fails(
        &format!("{root}{in_bucket}"),
        "there is no table 2: of u32",
        "tc filter",
        &["handle 2: u32 divisor 256"],
    );
    fails(
        &format!(
            "{root}tc filter add dev eth0 parent 1: prio 1 handle 2: protocol ip u32 divisor 16\n{in_bucket}"
        ),
        "the bucket 7b of the table 2:",
        "tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht",
        &["from 0 to f"],
    );
    fails(
        &format!("{root}tc filter add dev eth0 parent 1: handle 2: protocol ip u32 divisor 7\n"),
        "7 buckets are no power of two",
        "7\n",
        &[],
    );
    fails(
        &format!(
            "{root}tc filter add dev eth0 parent 1: prio 1 handle 2: protocol ip u32 divisor 256\n\
             tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht 2:1: match ip dport 5 0xffff flowid 1:1\n\
             tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match u32 0 0 hashkey mask 0xff at 12 link 2:\n"
        ),
        "the mask 0x000000ff is not a network",
        "tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht",
        &[],
    );
    // A chain of links that leads to itself ends.
    let loops = "tc filter add dev eth0 parent 1: prio 1 handle 2: protocol ip u32 divisor 1\n\
        tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht 2: match u32 0 0 link 2:\n\
        tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match u32 0 0 link 2:\n";
    fails(
        &format!("{root}{loops}"),
        "more than 8 links, which the kernel does not follow",
        "tc filter add dev eth0 parent 1: prio 1 protocol ip u32 ht",
        &[],
    );
}

#[test]
fn keys_of_flower() {
    for (filter, expected) in [
        (
            "protocol ip flower ip_proto tcp tcp_flags 0x10/0x17",
            "{ protocol = \"tcp\", family = \"ipv4\", tcp-flags = \"ack,!fin,!syn,!rst\" }",
        ),
        (
            "protocol ip flower src_ip 10.0.0.0/255.0.0.0 dst_ip 10.1.2.3",
            "{ source = \"10.0.0.0/8\", destination = \"10.1.2.3\" }",
        ),
        (
            "protocol ip flower ip_proto udp src_port 5000-5010",
            "{ protocol = \"udp\", source-port = \"5000-5010\", family = \"ipv4\" }",
        ),
        (
            "protocol ip flower ip_proto udp dst_port 0x50/0xfff0",
            "{ protocol = \"udp\", destination-port = \"80-95\", family = \"ipv4\" }",
        ),
        ("protocol ip flower ip_tos 0xb8/0xfc skip_hw", "{ dscp = \"ef\", family = \"ipv4\" }"),
        (
            "protocol ip flower src_mac 2:0:0:0:0:1 dst_mac 00:11:22:33:44:55 ip_ttl 64",
            "{ family = \"ipv4\", link-source = \"02:00:00:00:00:01\", link-destination = \"00:11:22:33:44:55\", hop-limit = 64 }",
        ),
        (
            "protocol ip u32 match u16 0x0800 0xFFFF at -2 match u32 0x00112233 0xFFFFFFFF at -12 match u16 0x4455 0xFFFF at -14 match u8 64 0xff at 8",
            "{ family = \"ipv4\", link-destination = \"44:55:00:11:22:33\", hop-limit = 64 }",
        ),
        // As tc prints it.
        ("protocol ipv6 flower eth_type ipv6 ip_proto 3a", "{ protocol = \"icmpv6\", family = \"ipv6\" }"),
        (
            "protocol ip flower ip_proto udp dst_port 53",
            "{ protocol = \"udp\", destination-port = 53, family = \"ipv4\" }",
        ),
        // Numbers of protocols are hexadecimal, those of the TOS byte only if they are not decimal.
        ("protocol ip flower ip_proto 11", "{ protocol = \"udp\", family = \"ipv4\" }"),
        ("protocol ip flower ip_tos b8/fc", "{ dscp = \"ef\", family = \"ipv4\" }"),
        ("protocol ip flower ip_tos 40", "{ dscp = \"af11\", ecn = \"not-ect\", family = \"ipv4\" }"),
        (
            "protocol ip flower ip_proto tcp dst_port 80-90 dst_port 85-99",
            "{ protocol = \"tcp\", destination-port = \"85-90\", family = \"ipv4\" }",
        ),
        (
            "protocol ip flower ip_proto icmp type 3 code 4",
            "{ protocol = \"icmp\", icmp-type = \"3/4\", family = \"ipv4\" }",
        ),
        (
            "protocol ip flower ip_proto icmp code 0/254 type 8",
            "{ protocol = \"icmp\", icmp-type = \"8/0-1\", family = \"ipv4\" }",
        ),
        (
            "protocol ipv6 flower ip_proto icmpv6 type 128/240",
            "{ protocol = \"icmpv6\", icmp-type = \"128-143\", family = \"ipv6\" }",
        ),
        // Wherever the protocol stands.
        (
            "protocol ip flower tcp_flags 0x2/0x2 ip_proto tcp",
            "{ protocol = \"tcp\", family = \"ipv4\", tcp-flags = \"syn\" }",
        ),
        // What the kernel does not look at.
        ("protocol ip flower ip_proto udp tcp_flags 0x2/0x2", "{ protocol = \"udp\", family = \"ipv4\" }"),
        ("flower ip_tos 0xb8/0xfc dst_mac 2:0:0:0:0:1", "{ link-destination = \"02:00:00:00:00:01\" }"),
    ] {
        assert_eq!(condition(&filter.replace("0x50/0xfff0", "80/0xfff0")), expected, "{filter}");
    }
    for (filter, error, at, help) in [
        ("flower eth_type ipv4", "`eth_type` of packets that may not be IP", "eth_type", "protocol ip, or"),
        ("flower ip_proto tcp", "`ip_proto` of packets that may not be IP", "ip_proto", "protocol ip, or"),
        (
            "protocol arp flower src_ip 10.0.0.1",
            "`src_ip` of packets that may not be IP",
            "src_ip",
            "protocol ip, or",
        ),
        (
            "protocol ip flower dst_port 80",
            "`dst_port` of packets that may have no ports",
            "dst_port",
            "ip_proto tcp",
        ),
        (
            "protocol ip flower dst_port 80 ip_proto tcp",
            "`dst_port` of packets that may have no ports",
            "dst_port",
            "before it",
        ),
        (
            "protocol ip flower type 8 ip_proto icmp",
            "`type` of packets that may not be ICMP",
            "type",
            "ip_proto icmp",
        ),
        ("protocol ip flower ip_proto icmp type 0x8", "`0x8` is not a type of ICMP", "0x8", "from 0 to 255"),
        (
            "protocol ipv6 flower ip_proto icmp",
            "`icmp` is not a protocol of flower",
            "icmp ",
            "icmpv6, or a number",
        ),
        ("protocol ip flower ip_proto gre", "`gre` is not a protocol of flower", "gre", "2f for GRE"),
        ("protocol ip flower dst_ip fd00::1", "`fd00::1` among packets of IPv4", "fd00", "named before it"),
        (
            "protocol 802.1Q flower vlan_id 5 ip_proto tcp",
            "`ip_proto` of packets that may not be IP",
            "ip_proto",
            "vlan_ethtype ipv4",
        ),
    ] {
        refused(filter, error, at, &[help]);
    }
    assert_eq!(
        condition("protocol ip flower dst_mac 00:11:22:33:00:00/ff:ff:ff:00:00:00"),
        "{ family = \"ipv4\", link-destination = \"00:11:22:00:00:00/24\" }"
    );
    refused(
        "protocol ip flower dst_mac 00:11:22",
        "`00:11:22` is not a MAC address",
        "00:11",
        &["a mask such as"],
    );
    refused("protocol ip flower ip_ttl 64/0xf0", "`64/0xf0` is not a TTL", "64/0xf0", &["without a mask"]);
}

#[test]
fn what_a_filter_does_with_packets() {
    let dns = "protocol ip prio 1 u32 match ip dport 53 0xffff";
    let all = scheduler(&format!("tc filter add dev eth0 parent 1: {dns} action drop"));
    assert!(
        all.contains("{ match = { destination-port = 53, family = \"ipv4\" }, class = \"drop\" }"),
        "{all}"
    );
    // Packets that pass without a class are as those that no filter matches.
    let passes = scheduler(&format!(
        "tc filter add dev eth0 parent 1: {dns} action pass\n\
         tc filter add dev eth0 parent 1: protocol all prio 2 matchall flowid 1:1"
    ));
    assert!(passes.contains("filters = [ { match = { destination-port = 53, family = \"ipv4\" }, class = \"1:3\" } ], default = \"1:1\""), "{passes}");
    // To continue is to match nothing.
    let on = scheduler(&format!(
        "tc filter add dev eth0 parent 1: {dns} action continue flowid 1:2\n\
         tc filter add dev eth0 parent 1: protocol all prio 2 matchall flowid 1:1"
    ));
    assert!(!on.contains("match ="), "{on}");
    // All packets, and no class left.
    let none = scheduler("tc filter add dev eth0 parent 1: protocol all prio 1 matchall action drop");
    assert!(none.contains("default = \"drop\""), "{none}");
    refused(
        "protocol ip matchall action drop random netrand drop 10",
        "an action for a random share of packets",
        "random",
        &["`loss"],
    );
    // A number for the program that added the action.
    let kept = scheduler(&format!("tc filter add dev eth0 parent 1: {dns} action pass cookie aa11"));
    assert_eq!(kept, scheduler(&format!("tc filter add dev eth0 parent 1: {dns} action pass")));
    for cookie in ["aa1", "xy", "aa11bb22cc33dd44ee55ff66aa11b1b2c3"] {
        refused(
            &format!("protocol ip matchall action drop cookie {cookie}"),
            &format!("`{cookie}` is not a cookie"),
            cookie,
            &["up to 32 hexadecimal digits, in pairs"],
        );
    }
    // No packet comes to a chain to which nothing leads.
    let beside =
        scheduler("tc filter add dev eth0 parent 1: protocol all prio 1 chain 3 matchall flowid 1:1");
    assert!(!beside.contains("match ="), "{beside}");
    refused("protocol ip chain x matchall", "found `x`, expected the number of a chain", "x matchall", &[]);
}

/// `tcf_chain_tp_find`, `tcf_auto_prio` and `gen_new_kid` of the kernel.
#[test]
fn priorities_and_handles_are_the_kernels() {
    let root = "tc qdisc add dev eth0 root handle 1: prio\n";
    let add = |words: &str| format!("tc filter add dev eth0 parent 1: {words} flowid 1:1\n");
    fails(
        &format!(
            "{root}{}{}",
            add("protocol ip prio 1 matchall"),
            add("protocol ip prio 1 u32 match u32 0 0")
        ),
        "a filter `matchall` has the priority 1 already",
        "tc filter",
        &["one kind and one protocol for each priority"],
    );
    fails(
        &format!(
            "{root}{}{}",
            add("protocol ip prio 1 u32 match u32 0 0"),
            add("protocol ipv6 prio 1 u32 match u32 0 0")
        ),
        "a filter of another `protocol` has the priority 1 already",
        "tc filter",
        &[],
    );
    // One without a priority comes behind those with one.
    let filters = "tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip dport 80 0xffff flowid 1:1\n\
        tc filter add dev eth0 parent 1: protocol ip u32 match ip sport 22 0xffff flowid 1:2";
    let all = scheduler(filters);
    assert!(all.find("destination-port = 80") < all.find("source-port = 22"), "{all}");
    // One of several is deleted by its handle.
    let three = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 1 0xffff flowid 1:1\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 2 0xffff flowid 1:1\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 handle ::900 u32 match ip dport 3 0xffff flowid 1:1\n";
    let left =
        scheduler(&format!("{three}tc filter del dev eth0 parent 1: protocol ip prio 1 handle 800::801 u32"));
    assert!(
        left.contains("port = 1,") && !left.contains("port = 2,") && left.contains("port = 3,"),
        "{left}"
    );
    let replaced = scheduler(&format!(
        "{three}tc filter replace dev eth0 parent 1: protocol ip prio 1 handle 800::900 u32 match ip dport 4 0xffff flowid 1:1"
    ));
    assert!(!replaced.contains("port = 3,") && replaced.contains("port = 4,"), "{replaced}");
    // A script goes on where nothing is there to delete, as with tc.
    let missing = format!(
        "{three}tc filter del dev eth0 parent 1: prio 1 handle 800::805 u32\ntc filter del dev eth0 parent 1: prio 7\n"
    );
    assert_eq!(scheduler(&missing), scheduler(three));
    fails(
        &format!("{root}{three}tc filter del dev eth0 parent 1: prio 1 handle 800:x u32\n"),
        "`800:x` is not a handle of u32",
        "800:x",
        &[],
    );
}

#[test]
fn some_arriving_packets_are_policed() {
    let text = "tc qdisc add dev eth0 ingress\n\
        tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dport 5001 0xffff police rate 1mbit burst 10k drop flowid :1\n";
    // Packets that are longer than the burst are always above the rate.
    let small = keys(&text.replace("burst 10k", "burst 1000")).join(" ");
    assert!(small.contains("burst = \"1000 bytes\"") && small.contains("mtu = \"1000 bytes\""), "{small}");
    assert_eq!(
        keys(text),
        [
            "link.down.policer={ match = { destination-port = 5001, family = \"ipv4\" }, rate = \"1mbit\", burst = \"10240 bytes\", overhead = \"ip\" }"
        ]
    );
    let twice = format!(
        "{text}tc filter add dev eth0 parent ffff: protocol ip prio 2 u32 match u32 0 0 police rate 2mbit burst 10k drop\n"
    );
    assert_eq!(
        keys(&twice),
        [
            "link.down.ingress=[{ match = { destination-port = 5001, family = \"ipv4\" }, action = \"police\", rate = \"1mbit\", burst = \"10240 bytes\", overhead = \"ip\" }, { match = { family = \"ipv4\" }, action = \"police\", rate = \"2mbit\", burst = \"10240 bytes\", overhead = \"ip\" }]"
        ]
    );
}

#[test]
fn some_leaving_packets_are_policed() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff police rate 1mbit burst 10k drop flowid 1:1\n";
    let policer = "link.up.policer={ match = { destination-port = 5001, family = \"ipv4\" }, rate = \"1mbit\", burst = \"10240 bytes\", overhead = \"frame\" }";
    let all = keys(text);
    assert!(all.contains(&policer.to_owned()), "{all:?}");
    assert!(
        all[2].contains("{ match = { destination-port = 5001, family = \"ipv4\" }, class = \"1:1\" }"),
        "{all:?}"
    );
    let beside =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:2\n";
    assert!(keys(&format!("{text}{beside}")).contains(&policer.to_owned()));
    for (more, title, at) in [
        (
            "protocol ip prio 1 u32 match ip sport 22 0xffff flowid 1:2",
            "a policer behind a filter that may take its packets: give it a lower `prio`",
            "tc filter add dev eth0 parent 1: protocol ip prio 2",
        ),
        (
            "protocol ip prio 3 matchall action police rate 1mbit burst 10k",
            "a second policer of outgoing packets: a link has one in a direction",
            "tc filter",
        ),
        (
            "protocol ip prio 3 matchall action police rate 1mbit pkts_rate 100 pkts_burst 10",
            "a policer by bytes and by packets",
            "rate 1mbit",
        ),
        (
            "protocol ip prio 3 matchall police rate 1mbit burst 10k mtu 1000",
            "an `mtu` below that of Ethernet, without `peakrate`",
            "mtu",
        ),
        (
            "protocol ip prio 3 matchall police rate 1mbit burst 10k avrate 1mbit",
            "`avrate` of a policer",
            "avrate",
        ),
        (
            "protocol ip prio 3 matchall police rate 1mbit burst 10k conform-exceed continue/drop",
            "a policer that drops packets below its rate",
            "matchall",
        ),
    ] {
        fails(&format!("{text}tc filter add dev eth0 parent 1: {more}\n"), title, at, &[]);
    }
}

/// A filter of an inner class that matches nothing leaves the packets to the default class.
#[test]
fn an_inner_class_without_a_match_leads_to_the_default() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 2mbit\n\
        tc class add dev eth0 parent 1: classid 1:30 htb rate 2mbit\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:1\n\
        tc filter add dev eth0 parent 1:1 protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10\n\
        tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.1.0.0/16 flowid 1:20\n";
    let all = keys(text).remove(2);
    assert!(
        all.contains("{ match = { destination = \"10.0.0.0/8\" }, class = \"1:30\" }, { match = { destination = \"10.1.0.0/16\" }, class = \"1:20\" }"),
        "{all}"
    );
}

/// A mark may be a condition of `u32`; addresses and handles are as tc reads them.
/// What tc lets one shorten may be shortened, and nothing else.
#[test]
fn words_that_begin_others_stand_for_them() {
    let full = "tc qdisc add dev eth0 root handle 1: htb default 20 r2q 5\n\
         tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit burst 15k cburst 16k prio 1 quantum 1514\n\
         tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
         tc filter add dev eth0 parent 1: protocol ip preference 2 u32 match ip dport 80 0xffff classid 1:30\n\
         tc filter add dev eth0 parent 1: protocol ip priority 3 flower ip_proto tcp dst_port 81 flowid 1:30\n\
         tc qdisc add dev eth0 parent 1:30 tbf rate 1mbit burst 5k latency 70ms\n";
    let mut short = full.to_owned();
    for (word, begins) in [
        ("default", "def"),
        ("r2q", "r2"),
        (" burst", " bur"),
        ("cburst", "cb"),
        ("prio 1", "pri 1"),
        ("quantum", "quan"),
        ("protocol", "prot"),
        ("preference", "pr"),
        ("priority", "prior"),
        ("match", "m"),
        ("classid 1:30\n", "class 1:30\n"),
        ("ip_proto", "ip_p"),
        ("dst_port", "dst_p"),
        ("flowid", "flow"),
        ("latency", "la"),
    ] {
        assert!(short.contains(word), "{word}");
        short = short.replace(word, begins);
    }
    assert_eq!(keys(&short), keys(full), "{short}");
    let hfsc = "tc qdisc add dev eth0 root handle 1: hfsc default 1\n\
                tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 1mbit\n";
    assert_eq!(keys(&hfsc.replace("default", "def")), keys(hfsc));
    // The class d of a shortened word, and words that must be written out.
    assert!(keys(&full.replace("default 20", "def d")).iter().all(|key| !key.contains("default = \"1:20\"")));
    fails(
        &full.replace("rate 1mbit burst 15k", "rat 1mbit burst 15k"),
        "`rat` is not an option of `htb`",
        "rat 1mbit",
        &["did you mean `rate`"],
    );
}

#[test]
fn words_that_tc_reads_in_its_own_way() {
    let root = "tc qdisc add dev eth0 root handle 1: prio\n";
    let marks = "iptables -t mangle -A FORWARD -p TCP --dport=8081 -j MARK --set-mark=0x40010000\n";
    let mark = "tc filter add dev eth0 parent 1: handle 800::0x1 prio 4 u32 match mark 0x40010000 0x7fff0000 flowid 1:0x1\n";
    let all = keys(&format!("{root}{marks}{mark}")).pop().unwrap();
    assert!(
        all.contains("{ protocol = \"tcp\", destination-port = 8081, family = \"ipv4\" }, class = \"1:1\""),
        "{all}"
    );
    let table = format!("{root}{}", mark.replace("0x1 prio 4 u32", "0x1 prio 4 u32 link 1:"));
    fails(
        &table,
        "`match mark` in a table of u32, or in a filter that leads to one",
        "u32",
        &["`ht` and `link`"],
    );
    fails(
        &format!("{root}{}", mark.replace("match mark", "match mark 1 1 match mark")),
        "a second `match mark`",
        "match mark",
        &[],
    );
    for (address, network) in [
        ("74.201.90.00/20", "74.201.80.0/20"),
        ("10.1/16", "10.1.0.0/16"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
        ("012.0x10.0.1", "10.16.0.1"),
    ] {
        let filter = format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src {address} flowid 1:1\n"
        );
        let all = keys(&format!("{root}{filter}")).pop().unwrap();
        assert!(all.contains(&format!("{{ source = \"{network}\" }}")), "{address}: {all}");
    }
}

/// Tags and fragments are in headers that conditions can look at.
#[test]
fn tags_and_fragments_choose_classes() {
    let text = |filter: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc filter add dev eth0 parent 1: {filter} flowid 1:1\n"
        )
    };
    for (filter, condition) in [
        ("protocol 802.1Q flower vlan_id 100", "{ vlan = 100 }"),
        ("protocol 0x8100 matchall", "{ vlan = \"1-4095\" }"),
        ("protocol 802.1q flower vlan_id 7 vlan_ethtype ip", "{ family = \"ipv4\", vlan = 7 }"),
        ("protocol 802.1Q u32 match ip dport 80 0xffff", "family = \"ipv4\", vlan = \"1-4095\" }"),
        ("protocol ip flower ip_flags frag", "{ family = \"ipv4\", fragment = [\"first\", \"later\"] }"),
        ("protocol ip flower ip_flags nofrag", "{ family = \"ipv4\", fragment = \"none\" }"),
        ("protocol ipv6 flower ip_flags frag/nofirstfrag", "{ family = \"ipv6\", fragment = \"later\" }"),
        (
            "protocol ip u32 match u16 0 0x1fff at 6",
            "{ family = \"ipv4\", fragment = [\"none\", \"first\"] }",
        ),
    ] {
        let all = keys(&text(filter)).pop().unwrap();
        assert!(all.contains(condition), "{filter}: {all}");
    }
    for (filter, title, at) in [
        ("protocol 802.1Q flower vlan_prio 3", "`vlan_prio` of flower", "vlan_prio"),
        ("protocol ip flower vlan_id 100", "`vlan_id` of packets without a VLAN tag", "vlan_id"),
        (
            "protocol 802.1ad matchall",
            "`802.1ad` in `protocol`: packets with a tag of a provider (QinQ)",
            "802.1ad",
        ),
        ("protocol 802.1Q handle 6 fw", "a filter `fw` of packets with a VLAN tag", "fw"),
        (
            "protocol ip flower ip_flags frag/nofrag",
            "no packet matches: these flags exclude each other",
            "frag/nofrag",
        ),
        ("protocol ip flower ip_flags df", "`df` is not a flag of fragments", "df"),
    ] {
        fails(&text(filter), title, at, &[]);
    }
}

/// Each packet costs the same.
/// Longer packets exceed such a policer, whatever their rate.
#[test]
fn policers_may_look_at_the_length_alone() {
    let hook = "tc qdisc add dev eth0 clsact\n";
    let at = |place: &str, police: &str| {
        format!("{hook}tc filter add dev eth0 {place} protocol ip prio 1 flower ip_proto udp {police}\n")
    };
    let udp = |length: &str| {
        format!("{{ match = {{ protocol = \"udp\", {length}family = \"ipv4\" }}, action = \"drop\" }}")
    };
    let longer = at("ingress", "action police mtu 1000 drop");
    assert_eq!(keys(&longer), [format!("link.down.ingress=[{}]", udp("length = \"1001 bytes..\", "))]);
    assert!(said(&longer).contains("more than 1000 bytes are dropped (as IP packets)"), "{}", said(&longer));
    // With the header of Ethernet where they leave; others go on.
    let leaving = at("egress", "action police mtu 1014 conform-exceed drop/continue")
        + "tc filter add dev eth0 egress protocol ip prio 2 matchall action drop\n";
    assert_eq!(
        keys(&leaving),
        [format!(
            "link.up.ingress=[{}, {{ match = {{ family = \"ipv4\" }}, action = \"drop\" }}]",
            udp("length = \"1001 bytes..\", ")
        )]
    );
    // At a discipline, before the class.
    let class = scheduler(
        "tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto udp action police mtu 1014 drop flowid 1:1",
    );
    assert!(
        class.contains("{ match = { protocol = \"udp\", length = \"1001 bytes..\", family = \"ipv4\" }, class = \"drop\" }, { match = { protocol = \"udp\", family = \"ipv4\" }, class = \"1:1\" }"),
        "{class}"
    );
    for police in
        ["mtu 1000 pass", "mtu 1000 conform-exceed continue/ok", "mtu 1000 conform-exceed drop/drop"]
    {
        fails(
            &at("ingress", &format!("action police {police}")),
            "a policer by length alone (`mtu`) that does more than drop longer packets",
            "flower",
            &["police mtu 1500 drop"],
        );
    }
    fails(
        &at("ingress", "action police mtu 1000 conform-exceed drop/pipe action police rate 1mbit burst 10k"),
        "two policers of one filter",
        "flower",
        &["two filters"],
    );
}

#[test]
fn policers_may_count_packets() {
    let text = "tc qdisc add dev eth0 clsact\ntc filter add dev eth0 ingress protocol all matchall action police pkts_rate 1000 pkts_burst 400 conform-exceed drop/ok\n";
    assert_eq!(
        keys(text),
        [
            "link.down.policer={ rate = \"524.28mbit\", burst = \"26214000 bytes\", mpu = \"65535 bytes\", overhead = \"ip\" }"
        ]
    );
    fails(
        &text.replace("pkts_burst 400 ", ""),
        "`police` without `pkts_burst`",
        "police",
        &["pkts_rate 1000 pkts_burst 400"],
    );
}

#[test]
fn no_packet_of_a_link_has_an_address_of_a_host_for_itself() {
    let of = |address: &str| {
        let text = format!(
            "tc qdisc add dev lo root handle 1: prio\n\
             tc filter add dev lo parent 1: protocol ip u32 match ip dst {address} flowid 1:1\n"
        );
        let said = narrows_scenario::tc::Script::parse(&text, "x.sh").unwrap().explain().unwrap();
        said.into_iter()
            .flat_map(|one| one.words)
            .any(|words| words.contains("by which a host talks to itself"))
    };
    assert!(of("127.0.0.1/32") && of("127.0.0.0/8"));
    assert!(!of("127.0.0.1/1") && !of("10.0.0.1/32"));
}
