//! Scripts of a shell with ipfw commands: what they mean, and where their problems are.

use narrows_core::queue::Bound;
use narrows_scenario::ipfw::{Script, rule_text};
use narrows_scenario::{Interfaces, Scenario};

fn script(text: &str) -> Script {
    Script::at_interfaces(text, "script", &Interfaces::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn rules(text: &str) -> Vec<String> {
    script(text).rules.iter().map(rule_text).collect()
}

/// The scenario of a script, without its hosts.
fn toml(text: &str) -> String {
    let script = script(text);
    script.scenario("script").unwrap_or_else(|error| panic!("{error}"));
    let toml = script.to_toml("net", ["client", "server"]);
    toml.split_once("rules = ").map(|(_, rest)| rest.to_owned()).expect("it has rules")
}

fn remarks(text: &str) -> String {
    script(text).lines.iter().map(|line| line.remarks.join("\n") + "\n").collect()
}

fn error(text: &str) -> String {
    Script::at_interfaces(text, "script", &Interfaces::default()).expect_err(text).to_string()
}

#[test]
fn shell_syntax_and_lists_of_rules_mean_the_same() {
    let listed = [
        "100 pipe 1 tcp from { 10.0.0.1 or 10.0.0.2 } to any dst-port 80 in // web",
        "200 deny ip from any to any",
    ];
    for text in [
        "pipe 1 config bw 1Mbit/s\nadd pipe 1 tcp from { 10.0.0.1 or 10.0.0.2 } to any 80 in // web\nadd deny ip from any to any",
        "ipfw pipe 1 config bw 1Mbit/s; ipfw add pipe 1 tcp from \\{ 10.0.0.1 or 10.0.0.2 \\} to any 80 in // web\nipfw add deny ip from any to any",
        "fw='/sbin/ipfw -q'\n${fw} pipe 1 config bw 1Mbit/s &&\\\n $fw add pipe 1 tcp from \"{\" 10.0.0.1 or 10.0.0.2 } to any 80 in // web\n$fw add deny ip from any to any >/dev/null 2>&1",
        "hosts='10.0.0.1 or 10.0.0.2'; cmd=\"ipfw add\"\nsudo dnctl pipe 1 config \\\n    bw 1Mbit/s # the link\n$cmd pipe 1 tcp from { $hosts } to any\n   80 in // web\n\t$cmd deny ip from any to any\nexit 0\n$cmd count ip from any to any",
        "#!/bin/sh\nset -e\n[ -x /sbin/ipfw ] || exit 1\n[ -r x ] || { echo no; exit 1; } >&2\nif ! kldstat -q -m dummynet; then\n\tkldload dummynet\nfi; if [ $(id -u) -ne 0 ]; then exit 1; fi\nipfw \"pipe 1 config bw 1Mbit/s\"\nipfw 'add pipe 1 tcp from {10.0.0.1 or 10.0.0.2} to any 80 in // web'\nipfw add deny ip from any to any | cat\nkldstat -q || kldload dummynet",
        "$ sudo -n ipfw pipe 1 config bw 1Mbit/s\n$ ipfw add pipe 1 tcp from { 10.0.0.1 or 10.0.0.2 } to any 80 in // web\n$ ipfw add deny ip from any to any",
        "# ipfw pipe 1 config bw 1Mbit/s\n # ipfw add pipe 1 tcp from { 10.0.0.1 or 10.0.0.2 } to any 80 in // web\n# a remark\n# ipfw add deny ip from any to any",
        "@ipfw pipe 1 config bw 1Mbit/s\r\n@echo ## web ##\r\n@ipfw add pipe 1 tcp from { 10.0.0.1 or 10.0.0.2 } to any 80 in // web\r\nipfw add deny ip from any to any\r\npause\r\n",
    ] {
        assert_eq!(rules(text), listed, "{text}");
    }
}

#[test]
fn problems_point_at_the_users_own_words() {
    for (text, column, said) in [
        (
            "ipfw add allow ip from $nobody to any",
            "1:24",
            "`$nobody` is a variable of a shell that is not set",
        ),
        (
            "x=`hostname`\nipfw add allow ip from $x to any",
            "2:24",
            "`$x` has the output of a command as its value",
        ),
        ("ipfw pipe 1 config bw 1Mbit/s; ipfw add alow ip from any to any", "1:41", "did you mean `allow`?"),
        ("a=alow\nipfw add $a ip from any to any", "2:10", "found `alow`, expected an action"),
        ("ipfw add allow ip from 'any to any", "1:24", "a quote that is not closed"),
        (
            "for i in $(jls); do\n  ipfw add $i allow ip from any to any\ndone",
            "1:10",
            "`$(jls)` is a command",
        ),
        (
            "ipfw add 1 allow in\nif [ -f \"$x\" ]; then\n ipfw add 2 deny in\nfi",
            "2:4",
            "a condition that depends on more than the script",
        ),
        ("if true; then", "1:1", "`if` without `fi`"),
        ("[ -f x ] && ipfw add 1 allow in", "1:1", "a condition that depends on more than the script"),
        ("kldstat -q && exit 1; ipfw add 1 allow in", "1:15", "depends on the success or failure of another"),
        ("[ -r x ] || { ipfw add 1 allow in; }", "1:1", "a condition that depends on more than the script"),
        (
            "if [ -r x ]; then\n   ipfw add 1 allow in\nfi",
            "1:4",
            "a condition that depends on more than the script",
        ),
        ("if [ a = a ]; then\n   in\nfi", "2:4", "expected a command"),
        ("while true; do ipfw add 1 allow in; done", "1:7", "a loop that does not end within 65536 turns"),
        ("f() {\n  ipfw add 1 alow in\n}\nf", "2:14", "did you mean `allow`?"),
        ("ipfw add 1 allow in\nx=5\n  established", "3:3", "expected a command"),
        ("fi fi", "1:1", "`fi` without what it belongs to"),
        ("ipfw list 1 || ipfw add 1 allow in", "1:16", "depends on the success or failure of another"),
        ("echo 'dummynet in all pip 1' | sudo pfctl -f -", "1:1", "`pip` in a rule of pf is not understood"),
        ("echo 'no dummynet in all pipe 1' | pfctl -f -", "1:1", "`no dummynet` with a pipe"),
        ("echo 'dummynet in all user 501 pipe 1' | pfctl -f -", "1:1", "a packet does not say whose it is"),
        ("sudo pfctl -f rules.pf", "1:15", "the rules of pf in `rules.pf` are not read"),
        ("echo 'block all' | sudo pfctl -f -", "1:1", "`block` of pf is not understood"),
        ("ethtol -K eth0 tso off; pip 1 confg bw 1Mbit/s", "1:31", "did you mean `config`?"),
        (". /etc/rc.subr", "1:1", "narrows reads one script"),
        ("ifconfig em0 mtu 500", "1:1", "a link of a scenario has `mtu`"),
        ("ipfww add 1 allow in", "1:1", "expected a command"),
        ("set enbale 5", "1:5", "found `enbale`"),
        (
            "ipfw pipe 1 config bw 1Mbit/s\nipfw add pipe 1 in\nsleep 1\nipfw table x destroy",
            "4:1",
            "there is no table x",
        ),
        ("ipfw pipe 1 config bw 1Mbit/s\nsleep x", "2:7", "a time such as 5, 0.5 or 2m"),
    ] {
        let error = error(text);
        assert!(error.contains(said) && error.contains(&format!("script:{column}\n")), "{text}\n{error}");
        assert!(!error.contains("as a scenario"), "{error}");
    }
}

#[test]
fn a_pipe_with_a_type_has_a_scheduler_for_its_queues() {
    let text = "pipe 10000 config bw 10Mbit/s queue 100 delay 5 type fq_codel target 0ms quantum 300 limit 50000 noecn\n\
                queue 7 config pipe 10000 weight 50\nadd queue 7 out";
    assert_eq!(
        toml(text),
        "[\n    \"100 queue 7 ip from any to any out\",\n]\n\n\
         [links.net.pipes.10000]\nrate = \"10mbit\"\ndelay = \"5ms\"\nqueue = \"100 packets\"\n\
         scheduler = { type = \"fq_codel\", target = \"1us\", quantum = \"300 bytes\", bound = \"20480 packets\", ecn = false }\n\n\
         [links.net.queues.7]\npipe = 10000\nqueue = \"50 packets\"\n"
            .replace("queue = \"50 packets\"\n", "")
    );
    let meaning = &script(text).lines[0].meaning;
    assert!(meaning.contains("Pipe 10000 is a link: 10mbit a second"), "{meaning}");
    assert!(meaning.contains("Scheduler 10000 shares pipe 10000 among its queues: FQ-CoDel"), "{meaning}");
    assert!(
        remarks(text).contains("`50000` is 20480: ipfw keeps it between 1 and 20480"),
        "{}",
        remarks(text)
    );
    // Packets that a rule sends to the pipe itself do not pass the scheduler.
    let direct = "pipe 1 config bw 1Mbit/s type fq_codel\nadd pipe 1 out";
    assert!(!toml(direct).contains("scheduler"), "{}", toml(direct));
    assert!(remarks(direct).contains("no queue uses this scheduler"), "{}", remarks(direct));
}

/// The scenario after all steps of its timeline.
fn at_the_end(text: &str) -> Scenario {
    let mut scenario = script(text).scenario("script").unwrap_or_else(|error| panic!("{error}"));
    for event in scenario.timeline() {
        scenario.change_at(event.at, &event.changes).unwrap_or_else(|error| panic!("{error}"));
    }
    scenario
}

#[test]
fn sleep_is_a_time_of_the_timeline() {
    let text = "sleep 5\nipfw add pipe 3 in\nipfw add pipe 3 out\n\
                ipfw pipe 3 config bw 8Mbit/s delay 20 plr 0.1\nsleep 1.5s\n/sbin/ipfw -q pipe 3 config bw 4Mbit/s delay 20\n\
                sleep 1m; ipfw pipe 3 config bw 4Mbit/s delay 30 queue 9\nsleep 1";
    let toml = toml(text);
    let (start, timeline) = toml.split_once("\n[[timeline]]").expect("there is a timeline");
    assert_eq!(
        timeline,
        "\nat = \"1.5s\"\nipfw.net = [\"pipe 3 config bw 4Mbit/s delay 20\"]\n\n\
         [[timeline]]\nat = \"61.5s\"\nipfw.net = [\"pipe 3 config bw 4Mbit/s delay 30 queue 9\"]\n"
    );
    assert!(start.contains("rate = \"8mbit\"\ndelay = \"20ms\""), "{start}");
    let scenario = at_the_end(text);
    let direction = &scenario.links[0].rules().expect("rules").pipes[&3].direction;
    assert_eq!(
        (direction.rate.to_string(), direction.queue.bound),
        ("4mbit".into(), Some(Bound::Packets(9)))
    );
    assert!(direction.loss.ingress.is_none(), "what is not said returns to its default");
    let said = remarks(text);
    assert!(said.contains("1.5s after the start") && said.contains("61.5s after the start"), "{said}");
    // Scripts clean up behind them, twice.
    for end in
        ["ipfw delete 100 200 300; ipfw pipe 3 delete; ipfw pipe 3 delete", "ipfw -q flush\ndnctl -q flush"]
    {
        let ended = at_the_end(&format!("{text}\n{end}\nipfw list"));
        let rules = ended.links[0].rules().expect("rules");
        assert!(rules.rules.is_empty() && rules.pipes.is_empty(), "{end}");
    }
}

/// As FreeBSD 14 prints them, and older versions.
#[test]
fn what_ipfw_prints_is_read_as_what_makes_it() {
    let printed = "# ipfw show\n\
        00100   12    4711 pipe 1 ip from any to any out // up\n\
        60003   26    5798 queue 2 ip from any to any in via igb0\n\
        65535 1000 1000000 allow ip from any to any\n\
        # ipfw pipe show\n\
        00001:  10.500 Mbit/s   20 ms burst 0 \n\
        q131073  30 sl. 0 flows (1 buckets) sched 65537 weight 0 lmax 0 pri 0 droptail\n\
        \x20sched 65537 type FIFO flags 0x1 256 buckets 0 active\n\
        \x20   mask:  0x00 0x00000000/0x0000 -> 0xffffffff/0x0000\n\
        BKT Prot ___Source IP/port____ ____Dest. IP/port____ Tot_pkt/bytes Pkt/Byte Drp\n\
        226 ip      10.2.162.240/0             0.0.0.0/0        3      122  0    0   0\n\
        00003: 512.000 Kbit/s    0 ms burst 0 \n\
        # ipfw queue show\n\
        q00002  50 sl. 0 flows (1 buckets) sched 3 weight 7 lmax 0 pri 0 droptail\n\
        # ipfw sched show\n\
        00003: 512.000 Kbit/s    0 ms burst 0 \n\
        \x20sched 3 type WF2Q+ flags 0x0 0 buckets 0 active\n";
    let typed = "ipfw pipe 1 config bw 10500Kbit/s delay 20 queue 30 mask dst-ip 0xffffffff\n\
        ipfw pipe 3 config bw 512Kbit/s\nipfw sched 3 config type wf2q+\nipfw queue 2 config sched 3 weight 7 queue 50\n\
        ipfw add 100 pipe 1 ip from any to any out // up\nipfw add 60003 queue 2 ip from any to any in via igb0\n";
    assert_eq!(toml(printed), toml(typed));
    let old = "00001: 640.000 Kbit/s   64 ms   30 sl. 1 queues (1 buckets) droptail\n00002: unlimited    0 ms  100 KB 1 queues (1 buckets)\n00100 pipe 1 ip from any to any out\n00200 pipe 2 ip from any to any in\n";
    assert_eq!(
        toml(old),
        toml(
            "pipe 1 config bw 640Kbit/s delay 64 queue 30\npipe 2 config queue 100KBytes\nadd 100 pipe 1 ip from any to any out\nadd 200 pipe 2 ip from any to any in\n"
        )
    );
    // What is denied in the end is denied here, too.
    assert_eq!(rules("00010 allow udp from any to any\n65535 deny ip from any to any\n").len(), 2);
    // Commands of a file of rules are none of what is printed.
    assert_eq!(rules("add 10 allow udp from any to any\n00020 add deny ip from any to any\n").len(), 2);
    assert!(
        error("add 10 allow udp from any to any\n00020 deny ip from any to any\n").contains("script:2:1")
    );
    // A rule that is not understood is not left out.
    let shown = error("00010 allow udp from any to any\n00020 divert 8668 ip from any to any\n");
    assert!(shown.contains("`divert`"), "{shown}");
    let shown = error("00010 allow udp from nowhere! to any\n");
    assert!(shown.contains("script:1:22"), "{shown}");
}

#[test]
fn pipes_without_rules_and_addresses_of_nobody_are_told_of() {
    let text = "ipfw pipe 1 config\nipfw pipe 2 config\nipfw queue 1 config pipe 3\nipfw pipe 3 config\nipfw add pipe 1 out";
    let said = remarks(text);
    assert_eq!(said.matches("no rule leads to pipe").count(), 1, "{said}");
    assert!(said.contains("no rule leads to pipe 2: no packet passes it"), "{said}");
    assert!(!remarks(&format!("{text}\nsleep 1\nipfw add pipe 2 in")).contains("no rule leads to pipe"));
    let said = remarks("ipfw pipe 1 config\nipfw add pipe 1 ip from 127.0.0.1 to 10.0.0.1");
    assert!(said.contains("no packet of a link is to or from `127.0.0.1`"), "{said}");
    assert!(!remarks("ipfw pipe 1 config\nipfw add pipe 1 ip from 10.0.0.2 to any").contains("no packet"));
    // Everything can be listed.
    assert_eq!(rules("dnctl pipe 1 config bw 5Mbit/s && dnctl list && ipfw add pipe 1 out").len(), 1);
}

#[test]
fn a_loop_that_never_ends_repeats() {
    let text = "ipfw pipe 1 config bw 1Mbit/s\nipfw add pipe 1 in\nwhile true; do\nipfw pipe 1 config bw 8Mbit/s\n\
                sleep 5\nipfw pipe 1 config bw 2Mbit/s\nsleep 3\ndone\n";
    let made = toml(text);
    for part in [
        "at = \"5s\"\nipfw.net = [\"pipe 1 config bw 2Mbit/s\"]\n",
        "at = \"8s\"\nipfw.net = [\"pipe 1 config bw 8Mbit/s\"]\n",
        "at = \"13s\"\nevery = \"8s\"\nipfw.net = [\"pipe 1 config bw 2Mbit/s\"]\n",
        "at = \"16s\"\nevery = \"8s\"\nipfw.net = [\"pipe 1 config bw 8Mbit/s\"]\n",
    ] {
        assert!(made.contains(part), "{part}\n{made}");
    }
    assert_eq!(made.matches("at = ").count(), 4, "{made}");
    let growing = "ipfw add pipe 1 in\nipfw pipe 1 config\nwhile true; do\nsleep 1\nipfw add allow udp from any to any\ndone\n";
    let shown = error(growing);
    assert!(shown.contains("whose turns leave something else each time"), "{shown}");
    assert!(shown.contains("script:3:7"), "{shown}");
}

#[test]
fn after_sleep_any_command_takes_effect() {
    let text = "table t create type addr\npipe 1 config bw 1Mbit/s\nadd pipe 1 in\nadd 500 deny udp from any to any\nsleep 1\n\
                add count tcp from any to any in // a \"comment\"\nadd 50 set 3 allow ip from table(t) to any\n\
                table t add 10.0.0.0/8 7\npipe 2 config bw 2Mbit/s codel\nadd pipe 2 out\nsysctl net.inet.ip.fw.one_pass=0\n\
                sleep 1\ndelete 100 499-510 900\nset disable 3\ntable t delete 10.0.0.0/8 11.0.0.0/8\npipe delete 1 8";
    let start = script(text);
    assert_eq!((start.rules.len(), start.objects.len(), start.one_pass), (2, 1, true));
    let scenario = at_the_end(text);
    let rules = scenario.links[0].rules().expect("rules");
    let listed: Vec<String> = rules.rules.iter().map(rule_text).collect();
    assert_eq!(
        listed,
        [
            "50 set 3 allow ip from table(t) to any",
            "600 count tcp from any to any in // a \"comment\"",
            "700 pipe 2 ip from any to any out",
        ]
    );
    assert_eq!(rules.pipes.keys().collect::<Vec<_>>(), [&2]);
    assert!(!rules.one_pass && rules.disabled_sets == 1 << 3 && rules.tables["t"].is_empty());
    let said = remarks(text);
    for remark in
        ["it gets 600", "there is no rule 900 to delete", "11.0.0.0/8 is not in the table", "no pipe 8"]
    {
        assert!(said.contains(remark), "{remark}\n{said}");
    }
    // A problem is at the user's own words, and what a run cannot do is said.
    let wrong =
        error("pipe 1 config bw 1Mbit/s\nadd pipe 1 in\nsleep 1\nadd pipe 1 out\nqueue 5 config pipe 7");
    assert!(wrong.contains("script:5:1") && wrong.contains("scheduler 7, which does not exist"), "{wrong}");
    assert!(wrong.contains("it follows a `sleep`"), "{wrong}");
}

#[test]
fn interfaces_in_commands_after_sleep_are_those_of_the_script() {
    let text = "pipe 1 config bw 1Mbit/s\nadd 10 deny ip from any to any via table(t)\nadd 20 pipe 1 in recv em1\nsleep 2\n\
                table t add em1 3\nadd 30 count ip from any to any xmit em2";
    let interfaces =
        Interfaces { client: vec!["em1".into()], server: vec!["em2".into()], ..Interfaces::default() };
    let script = Script::at_interfaces(text, "script", &interfaces).unwrap_or_else(|error| panic!("{error}"));
    let toml = script.to_toml("net", ["client", "server"]);
    assert!(toml.contains("\"table t add em1@first 3\""), "{toml}");
    let mut scenario = script.scenario("script").unwrap_or_else(|error| panic!("{error}"));
    let event = scenario.timeline().next().expect("a step");
    scenario.change_at(event.at, &event.changes).unwrap_or_else(|error| panic!("{error}"));
    let written = scenario.to_toml();
    assert!(written.contains("em1@first 3"), "{written}");
}

#[test]
fn conditions_that_a_host_with_one_interface_decides() {
    for (text, expected) in [
        ("add deny ip from any to any not verrevpath in", "100 deny ip from any to any not out src-ip me in"),
        ("add allow ip from any to any antispoof", "100 allow ip from any to any { out or not src-ip me }"),
        ("add reset tcp from any to any 23", "100 reset tcp from any to any dst-port 23"),
        ("add unreach needfrag 1400 ip from any to any", "100 unreach needfrag 1400 ip from any to any"),
        ("add unreach 13 log ip from any to any", "100 unreach filter-prohib log ip from any to any"),
        ("add reject ip from any to any", "100 unreach host ip from any to any"),
        ("add unreach 200 ip from any to any", "100 unreach 200 ip from any to any"),
        ("add reset6 ip6 from any to any", "100 reset6 ip6 from any to any"),
        ("add unreach6 admin-prohib ip6 from any to any", "100 unreach6 admin-prohib ip6 from any to any"),
    ] {
        assert_eq!(rules(text), [expected], "{text}");
    }
    assert!(
        remarks("add abort sctp from any to any")
            .contains("a drop without an answer: ipfw also sends an SCTP abort")
    );
    assert!(error("add unreach nowhere ip from any to any").contains("a code from 0 to 255"));
}

#[test]
fn lookups_have_masks() {
    let rule = |lookup: &str| rules(&format!("add count ip from any to any lookup {lookup} T")).concat();
    for (written, expected) in [
        ("dst-port:0xff", "ip from any to any lookup dst-port:0.0.0.255"),
        ("src-ip4:0.0.0.3", "ip4 from any to any lookup src-ip:0.0.0.3"),
        ("dst-ip4", "ip4 from any to any lookup dst-ip"),
        ("src-ip6:ffff:ffff::", "ip6 from any to any lookup src-ip:ffff:ffff::"),
        ("dscp:7", "ip from any to any lookup dscp:0.0.0.7"),
        ("src-ip", "ip from any to any lookup src-ip"),
        ("src-mac", "ip from any to any lookup src-mac"),
        ("dst-mac", "ip from any to any lookup dst-mac"),
        ("rulenum", "ip from any to any lookup rulenum"),
    ] {
        assert_eq!(rule(written), format!("100 count {expected} T"), "{written}");
        assert_eq!(rules(&format!("add {}", rule(written))), [rule(written)]);
    }
    for (written, said) in [
        ("src-ip4:ffff::", "a mask of IPv6 for `src-ip4`"),
        ("src-ip6:0.0.0.3", "a mask of IPv4 for `src-ip6`"),
        ("dst-port:x", "a mask from 0 to 4294967295"),
        ("src-mac:0.0.0.3", "a mask for `src-mac`"),
        ("rulenum:ffff::", "a mask of IPv6 for `rulenum`"),
        ("proto", "expected a field"),
    ] {
        let found = error(&format!("add count ip from any to any lookup {written} T"));
        assert!(found.contains(said), "{written}\n{found}");
    }
}

/// A router sends on what it receives: what it receives from the client is on its way to the server.
#[test]
fn rules_of_a_router_follow_its_interfaces() {
    let text = "ipfw pipe 1 config bw 1600Kbit/s delay 150ms\nipfw pipe 2 config bw 768Kbit/s delay 150ms\n\
                ipfw add pipe 1 ip from any to any out xmit em1\nipfw add pipe 2 ip from any to any out recv em1";
    assert_eq!(rules(text), ["100 pipe 1 ip from any to any in", "200 pipe 2 ip from any to any out"]);
    assert!(
        remarks(text).contains("em1 is assumed to be a router's interface towards the client"),
        "{}",
        remarks(text)
    );
    let mut interfaces = Interfaces::default();
    for interface in ["em0=server", "em1=client"] {
        interfaces.add(interface).unwrap();
    }
    let text = "pipe 1 config\nadd pipe 1 ip from any to any recv em0 xmit em1\nadd pipe 1 ip from any to any in via em0";
    let script = Script::at_interfaces(text, "script", &interfaces).unwrap();
    let listed: Vec<String> = script.rules.iter().map(rule_text).collect();
    assert_eq!(listed, ["100 pipe 1 ip from any to any out out", "200 pipe 1 ip from any to any out"]);
}

/// Entries of a table of interfaces are at the host that each interface was assigned to.
#[test]
fn tables_of_interfaces_know_where_each_is() {
    let mut interfaces = Interfaces::default();
    for interface in ["em0=client", "em1=server"] {
        interfaces.add(interface).unwrap();
    }
    let text = "table lan create type iface\ntable lan add em0 1 em1 em7 3\npipe 1 config delay 5ms\n\
                add pipe tablearg ip from any to any recv table(lan)\n\
                add count ip from any to any in via table(lan,3)\nadd count out xmit table(lan)";
    let script = Script::at_interfaces(text, "script", &interfaces).unwrap();
    let listed: Vec<String> = script.rules.iter().map(rule_text).collect();
    assert_eq!(
        listed,
        [
            "100 pipe tablearg ip from any to any recv table(lan)",
            "200 count ip from any to any recv table(lan,3)",
            "300 count ip from any to any xmit table(lan)",
        ]
    );
    let file = script.to_toml("net", ["client", "server"]);
    assert!(file.contains("lan = [\"em0@first 1\", \"em1@second 0\", \"em7@neither 3\"]"), "{file}");
    let explained: Vec<String> = script.lines.iter().map(ToString::to_string).collect();
    let explained = explained.join("\n");
    for said in [
        "Adds em0 with the value 1, em1 with the value 0 and em7 with the value 3 to table lan.",
        "no interface `em7`: its entry matches no packet",
        "packets that came by an interface in table lan go through the pipe that the value in the table names",
        "packets that came by an interface in table lan with the value 3 are counted",
        "packets that leave by an interface in table lan are counted",
    ] {
        assert!(explained.contains(said), "{said}\n{explained}");
    }
    // The only unknown interface of a script is the client's, in a table as in a rule.
    let one = "table 1 create type iface\ntable 1 add em0\npipe 1 config delay 5ms\nadd pipe 1 ip from any to any via table(1)";
    assert!(toml(one).contains("1 = [\"em0@first 0\"]"));
    assert!(remarks(one).contains("em0 is assumed to be the client's interface"));
    // Two are not, and no packet would get to the pipe.
    let two = one.replace("add em0", "add em0 em1");
    assert!(
        error(&two).contains("no packet can reach a pipe: there is no interface `em0`"),
        "{}",
        error(&two)
    );
}

#[test]
fn tables_of_link_addresses() {
    let text = "table macs create type mac\ntable macs add 0:A:0:0:0:1 1 02:00:00:00:ff:00/40 2\n\
                pipe 1 config delay 5ms\nadd pipe tablearg src-mac table(macs)\nadd deny dst-mac 02:00:00:00:00:09\n\
                add count lookup dst-mac macs";
    assert_eq!(
        rules(text),
        [
            "100 pipe tablearg ip from any to any lookup src-mac macs",
            "200 deny ip from any to any MAC 02:00:00:00:00:09 any",
            "300 count ip from any to any lookup dst-mac macs",
        ]
    );
    let toml = toml(text);
    assert!(toml.contains("macs = [\"00:0a:00:00:00:01 1\", \"02:00:00:00:ff:00/40 2\"]"), "{toml}");
}

#[test]
fn one_name_of_dynamic_rules_is_no_name() {
    let named = "add check-state :OUT\nadd allow tcp from me to any setup keep-state :OUT\nadd allow udp from me to any keep-state :OUT";
    assert_eq!(rules(named), rules(&named.replace(" :OUT", "")));
    for several in [
        named.replacen(":OUT", ":IN", 1),
        named.replacen(" :OUT", "", 1),
        format!("{named}\nadd allow in limit src-addr 4"),
    ] {
        assert!(error(&several).contains("names dynamic rules"), "{several}");
    }
}

/// A loop whose list is in the script is written out.
#[test]
fn loops_are_written_out() {
    let turns = "ipfw -q flush\nfor i in `seq 2 3` 9\ndo\n  ipfw pipe $i config bw ${i}Mbit/s\n  ipfw add ${i}0 pipe $i ip from any to 10.0.0.$i\ndone\nfor x in a; do kldload $x; done\nipfw add 60000 allow ip from any to any\n";
    let plain: String = [2, 3, 9]
        .map(|i| {
            format!("ipfw pipe {i} config bw {i}Mbit/s\nipfw add {i}0 pipe {i} ip from any to 10.0.0.{i}\n")
        })
        .concat()
        + "ipfw add 60000 allow ip from any to any\n";
    let of = |text: &str| {
        let script = Script::at_interfaces(text, "script", &Interfaces::default()).unwrap();
        script.scenario("script").unwrap()
    };
    assert_eq!(of(turns), of(&plain));
    let wrong =
        Script::at_interfaces("\nfor i in 1 2; do\n ipfw add $i alow\ndone\n", "x", &Interfaces::default());
    assert!(wrong.unwrap_err().to_string().contains("x:3:"));
}

/// Branches, functions and arguments of a shell are executed, and a list of rules may stand between them.
#[test]
fn scripts_of_a_shell_are_executed() {
    let listed = ["100 pipe 1 ip from any to any dst-port 80 in", "200 deny ip from any to any"];
    for text in [
        "f() {\n  ipfw pipe $1 config bw ${2}Kbit/s\n  ipfw add pipe $1 dst-port \\\n  80 in\n}\nf 1 500\nadd deny ip from any to any",
        "set -- fast\ncase $1 in\n  slow) bw=1;;\n  add|fast)\n    bw=5\n    ;;\nesac\nipfw pipe 1 config bw ${bw}Mbit/s\n\
         if [ \"$1\" = fast ] && [ $# -eq 1 ]; then\n  ipfw add pipe 1 ip from any to any 80 in\nelse\n  ipfw add 7 deny in\nfi\n\
         [ -n \"$2\" ] || { ipfw add deny ip from any to any; }",
        // Its functions may have the names of commands.
        "flush() { ipfw -f flush; }\nadd ()\n{\n  ipfw add \"$@\"\n}\nflush\nipfw pipe 1 config\nif [ $# -eq 0 ]; then\n  add pipe 1 dst-port 80 in\n\
           add deny ip from any to any\nfi",
        "ipfw -q /dev/stdin <<EOF\npipe 1 config # the link\nadd pipe 1 dst-port 80 in\nEOF\nipfw add deny ip from any to any",
        "echo \"$(date): it\n  add 5 allow in\" >log\nexec 2>&1\npipe 1 config bw 1Mbit/s\nadd pipe 1 dst-port 80\n  in\nsh_rule='add deny'\n\
         ipfw $sh_rule ip from any to any ||\n  echo no",
        "true && { pipe 1 config; }\nfor p in 80; do ipfw add pipe 1 dst-port $p in; done\nadd deny ip from any to any\necho a && exit\nadd 9 deny in",
        "kldstat -q -m dummynet || { kenv a=1; kldload ipfw; }\nrem it's for Windows\npipe 1 config\nadd pipe 1 dst-port 80 in # it's\n\
         add deny ip from any to any",
    ] {
        assert_eq!(rules(text), listed, "{text}");
    }
}

/// What ipfw accepts and drops the packets of.
#[test]
fn rules_of_pipes_that_are_not_configured() {
    let text = "pipe 1 config bw 1Mbit/s\nadd pipe 1 ip from any to any 80\nadd pipe 3 ip from any to any out\nadd queue 9 in\nadd pipe 3 in";
    let toml = toml(text);
    assert!(toml.contains("200 pipe 3 ip from any to any out"), "{toml}");
    let said: Vec<usize> = script(text)
        .lines
        .iter()
        .filter(|line| {
            line.remarks.iter().any(|remark| {
                remark.contains("is not configured: packets that reach it are dropped, as in ipfw")
            })
        })
        .map(|line| line.number)
        .collect();
    assert_eq!(said, [3, 4, 5]);
    assert!(!remarks(text).contains("NO PIPE AT ALL"), "{}", remarks(text));
    // None is left at the end.
    let none = "pipe 1 config\nadd pipe 1 out\nadd pipe 2 in\ndelete 200\npipe 1 delete";
    assert!(remarks(none).contains("NO PIPE AT ALL IS CONFIGURED"), "{}", remarks(none));
    assert!(!remarks(none).contains("pipe 2 is not configured"), "{}", remarks(none));
    // A scheduler is no pipe.
    let alone = error("pipe 1 config\nadd pipe 2 in\nsched 2 config type rr");
    assert!(
        alone.contains("script:2:10") && alone.contains("of which only the scheduler is configured"),
        "{alone}"
    );
    // One that comes later.
    let later = "pipe 1 config\nadd pipe 1 out\nadd pipe 2 in\nsleep 3\npipe 2 config delay 5ms";
    assert!(
        remarks(later).contains("pipe 2 is not configured at the start: until it is"),
        "{}",
        remarks(later)
    );
    at_the_end(later);
    // A scenario says that it means it.
    let written = script(text).to_toml("net", ["client", "server"]);
    let scenario = Scenario::parse(&written, "net.toml").unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario.to_toml().contains("allow-missing = true"), "{}", scenario.to_toml());
    assert!(
        scenario
            .explain()
            .to_string()
            .contains("rule 200 leads to a pipe, queue or translator that does not exist")
    );
    let strict = Scenario::parse(&written.replace("allow-missing = true\n", ""), "net.toml")
        .expect_err("it is strict");
    assert!(strict.to_string().contains("rule 200 leads to pipe 3, which does not exist"), "{strict}");
    let refused = Scenario::parse(&written.replace("allow-missing = true", "allow-missing = 3"), "net.toml");
    assert!(refused.expect_err("it is no boolean").to_string().contains("expected `true` or `false`"));
}

/// What ipfw or a host passes over is none of the script's end.
#[test]
fn commands_that_do_nothing_in_ipfw_either() {
    let pipe = "pipe 1 config\nadd pipe 1 in\n";
    for (line, said) in [
        (
            "sysctl net.link.ether.bridge_ipfw=1",
            "`net.link.ether.bridge_ipfw` is no setting that narrows knows",
        ),
        ("sysctl net.inet.ip.fw.onepass=0", "did you mean `net.inet.ip.fw.one_pass`?"),
        ("sysctl net.inet.ip.dumynet", "did you mean"),
        ("sysctl -w net.inet.ip.dummynet.delay_cdf_p1=10", "it has no effect here"),
        ("sysctl nett.inet.tcp.tso=0", "`nett.inet.tcp.tso` is no setting"),
        ("ipfw del pipe 2", "ipfw itself deletes nothing from `pipe` on"),
        ("delete 7 all", "deletes nothing from `all` on"),
    ] {
        let found = remarks(&format!("{pipe}{line}"));
        assert!(found.contains(said), "{line}\n{found}");
        assert_eq!(rules(&format!("{pipe}{line}")), ["100 pipe 1 ip from any to any in"], "{line}");
    }
    assert!(rules(&format!("{pipe}delete 100 all")).is_empty());
    assert!(error("delete").contains("the number of a rule is missing"));
    // The number of a queue is one of slots, whatever follows, and of a rate ipfw reads the prefix.
    let queue = "pipe 1 config bw 15Mbitbits/s queue 15Mbit/s\nadd pipe 1 in";
    assert!(toml(queue).contains("rate = \"15mbit\"\nqueue = \"15 packets\""), "{}", toml(queue));
    assert!(remarks(queue).contains("ipfw reads no more of the unit"), "{}", remarks(queue));
}

/// While a script configures rules, the firewall may be disabled.
#[test]
fn a_firewall_that_is_enabled_again() {
    let text = "ipfw disable firewall\npipe 1 config\nadd pipe 1 in\n";
    for end in [
        "ipfw enable firewall",
        "sysctl net.inet.ip.fw.enable=1",
        "sysctl net.inet.ip.fw.enable=0; ipfw enable firewall",
    ] {
        assert_eq!(rules(&format!("{text}{end}")), ["100 pipe 1 ip from any to any in"], "{end}");
    }
    for (end, column) in [
        ("", "1:14"),
        ("sleep 1\nenable firewall", "1:14"),
        ("enable firewall\nsleep 1\ndisable firewall", "6:9"),
        ("enable firewall\nsysctl net.inet.ip.fw.enable=0", "5:8"),
    ] {
        let found = error(&format!("{text}{end}"));
        assert!(found.contains("`disable firewall` exists in ipfw but not in narrows"), "{found}");
        assert!(found.contains(&format!("script:{column}\n")), "{end}\n{found}");
    }
}

/// The error names all interfaces that have to be assigned.
#[test]
fn several_unknown_interfaces() {
    let text = "pipe 1 config\nadd pipe 1 in via em0\nadd pipe 1 out via em1";
    let found = error(text);
    assert!(
        found.contains("--interface em0=client")
            && found.contains("each of the others in the same way: `em1`"),
        "{found}"
    );
}

#[test]
fn what_a_host_sends_to_itself_is_not_on_the_link() {
    let shaped = "add 10 allow ip from any to any via lo0\npipe 1 config bw 1Mbit/s\nadd 100 pipe 1 ip from any to any";
    assert!(rules(shaped)[0].contains("via none"), "{:?}", rules(shaped));
    assert!(remarks(shaped).contains("`lo0`: what a host sends to itself"), "{}", remarks(shaped));
    assert!(rules(&shaped.replace("lo0", "lo*"))[0].contains("via none"));
    // So the only interface is the other one.
    let guessed = format!("{}\nadd 200 pipe 1 ip from any to any in via em0", shaped.replace("lo0", "lo"));
    assert!(remarks(&guessed).contains("em0 is assumed to be the client's"), "{}", remarks(&guessed));
    let neither = {
        let mut interfaces = Interfaces::default();
        interfaces.add("em0=neither").unwrap();
        let text =
            "add 10 allow ip from any to any via em0\npipe 1 config\nadd 100 pipe 1 ip from any to any";
        Script::at_interfaces(text, "script", &interfaces).unwrap_or_else(|error| panic!("{error}"))
    };
    assert!(neither.to_toml("net", ["client", "server"]).contains("10 allow ip from any to any via none"));
    assert!(neither.lines.iter().all(|line| line.remarks.is_empty()), "{:?}", neither.lines);
}

#[test]
fn what_ipfw_reads_otherwise_is_noted() {
    let fraction = remarks("pipe 1 config bw 1.5Mbit/s");
    assert!(fraction.contains("1.5mbit; ipfw itself reads only the whole number: 1bit/s"), "{fraction}");
    let none = remarks("pipe 1 config bw 0.5Mbit/s");
    assert!(none.contains("whole number: no limit"), "{none}");
    // Of a unit that begins with K, no more is read.
    let kilo = remarks("pipe 1 config queue 100KByte/s");
    assert!(kilo.contains("102400 bytes"), "{kilo}");
    let flush = "nat 1 config ip 10.0.0.1\nadd 1 deny in\nnat flush\npipe 1 config\nadd 2 pipe 1 in";
    assert!(remarks(flush).contains("ipfw itself takes it for `flush`"), "{}", remarks(flush));
    assert!(!toml(flush).contains("deny"), "{}", toml(flush));
    // Where a script lists what passes, the kernel's last rule matters.
    let listed = "add 1 allow tcp from any to any 80";
    assert!(remarks(listed).contains("packets that no rule decides pass"), "{}", remarks(listed));
    for decided in [
        "add 1 allow tcp from any to any 80\nadd 2 deny ip from any to any",
        "pipe 1 config\nadd 1 pipe 1 in",
    ] {
        assert!(!remarks(decided).contains("no rule decides"), "{}", remarks(decided));
    }
    // Programs beside ipfw.
    let programs = "ifconfig tap0 create\nroute add default 10.0.0.1\nipfw pipe 1 config\nipfw add pipe 1 in\ntail -f /var/log/x";
    for said in [
        "`ifconfig` is not a command of ipfw",
        "hosts have the routes",
        "`tail` is not a command of ipfw: it prints text",
    ] {
        assert!(remarks(programs).contains(said), "{}", remarks(programs));
    }
    let percent = remarks("pipe 1 config plr 5%");
    assert!(percent.contains("ipfw itself ignores the percent sign"), "{percent}");
}

#[test]
fn queues_get_what_their_scheduler_allows() {
    let text = "pipe 1 config bw 1Mbit/s\nqueue 1 config pipe 1 weight 500\nadd queue 1 ip from any to any";
    assert!(toml(text).contains("weight = 100"), "{}", toml(text));
    assert!(remarks(text).contains("weights of WF2Q+ end at 100"), "{}", remarks(text));
    // Whatever comes first.
    let other = format!("{text}\nsched 1 config pipe 1 type qfq");
    assert!(toml(&other).contains("weight = 500"), "{}", toml(&other));
    // In a command of a run, too.
    let later = format!("{}\nsleep 2\nqueue 1 config pipe 1 weight 200", text.replace("500", "3"));
    let mut scenario = script(&later).scenario("script").unwrap_or_else(|error| panic!("{error}"));
    let event = scenario.timeline().next().expect("a step");
    scenario.change_at(event.at, &event.changes).unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario.to_toml().contains("weight = 100"), "{}", scenario.to_toml());
    let flows = "pipe 1 config bw 1Mbit/s\nsched 1 config pipe 1 type fq_codel\n\
                 queue 1 config sched 1 weight 50 queue 20\nadd queue 1 ip from any to any";
    assert!(remarks(flows).contains("FQ_CODEL gives its own queues to flows"), "{}", remarks(flows));
}

#[test]
fn words_that_ipfw_takes() {
    let text =
        "-q flush\nipfw flush -f\nipfw pipe flush -f\ntable tb1 add 10.0.0.7 5\ntable tb1 del 10.0.0.7";
    assert!(script(text).tables["tb1"].is_empty());
    let error = error("table T create type iface valtype skipto,fib\ntable T add vlan20 12000,12");
    assert!(error.contains("several values of one entry: `12000,12`"), "{error}");
    let pair = "table T create type flow:src-port,dst-port\ntable T add 80,444 81,444";
    assert_eq!(script(pair).tables["T"].len(), 2);
    // The last word's quote is part of the line.
    assert_eq!(
        script("ipfw add 150 allow ip from any to any out xmit \"none\"").lines[0].text.matches('"').count(),
        2
    );
}

/// On macOS dummynet's pipes are configured by dnctl, and rules of pf lead to them.
#[test]
fn rules_of_pf_that_lead_to_pipes() {
    let rules = |text: &str| -> Vec<String> {
        let numbered = rules(text).into_iter();
        numbered.map(|rule| rule.split_once(' ').map_or(rule.clone(), |(_, rest)| rest.to_owned())).collect()
    };
    let dnctl = "sudo dnctl pipe 1 config bw 1Mbit/s\ndnctl pipe 2 config delay 20ms\n";
    for load in [
        "echo \"dummynet out proto tcp from any to any port 80 pipe 1\" | sudo pfctl -ef -\n",
        "cat <<EOF | pfctl -q -a shape -f -\ndummynet out proto tcp from any to any port 80 pipe 1\npass quick on lo0\nEOF\npfctl -E\n",
        "(cat /etc/pf.conf; echo 'dummynet-anchor \"a\"') | pfctl -f - 2>/dev/null || true\n\
         port=80; printf 'dummynet out proto tcp to any port %s pipe 1\\n' $port > /tmp/pf.rules; pfctl -a a -f /tmp/pf.rules\n",
        "pfctl -f - <<'EOF'\nweb = \"{ 80 }\"\ndummynet out proto tcp from any to any port $web pipe 1 # web\nEOF\n",
    ] {
        let text = format!("{dnctl}{load}").replace(
            "(cat /etc/pf.conf; echo 'dummynet-anchor \"a\"') | pfctl -f - 2>/dev/null || true\n",
            "",
        );
        assert_eq!(rules(&text), ["pipe 1 tcp from any to any dst-port 80 out"], "{text}");
    }
    // The last rule counts, or the first quick one.
    let text = format!(
        "{dnctl}pfctl -f - <<EOF\ndummynet in all pipe 1\ndummynet in quick proto tcp all pipe 2\ndummynet in proto udp all pipe 2\nEOF\n"
    );
    assert_eq!(
        rules(&text),
        ["pipe 2 tcp from any to any in", "pipe 2 udp from any to any in", "pipe 1 ip from any to any in"]
    );
    assert_eq!(
        rules(&format!("{dnctl}echo 'dummynet out on lo0 proto udp all pipe 1' | pfctl -f -\n")),
        ["pipe 1 udp from any to any"]
    );
    // What a host sends to itself goes out and comes in: it passes the pipes of both.
    let twice = rules(&format!(
        "{dnctl}pfctl -f - <<EOF\ndummynet out proto tcp from 127.0.0.1 to any pipe 1\n\
         dummynet on lo0 proto udp all pipe 2\nEOF\n"
    ));
    assert_eq!(
        twice,
        [
            // Out: two rules, the rest, and two pipes.
            "skipto 40003 udp from any to any",
            "skipto 40005 tcp from any to any",
            "skipto 40007 ip from any to any",
            "pipe 2 ip from any to any",
            "skipto 40007 ip from any to any",
            "pipe 1 ip from any to any",
            "skipto 40007 ip from any to any",
            // In: one.
            "skipto 40009 udp from any to any",
            "skipto 40011 ip from any to any",
            "pipe 2 ip from any to any",
            "skipto 40011 ip from any to any",
        ]
    );
    let mixed = format!(
        "{dnctl}pfctl -f - <<EOF\ndummynet in on lo0 all pipe 1\ndummynet out on lo0 all pipe 1\ndummynet out on en0 all pipe 2\nEOF\n"
    );
    assert!(error(&mixed).contains("a rule beside those for what goes out at lo0"), "{}", error(&mixed));
    // What is excepted goes past all of them.
    assert_eq!(
        rules(&format!(
            "{dnctl}pfctl -f - <<EOF\nno dummynet quick on lo0 all\ndummynet in all pipe 1\nno dummynet in proto udp all\nEOF\n"
        )),
        ["skipto 60000 udp from any to any in", "pipe 1 ip from any to any in"]
    );
    // They take the place of those before, and go with `-F` and `-d`.
    let again = "echo 'dummynet out all pipe 2' | pfctl -f -\n";
    assert_eq!(
        rules(&format!("{dnctl}echo 'dummynet out all pipe 1' | pfctl -f -\n{again}")),
        ["pipe 2 ip from any to any out"]
    );
    assert_eq!(
        rules(&format!("{dnctl}ipfw add 1 allow ip from any to any\n{again}pfctl -F all\n")),
        ["allow ip from any to any"]
    );
    assert_eq!(
        rules(&format!("{dnctl}ipfw add 1 allow ip from any to any\n{again}pfctl -d\n")),
        ["allow ip from any to any"]
    );
}
