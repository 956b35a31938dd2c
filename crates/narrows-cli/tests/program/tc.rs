//! tc's language: scripts that are explained, turned into scenarios, and run.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Scratch, direction, eventually, finish, narrows, run, sound, start};

/// Every example passes `tc check`, and what it prints runs in virtual time.
#[test]
fn examples_run_in_virtual_time() {
    let scratch = Scratch::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ended = finish(&mut narrows(["tc", "check", path.to_str().unwrap()])).expect(0);
        let (words, scenario) = ended.out.split_once("The same as a scenario:\n\n").unwrap();
        if path.ends_with("router.sh") || path.ends_with("dumbbell.sh") {
            continue;
        }
        assert!(words.contains("is the client's device"), "{ended}");
        let traffic: String = [46, 18, 10, 0]
            .into_iter()
            .map(|dscp| {
                format!(
                    "[[traffic]]\nname = \"d{dscp}\"\nfrom = \"client\"\nto = \"server\"\nconstant = \"2mbit\"\nlength = \"1000 bytes\"\ndscp = {dscp}\n"
                )
            })
            .collect();
        // As fast as the examples take their wires to be.
        let scenario = scenario.replace("[links.link.up]\n", "[links.link.up]\nrate = \"10mbit\"\n");
        let file = scratch.file("tc.toml");
        fs::write(&file, format!("duration = \"2s\"\n{scenario}\n{traffic}")).unwrap();
        let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
        sound(&report);
        let up = direction(&report, "link.up");
        assert!(up["delivered"]["packets"].as_u64().unwrap() > 100, "{}: {up:#}", path.display());
        seen += 1;
    }
    assert!(seen >= 6, "only {seen}");
}

/// More than two devices are a router's, in `tc check`, `sim` and `run`.
#[test]
fn a_script_of_more_devices_is_a_routers() {
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc/router.sh");
    let script = script.to_str().unwrap();
    let checked = finish(&mut narrows(["tc", "check", script])).expect(0);
    let (words, scenario) = checked.out.split_once("The same as a scenario:\n\n").unwrap();
    assert!(
        words.contains("wlan0 is the router's device: what leaves there goes to behind-wlan0"),
        "{words}"
    );
    let traffic = "[[traffic]]\nfrom = \"behind-eth1\"\nto = \"behind-eth0\"\nconstant = \"20mbit\"\nlength = \"1000 bytes\"\n\
        [[traffic]]\nfrom = \"behind-eth0\"\nto = \"behind-wlan0\"\nconstant = \"1mbit\"\n";
    let file = scratch.file("router.toml");
    fs::write(&file, format!("duration = \"5s\"\n{scenario}\n{traffic}")).unwrap();
    let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
    sound(&report);
    // The line carries 10 Mbit/s of frames, of 1014 bytes here.
    let rate = direction(&report, "eth0.up")["delivered"]["bytes"].as_f64().unwrap() * 8.0 / 5.0;
    assert!((9.5e6..10.1e6).contains(&rate), "{rate}");
    assert!(direction(&report, "wlan0.up")["delivered"]["packets"].as_u64().unwrap() > 300, "{report:#}");
    let shown = finish(&mut narrows(["check", "--tc", script, "--set", "eth1.up.delay=10ms"])).expect(0);
    assert!(shown.err.contains("eth1 is the router's device"), "{shown}");
    let refused = finish(&mut narrows(["check", "--tc", script, "--rate", "1mbit"])).expect(2);
    assert!(refused.err.contains("use --set LINK.KEY=VALUE"), "{refused}");
}

/// A script that joins network namespaces runs as that network, with its addresses, and filters by them.
#[test]
fn a_script_of_namespaces_is_their_network() {
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc/dumbbell.sh");
    let script = script.to_str().unwrap();
    let checked = finish(&mut narrows(["tc", "check", script])).expect(0);
    let (words, scenario) = checked.out.split_once("The same as a scenario:\n\n").unwrap();
    assert!(
        words.contains("left/line is a device of left: what leaves there goes to right, along line.up"),
        "{words}"
    );
    let traffic = |number: u32| {
        format!(
            "[[traffic]]\nfrom = \"snd{number}\"\nto = \"rcv{number}\"\nconstant = \"8mbit\"\nlength = \"986 bytes\"\n"
        )
    };
    let file = scratch.file("dumbbell.toml");
    fs::write(&file, format!("duration = \"5s\"\n{scenario}\n{}{}", traffic(1), traffic(2))).unwrap();
    let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
    sound(&report);
    // Each class has half of 10 Mbit/s of frames of 1000 bytes.
    for number in [1, 2] {
        let delivered =
            direction(&report, &format!("rcv{number}.down"))["delivered"]["packets"].as_u64().unwrap();
        assert!((3_000..3_250).contains(&delivered), "{number}: {delivered}");
    }
    assert!(scenario.contains("[hosts.snd1]\naddresses = [\"10.1.1.2/24\"]\n"), "{scenario}");
}

/// The same with programs: a ping has the delay of the receiver's device.
#[test]
#[ignore = "needs root, ping"]
fn programs_meet_the_network_of_a_script() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc/dumbbell.sh");
    let scratch = Scratch::new();
    let kept = scratch.file("report.json");
    let ended = finish(&mut run(
        ["--tc", script.to_str().unwrap(), "--json", kept.to_str().unwrap(), "--quiet"],
        "ping -c 3 -i 0.1 -W 20 10.2.2.2",
    ))
    .expect(0);
    assert!(ended.out.contains("bytes from 10.2.2.2: icmp_seq=3 ttl=62 "), "{ended}");
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    sound(&report);
    assert_eq!(direction(&report, "rcv2.up")["delivered"]["packets"], 3, "{report:#}");
}

/// What follows a `sleep` is on the timeline, of the scenario that `tc check` prints and of a run.
#[test]
fn a_script_goes_on_after_a_sleep() {
    let scratch = Scratch::new();
    let script = scratch.file("later.sh");
    fs::write(
        &script,
        "tc qdisc add dev eth0 root netem loss 100%\nfor loss in 50 0; do sleep 1; tc qdisc change dev eth0 root netem loss $loss%; done\n",
    )
    .unwrap();
    let script = script.to_str().unwrap();
    let ended = finish(&mut narrows(["tc", "check", script])).expect(0);
    let (words, scenario) = ended.out.split_once("The same as a scenario:\n\n").unwrap();
    let places = ["What follows happens 1s after", "netem", "What follows happens 2s after"]
        .map(|one| words.rfind(one));
    assert!(places.iter().all(Option::is_some) && places[0] < places[2], "{words}");
    let file = scratch.file("later.toml");
    let traffic =
        "[[traffic]]\nfrom = \"client\"\nto = \"server\"\nconstant = \"0.8mbit\"\nlength = \"1000 bytes\"\n";
    fs::write(&file, format!("duration = \"3s\"\n{scenario}\n{traffic}")).unwrap();
    let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
    sound(&report);
    // 100 packets a second: none of the first second, half of the next, all of the last.
    let delivered = direction(&report, "link.up")["delivered"]["packets"].as_u64().unwrap();
    assert!((125..=175).contains(&delivered), "{delivered}");
    let shown = finish(&mut narrows(["check", "--tc", script])).expect(0);
    assert!(shown.out.contains("at 2s: link.up.loss="), "{shown}");
    assert!(shown.err.contains("the script changes the link 2 times, last 2s after the start"), "{shown}");
    assert!(!shown.err.contains("ignored"), "{shown}");
}

/// the tree of Moe's figures 2.7 to 2.9: what D and E have not of their own they borrow, and A has all of it.
#[test]
fn the_report_shows_the_tree_and_who_borrowed() {
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc/borrowing.sh");
    let ended = finish(&mut narrows(["tc", "check", script.to_str().unwrap()])).expect(0);
    let (_, scenario) = ended.out.split_once("The same as a scenario:\n\n").unwrap();
    let source = |name: &str, keys: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nfrom = \"client\"\nto = \"server\"\nconstant = \"9mbit\"\nlength = \"1000 bytes\"\n{keys}\n"
        )
    };
    let (d, rest) = (source("d", "dscp = 46"), source("c", "dscp = 0"));
    let file = scratch.file("tree.toml");
    fs::write(&file, format!("duration = \"4s\"\n{scenario}\n{d}{rest}")).unwrap();
    let ended = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0);
    let report = ended.json();
    sound(&report);
    let up = direction(&report, "link.up");
    let shaped = up["shaped"].as_array().unwrap();
    let names: Vec<&str> = shaped.iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["1:1", "1:2", "1:3", "1:4", "1:5"]);
    let depths: Vec<u64> = shaped.iter().map(|class| class["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [0, 1, 1, 2, 2]);
    let of = |at: usize, key: &str| shaped[at][key].as_u64().unwrap();
    // D has 2 Mbit/s of its own and borrows 4 of B, which has none for E; C has 4 of its own.
    let bits = |at: usize| of(at, "sent_packets") as f64 * 8.0 * 1014.0 / 4.0;
    assert!((bits(0) / 10e6 - 1.0).abs() < 0.02, "{shaped:#?}");
    assert!((bits(3) / 6e6 - 1.0).abs() < 0.03, "{shaped:#?}");
    assert!((bits(2) / 4e6 - 1.0).abs() < 0.03, "{shaped:#?}");
    assert!(of(3, "borrowed_packets") > of(3, "lent_packets"), "{shaped:#?}");
    assert_eq!(of(3, "sent_packets"), of(3, "borrowed_packets") + of(3, "lent_packets"), "{shaped:#?}");
    assert_eq!(of(1, "sent_packets"), of(3, "sent_packets") + of(4, "sent_packets"), "{shaped:#?}");
    let ended = finish(&mut narrows(["sim", file.to_str().unwrap()])).expect(0);
    assert!(ended.out.contains("own rate") && ended.out.contains("      1:4"), "{ended}");
}

#[test]
fn a_text_of_several_commands_is_checked_and_errors_have_their_place() {
    let text = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5kb latency 50ms\n\
        tc qdisc add dev eth0 parent 1: netem delay 20ms";
    let ended = finish(&mut narrows(["tc", "check", text])).expect(0);
    assert!(ended.out.contains("become one link with two queues"), "{ended}");
    assert!(ended.out.contains("delay = \"20ms\""), "{ended}");
    let ended = finish(&mut narrows(["tc", "check", "--exact-netem", text])).expect(0);
    assert!(ended.out.contains("netem = \"delay 20ms\""), "{ended}");
    let scratch = Scratch::new();
    let file = scratch.file("wrong.sh");
    fs::write(&file, "# first\ntc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: classid 1:1 htb rat 1mbit\n").unwrap();
    let ended = finish(&mut narrows(["tc", "check", file.to_str().unwrap()])).expect(2);
    assert!(ended.err.contains("wrong.sh:3:49") && ended.err.contains("did you mean `rate`?"), "{ended}");
    assert!(ended.out.is_empty(), "{ended}");
}

const TOKEN_BUCKET: &str = "tc qdisc add dev eth0 root tbf rate 2mbit burst 3kb latency 50ms\n";

#[test]
fn a_script_is_checked() {
    let scratch = Scratch::new();
    let file = scratch.write("shape.sh", TOKEN_BUCKET);
    let file = file.to_str().unwrap();
    let ended = finish(&mut narrows(["check", "--delay", "5ms", "--tc", file])).expect(0);
    assert!(ended.out.contains("scheduler tbf: a token bucket, 2mbit, burst 3072 bytes"), "{ended}");
    assert!(ended.err.contains("eth0 is the client's device"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_is_shaped_by_a_script() {
    let scratch = Scratch::new();
    let file = scratch.write("shape.sh", TOKEN_BUCKET);
    let file = file.to_str().unwrap();
    let line = "ping -q -c 3 -i 0.02 $NARROWS_SERVER >&2";
    let report = finish(&mut run(["--delay", "5ms", "--tc", file, "--json", "-"], line)).expect(0).json();
    let class = &direction(&report, "link.up")["classes"][0];
    assert_eq!(class["sent_packets"], direction(&report, "link.up")["delivered"]["packets"], "{class:#}");
    assert!(direction(&report, "link.down")["classes"].as_array().unwrap().is_empty());
}

/// `class show` and `qdisc show` on a run, with counters that move, and what is changed while it runs.
#[test]
#[ignore = "needs namespaces, ping"]
fn trees_of_a_run_are_shown() {
    let scratch = Scratch::new();
    let file = scratch.file("hpd.sh");
    fs::write(
        &file,
        "tc qdisc add dev eth0 root handle 1: hpd dscp 46 class 1\n\
         tc class add dev eth0 parent 1: hpd num 1 qlen 50 ddp 1\n\
         tc class add dev eth0 parent 1: hpd num 2 default qlen 60 ddp 4 weight 256\n\
         tc qdisc add dev eth1 root handle 1: htb default 20\n\
         tc class add dev eth1 parent 1: classid 1:1 htb rate 10mbit\n\
         tc class add dev eth1 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit burst 3000\n\
         tc class add dev eth1 parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit prio 1\n\
         tc filter add dev eth1 parent 1: u32 match ip dport 80 0xffff flowid 1:10\n",
    )
    .unwrap();
    let mut started = start(
        run(
            ["--tc", file.to_str().unwrap(), "--json", "-"],
            "ping -q -c 4 -i 0.02 $NARROWS_SERVER >&2; echo ready >&2; read go",
        )
        .stdin(Stdio::piped()),
    );
    started.until_it_complains("ready");
    let name = started.id().to_string();
    let tc = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        finish(&mut narrows(["tc", "--run", &name].into_iter().chain(words)))
    };
    let shown = |line: &str| tc(line).expect(0).out;
    let first = "class hpd 1:1 root num 1 ewma ewma limit 0 qlen 50 ddp 1 gamma 512 weight 512 restart 25 cycle 2000 properr 8";
    let second = "class hpd 1:2 root num 2 default ewma ewma limit 0 qlen 60 ddp 4 gamma 512 weight 256 restart 25 cycle 2000 properr 8";
    assert_eq!(shown("class show dev client"), format!("{first}\n{second}\n"));
    let statistics = shown("-s class show dev client");
    let lines: Vec<&str> = statistics.lines().collect();
    assert_eq!((lines[0], lines[5]), (first, second), "{statistics}");
    assert_eq!(lines[1], " Sent 0 bytes 0 pkts (dropped 0, overlimits 0)", "{statistics}");
    assert_eq!(lines[2], " backlog 0b 0p requeues 0", "{statistics}");
    assert_eq!(lines[6], " Sent 336 bytes 4 pkts (dropped 0, overlimits 0)", "{statistics}");
    assert!(lines[8] == " hold time: 0" && lines[9].starts_with(" average delay: "), "{statistics}");
    assert_eq!(shown("qdisc show dev client"), "qdisc hpd 1: root refcnt 2 dscp 46 class 1\n");
    let qdisc = shown("-s qdisc show dev client");
    assert!(qdisc.contains("\n dscp 32-47:  2  2  2  2  2  2  2  2  2  2  2  2  2  2  1  2\n"), "{qdisc}");
    // The discipline of a tree says nothing that is NetEm's alone.
    let lines: Vec<&str> = qdisc.lines().collect();
    assert_eq!(lines[1], " Sent 336 bytes 4 pkt (dropped 0, overlimits 0 requeues 0)", "{qdisc}");
    assert_eq!(lines[2], " backlog 0b 0p requeues 0", "{qdisc}");
    assert!(lines[3].starts_with(" dscp  0-15:") && !qdisc.contains("delayed"), "{qdisc}");
    // What is changed while it runs is shown, and what is shown is understood.
    let assignment = "link.up.scheduler.1:2.ddp=8";
    finish(&mut narrows(["set", "--run", &name, assignment])).expect(0);
    let script = format!("{}{}", shown("qdisc show dev client"), shown("class show dev client"));
    assert!(script.contains("qlen 60 ddp 8"), "{script}");
    let script = script
        .lines()
        .map(|line| {
            let (object, rest) = line.split_once(' ').unwrap();
            format!("tc {object} add dev eth0 {rest}\n")
        })
        .collect::<String>();
    let ended = finish(&mut narrows(["tc", "check", &script])).expect(0);
    assert!(ended.out.contains("ddp = 8"), "{ended}");

    assert_eq!(shown("qdisc show dev server"), "qdisc htb 1: root refcnt 2 r2q 10 default 0x20\n");
    assert_eq!(
        shown("filter show dev server"),
        "filter parent 1: protocol ip pref 1 u32 match ip dport 80 0xffff classid 1:10\n"
    );
    let statistics = shown("-s class ls dev link.down");
    let lines: Vec<&str> = statistics.lines().collect();
    assert_eq!(lines[0], "class htb 1:1 root rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b");
    assert_eq!(lines[9], "class htb 1:20 parent 1:1 prio 1 rate 8Mbit ceil 10Mbit burst 1600b cburst 1600b");
    assert_eq!(lines[1], " Sent 336 bytes 4 pkts (dropped 0, overlimits 0)", "{statistics}");
    assert_eq!(lines[12], " lended: 4 borrowed: 0 giants: 0", "{statistics}");
    assert!(lines[13].starts_with(" tokens: ") && lines[13].contains(" ctokens: "), "{statistics}");
    // Classes, filters and code points change, and what was counted stays.
    tc("class change dev client classid 1:2 hpd num 2 default qlen 60 ddp 2").expect(0);
    tc("qdisc change dev client root hpd dscp 8 class 1").expect(0);
    let statistics = shown("-s class show dev client");
    assert!(statistics.contains("qlen 60 ddp 2"), "{statistics}");
    assert!(statistics.contains(" Sent 336 bytes 4 pkts"), "{statistics}");
    let qdisc = shown("-s qdisc show dev client");
    assert!(qdisc.contains("\n dscp  0-15:  2  2  2  2  2  2  2  2  1  2"), "{qdisc}");
    // Several commands at once, or none of them.
    let batch = scratch.file("more.tc");
    let more = "class add dev server parent 1:1 classid 1:30 htb rate 1mbit\n";
    fs::write(&batch, format!("{more}class del dev server classid 1:99\n")).unwrap();
    let refused = finish(&mut narrows(["tc", "--run", &name, "-b", batch.to_str().unwrap()])).expect(2);
    assert!(
        refused.err.contains("there is no class 1:99") && refused.err.contains("more.tc:2:1"),
        "{refused}"
    );
    assert!(!shown("class show dev server").contains("1:30"));
    let filter = "filter add dev server parent 1: protocol ip prio 2 flower ip_proto udp flowid 1:30\n";
    fs::write(&batch, format!("{more}{filter}")).unwrap();
    finish(&mut narrows(["tc", "--run", &name, "-b", batch.to_str().unwrap()])).expect(0);
    assert!(
        shown("filter show")
            .contains("dev link.down parent 1: protocol ip pref 2 flower ip_proto udp classid 1:30")
    );
    started.tell("go");
    sound(&started.wait().expect(0).json());
}

/// What waits, and what is in flight behind it: both queues of a link.
#[test]
#[ignore = "needs namespaces, ping"]
fn statistics_of_a_run_say_what_waits() {
    let netem = "delay 300ms rate 200kbit limit 40";
    let line = "ping -q -c 1000 -i 0.01 -s 972 $NARROWS_SERVER >&2 & echo ready >&2; read go; kill $!";
    let mut started = start(run(["--netem-up", netem, "--json", "-"], line).stdin(Stdio::piped()));
    started.until_it_complains("ready");
    let name = started.id().to_string();
    let shown =
        || finish(&mut narrows(["tc", "--run", &name, "-s", "qdisc", "show", "dev", "client"])).expect(0).out;
    eventually("packets wait", || {
        let text = shown();
        let number = |word: &str, unit: char| -> Option<u64> {
            let rest = text.split_once(word)?.1;
            rest.split_once(unit)?.0.parse().ok()
        };
        let bytes = number(" backlog ", 'b').unwrap();
        let packets = number(&format!(" backlog {bytes}b "), 'p').unwrap();
        assert_eq!(bytes, packets * 1000, "{text}");
        assert!(packets <= 40, "{text}");
        // 300 ms at 25 packets a second.
        packets > 10 && number(" in flight ", 'p').is_some_and(|flying| (5..=9).contains(&flying))
    });
    started.tell("go");
    sound(&started.wait().expect(0).json());
}

/// The example sends echo requests of IPv4 through a class of their own: real packets, by their type.
#[test]
#[ignore = "needs namespaces, ping"]
fn types_of_icmp_choose_classes_of_real_packets() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc/echoes.sh");
    let pings = "ping -q -c 3 -i 0.01 $NARROWS_SERVER && ping -q -c 3 -i 0.01 $NARROWS_SERVER6";
    let ended = finish(&mut run(["--quiet", "--tc", script.to_str().unwrap()], pings)).expect(0);
    // `rtt min/avg/max/mdev = 100.2/100.3/100.4/0.1 ms`
    let least: Vec<f64> = ended
        .out
        .lines()
        .filter_map(|line| line.split_once(" = ")?.1.split('/').next()?.parse().ok())
        .collect();
    let [four, six] = least[..] else { panic!("{ended}") };
    assert!(four >= 100.0 && six < 100.0, "{ended}");
}

/// `--env` sets variables that a script of tc or ipfw takes from its environment.
#[test]
fn variables_of_the_environment_are_given() {
    let scratch = Scratch::new();
    let tc = scratch.write("shape.sh", "tc qdisc add dev $DEV root netem delay ${D}ms\n");
    let ipfw =
        scratch.write("shape.ipfw", "ipfw pipe 1 config delay ${D}ms\nipfw add pipe 1 ip from any to any\n");
    for (tool, script, delay) in [("tc", &tc, "delay = \"20ms\""), ("ipfw", &ipfw, "delay = \"20ms\"")] {
        let script = script.to_str().unwrap();
        let given =
            finish(&mut narrows([tool, "check", script, "--env", "D=20", "--env", "DEV=eth7"])).expect(0);
        assert!(given.out.contains(delay), "{given}");
        let lacking = finish(&mut narrows([tool, "check", script, "--env", "DEV=eth7"])).expect(2);
        assert!(lacking.err.contains("or give it: --env D=VALUE"), "{lacking}");
        let wrong = finish(&mut narrows([tool, "check", script, "--env", "1D=20"])).expect(2);
        assert!(wrong.err.contains("\"1D=20\" is not a variable: write NAME=VALUE"), "{wrong}");
    }
}
