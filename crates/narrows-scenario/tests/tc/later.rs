//! `sleep` in scripts: what follows is on the timeline.

use narrows_scenario::Scenario;
use narrows_scenario::tc::Script;

use super::fails;

/// What happens when: seconds, and the assignments.
fn steps(text: &str) -> Vec<(f64, Vec<String>)> {
    let script = Script::parse(text, "x.sh").unwrap_or_else(|error| panic!("{error}"));
    let steps = script.steps(false).unwrap_or_else(|error| panic!("{error}"));
    // The scenario has the same steps, and can execute them.
    let made = script.scenario_text(false).unwrap();
    let scenario = Scenario::parse(&made, "made").unwrap_or_else(|error| panic!("{error}\n{made}"));
    let mut timeline = scenario.timeline();
    let read: Vec<_> = std::iter::from_fn(|| timeline.next()).collect();
    assert_eq!(read.len(), steps.len(), "{made}");
    let hosts = "[hosts.client]\n[hosts.server]\n[links.link]\nbetween = [\"client\", \"server\"]\n";
    let mut started = Scenario::parse(hosts, "plain").unwrap();
    started.set(&script.assignments(false).unwrap()).unwrap();
    for step in &steps {
        started.schedule(step.at, step.every, &step.assignments()).unwrap();
    }
    let mut timeline = started.timeline();
    assert_eq!(std::iter::from_fn(|| timeline.next()).collect::<Vec<_>>(), read, "{made}");
    steps.iter().map(|step| (step.at.nanos() as f64 / 1e9, step.assignments())).collect()
}

#[test]
fn what_follows_a_sleep_happens_later() {
    let text = "sleep 5\ntc qdisc add dev eth0 root netem delay 100ms loss 1%\nsleep 1.5 1m\n\
        tc qdisc change dev eth0 root netem delay 20ms\ntc -s qdisc show dev eth0\n\
        sudo sleep 2\ntc qdisc del dev eth0 root\nsleep 10\ntc qdisc show\n";
    assert_eq!(
        steps(text),
        [
            // As in the kernel, a change of netem resets what it does not name.
            (
                61.5,
                vec![
                    "link.up.delay=\"20ms\"".to_owned(),
                    "link.up.loss=\"0%\"".to_owned(),
                    "link.up.order=\"allow\"".to_owned(),
                ],
            ),
            (63.5, vec!["link.up.delay=\"0ms\"".to_owned()]),
        ]
    );
    let said = Script::parse(text, "x.sh").unwrap().explain().unwrap();
    let said: Vec<&str> = said.iter().flat_map(|one| &one.words).map(String::as_str).collect();
    for words in [
        "Nothing is configured yet, so it has no effect.",
        "What follows happens 61.5s after the start.",
        "What follows happens 63.5s after the start.",
        "What follows happens 73.5s after the start.",
    ] {
        assert!(said.contains(&words), "{words}: {said:?}");
    }
}

#[test]
fn loops_and_classes_change_over_time() {
    let all = steps(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
        for rate in 1 2 2 3; do sleep 2; tc class change dev eth0 parent 1: classid 1:10 htb rate ${rate}mbit; done\n",
    );
    // Nothing changes where the same rate is set again.
    assert_eq!(all.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2.0, 4.0, 8.0]);
    for ((_, set), rate) in all.iter().zip(["1mbit", "2mbit", "3mbit"]) {
        assert_eq!(set.len(), 1);
        assert!(set[0].starts_with("link.up.scheduler=") && set[0].contains(rate), "{set:?}");
    }
}

#[test]
fn devices_may_come_later() {
    let text = "tc qdisc add dev eth0 root netem delay 10ms\nsleep 1\n\
        tc qdisc add dev eth1 root tbf rate 1mbit burst 5kb latency 50ms\n\
        tc qdisc add dev eth1 ingress\n\
        tc filter add dev eth1 parent ffff: matchall police rate 2mbit burst 10k drop\nsleep 1\n\
        tc qdisc del dev eth1 ingress; tc qdisc del dev eth0 root\n";
    let all = steps(text);
    let paths = |set: &Vec<String>| -> Vec<String> {
        set.iter().map(|one| one.split('=').next().unwrap().to_owned()).collect()
    };
    let first = paths(&all[0].1);
    assert!(
        first.contains(&"link.down.scheduler".into()) && first.contains(&"link.up.policer".into()),
        "{all:?}"
    );
    assert_eq!(all[1].1, ["link.up.delay=\"0ms\"", "link.up.policer=\"none\"", "link.up.order=\"allow\""]);
}

#[test]
fn a_script_ends_where_it_sleeps_for_ever() {
    assert_eq!(
        steps("tc qdisc add dev eth0 root netem delay 1ms; sleep infinity; tc qdisc del dev eth0 root"),
        []
    );
    assert_eq!(steps("tc qdisc add dev eth0 root netem delay 1ms; sleep 0; tc qdisc del dev eth0 root"), []);
}

#[test]
fn wrong_times_and_changes_point_at_the_script() {
    let begin = "tc qdisc add dev eth0 root netem delay 1ms\n";
    fails(&format!("{begin}sleep 5x\n"), "found `5x`, expected a time such as 5, 0.5 or 2m", "5x", &[]);
    fails(&format!("{begin}sleep -1\n"), "`-1` is below zero", "-1", &[]);
    fails(
        &format!("{begin}sleep 1\niptables -t mangle -A POSTROUTING -o eth0 -j MARK --set-mark 1\n"),
        "a rule of the firewall after `sleep`",
        "iptables",
        &["put the rule before the `sleep`"],
    );
    // A command that fails does so where it stands.
    let text = format!("{begin}sleep 1\ntc class change dev eth0 parent 1: classid 1:10 htb rate 1mbit\n");
    let script = Script::parse(&text, "x.sh").unwrap();
    let shown = script.scenario_text(false).unwrap_err().to_string();
    assert!(shown.contains("x.sh:3:"), "{shown}");
}

/// A test between two configurations takes no time, and the last one counts: a note says so.
#[test]
fn programs_that_last_are_named() {
    let add = "tc qdisc add dev eth0 root netem delay 1ms\n";
    let change = "tc qdisc change dev eth0 root netem delay 2ms\n";
    let said = |text: &str| crate::hooks::said(text).contains("takes no time here");
    assert!(said(&format!("{add}sudo iperf3 -c a\n{change}")));
    assert!(said(&format!("{add}read -p next\ntc qdisc del dev eth0 root\n")));
    assert!(!said(&format!("{add}iperf3 -c a\n")));
    assert!(!said(&format!("ping -c 1 a\n{add}{change}")));
    assert!(!said(&format!("{add}ping -c 1 a\nsleep 5\n{change}")));
    assert!(said(&format!("{add}sleep 5\nping -c 1 a\n{change}")));
    let empty = |text: &str| Script::parse(text, "x.sh").unwrap().leaves_nothing(false).unwrap();
    assert!(empty(&format!("{add}tc qdisc del dev eth0 root\n")));
    assert!(!empty(add) && !empty("tc qdisc del dev eth0 root\n"));
    assert!(!empty(&format!("{add}sleep 5\ntc qdisc del dev eth0 root\n")));
}

/// A thousand changes of one class; and too much for all steps together.
#[test]
fn many_steps_are_bounded() {
    let text = |classes: usize, steps: usize| {
        let mut text = String::from("tc qdisc add dev eth0 root handle 1: htb default 1\n");
        for class in 1..=classes {
            text += &format!("tc class add dev eth0 parent 1: classid 1:{class:x} htb rate 1mbit\n");
        }
        for step in 0..steps {
            text += &format!(
                "sleep 0.1\ntc class change dev eth0 parent 1: classid 1:1 htb rate {}mbit\n",
                step % 7 + 2
            );
        }
        text
    };
    assert_eq!(steps(&text(1, 1_000)).len(), 1_000);
    let script = Script::parse(&text(300, 400), "x.sh").unwrap();
    let shown = script.steps(false).unwrap_err().to_string();
    assert!(shown.contains("too many changes of too many disciplines and classes after `sleep`"), "{shown}");
}

/// Scripts take away first what an earlier run has left.
#[test]
fn before_the_first_discipline_no_time_passes() {
    let text = "tc qdisc del dev eth0 root\nip link set dev eth0 down\nsleep 1\nip link set dev eth0 up\n\
        tc qdisc add dev eth0 root netem delay 1ms\n";
    assert_eq!(steps(text), []);
    let error =
        Script::parse(&text.replace("root\nip", "root\ntc qdisc add dev eth0 root pfifo\nip"), "x.sh")
            .unwrap_err();
    assert!(error.to_string().contains("`eth0` is taken down"), "{error}");
}

#[test]
fn a_loop_that_never_ends_repeats() {
    let text = "tc qdisc add dev eth0 root netem delay 20ms\nwhile true; do\nfor delay in 50 10; do\n\
        tc qdisc change dev eth0 root netem delay ${delay}ms\nsleep 5\ndone\nsleep 2\ndone\ntc qdisc del dev eth0 root\n";
    let script = Script::parse(text, "x.sh").unwrap();
    let steps = script.steps(false).unwrap();
    let found: Vec<_> = steps
        .iter()
        .map(|step| {
            let seconds = |time: narrows_core::Duration| time.nanos() / 1_000_000_000;
            (seconds(step.at), step.every.map(seconds), step.assignments().concat())
        })
        .collect();
    let of = |at, every, delay: &str| (at, every, format!("link.up.delay=\"{delay}ms\""));
    let mut first = of(5, None, "10");
    first.2 += "link.up.order=\"allow\"";
    assert_eq!(found, [first, of(12, None, "50"), of(17, Some(12), "10"), of(24, Some(12), "50")]);
    // It happens, for as long as one looks.
    let scenario = Scenario::parse(&script.scenario_text(false).unwrap(), "made").unwrap();
    let all: Vec<_> = scenario.timeline().take(6).map(|event| event.at.nanos() / 1_000_000_000).collect();
    assert_eq!(all, [5, 12, 17, 24, 29, 36]);
    let said = script.explain().unwrap();
    let said: Vec<&str> = said.iter().flat_map(|one| &one.words).map(String::as_str).collect();
    let words = "The loop never ends: what happens after 12s, until 24s after the start, happens every 12s from then on.";
    assert!(said.contains(&words), "{said:?}");
    // One that goes on, but never as before.
    let growing = "tc qdisc add dev eth0 root netem delay 20ms\nn=1\nwhile :; do\nsleep 1\nn=$((n+1))\n\
        tc qdisc change dev eth0 root netem delay ${n}ms\ndone\n";
    fails(
        growing,
        "a loop that waits in each turn, does not end, and does not repeat itself",
        ":; do",
        &["seq 1 100"],
    );
}

/// As in netem, packets with a shorter delay overtake those before them, but not where it has a rate.
#[test]
fn packets_with_a_new_delay_overtake_others() {
    let order = |change: &str| {
        let text = format!("tc qdisc add dev eth0 root netem delay 20ms\nsleep 1\n{change}\n");
        let sets: Vec<String> = steps(&text).into_iter().flat_map(|(_, set)| set).collect();
        sets.into_iter().filter(|one| one.contains(".order=")).collect::<Vec<_>>()
    };
    let allow = ["link.up.order=\"allow\""];
    let change = "tc qdisc change dev eth0 root netem delay";
    assert_eq!(order(&format!("{change} 5ms")), allow);
    assert_eq!(order(&format!("{change} 5ms; sleep 1; {change} 9ms")), allow);
    assert_eq!(order("tc qdisc del dev eth0 root"), allow);
    // A jitter says so itself, and what comes after it goes on.
    assert_eq!(order(&format!("{change} 5ms 1ms")), allow);
    assert_eq!(order(&format!("{change} 5ms 1ms; sleep 1; {change} 9ms")), [allow, allow].concat());
    for keeps in ["loss 1% delay 20ms", "delay 5ms rate 1mbit"] {
        assert_eq!(
            order(&format!("tc qdisc change dev eth0 root netem {keeps}")),
            Vec::<String>::new(),
            "{keeps}"
        );
    }
    let shaped = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5k limit 90k\n\
                  tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 20ms\nsleep 1\n\
                  tc qdisc change dev eth0 handle 10: parent 1:1 netem delay 2ms\n";
    assert!(steps(shaped)[0].1.contains(&allow[0].to_owned()));
}

#[test]
fn what_happens_is_explained_in_its_order() {
    let text = "for i in 1 2; do\necho $i\ntc qdisc add dev eth0 root netem delay 5ms\nsleep 1\n\
                tc qdisc del dev eth0 root\nsleep 2\ndone\n";
    let lines: Vec<usize> =
        Script::parse(text, "x.sh").unwrap().explain().unwrap().iter().map(|one| one.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 2, 3, 4, 5, 6]);
}
