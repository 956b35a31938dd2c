//! Scripts of more than two devices: a router, or a host for each network namespace.

use narrows_scenario::Scenario;
use narrows_scenario::tc::Script;

use super::{fails, keys};

fn scenario(text: &str) -> (String, Scenario) {
    let script = Script::parse(text, "x.sh").unwrap_or_else(|error| panic!("{error}"));
    let made = script.scenario_text(false).unwrap_or_else(|error| panic!("{error}"));
    let read = Scenario::parse(&made, "made").unwrap_or_else(|error| panic!("{error}\n{made}"));
    // A run that starts with the network alone, and then sets the rest, has the same.
    let mut set = script.network().unwrap();
    set.set(&script.assignments(false).unwrap()).unwrap();
    for step in script.steps(false).unwrap() {
        set.schedule(step.at, &step.assignments()).unwrap();
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

fn ends(scenario: &Scenario) -> Vec<(&str, [&str; 2])> {
    scenario
        .links
        .iter()
        .map(|link| (link.name.as_str(), [link.between[0].as_str(), link.between[1].as_str()]))
        .collect()
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
        "`eth0` and `eth0.5` are one device, with and without a VLAN, or two VLANs of it",
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
