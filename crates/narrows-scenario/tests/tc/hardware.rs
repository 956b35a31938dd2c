//! What a script leaves to the device's hardware: the link does it.

use crate::hooks::said;
use crate::{fails, keys};

const HOOK: &str = "tc qdisc add dev eth0 clsact\n";

fn ingress(filters: &[&str]) -> String {
    let lines: Vec<String> =
        filters.iter().map(|filter| format!("tc filter add dev eth0 ingress {filter}\n")).collect();
    format!("{HOOK}{}", lines.concat())
}

#[test]
fn filters_of_the_device_are_the_links() {
    let drop = ingress(&["protocol ip prio 1 flower skip_sw src_ip 10.1.3.3 action drop"]);
    assert_eq!(keys(&drop), ["link.down.ingress=[{ match = { source = \"10.1.3.3\" }, action = \"drop\" }]"]);
    assert!(said(&drop).contains("the link does what the device would"), "{}", said(&drop));
    for kind in ["u32 match u32 0 0 skip_sw", "matchall skip_sw"] {
        assert_eq!(
            keys(&ingress(&[&format!("{kind} action drop")])),
            ["link.down.ingress=[{ action = \"drop\" }]"]
        );
    }
    // A queue of the device, of which a link has one.
    let steered = ingress(&[
        "protocol ip prio 1 flower dst_ip 10.1.3.3 ip_proto tcp dst_port 80 skip_sw hw_tc 1",
        "protocol ip prio 2 matchall skip_sw action drop",
    ]);
    let first = "{ match = { protocol = \"tcp\", destination = \"10.1.3.3\", destination-port = 80 }, action = \"pass\" }";
    assert_eq!(
        keys(&steered),
        [format!("link.down.ingress=[{first}, {{ match = {{ family = \"ipv4\" }}, action = \"drop\" }}]")]
    );
    assert!(said(&steered).contains("chooses among the receive queues"), "{}", said(&steered));
}

/// To the host's processor, which is where a link ends; without the hardware, the kernel drops.
#[test]
fn trapped_packets_come_to_the_host() {
    let text = ingress(&[
        "protocol ip prio 1 flower src_ip 10.1.3.3 skip_sw action trap",
        "matchall skip_sw action drop",
    ]);
    assert_eq!(
        keys(&text),
        [
            "link.down.ingress=[{ match = { source = \"10.1.3.3\" }, action = \"pass\" }, { action = \"drop\" }]"
        ]
    );
    assert!(said(&text).contains("they pass"), "{}", said(&text));
    let software = keys(&text.replace(" skip_sw", ""));
    assert!(software[0].contains("3.3\" }, action = \"drop\""), "{software:?}");
}

/// The kernel's filters see what the device's have let pass.
#[test]
fn filters_of_the_device_and_of_the_kernel_are_apart() {
    let title = "packets meet this filter beside an earlier one: `skip_sw` and `skip_hw` give one of them to the device and the other to the kernel";
    let drops = "protocol ip prio 2 matchall action drop";
    for (first, second) in [
        ("protocol ip prio 1 matchall skip_sw action pass", drops.to_owned()),
        ("protocol ip prio 1 matchall skip_hw action pass", drops.replace("all", "all skip_sw")),
    ] {
        fails(&ingress(&[first, &second]), title, "tc filter", &["leave these words out"]);
    }
    // What is dropped in the device does not come to the kernel's; both are the kernel's where `skip_hw` is the only word.
    for first in ["flower src_ip 10.0.0.1 skip_sw action drop", "flower src_ip 10.0.0.1 skip_hw action pass"]
    {
        let first = format!("protocol ip prio 1 {first}");
        assert_eq!(keys(&ingress(&[&first, drops])).len(), 1);
    }
    let apart = "protocol ipv6 prio 1 matchall skip_sw action pass";
    assert_eq!(keys(&ingress(&[apart, drops])).len(), 1);
    let line = "tc filter add dev eth0 parent 1: protocol ip flower hw_tc 1\n";
    fails(
        &format!("tc qdisc add dev eth0 root handle 1: prio\n{line}"),
        "`hw_tc` of packets that do not arrive: it chooses a receive queue of the device",
        "hw_tc",
        &["flowid 1:10"],
    );
    fails(
        &ingress(&["matchall skip_sw skip_hw action drop"]),
        "both `skip_sw` and `skip_hw`: nobody would apply the filter",
        "skip_hw",
        &[],
    );
}

#[test]
fn mqprio_of_the_device_has_one_queue() {
    let root = "tc qdisc add dev eth0 root handle 1: mqprio num_tc 3 map 2 2 1 0 queues 1@0 1@1 2@2";
    let plain = keys(&format!("{root} hw 0\n"));
    for hardware in
        ["", " hw 1", " hw 1 mode channel", " mode dcb shaper dcb", " hw 2 mode channel shaper bw_rlimit"]
    {
        let text = format!("{root}{hardware}\n");
        assert_eq!(keys(&text), plain, "{hardware}");
        assert!(said(&text).contains("by settings that are not in the script"), "{}", said(&text));
    }
    for (options, title, at) in [
        ("hw 0 mode dcb", "`mode` of `mqprio` is for hardware, which `hw 0` forgoes", "mode"),
        (
            "shaper bw_rlimit max_rate 1mbit",
            "`max_rate` of `mqprio`: the device shapes its queues, and a link has one",
            "max_rate",
        ),
        ("fp E P", "`fp` of `mqprio`: frames are not interrupted here", "fp"),
        ("mode fast", "`fast` is not a `mode` of `mqprio`", "fast"),
    ] {
        fails(&format!("{root} {options}\n"), title, at, &[]);
    }
}
