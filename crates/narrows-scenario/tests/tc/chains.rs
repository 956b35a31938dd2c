//! Chains of filters, marks and redirections of some packets, comparisons, blocks, virtual queues.

use crate::hooks::said;
use crate::{fails, keys};

const HOOK: &str = "tc qdisc add dev eth0 clsact\n";
const PRIO: &str = "tc qdisc add dev eth0 root handle 1: prio\n";
const IFB: &str = "tc qdisc add dev ifb0 root handle 1: htb default 3\n\
    tc class add dev ifb0 parent 1: classid 1:1 htb rate 1mbit\n\
    tc class add dev ifb0 parent 1: classid 1:2 htb rate 2mbit\n\
    tc class add dev ifb0 parent 1: classid 1:3 htb rate 3mbit\n";

/// The filters of arriving packets.
fn ingress(filters: &[&str]) -> String {
    let lines = filters.iter().map(|filter| format!("tc filter add dev eth0 ingress {filter}\n"));
    let all = keys(&(HOOK.to_owned() + &lines.collect::<String>()));
    all.into_iter().next().unwrap_or_default()
}

#[test]
fn filters_of_another_chain() {
    let tcp = "chain 5 protocol ip prio 1 flower ip_proto tcp action drop";
    let ten = "protocol ip prio 1 flower src_ip 10.0.0.0/8 action goto chain 5";
    let last = "protocol ip prio 2 flower ip_proto udp action drop";
    assert_eq!(
        ingress(&[tcp, ten, last]),
        "link.down.ingress=[{ match = { protocol = \"tcp\", source = \"10.0.0.0/8\" }, action = \"drop\" }, \
         { match = { source = \"10.0.0.0/8\" }, action = \"pass\" }, \
         { match = { protocol = \"udp\", family = \"ipv4\" }, action = \"drop\" }]"
    );
    // A policer comes before the chain.
    let police = "protocol ip prio 1 flower src_ip 10.0.0.0/8 action police rate 1mbit burst 20k conform-exceed drop/pipe action goto chain 5";
    let all = ingress(&[tcp, police]);
    assert!(all.contains("overhead = \"ip\", conform = \"next\" }, { match = { protocol = \"tcp\""), "{all}");
    // At a discipline, packets that no filter of the chain matches go where those go that no filter matches.
    let all = keys(&format!(
        "{PRIO}tc filter add dev eth0 parent 1: chain 1 protocol ip prio 1 u32 match ip sport 80 0xffff flowid 1:3\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff action goto chain 1\n\
         tc filter add dev eth0 parent 1: protocol all prio 2 matchall flowid 1:1\n"
    ));
    let filters = all.iter().find(|key| key.contains("filters =")).unwrap();
    let first = "filters = [ { match = { protocol = \"tcp\", source-port = 80, family = \"ipv4\" }, class = \"1:3\" }, { match = { protocol = \"tcp\", family = \"ipv4\" }, class = \"1:2\" }";
    assert!(filters.contains(first), "{filters}");
    let circle = "tc filter add dev eth0 ingress prio 1 matchall action goto chain 0\n";
    fails(
        &format!("{HOOK}{circle}"),
        "chains of filters that lead to one another more than 16 deep",
        "tc filter",
        &[],
    );
}

/// A chain is made for its filters, and goes with them.
#[test]
fn chains_are_there_with_their_filters() {
    let filters = |before: &str, behind: &str| {
        keys(&format!(
            "{HOOK}{before}tc filter add dev eth0 ingress prio 1 matchall action goto chain 5\n\
             tc filter add dev eth0 ingress chain 5 prio 1 matchall action drop\n{behind}"
        ))
        .concat()
    };
    let plain = filters("", "");
    assert!(plain.contains("drop"));
    let add = "tc chain add dev eth0 ingress chain 5";
    for command in [
        add.to_owned(),
        format!("{add} protocol ip flower dst_ip 0.0.0.0/16"),
        add.replace("chain a", "ch a"),
    ] {
        assert_eq!(filters(&format!("{command}\n"), "tc chain show dev eth0 ingress\n"), plain, "{command}");
    }
    assert_eq!(filters("", "tc chain del dev eth0 ingress chain 6\n"), plain);
    assert_eq!(filters("", "tc chain del dev eth0 ingress chain 5\n"), "");
    let text = format!("{HOOK}{add}\ntc chain del dev eth0 ingress chain 5\n");
    assert!(said(&text).contains("A chain is there with its first filter"), "{}", said(&text));
    assert!(said(&text).contains("Deletes the filters of chain 5"), "{}", said(&text));
}

#[test]
fn controls_of_actions() {
    let udp = "protocol ip prio 1 flower ip_proto udp action";
    let drops =
        "link.down.ingress=[{ match = { protocol = \"udp\", family = \"ipv4\" }, action = \"drop\" }]";
    for action in ["reclassify", "trap", "pipe action jump 3 action pass action drop"] {
        assert_eq!(ingress(&[&format!("{udp} {action}")]), drops, "{action}");
    }
    // Beyond the last action, and without end.
    assert_eq!(ingress(&[&format!("{udp} jump 10")]), "");
    assert_eq!(ingress(&[&format!("{udp} pipe action jump 1 action drop")]), "");
    assert_eq!(ingress(&[&format!("{udp} simple sdata hello")]), "");
    fails(
        &format!(
            "{HOOK}tc filter add dev eth0 ingress protocol ip matchall action pedit ex munge tcp dport set 80 pipe action reclassify\n"
        ),
        "packets are changed, and then meet the filters again",
        "reclassify",
        &["`continue`"],
    );
}

#[test]
fn marks_of_filters() {
    let filters = "tc filter add dev eth0 ingress protocol ip prio 1 u32 match ip sport 22 0xffff action skbedit mark 17 continue\n\
        tc filter add dev eth0 ingress protocol ip prio 2 u32 match ip protocol 17 0xff action skbedit mark 18 pipe action mirred egress redirect dev ifb0\n\
        tc filter add dev eth0 ingress protocol all prio 3 matchall action mirred egress redirect dev ifb0\n";
    let looks = "tc filter add dev ifb0 parent 1: protocol all handle 17 fw flowid 1:1\n\
        tc filter add dev ifb0 parent 1: protocol all handle 18 fw flowid 1:2\n";
    let all = keys(&format!("{HOOK}{filters}{IFB}{looks}")).join("\n");
    // All packets are redirected, so there is no class beside.
    assert!(!all.contains("beside"), "{all}");
    // The mark that a later filter gives counts.
    let filters = "filters = [ { match = { protocol = \"udp\", source-port = 22, family = \"ipv4\" }, class = \"1:2\" }, \
        { match = { source-port = 22, family = \"ipv4\" }, class = \"1:1\" }, \
        { match = { protocol = \"udp\", family = \"ipv4\" }, class = \"1:2\" } ]";
    assert!(all.contains(filters), "{all}");
    let leaving = format!(
        "{HOOK}{PRIO}tc filter add dev eth0 egress protocol ip prio 1 u32 match ip sport 22 0xffff action skbedit mark 3\n\
         tc filter add dev eth0 parent 1: protocol all handle 3 fw flowid 1:3\n"
    );
    let all = keys(&leaving).join("\n");
    assert!(all.contains("{ match = { source-port = 22, family = \"ipv4\" }, class = \"1:3\" }"), "{all}");
    fails(
        &format!(
            "{PRIO}tc filter add dev eth0 parent 1: protocol ip prio 2 matchall action skbedit mark 3\ntc filter add dev eth0 parent 1: prio 1 handle 3 fw flowid 1:3\n"
        ),
        "`skbedit mark` at a discipline with filters of marks",
        "tc filter add dev eth0 parent 1: protocol ip prio 2",
        &["clsact"],
    );
    // No mark has these bits.
    let never = format!("{PRIO}tc filter add dev eth0 parent 1: handle 0x11/0x10 fw flowid 1:3\n");
    assert_eq!(keys(&never), keys(PRIO));
}

#[test]
fn some_arriving_packets_are_redirected() {
    let redirect = "tc filter add dev eth0 ingress protocol ip prio 2 u32 match ip src 10.0.0.0/8 action mirred egress redirect dev ifb0\n";
    let before =
        "tc filter add dev eth0 ingress protocol ip prio 1 u32 match ip src 10.9.0.0/16 action pass\n";
    let netem = "tc qdisc add dev ifb0 root netem delay 100ms\n";
    let all = keys(&format!("{HOOK}{before}{redirect}{netem}")).join("\n");
    for part in [
        "classes = [ { name = \"beside\" }, { name = \"redirected\", netem = \"delay 100ms\" } ]",
        "filters = [ { match = { source = \"10.9.0.0/16\" }, class = \"beside\" }, { match = { source = \"10.0.0.0/8\" }, class = \"redirected\" } ], default = \"beside\"",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
}

#[test]
fn comparisons() {
    let of = |expression: &str| {
        let all = keys(&format!(
            "{PRIO}tc filter add dev eth0 parent 1: protocol ip prio 1 basic match {expression} flowid 1:1\n"
        ));
        let key = all.into_iter().find(|key| key.contains("scheduler")).unwrap();
        let conditions: Vec<String> = key
            .split("match = ")
            .skip(1)
            .map_while(|part| part.split_once(", class = \"1:1\"").map(|(condition, _)| condition.to_owned()))
            .filter(|condition| condition.contains("ipv4"))
            .collect();
        conditions.join(" | ")
    };
    for (expression, expected) in [
        ("'cmp(u16 at 2 layer 1 gt 1000)'", "{ length = \"1001..65535 bytes\", family = \"ipv4\" }"),
        // No shell has to keep the words together.
        ("cmp(u16 at 2 layer network lt 21)", "{ length = \"20 bytes\", family = \"ipv4\" }"),
        ("'cmp(u8 at 9 layer 1 mask 0xff eq 17)'", "{ protocol = \"udp\", family = \"ipv4\" }"),
        // A value that the mask never leaves.
        (
            "'cmp(u32 at 4 layer 1 mask 0xff00ff00 eq 3) or cmp(u8 at 9 layer 1 eq 1)'",
            "{ protocol = \"icmp\", family = \"ipv4\" }",
        ),
        (
            "'not u32(u16 0 0x8000 at 20) and cmp(u8 at 9 layer 1 eq 6)'",
            "{ protocol = \"tcp\", source-port = \"32768-65535\", family = \"ipv4\" }",
        ),
        (
            "'meta(pkt_len gt 1014) and cmp(u8 at 8 layer 1 eq 64)'",
            "{ length = \"1001..65535 bytes\", family = \"ipv4\", hop-limit = 64 }",
        ),
        ("'meta(protocol eq 0x8100)'", "{ family = \"ipv4\", vlan = \"1-4095\" }"),
        ("'not meta(protocol eq 0x8100)'", "{ family = \"ipv4\", vlan = 0 }"),
        (
            "'cmp(u16 at 0 layer link eq 0x0200)'",
            "{ family = \"ipv4\", link-destination = \"02:00:00:00:00:00/16\" }",
        ),
    ] {
        assert_eq!(of(expression), expected, "{expression}");
    }
    let fails_at = |expression: &str, title: &str, at: &str| {
        fails(
            &format!(
                "{PRIO}tc filter add dev eth0 parent 1: protocol ip prio 1 basic match {expression} flowid 1:1\n"
            ),
            title,
            at,
            &[],
        );
    };
    fails_at(
        "'not meta(priority eq 6)'",
        "`not` before a condition whose opposite is no list of conditions",
        "not meta",
    );
    fails_at(
        "'cmp(u8 at 9 layer 1 eq 6) xor cmp(u8 at 9 layer 1 eq 7)'",
        "found `xor`, expected `and` or `or`",
        "xor",
    );
    fails_at(
        "'cmp(u16 at 4 layer 1 gt 9)'",
        "classes do not match the identification of IPv4 packets",
        "cmp(u16",
    );
    // More `and`s than conditions that a list may have.
    let long = vec!["cmp(u16 at 0 layer 2 gt 1)"; 400].join(" and ");
    let many =
        format!("{PRIO}tc filter add dev eth0 parent 1: protocol ip basic match '{long}' flowid 1:1\n");
    keys(&many);
}

#[test]
fn blocks_are_shared() {
    let shared = "tc qdisc add dev eth0 ingress_block 7 ingress\n\
        tc filter add block 7 protocol ip prio 1 flower ip_proto udp action drop\n\
        tc qdisc add dev eth1 ingress_block 7 clsact\n";
    let drop = "ingress=[{ match = { protocol = \"udp\", family = \"ipv4\" }, action = \"drop\" }]";
    assert_eq!(keys(shared), [format!("link.down.{drop}"), format!("link.up.{drop}")]);
    fails(
        "tc filter add block 3 matchall action drop\n",
        "there is no block 3",
        "tc filter",
        &["ingress_block 1"],
    );
    let red = "tc qdisc add dev eth0 root handle 1: red limit 500K avpkt 1K ecn qevent early_drop block 10 qevent mark block 11\n";
    let plain = "tc qdisc add dev eth0 root handle 1: red limit 500K avpkt 1K ecn\n";
    let copies = "tc filter add block 10 matchall action mirred egress mirror dev eth7\n";
    assert_eq!(keys(&format!("{red}{copies}")), keys(plain));
    fails(
        &format!("{red}tc filter add block 11 matchall action drop\n"),
        "a filter that drops, redirects, polices or changes packets that `red` marks",
        "tc filter",
        &["without `ecn`"],
    );
}

#[test]
fn virtual_queues() {
    let setup = "tc qdisc add dev eth0 root handle 1: gred setup DPs 4 default 2 ecn\n";
    assert_eq!(keys(setup), ["link.up.queue=\"1514000 bytes\""]);
    let red = "tc qdisc change dev eth0 root gred limit 60KB min 15K max 25K burst 20 avpkt 1000 bandwidth 10Mbit DP 2 probability 0.02 prio 2\n";
    let all = keys(&format!("{setup}{red}")).remove(0);
    assert!(all.contains("type = \"red\"") && all.contains("ecn = true"), "{all}");
    // Another virtual queue, which no packet uses.
    let other = red.replace("DP 2", "DP 3");
    assert_eq!(keys(&format!("{setup}{other}")), keys(setup));
    fails("tc qdisc add dev eth0 root gred setup DPs 4\n", "`gred` without `default`", "gred", &[]);
}

#[test]
fn prefixes_that_enter_a_namespace() {
    let plain = keys("ip netns exec a tc qdisc add dev eth0 root netem delay 5ms\n");
    for prefix in [
        "sudo nsenter -t 12 -n",
        "nsenter --net=/var/run/netns/a",
        "docker exec -it --privileged box",
        "/usr/bin/podman exec -u root box",
    ] {
        assert_eq!(
            keys(&format!("{prefix} tc qdisc add dev eth0 root netem delay 5ms\n")),
            plain,
            "{prefix}"
        );
    }
}
