//! Scripts that join network namespaces themselves.

use narrows_scenario::tc::Script;

use super::keys;
use super::network::{ends, scenario};

/// Two senders and two receivers at two routers.
const DUMBBELL: &str = "for n in left right; do ip netns add $n; ip netns exec $n sysctl -qw net.ipv4.ip_forward=1; done\n\
    ip link add core-l netns left type veth peer name core-r netns right\n\
    ip -n left addr add 10.9.0.1/30 dev core-l\n\
    ip -n right addr add 10.9.0.2/30 dev core-r\n\
    for i in 1 2; do\n\
      ip netns add snd$i; ip netns add rcv$i\n\
      ip link add eth0 netns snd$i type veth peer name to-snd$i netns left\n\
      ip -n snd$i addr add 10.1.$i.2/24 dev eth0\n\
      ip -n left addr add 10.1.$i.1/24 dev to-snd$i\n\
      ip -n snd$i route add default via 10.1.$i.1\n\
      ip link add eth0 netns rcv$i type veth peer name to-rcv$i netns right\n\
      ip -n rcv$i addr add 10.2.$i.2/24 dev eth0\n\
      ip -n right addr add 10.2.$i.1/24 dev to-rcv$i\n\
      ip -n rcv$i route add default via 10.2.$i.1\n\
      ip netns exec snd$i tc qdisc add dev eth0 root netem delay ${i}0ms\n\
    done\n\
    ip -n left route add 10.2.0.0/16 via 10.9.0.2\n\
    ip -n right route add 10.1.0.0/16 via 10.9.0.1\n\
    ip netns exec left tc qdisc add dev core-l root tbf rate 20mbit burst 10k latency 50ms\n";

fn notes(text: &str) -> Vec<String> {
    let placed = Script::parse(text, "x.sh").unwrap().placed(false).unwrap();
    placed.iter().flat_map(|one| one.device.remarks(true)).map(str::to_owned).collect()
}

#[test]
fn routers_and_hosts_are_as_the_script_joins_them() {
    let (made, read) = scenario(DUMBBELL);
    assert_eq!(
        ends(&read),
        [
            ("core-l", ["left", "right"]),
            ("snd1-eth0", ["snd1", "left"]),
            ("rcv1-eth0", ["rcv1", "right"]),
            ("snd2-eth0", ["snd2", "left"]),
            ("rcv2-eth0", ["rcv2", "right"]),
        ],
        "{made}"
    );
    assert!(made.starts_with("[hosts.snd1]\naddresses = [\"10.1.1.2/24\"]\n[hosts.rcv1]\n"), "{made}");
    assert!(
        made.contains("[routers.right]\naddresses = { core-l = [\"10.9.0.2/30\"], rcv1-eth0 = ["),
        "{made}"
    );
    assert!(!made.contains("routes"), "there is one way to each network: {made}");
    let all = keys(DUMBBELL);
    assert_eq!(all[..2], ["snd1-eth0.up.delay=\"10ms\"", "snd2-eth0.up.delay=\"20ms\""]);
    assert!(all.iter().any(|key| key.starts_with("core-l.up.scheduler={ type = \"tbf\"")), "{all:?}");
    // Where the script tidies up, it has used what it made.
    let tidied = format!(
        "{DUMBBELL}iperf3 -c 10.2.1.2\nfor n in left right snd1 snd2 rcv1 rcv2; do ip netns del $n; done\n"
    );
    assert_eq!(scenario(&tidied).0, made);
    // The same, by other words.
    let other = DUMBBELL
        .replace("ip netns exec $n sysctl -qw net.ipv4.ip_forward=1", "ip netns exec $n sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'")
        .replace("ip -n snd$i addr add 10.1.$i.2/24 dev eth0", "sudo ip netns exec snd$i ifconfig eth0 10.1.$i.2 netmask 255.255.255.0 up")
        .replace("ip -n rcv$i route add default via 10.2.$i.1", "ip netns exec rcv$i route add default gw 10.2.$i.1")
        .replace(
            "ip link add core-l netns left type veth peer name core-r netns right",
            "ip l a x type veth peer name core-r; ip l s dev x name core-l; ip l s core-l netns left; ip link set core-r netns right",
        );
    assert_eq!(scenario(&other).0, made);
}

#[test]
fn bridges_are_switches() {
    let ports = "for i in 1 2 3; do\n\
          ip netns add ns$i\n\
          ip link add veth$i type veth peer name port$i\n\
          ip link set veth$i netns ns$i\n\
          ip link set port$i master br0\n\
          ip netns exec ns$i ip addr add 10.0.0.$i/24 dev veth$i\n\
          tc qdisc add dev port$i root netem delay ${i}0ms\n\
        done\n";
    let (made, read) =
        scenario(&format!("ip link add br0 type bridge\n{ports}ip addr add 10.0.0.254/24 dev br0\n"));
    let joined = [("veth1", ["ns1", "br0"]), ("veth2", ["ns2", "br0"]), ("veth3", ["ns3", "br0"])];
    assert_eq!(ends(&read)[1..], joined, "{made}");
    assert_eq!(ends(&read)[0], ("host-br0", ["host", "br0"]));
    assert!(made.contains("[hosts.host]\naddresses = [\"10.0.0.254/24\"]\n"), "{made}");
    // What leaves by a port of the bridge goes to the namespace.
    assert!(made.contains("[links.veth3.down]\ndelay = \"30ms\"\n"), "{made}");
    // Without an address the host itself is not there.
    for bridge in [
        ports.replace("ip link set port$i master br0", "brctl addif br0 port$i"),
        format!(
            "ovs-vsctl --may-exist add-br br0\n{}",
            ports.replace("ip link set port$i master br0", "ovs-vsctl add-port br0 port$i")
        ),
    ] {
        assert_eq!(ends(&scenario(&bridge).1), joined, "{bridge}");
    }
}

#[test]
fn several_ways_have_the_routes_of_the_script() {
    let text = "for n in a r1 r2 r3 b; do ip netns add $n; done\n\
        join() { ip link add $1-$2 netns $1 type veth peer name $2-$1 netns $2\n\
          ip -n $1 addr add 10.0.$3.1/24 dev $1-$2; ip -n $2 addr add 10.0.$3.2/24 dev $2-$1; }\n\
        join a r1 1; join r1 r2 2; join r1 r3 3; join r3 r2 4; join r2 b 5\n\
        ip -n a route add default via 10.0.1.2\n\
        ip -n b route add default via 10.0.5.1\n\
        ip -n r1 route add 10.0.5.0/24 via 10.0.3.2\n\
        ip -n r2 route add default via 10.0.2.1\n\
        ip -n r3 route add 10.0.5.0/24 via 10.0.4.2\n\
        ip netns exec r1 tc qdisc add dev r1-r2 root netem delay 10ms\n\
        ip netns exec r1 tc qdisc add dev r1-r3 root netem delay 30ms\n\
        ip netns exec r2 tc qdisc add dev r2-r1 root netem delay 20ms\n";
    let (made, read) = scenario(text);
    assert_eq!(read.links.len(), 5);
    assert!(made.contains("{ to = \"10.0.5.0/24\", via = [\"r1-r3\"] }"), "the longer way: {made}");
    assert!(
        made.contains("{ to = \"10.0.1.0/24\", via = [\"r1-r2\"] },\n    { to = \"10.0.3.0/24\""),
        "{made}"
    );
    let weighted = text.replace(
        "ip -n r1 route add 10.0.5.0/24 via 10.0.3.2",
        "ip -n r1 route add 10.0.5.0/24 nexthop via 10.0.3.2 weight 2 nexthop via 10.0.2.2 weight 1",
    );
    let (made, _) = scenario(&weighted);
    assert!(
        made.contains("{ to = \"10.0.5.0/24\", via = [\"r1-r3\", \"r1-r2\"], weights = [2, 1] }"),
        "{made}"
    );
}

#[test]
fn one_pair_is_a_network_too() {
    let pair = "ip netns add a; ip link add v type veth peer name w; ip link set v netns a\n\
        ip netns exec a ip addr add 10.0.0.1/24 dev v; ip addr add 10.0.0.2/24 dev w\n\
        ip netns exec a tc qdisc add dev v root netem delay 10ms\n\
        tc qdisc add dev w root netem delay 20ms\n";
    assert_eq!(keys(pair), ["v.up.delay=\"10ms\"", "v.down.delay=\"20ms\""]);
    let (made, read) = scenario(pair);
    assert_eq!(ends(&read), [("v", ["a", "host"])]);
    assert!(made.contains("[hosts.host]\naddresses = [\"10.0.0.2/24\"]\n"), "{made}");
    // A device that the script does not make is not in it.
    let other = format!("{pair}tc qdisc add dev eth0 root netem delay 30ms\n");
    assert!(Script::parse(&other, "x.sh").unwrap().scenario_text(false).is_err());
    // A process, and a namespace that is called as one.
    let process = pair
        .replace("ip netns add a; ", "")
        .replace("link set v netns a", "link set v netns 4711")
        .replace("ip netns exec a ip", "ip -n 4711")
        .replace("ip netns exec a tc", "tc -n 4711");
    assert_eq!(ends(&scenario(&process).1), [("v", ["4711", "host"])]);
    let numbered =
        pair.replace("add a;", "add 1;").replace("netns a\n", "netns 1\n").replace("exec a", "exec 1");
    assert_eq!(ends(&scenario(&numbered).1), [("v", ["1", "host"])]);
}

#[test]
fn what_is_not_as_in_the_script_is_said() {
    let apart = DUMBBELL.replace("addr add 10.9.0.2/30", "addr add 10.8.0.2/30");
    let said = notes(&apart);
    assert!(
        said.iter().any(|note| note
            .contains("right/core-r, which are joined, do not have addresses in the same networks")),
        "{said:?}"
    );
    let (made, _) = scenario(&apart);
    assert!(!made.contains("addresses"), "{made}");
    let still =
        DUMBBELL.replace("sysctl -qw net.ipv4.ip_forward=1", "true").replace("route add", "route show");
    let said = notes(&still);
    assert!(said.iter().any(|note| note.starts_with("left is a host with several links")), "{said:?}");
    assert_eq!(scenario(&still).1.routers.len(), 0);
}

/// As many devices as a file has lines take no more than linear time; their network is refused.
#[test]
fn tens_of_thousands_of_devices_are_counted() {
    let mut text = String::from("ip netns add a\n");
    for number in 0..20_000 {
        text +=
            &format!("ip link add v{number} type veth peer name w{number}\nip link set w{number} netns a\n");
    }
    text += "tc qdisc add dev v0 root netem delay 1ms\n";
    let error = Script::parse(&text, "x.sh").unwrap().scenario_text(false).unwrap_err().to_string();
    assert!(error.contains("a network of 40000 devices, the most that a script may join is 1024"), "{error}");
}

/// However deep a line nests namespaces and calculations, it is read or refused.
#[test]
fn lines_that_nest_without_end_are_no_overflow() {
    let deep = "ip netns exec a ".repeat(50_000);
    drop(Script::parse(&format!("{deep}ip link set x up\n"), "x.sh"));
    let deep = format!("{}1{}", "$[".repeat(50_000), "]".repeat(50_000));
    let text = format!("tc qdisc add dev eth0 root pfifo limit {deep}\n");
    assert!(Script::parse(&text, "x.sh").is_err());
}
