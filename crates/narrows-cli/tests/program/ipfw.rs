//! ipfw's language: scripts explained, loaded, changed while they run, replayed.

use crate::common::{NARROWS, Scratch, finish, narrows, run, scenarios};

#[test]
fn every_script_is_explained_and_equals_a_scenario_that_is_read() {
    let folder = scenarios().join("ipfw");
    let mut scripts: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 19);
    let names: Vec<_> = scripts.iter().map(|path| path.to_str().unwrap()).collect();
    let done = finish(&mut narrows(["ipfw", "check"].into_iter().chain(names)));
    assert_eq!(done.code(), 0, "{done}");
    assert!(done.out.contains("Rule 100: packets going out go through pipe 1."), "{done}");
    // What is printed after each script is a scenario by itself.
    let adsl = folder.join("adsl.conf");
    let done = finish(&mut narrows(["ipfw", "check", adsl.to_str().unwrap()]));
    let (_, scenario) = done.out.split_once("The same as a scenario:\n\n").unwrap();
    let scratch = Scratch::new();
    let file = scratch.write("adsl.toml", scenario);
    let done = finish(&mut narrows(["check", file.to_str().unwrap()]));
    assert_eq!(done.code(), 0, "{done}");
    assert!(done.out.contains("256kbit"), "{done}");
}

#[test]
fn a_script_with_a_bad_line_loads_nothing_and_says_where() {
    let scratch = Scratch::new();
    let script =
        scratch.write("bad.conf", "pipe 1 config bw 1Mbit/s\nadd 100 pipe 1 ip from any to any uid root\n");
    for arguments in [vec!["ipfw", "check", script.to_str().unwrap()], {
        vec!["run", "--ipfw", script.to_str().unwrap(), "--", "echo", "started"]
    }] {
        let done = finish(&mut narrows(arguments));
        assert_ne!(done.code(), 0, "{done}");
        assert!(done.err.contains("bad.conf:2:35") && done.err.contains("uid"), "{done}");
        assert!(!done.out.contains("started"), "{done}");
    }
}

/// Rules of another machine's interfaces: whose they are is said, guessed with a remark, or the script is refused.
#[test]
fn interfaces_of_scripts_are_given_to_hosts() {
    let scratch = Scratch::new();
    let file = |name: &str, rule: &str| {
        let text = format!("pipe 1 config bw 1Mbit/s\nadd 100 pipe 1 ip from any to any {rule}\n");
        scratch.write(name, &text).to_str().unwrap().to_owned()
    };
    let one = file("one.conf", "recv em0");
    let done = finish(&mut narrows(["check", "--ipfw", &one])).expect(0);
    assert!(done.err.contains("one.conf:2: em0 is assumed to be the client's interface"), "{done}");
    let done = finish(&mut narrows(["ipfw", "check", &one, "--interface", "em0=server"])).expect(0);
    assert!(done.out.contains("pipe 1 ip from any to any out\""), "{done}");
    let two = file("two.conf", "in via em0\nadd 200 pipe 1 ip from any to any out via em1");
    let done = finish(&mut narrows(["run", "--ipfw", &two, "--", "echo", "started"])).expect(2);
    assert!(done.err.contains("two.conf:2:") && done.err.contains("no packet can reach a pipe"), "{done}");
    let done = finish(&mut narrows(["check", "--ipfw", &two, "--interface", "em0"])).expect(2);
    assert!(done.err.contains("write em0=client, em0=server or em0=neither"), "{done}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let script = scenarios().join("ipfw/adsl.conf");
    let script = script.to_str().unwrap();
    for (arguments, said) in [
        (vec!["check", "--ipfw", script, "--rate", "1mbit"], "the pipes define the link"),
        (vec!["check", "--client", "80"], "--in, --out or both"),
        (vec!["check", "--client", "80", "--in", "fast"], "fast"),
        (vec!["check", "--client", "80", "--server", "80", "--in", "1mbit"], "cannot be used with"),
        (vec!["ipfw", "check", "no-such.conf"], "no-such.conf"),
    ] {
        let done = finish(&mut narrows(arguments));
        assert_ne!(done.code(), 0, "{done}");
        assert!(done.err.contains(said), "{done}");
    }
}

#[test]
fn the_short_form_sends_only_those_ports_through_links() {
    let done = finish(&mut narrows([
        "check",
        "--client",
        "22,80",
        "--in",
        "bw 6Mbit/s delay 10ms",
        "--out",
        "256kbit",
    ]));
    assert_eq!(done.code(), 0, "{done}");
    assert!(
        done.out.contains("6mbit") && done.out.contains("256kbit") && done.out.contains("22,80"),
        "{done}"
    );
}

#[test]
#[ignore = "needs namespaces, ping"]
fn the_short_form_leaves_other_packets_alone() {
    // The ping crosses no pipe.
    let flags = ["--server", "5201", "--in", "6mbit", "--out", "bw 256Kbit/s delay 300ms"];
    let done = finish(&mut run(flags, "ping -c 1 -W 5 $NARROWS_SERVER"));
    assert_eq!(done.code(), 0, "{done}");
    let millis: f64 = done.out.split("time=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(millis < 300.0, "{done}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn commands_change_a_run_and_its_log_replays() {
    let scratch = Scratch::new();
    let (script, log) = (
        scratch.write("two.conf", "pipe 1 config bw 10Mbit/s delay 5ms\nadd pipe 1 ip from any to any\n"),
        scratch.file("run.log"),
    );
    let ipfw = format!("{NARROWS} ipfw");
    let lines = [
        format!("{ipfw} list"),
        "ping -q -c 2 -i 0.05 $NARROWS_SERVER".into(),
        format!("{ipfw} -a list"),
        format!("{ipfw} pipe 7 config delay 40ms mask dst-ip 0xff"),
        format!("{ipfw} add 50 pipe 7 icmp from any to server out"),
        "ping -q -c 1 $NARROWS_SERVER".into(),
        format!("{ipfw} pipe show 7"),
        format!("{ipfw} table 1 add 10.0.0.0/8 5"),
        format!("{ipfw} table 1 list"),
        format!("{NARROWS} set net.7.delay=60ms"),
        "ping -q -c 1 $NARROWS_SERVER".into(),
        format!("{ipfw} delete 50"),
        format!("{ipfw} sysctl net.inet.ip.fw.one_pass=0"),
        format!("{ipfw} sysctl net.inet.ip.fw.one_pass"),
        format!("{ipfw} sysctl net.inet.ip.dummynet"),
        // Nothing of a text with a mistake is done.
        format!(
            "printf 'delete 100\\nadd 200 dney ip from any to any\\n' > {0}; {ipfw} {0}",
            scratch.file("wrong").display()
        ),
        format!("{ipfw} show"),
    ];
    let line = lines.join("; ");
    let flags = ["--ipfw", script.to_str().unwrap(), "--record", log.to_str().unwrap(), "-q"];
    let done = finish(&mut run(flags, &line));
    assert_eq!(done.code(), 0, "{done}");
    let said = |text: &str| assert!(done.out.contains(text), "`{text}` in {done}");
    said("00100 pipe 1 ip from any to any\n65535 allow ip from any to any");
    // Two requests and two answers.
    said("00100 4 336 pipe 1 ip from any to any");
    said("   40 ms burst 0");
    said("0.0.0.2/0        1       84");
    said("10.0.0.0/8 5");
    said(
        "net.inet.ip.fw.one_pass: 0\nnet.inet.ip.dummynet.io_fast: no effect in narrows: every packet goes through its pipe\n",
    );
    let least: Vec<f64> = done
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next()?.parse().ok())
        .collect();
    let [first, second, third] = least[..] else { panic!("{done}") };
    assert!(first >= 10.0 && second >= 45.0 && third >= 65.0, "{least:?}");
    assert!(done.err.contains("dney") && done.err.contains(":2:9"), "{done}");
    assert!(done.out.trim_end().lines().rev().nth(1).unwrap().starts_with("00100 "), "{done}");

    let replayed = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()]));
    assert_eq!(replayed.code(), 0, "{replayed}");
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

/// The same script again and again, as one who changes it would load it.
#[test]
#[ignore = "needs namespaces, ping"]
fn thousands_of_commands_in_one_request_change_a_run_and_its_log_replays() {
    let scratch = Scratch::new();
    let customer = |n: u32| {
        let source = format!("10.9.{}.{}", n >> 8, n & 255);
        format!("pipe {n} config bw {n}Mbit/s delay 5ms\nadd {n} pipe {n} ip from {source} to any out\n")
    };
    let script: String = (1..=1_500).map(customer).collect();
    let (start, many, log) = (
        scratch.write("one.conf", "pipe 2000 config delay 5ms\nadd 60000 pipe 2000 ip from any to any\n"),
        scratch.write("many.conf", &script),
        scratch.file("run.log"),
    );
    let load = format!("{NARROWS} ipfw {}", many.display());
    let ping = "ping -q -c 2 -i 0.05 $NARROWS_SERVER".to_string();
    let list = format!("{NARROWS} ipfw list | wc -l");
    let line = [load.clone(), ping.clone(), load, list, ping].join("; ");
    let flags = ["--ipfw", start.to_str().unwrap(), "--record", log.to_str().unwrap(), "-q"];
    let done = finish(&mut run(flags, &line));
    assert_eq!(done.code(), 0, "{done}");
    assert!(done.out.lines().any(|line| line.trim() == "3002"), "{done}");
    assert_eq!(done.out.matches("2 received").count(), 2, "{done}");
    let replayed = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()]));
    assert_eq!(replayed.code(), 0, "{replayed}");
}

/// Real packets meet conditions on their headers and a table of interfaces, which changes during the run; the log knows
/// enough of them for a replay.
#[test]
#[ignore = "needs namespaces, ping, python3"]
fn tables_of_interfaces_and_header_fields_meet_real_packets() {
    let scratch = Scratch::new();
    let script = scratch.write(
        "interfaces.conf",
        "table ports create type iface\ntable ports add em0 1 em1 2\npipe 1 config delay 5ms\npipe 2 config delay 20ms\n\
         add 50 count tcp from me to any setup tcpoptions mss,window tcpmss 1460 tcpwin 1-65535 frag df\n\
         add 100 pipe tablearg ip4 from any to any recv table(ports)\n",
    );
    let log = scratch.file("run.log");
    let ipfw = format!("{NARROWS} ipfw");
    let connect = "import os,socket; socket.socket().connect_ex((os.environ[\"NARROWS_SERVER\"],9))";
    let lines = [
        "ping -q -c 2 -i 0.05 $NARROWS_SERVER".into(),
        format!("python3 -c '{connect}'"),
        format!("{ipfw} show 50"),
        format!("{ipfw} table ports list"),
        format!("{ipfw} table ports delete em1"),
        "ping -q -c 2 -i 0.05 $NARROWS_SERVER".into(),
        format!("{ipfw} table ports list; {ipfw} show 100"),
    ];
    let interfaces = ["--interface", "em0=client", "--interface", "em1=server"];
    let flags = ["--ipfw", script.to_str().unwrap(), "--record", log.to_str().unwrap(), "-q"];
    let done = finish(&mut run(flags.into_iter().chain(interfaces), &lines.join("; ")));
    assert_eq!(done.code(), 0, "{done}");
    assert!(done.out.contains("00050 1 60 count tcp from me to any setup tcpoptions mss,window"), "{done}");
    assert!(done.out.contains("em0 1\nem1 2\n"), "{done}");
    // Requests and answers and the handshake's two; then only the answers, which em0 receives.
    assert!(done.out.ends_with(" pipe tablearg ip4 from any to any recv table(ports)\n"), "{done}");
    assert!(done.out.contains("em0 1\n00100 8 "), "{done}");
    let rtt = |line: &str| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next()?.parse().ok();
    let [both, one] = done.out.lines().filter_map(rtt).collect::<Vec<f64>>()[..] else { panic!("{done}") };
    assert!(both >= 25.0 && one >= 5.0, "{done}");

    let replayed = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()]));
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

/// Rules of one link mark packets, those of the next one look at the marks; a table of flows that comes during the run sets
/// others.
#[test]
#[ignore = "needs namespaces, ping"]
fn marks_choose_the_pipes_of_the_next_link_and_the_log_replays() {
    const SCENARIO: &str = r#"
[hosts.client]
[hosts.server]
[routers.middle]
[links.first]
between = ["client", "middle"]
rules = ["100 setmark 0x11 ip from any to any dscp ef out", "200 setmark 0xf2 ip from any to any dscp af11 out"]
[links.second]
between = ["middle", "server"]
rules = [
    "100 pipe 1 ip from any to any mark 1:0xf out",
    "200 pipe 2 ip from any to any mark 0xf2 out",
    "300 deny ip from any to any not mark 0 out",
]
pipes.1 = { delay = "40ms" }
pipes.2 = { delay = "80ms" }
"#;
    let scratch = Scratch::new();
    let (file, log) = (scratch.write("marks.toml", SCENARIO), scratch.file("run.log"));
    let (file, log) = (file.to_str().unwrap(), log.to_str().unwrap());
    let ping = |tos: &str| format!("ping -n -q -c 3 -i 0.05 -W 5 -Q {tos} $NARROWS_SERVER >&2");
    let ipfw = format!("{NARROWS} ipfw --link first");
    let lines = [
        // EF, AF11, and neither.
        ping("0xb8"),
        ping("0x28"),
        ping("0"),
        // From now on, all of this flow are marked; and then by a table, before the code point counts.
        format!("{ipfw} add 300 setmark 0x21 icmp from any to any out"),
        ping("0"),
        format!("{ipfw} table 1 create type flow:proto,dst-ip"),
        format!("{ipfw} table 1 add icmp,$NARROWS_SERVER 0xf2"),
        format!("{ipfw} delete 300"),
        format!("{ipfw} add 300 setmark tablearg ip from any to any flow table\\(1\\) out"),
        ping("0xb8"),
        // A mark that nothing is said about.
        format!("{ipfw} add 400 setmark 0x30 icmp from any to any out"),
        format!("! {}", ping("0").replace("-W 5", "-W 1")),
        format!("{ipfw} list >&2"),
    ];
    let line = lines.join(" && ");
    let arguments = ["run", file, "--record", log, "--json", "-", "--", "sh", "-c", &line];
    let done = finish(&mut narrows(arguments)).expect(0);
    let least: Vec<f64> = done
        .err
        .lines()
        .filter_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next()?.parse().ok())
        .collect();
    let [urgent, bulk, _, marked, table] = least[..] else { panic!("{done}") };
    assert!(urgent.min(marked) >= 40.0 && bulk.min(table) >= 80.0, "{least:?}");
    let report = done.json();
    let rules = report["rules"].as_array().unwrap();
    let second = rules.iter().find(|rules| rules["name"] == "second").unwrap();
    let matched: Vec<_> = second["rules"].as_array().unwrap().iter().map(|rule| &rule["packets"]).collect();
    assert_eq!(matched[..3], [6, 6, 3], "{second:#}");
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}
