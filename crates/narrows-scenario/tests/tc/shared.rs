//! Actions that filters name by a number.

use crate::hooks::said;
use crate::{fails, keys};

const HOOK: &str = "tc qdisc add dev eth0 clsact\n";

fn ingress(before: &str, actions: &[&str]) -> String {
    let line = |(number, action): (usize, &&str)| {
        let port = 80 + number;
        format!(
            "tc filter add dev eth0 ingress protocol ip prio {} flower ip_proto tcp dst_port {port} {action}\n",
            number + 1
        )
    };
    format!("{before}{HOOK}{}", actions.iter().enumerate().map(line).collect::<String>())
}

#[test]
fn filters_have_the_actions_that_they_name() {
    for (kind, own) in [
        ("police", "police rate 1mbit burst 10k conform-exceed drop/continue"),
        ("police", "police index 7 rate 1mbit burst 10k"),
        ("gact", "drop"),
        ("gact", "gact drop"),
        ("nat", "nat ingress 10.0.0.1 10.0.0.2 continue"),
        ("skbmod", "skbmod set dmac 02:15:15:15:15:15"),
        ("sample", "sample rate 100 group 12"),
        ("vlan", "vlan push id 5"),
        ("mirred", "mirred egress redirect dev eth1"),
        ("gate", "gate sched-entry open 200000000ns sched-entry close 100ms"),
    ] {
        let numbered = if own.contains("index") { own.to_owned() } else { format!("{own} index 7") };
        let written = ingress("", &[&format!("action {own}")]);
        let named =
            ingress(&format!("tc actions add action {numbered}\n"), &[&format!("action {kind} index 7")]);
        assert_eq!(keys(&named), keys(&written), "{own}");
        assert!(said(&named).contains("with the index 7, for filters that name it"), "{}", said(&named));
    }
    // As an action among others, and of a filter.
    let drop = "tc actions add action skbedit mark 1 index 3 action drop index 7\n";
    let both = ingress(drop, &["action sample rate 100 group 1 action gact index 7"]);
    assert!(keys(&both)[0].contains("\"drop\""));
    let of_a_filter = ingress("", &["action drop index 7", "action gact index 7"]);
    assert_eq!(keys(&of_a_filter)[0].matches("\"drop\"").count(), 2);
    // What a second one says besides is not read by the kernel.
    let same = ingress("", &["action drop index 7", "action pass index 7"]);
    assert_eq!(keys(&same), keys(&of_a_filter));
    assert!(said(&same).contains("the filter has that one, as in the kernel"), "{}", said(&same));
}

#[test]
fn other_commands_about_actions() {
    let add = "tc actions add action drop index 7\n";
    let named = ingress(add, &["action gact index 7"]);
    for command in [
        "tc actions ls action gact",
        "tc -s actions list action gact",
        "tc actions get action gact index 7",
        "tc actions flush action gact",
        "tc actions del action gact index 7",
        "tc actions del action gact index 8",
        "tc actions",
        "tc actions add action police rate 1mbit burst 10k",
    ] {
        assert_eq!(keys(&format!("{named}{command}\n")), keys(&named), "{command}");
    }
    let pass = ingress(&format!("{add}tc actions replace action ok index 7\n"), &["action gact index 7"]);
    assert!(keys(&pass).is_empty());
    for gone in [
        "tc actions flush action gact\n",
        "tc actions delete action gact index 7\n",
        "tc -n other actions flush action police\n",
    ] {
        let text = ingress(&format!("{add}{gone}"), &["action gact index 7"]);
        if gone.contains("other") {
            assert_eq!(keys(&text), keys(&named));
        } else {
            fails(
                &text,
                "there is no action `gact` with the index 7",
                "index 7",
                &["tc actions add action gact"],
            );
        }
    }
}

#[test]
fn what_is_wrong_with_numbers() {
    let police = "tc actions add action police rate 1mbit burst 10k index 5\n";
    fails(
        &ingress(police, &["action police index 5", "action police index 5"]),
        "the policer 5 in a second filter: it is one bucket for both",
        "police index 5",
        &["the other filter", "match the packets of both"],
    );
    let own = "action police rate 1mbit burst 10k index 5";
    fails(
        &ingress("", &[own, own]),
        "the policer 5 in a second filter: it is one bucket for both",
        "police rate",
        &[],
    );
    fails(
        &ingress("", &["action police index 6"]),
        "there is no action `police` with the index 6",
        "index 6",
        &["before: tc actions add action police"],
    );
    fails(
        &format!("{police}{police}"),
        "there is an action `police` with the index 5 already",
        "police",
        &[],
    );
    let named = ingress(police, &["action police index 5"]);
    fails(
        &format!("{named}{}", police.replace("add", "change")),
        "a change of the action 5, which a filter has",
        "police rate",
        &["before the filter"],
    );
    // Each network namespace has its own.
    fails(
        &format!("tc -n ns1 actions add action drop index 7\n{}", ingress("", &["action gact index 7"])),
        "there is no action `gact` with the index 7",
        "index 7",
        &[],
    );
    fails("tc actions mend action drop\n", "`mend` is not a command of `tc actions`", "mend", &["add"]);
    fails("tc actions add action\n", "`add` lacks an action", "\n", &[]);
}
