//! Scripts of more than two devices: a router, or a host for each network namespace.

use narrows_scenario::Scenario;
use narrows_scenario::tc::Script;

use super::{fails, keys};

pub(super) fn scenario(text: &str) -> (String, Scenario) {
    let script = Script::parse(text, "x.sh").unwrap_or_else(|error| panic!("{error}"));
    let made = script.scenario_text(false).unwrap_or_else(|error| panic!("{error}"));
    let read = Scenario::parse(&made, "made").unwrap_or_else(|error| panic!("{error}\n{made}"));
    // A run that starts with the network alone, and then sets the rest, has the same.
    let mut set = script.network().unwrap();
    set.set(&script.assignments(false).unwrap()).unwrap();
    for step in script.steps(false).unwrap() {
        set.schedule(step.at, step.every, &step.assignments()).unwrap();
    }
    assert_eq!(format!("{:?}", set.links), format!("{:?}", read.links), "{made}");
    let (mut one, mut other) = (set.timeline(), read.timeline());
    loop {
        let (step, same) = (one.next(), other.next());
        assert_eq!(step, same, "{made}");
        if step.is_none() {
            return (made, read);
        }
    }
}

pub(super) fn ends(scenario: &Scenario) -> Vec<(&str, [&str; 2])> {
    scenario
        .links
        .iter()
        .map(|link| (link.name.as_str(), [link.between[0].as_str(), link.between[1].as_str()]))
        .collect()
}

/// What leaves by the device of one host and arrives at that of the other meets the disciplines of both.
#[test]
fn disciplines_in_series() {
    let redirected = |dev: &str, rate: &str| {
        format!(
            "tc qdisc add dev {dev} ingress\n\
             tc filter add dev {dev} parent ffff: matchall action mirred egress redirect dev ifb0\n\
             tc qdisc add dev ifb0 root tbf rate {rate} burst 10kb limit 20kb\n"
        )
    };
    let leaving = |dev: &str, rate: &str| {
        format!("tc qdisc add dev {dev} root tbf rate {rate} burst 10kb limit 20kb\n")
    };
    let (text, made) = scenario(&(leaving("lo", "2mbit") + &redirected("lo", "1mbit")));
    let two = vec![("client", ["client", "router"]), ("server", ["server", "router"])];
    assert_eq!(ends(&made), two, "{text}");
    for host in ["client", "server"] {
        for (way, rate) in [("up", "2mbit"), ("down", "1mbit")] {
            let part = text.split_once(&format!("[links.{host}.{way}]\n")).unwrap().1;
            assert!(part.split("[links").next().unwrap().contains(rate), "{text}");
        }
    }
    // Packets of two namespaces meet each other's; it does not matter when.
    let inside =
        |namespace: &str, text: String| text.replace("tc ", &format!("ip netns exec {namespace} tc "));
    for sleep in ["", "sleep 2\n"] {
        let text =
            inside("modem", leaving("eth0", "2mbit")) + sleep + &inside("pc", redirected("eth1", "1mbit"));
        let (_, made) = scenario(&text);
        assert_eq!(ends(&made), [("modem", ["modem", "router"]), ("pc", ["pc", "router"])], "{text}");
    }
    // In different directions, a link has both.
    let text = inside("modem", leaving("eth0", "2mbit")) + &inside("pc", leaving("eth1", "1mbit"));
    assert_eq!(ends(&scenario(&text).1), [("link", ["client", "server"])]);
}

#[test]
fn more_than_two_devices_are_those_of_a_router() {
    let text = "for dev in eth1 eth2 wlan0.5; do tc qdisc add dev $dev root pfifo limit ${#dev}; done\n\
        tc qdisc add dev eth1 ingress\n\
        tc filter add dev eth1 ingress matchall action mirred egress redirect dev ifb0\n\
        tc qdisc add dev ifb0 root tbf rate 2mbit burst 10k limit 20k\n\
        sleep 3\n\
        tc qdisc replace dev eth2 root pfifo limit 50\n";
    let text = text.replace("${#dev}", "7");
    let (made, read) = scenario(&text);
    assert_eq!(
        ends(&read),
        [
            ("eth1", ["router", "behind-eth1"]),
            ("eth2", ["router", "behind-eth2"]),
            ("wlan0-5", ["router", "behind-wlan0-5"]),
        ],
        "{made}"
    );
    let all = keys(&text);
    assert!(all.iter().any(|key| key.starts_with("eth1.down.scheduler={ type = \"tbf\"")), "{all:?}");
    let queues: Vec<_> = all.iter().filter(|key| key.contains(".queue=")).map(String::as_str).collect();
    assert_eq!(queues[0], "eth1.up.queue=\"7 packets\"", "{all:?}");
    assert_eq!(queues[queues.len() - 2..], ["eth2.up.queue=\"7 packets\"", "wlan0-5.up.queue=\"7 packets\""]);
    assert!(made.ends_with("\"eth2.up.queue\" = \"50 packets\"\n"), "{made}");
    let words: Vec<String> =
        Script::parse(&text, "x.sh").unwrap().placed(false).unwrap().iter().map(|one| one.words()).collect();
    assert_eq!(words[1], "eth2 is the router's device: what leaves there goes to behind-eth2, along eth2.up");
}

#[test]
fn a_device_in_each_namespace_is_one_of_a_host() {
    let one = |namespace: &str, limit: u32| {
        format!("ip netns exec {namespace} tc qdisc add dev eth0 root pfifo limit {limit}\n")
    };
    let text =
        format!("{}{}tc -n router qdisc add dev e root pfifo limit 3\n", one("red", 1), one("blue", 2));
    let (made, read) = scenario(&text);
    assert_eq!(
        ends(&read),
        [("red", ["red", "router"]), ("blue", ["blue", "router"]), ("router-2", ["router-2", "router"])],
        "{made}"
    );
    assert_eq!(
        keys(&text),
        ["red.up.queue=\"1 packet\"", "blue.up.queue=\"2 packets\"", "router-2.up.queue=\"3 packets\""]
    );
    let mixed = format!("{text}{}", one("red", 1).replace("eth0", "eth1"));
    fails(
        &mixed,
        "`red/eth1` and another device are in one network namespace, and others in others",
        "ip netns exec red tc qdisc add dev eth1",
        &["one device in each network namespace"],
    );
}

#[test]
fn what_is_not_a_router_is_said() {
    let add = |device: &str| format!("tc qdisc add dev {device} root pfifo limit 1\n");
    fails(
        &format!("{}{}{}", add("eth0"), add("up"), add("eth1")),
        "`up` is an end of a link of two hosts, and there are 3 devices",
        "tc qdisc add dev up",
        &["another name"],
    );
    let many: String = (0..300).map(|number| add(&format!("e{number}"))).collect();
    fails(&many, "300 devices, the most that a script may configure is 256", "tc qdisc add dev e256", &[]);
    fails(
        &format!("{}{}{}", add("eth0"), add("eth0.5"), add("eth1")),
        "`eth0` and `eth0.5` are one device, with and without a VLAN",
        "tc qdisc add dev eth0.5",
        &[],
    );
    // Interfaces of the host that a link joins are two.
    let three = format!("{}{}{}", add("a"), add("b"), add("c"));
    let bridged = Script::parse(&three, "x.sh").unwrap();
    let known = [("a", narrows_scenario::Way::Up), ("b", narrows_scenario::Way::Down)];
    let error = bridged.with_devices(known).assignments(false).unwrap_err().to_string();
    assert!(error.contains("too many devices, `c`: a link has two ends"), "{error}");
}

#[test]
fn devices_whose_names_a_scenario_does_not_allow_have_others() {
    let text = "tc qdisc add dev a.b root pfifo limit 1\ntc qdisc add dev a-b root pfifo limit 2\n\
        tc qdisc add dev router root pfifo limit 3\n";
    let (made, read) = scenario(text);
    let links: Vec<&str> = ends(&read).into_iter().map(|(link, _)| link).collect();
    assert_eq!(links, ["a-b", "a-b-2", "router-2"], "{made}");
}

fn add(device: &str, what: &str) -> String {
    format!("tc qdisc add dev {device} {what}\n")
}

fn to(from: &str, target: &str) -> String {
    format!(
        "{}tc filter add dev {from} ingress matchall action mirred egress redirect dev {target}\n",
        add(from, "ingress")
    )
}

#[test]
fn one_queue_for_packets_of_several_devices_is_refused() {
    let shared = format!(
        "{}{}{}",
        add("ifb0", "root tbf rate 10mbit burst 32k latency 50ms"),
        to("eth0", "ifb0"),
        to("eth1", "ifb0")
    );
    fails(
        &shared,
        "ifb0 has one queue for packets of eth0 and of eth1, which are on different links or directions",
        "tc filter add dev eth1",
        &["ifb1"],
    );
    // A delay for each packet by itself is the same, whoever shares it.
    let each = shared.replace("tbf rate 10mbit burst 32k latency 50ms", "netem delay 5ms loss 1%");
    let delays = keys(&each).iter().filter(|key| key.contains("delay=\"5ms\"")).count();
    assert_eq!(delays, 2, "{:?}", keys(&each));
    let block: String =
        ["eth0", "eth1", "eth2"].map(|device| add(device, "ingress_block 1 ingress")).concat();
    let policer = "tc filter add block 1 matchall action police rate 1mbit burst 10k drop\n";
    fails(
        &format!("{block}{policer}"),
        "a policer in block 1, which is shared: its rate is for eth0 and eth2 together",
        "tc filter add block 1",
        &["a filter of its own"],
    );
    let one = format!("{}{policer}", add("eth0", "ingress_block 1 ingress"));
    assert!(keys(&one)[0].starts_with("link.down.policer="), "{:?}", keys(&one));
}

#[test]
fn devices_that_redirect_to_each_other_are_refused() {
    let ring =
        format!("{}{}{}", to("eth0", "eth1"), to("eth1", "eth0"), add("eth0", "root netem delay 10ms"));
    fails(
        &ring,
        "filters of packets that arrive at eth0, to which others are redirected",
        "tc filter add dev eth0",
        &["stands for a direction"],
    );
}

#[test]
fn no_packet_passes_an_intermediate_device_that_nothing_is_redirected_to() {
    let text = format!(
        "ip link add shaper type ifb\n{}{}",
        add("shaper", "root netem delay 50ms"),
        add("eth0", "root netem delay 10ms")
    );
    assert_eq!(keys(&text), ["link.up.delay=\"10ms\""]);
    let placed = Script::parse(&text, "x.sh").unwrap().placed(false).unwrap();
    let said: Vec<_> = placed[0].device.remarks(false).collect();
    assert!(said.contains(&"No packet passes shaper: no filter redirects any there."), "{said:?}");
    // By itself it is what the script is about.
    assert_eq!(keys(&add("ifb0", "root netem delay 50ms")), ["link.up.delay=\"50ms\""]);
}

#[test]
fn places_and_handles_are_those_of_the_kernel() {
    let htb = add("eth0", "root handle 1: htb default 1")
        + "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n";
    fails(
        &add("eth0", "parent ffff: handle 1: netem delay 1ms"),
        "`netem` where packets arrive",
        "tc qdisc",
        &["ifb"],
    );
    // tc finds nothing to delete, and a script goes on.
    for nothing in [
        "tc qdisc del dev eth0\n",
        "tc qdisc del dev eth0 root handle 2:\n",
        "tc qdisc del dev eth0 handle 2:\n",
    ] {
        assert!(keys(&format!("{htb}{nothing}")).iter().any(|key| key.contains("\"htb\"")), "{nothing}");
    }
    for all in [
        "tc qdisc del dev eth0 root\n",
        "tc qdisc del dev eth0 handle 1:\n",
        "tc qdisc del dev eth0 root handle 1:\n",
    ] {
        assert_eq!(keys(&format!("{htb}{all}")), Vec::<String>::new(), "{all}");
    }
    let policer = "tc qdisc add dev eth0 ingress\ntc filter add dev eth0 ingress matchall action police rate 1mbit burst 10k drop\n";
    assert_eq!(keys(&format!("{policer}tc qdisc del dev eth0 handle ffff:\n")), Vec::<String>::new());
    fails(
        &format!(
            "{}tc qdisc change dev eth0 root handle 2: netem loss 3%\n",
            add("eth0", "root handle 1: netem delay 10ms")
        ),
        "the discipline there is 1:",
        "tc qdisc change",
        &["keeps the handle"],
    );
}

#[test]
fn names_of_devices_are_those_that_the_kernel_takes() {
    for (name, at) in [("eth0/1", "eth0/1"), ("averyveryverylongname0", "averyvery")] {
        fails(
            &add(name, "root netem delay 1ms"),
            &format!("`{name}` cannot be the name of a device"),
            at,
            &["15"],
        );
    }
    // Tags upon tags are of one device.
    fails(
        &format!(
            "{}{}",
            add("eth3.100", "root netem delay 1ms"),
            add("eth3.100.200", "root netem delay 2ms")
        ),
        "`eth3.100` and `eth3.100.200` are one device, with and without a VLAN",
        "tc qdisc add dev eth3.100.200",
        &[],
    );
}

/// Tables are beside the script, wherever narrows is started.
#[test]
fn tables_of_a_script_are_beside_it() {
    let folder = std::env::temp_dir().join(format!("narrows-tc-tables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("two.sh");
    std::fs::write(&script, "tc qdisc add dev eth0 root netem delay 10ms 2ms distribution mine\n").unwrap();
    let missing = Script::load(&script).unwrap_err().to_string();
    assert!(missing.contains("the table of a distribution, `mine.dist`, cannot be read"), "{missing}");
    assert!(missing.contains("two.sh:1:1"), "{missing}");
    let table: Vec<String> = (0..4096).map(|number| (number * 4 - 8192).to_string()).collect();
    std::fs::write(folder.join("mine.dist"), table.join(" ")).unwrap();
    let made = Script::load(&script).unwrap().scenario_text(false).unwrap();
    assert!(made.contains(&format!("file = \"{}\"", folder.join("mine.dist").display())), "{made}");
    Scenario::parse(&made, "made").unwrap_or_else(|error| panic!("{error}\n{made}"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What arrives at one device is delayed, and what leaves by the other is limited: both in the same direction.
#[test]
fn two_devices_between_which_a_machine_forwards_are_those_of_a_router() {
    let text = "tc qdisc add dev lan0 ingress\n\
        tc filter add dev lan0 ingress matchall action mirred egress redirect dev ifb0\n\
        tc qdisc add dev ifb0 root handle 1: htb default 1\n\
        tc class add dev ifb0 parent 1: classid 1:1 htb rate 1gbit\n\
        tc qdisc add dev ifb0 parent 1:1 netem delay 25ms\n\
        tc qdisc add dev wan0 root handle 1: htb default 1\n\
        tc class add dev wan0 parent 1: classid 1:1 htb rate 10mbit\n";
    let (made, read) = scenario(text);
    let expected = [("lan0", ["router", "behind-lan0"]), ("wan0", ["router", "behind-wan0"])];
    assert_eq!(ends(&read), expected, "{made}");
    let all = keys(text);
    assert!(
        all.iter().any(|key| key.starts_with("lan0.down.scheduler=") && key.contains("delay 25ms")),
        "{all:?}"
    );
    assert!(all.iter().any(|key| key.starts_with("wan0.up.scheduler=") && key.contains("10mbit")), "{all:?}");
    // In different directions they are the ends of a link.
    let ends_of_one = text.replace("dev lan0", "dev wan0");
    assert!(keys(&ends_of_one).iter().all(|key| key.starts_with("link.")));
}
