//! ipfw's language: published scripts, what is explained, what is refused, and what is listed.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use narrows_scenario::ipfw::{self, Context, Script};
use narrows_scenario::{Interfaces, Scenario};

/// Names without a network.
fn names(name: &str) -> io::Result<Vec<IpAddr>> {
    match name {
        "xy.it" => Ok(vec![IpAddr::from([203, 0, 113, 7])]),
        "luigi-pc" => Ok(vec![IpAddr::from([192, 0, 2, 10])]),
        "my-subnet" => Ok(vec![IpAddr::from([192, 0, 2, 0])]),
        _ => Err(io::Error::other("nobody knows it")),
    }
}

fn context() -> Context<'static> {
    Context { interfaces: &["em0"], outside: &[], hosts: &[], resolve: names, ..Context::default() }
}

fn script(text: &str) -> Script {
    Script::parse(text, "test.conf", &context()).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn fails(text: &str, expected: &str) {
    let error = Script::parse(text, "test.conf", &context()).expect_err("it is wrong");
    let found = error.to_string();
    assert_eq!(found, expected.trim_matches('\n'), "\n{found}\n");
}

/// What `narrows ipfw check` prints.
fn checked(script: &Script) -> String {
    let lines: Vec<String> = script.lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{}\n{}", lines.concat(), script.to_toml("net", ["client", "server"]))
}

/// Each script of `scenarios/ipfw` passes, and is explained as the file of its name in `tests/ipfw` says. With
/// `UPDATE_EXPECTED` in the environment those files are written.
#[test]
fn scripts_of_the_references_are_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in root.join("../../scenarios/ipfw").read_dir().expect("the scripts are there") {
        let path = entry.expect("it can be listed").path();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let script = Script::parse(&text, &format!("{name}.conf"), &context())
            .unwrap_or_else(|error| panic!("{error}"));
        let found = checked(&script);
        let expected_at = root.join(format!("tests/ipfw/{name}.txt"));
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&expected_at, &found).expect("it can be written");
        }
        let expected = std::fs::read_to_string(&expected_at).unwrap_or_default();
        assert_eq!(found, expected, "{name}: \n{found}");
        // The rules that are listed are the same rules.
        for rule in &script.rules {
            let listed = ipfw::rule_text(rule);
            assert_eq!(
                ipfw::rule(&listed, &context()).unwrap_or_else(|error| panic!("{error}")),
                *rule,
                "{listed}"
            );
        }
        count += 1;
    }
    assert!(count >= 18, "{count}");
}

/// The examples of the slides as printed, with their names of hosts.
#[test]
fn names_of_hosts_are_looked_up_when_the_line_is_read() {
    let script = script(
        "ipfw add 100 pipe 10 out dst-ip xy.it\n\
         ipfw pipe 10 config bw 2000Kbit/s delay 3ms\n\
         ipfw queue 1 config sched 10 weight 10\n\
         ipfw add 100 queue 1 src-ip luigi-pc\n\
         ipfw add 100 queue 1 src-ip my-subnet/24\n",
    );
    let listed: Vec<String> = script.rules.iter().map(ipfw::rule_text).collect();
    assert_eq!(
        listed,
        [
            "100 pipe 10 ip from any to any out dst-ip 203.0.113.7",
            "100 queue 1 ip from 192.0.2.10 to any",
            "100 queue 1 ip from 192.0.2.0/24 to any",
        ]
    );
    assert_eq!(script.lines[0].remarks, ["`xy.it` is 203.0.113.7"]);
    // The hosts of a scenario go first.
    let hosts = [("xy.it".to_owned(), vec![IpAddr::from([10, 0, 0, 1])])];
    let rule = ipfw::rule("allow src-ip xy.it", &Context { hosts: &hosts, ..context() }).unwrap();
    assert_eq!(ipfw::rule_text(&rule), "allow ip from 10.0.0.1 to any");
}

#[test]
fn every_bad_line_is_reported_and_nothing_loaded() {
    fails(
        "add 100 alow ip from any to any\n\
         # fine: add 200 allow ip from any to any\n\
         add 300 allow ip from any to any\n\
         pipe 3 config dely 10 // ms\n\
         ${fwcmd} add 100 allow in\n",
        r#"
error: found `alow`, expected an action
 --> test.conf:1:9
  |
1 | add 100 alow ip from any to any
  |         ^^^^
  |
  = help: did you mean `allow`?

error: found `dely`, expected an option of a pipe
 --> test.conf:4:15
  |
4 | pipe 3 config dely 10 // ms
  |               ^^^^
  |
  = help: did you mean `delay`?

error: `$fwcmd` is a variable of a shell that is not set
 --> test.conf:5:1
  |
5 | ${fwcmd} add 100 allow in
  | ^^^^^^^^
  |
  = help: set it above, as in: fwcmd=VALUE, or give it: --env fwcmd=VALUE
"#,
    );
}

/// Translators: what their options mean, and how they are written again.
#[test]
fn translators_are_read_written_and_explained() {
    let text = "nat 1 config if em0 deny_in same_ports reset unreg_only udp_eim port_range 1024-2047 \
                redirect_port tcp 10.0.0.2:80 8080 \
                redirect_port udp 10.0.0.2:6000-6009 192.0.2.9:7000-7009 198.51.100.1:0 \
                redirect_port tcp 10.0.0.2:80,10.0.0.3:81 443 198.51.100.1:5 \
                redirect_addr 10.0.0.4,10.0.0.5 0 redirect_proto gre 10.0.0.6 0 198.51.100.2\n\
                nat 2 config ip 192.0.2.7 unreg_cgn reverse skip_global\n\
                add 100 nat 1 ip from any to any out via em0\n\
                add 200 nat tablearg ip from table(1) to any\n\
                add 300 nat global ip4 from any to any in\n";
    let script = Script::for_two_hosts(text, "test.conf").unwrap();
    let lines =
        narrows_scenario::ipfw::nat_lines(script.nats.iter().map(|(nat, of)| (*nat, of)), None, "net");
    assert_eq!(
        lines,
        "ipfw nat 1 config if net deny_in same_ports reset unreg_only udp_eim port_range 1024-2047 \
         redirect_port tcp 10.0.0.2:80 8080 \
         redirect_port udp 10.0.0.2:6000-6009 192.0.2.9:7000-7009 198.51.100.1 \
         redirect_port tcp 10.0.0.2:80,10.0.0.3:81 443 198.51.100.1:5 \
         redirect_addr 10.0.0.4,10.0.0.5 0 redirect_proto gre 10.0.0.6 0 198.51.100.2\n\
         ipfw nat 2 config ip 192.0.2.7 reverse unreg_cgn skip_global\n"
    );
    let again: String = lines.lines().map(|line| format!("{}\n", line.replace("if net", "if em0"))).collect();
    assert_eq!(Script::for_two_hosts(&again, "test.conf").unwrap().nats, script.nats);
    let rules: Vec<String> = script.rules.iter().map(ipfw::rule_text).collect();
    assert_eq!(
        rules,
        [
            "100 nat 1 ip from any to any out",
            "200 nat tablearg ip from table(1) to any",
            "300 nat global ip4 from any to any in"
        ]
    );
    // The scenario means the same, and the client has the outer addresses that nobody else has.
    let scenario = script.scenario("test.conf").unwrap();
    assert_eq!(scenario.links[0].rules().unwrap().nats, script.nats);
    let client: Vec<String> =
        scenario.ports()[0].addresses.iter().map(|address| address.ip.to_string()).collect();
    assert_eq!(client[0], "10.213.0.1");
    assert_eq!(client[2..], ["192.0.2.9", "192.0.2.7"]);
    let server = &scenario.ports()[1];
    let routes: Vec<String> =
        scenario.routes(server).iter().map(|route| format!("{} by {}", route.to, route.via)).collect();
    assert_eq!(routes, ["192.0.2.9/32 by 10.213.0.1", "192.0.2.7/32 by 10.213.0.1"]);
    assert!(script.lines[0].meaning.contains("otherwise one from 1024 to 2047"), "{}", script.lines[0]);
    assert!(script.lines[0].remarks[0].contains("em0 is assumed to be the client's interface"));
}

#[test]
fn a_wrong_translator_is_an_error_at_the_word() {
    let wrong = |text: &str| {
        let text = format!("{text}\nadd nat 1 ip from any to any\n");
        Script::for_two_hosts(&text, "test.conf").unwrap_err().to_string()
    };
    for (text, expected) in [
        ("add count", "rule 200 uses translator 1, which is not configured"),
        ("nat 1 config ip fd00::1", "found `fd00::1`, expected an IPv4 address"),
        ("nat 1 config same_ports same_ports", "`same_ports` twice"),
        ("nat 1 config proxy_only", "`proxy_only` exists in ipfw but not in narrows"),
        ("nat 1 config same_port", "did you mean `same_ports`?"),
        ("nat 1 config port_range 0-9", "expected ports from 1 to 65535"),
        ("nat 1 config redirect_port sctp 10.0.0.2:1 1", "ports of SCTP cannot be written"),
        ("nat 1 config redirect_port tcp 10.0.0.2 1", "expected an address and a port, as in 10.0.0.2:80"),
        ("nat 1 config redirect_port tcp 10.0.0.2:0-65535 0-65535", "expected ports from 1 to 65535"),
        ("nat 1 config redirect_port tcp 10.0.0.2:80 0", "expected ports from 1 to 65535"),
        ("nat 1 config ip 224.0.0.5", "expected the address of a host"),
        ("nat 1 config redirect_port tcp 10.0.0.2:1-9 1-8", "is not as many ports as the inner host has, 9"),
        ("nat 1 config redirect_port tcp 10.0.0.2:1,10.0.0.3:1-2 1", "several hosts and several ports"),
        ("nat 1 config redirect_proto tcp 10.0.0.2", "which is for protocols without ports"),
        ("nat config", "the number of a translator is missing after `config`"),
        ("nat 0 config", "the number of a translator"),
    ] {
        let error = wrong(text);
        assert!(error.contains(expected), "{text}:\n{error}");
    }
    let of = |nat: &str| {
        let text = format!(
            "[hosts.a]\naddresses = [\"10.9.0.1/24\"]\n[hosts.b]\naddresses = [\"10.9.0.2/24\"]\n[links.l]\nbetween = [\"a\", \"b\"]\n\
             rules = [\"100 nat 1 out\"]\nnats.1 = {nat}\n"
        );
        Scenario::parse(&text, "net.toml").map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(of("{ address = \"10.9.0.1\" }"), Ok(()));
    let error = of("{ address = \"10.9.0.2\" }").unwrap_err();
    assert!(error.contains("a translator has the outer address 10.9.0.2, which is that of `b`"), "{error}");
    let mut interfaces = Interfaces::default();
    interfaces.add("em1=server").unwrap();
    for text in ["nat 1 config if em1", "nat 1 config\nadd nat 1 ip from any to any via em1"] {
        let error = Script::at_interfaces(text, "test.conf", &interfaces).unwrap_err().to_string();
        assert!(error.contains("`em1` is an interface of the link's second host"), "{error}");
    }
}

#[test]
fn what_ipfw_has_and_narrows_has_not_is_refused_by_name() {
    fails(
        "add 100 divert 8668 ip from any to any\nadd 200 allow tcp from any to any uid root",
        r#"
error: `divert` exists in ipfw but not in narrows
 --> test.conf:1:9
  |
1 | add 100 divert 8668 ip from any to any
  |         ^^^^^^
  |
  = help: narrows does not pass packets to other programs

error: `uid` exists in ipfw but not in narrows
 --> test.conf:2:35
  |
2 | add 200 allow tcp from any to any uid root
  |                                   ^^^
  |
  = help: a packet on the wire does not say whose it is; if narrows asked the host, the answer would come after the first packet, and a replay could not repeat it: tell flows apart by address, port or `dscp`
"#,
    );
    for action in ["tee 1", "netgraph 1", "ngtee 1", "nptv6 1", "tcp-setmss 1400"] {
        let error = ipfw::rule(&format!("{action} ip from any to any"), &context()).unwrap_err().to_string();
        let name = action.split(' ').next().unwrap_or_default();
        assert!(error.contains(&format!("`{name}` exists in ipfw but not in narrows")), "{error}");
    }
    for option in [
        "gid 0",
        "jail 1",
        "sockarg",
        "versrcreach",
        "diverted",
        "diverted-output",
        "ipsec",
        "tagged tablearg",
        "limit src-addr tablearg",
    ] {
        let error = ipfw::rule(&format!("allow {option}"), &context()).unwrap_err().to_string();
        assert!(error.contains("exists in ipfw but not in narrows"), "{error}");
    }
    let refused = |text: &str| ipfw::Command::parse(text, &context()).unwrap_err().to_string();
    assert!(refused("nptv6 a create").contains("`nptv6` exists in ipfw but not in narrows"));
    assert!(refused("add 5 deny altq q ip from any to any").contains("`altq` exists in ipfw"));
    assert!(refused("pipe 1 config bw em0").contains("exists in ipfw but not in narrows"));
    assert!(refused("pipe 1 config pie onoff").contains("`onoff` is known to ipfw"));
    assert!(refused("disable firewall").contains("exists in ipfw but not in narrows"));
}

#[test]
fn masks_have_bits_and_no_digit_too_many() {
    // As in Rizzo's slides of 2010: ipfw keeps the low 32 bits.
    let slides = script("ipfw sched 5 config type QFQ mask src-ip 0xffffffff00");
    let line = &slides.lines[0];
    assert!(line.meaning.contains("the bits 0xffffff00 of the source address"), "{}", line.meaning);
    assert_eq!(
        line.remarks[0],
        "`0xffffffff00` is wider than 32 bits: the low 32 count, as in ipfw: 0xffffff00"
    );
    fails(
        "ipfw sched 5 config type QFQ mask dst-port 0xffff00",
        r#"
error: the mask `0xffff00` has 2 digits too many: dst-port has 16 bits
 --> test.conf:1:44
  |
1 | ipfw sched 5 config type QFQ mask dst-port 0xffff00
  |                                            ^^^^^^^^
  |
  = help: at most 4 hexadecimal digits: 0xffff
"#,
    );
    fails(
        "pipe 1 config mask src-ip 0x0",
        r#"
error: `0x0` is an empty mask, which does not separate flows
 --> test.conf:1:27
  |
1 | pipe 1 config mask src-ip 0x0
  |                           ^^^
  |
  = help: remove it, or give the bits that count
"#,
    );
}

#[test]
fn rules_lead_forwards_and_to_what_is_there() {
    fails(
        "add 500 skipto 400 ip from any to any\nadd 600 skipto 600 ip from any to any",
        r#"
error: `skipto 400` in rule 500 leads backwards
 --> test.conf:1:9
  |
1 | add 500 skipto 400 ip from any to any
  |         ^^^^^^
  |
  = help: `skipto` only jumps forward; `call` may jump backward and `return` returns

error: `skipto 600` in rule 600 leads to itself
 --> test.conf:2:9
  |
2 | add 600 skipto 600 ip from any to any
  |         ^^^^^^
  |
  = help: `skipto` only jumps forward; `call` may jump backward and `return` returns
"#,
    );
    fails(
        "add 100 pipe 1 ip from any to any\npipe 2 config bw 1Mbit/s\nqueue 3 config sched 4\nqueue 5 config weight 2",
        r#"
error: queue 3 uses the scheduler 4, which is not configured
 --> test.conf:3:22
  |
3 | queue 3 config sched 4
  |                      ^
  |
  = help: write: pipe 4 config …, or: sched 4 config …

error: `sched` is missing: queue 5 has no scheduler
 --> test.conf:4:1
  |
4 | queue 5 config weight 2
  | ^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: as in: queue 5 config sched 1, or, which is the same, pipe 1
"#,
    );
}

/// ip_dummynet.c, config_sched: `pipe N config` gives its mask to the FIFO of packets that rules send there, `sched N config`
/// to the scheduler of queues.
#[test]
fn masks_are_those_of_the_pipe_or_of_its_scheduler() {
    let pipe = "pipe 7 config bw 1Mbit/s";
    let of_source = "mask src-ip 0xffffffff";
    let mask = |text: &str| {
        let file = script(text).to_toml("net", ["client", "server"]);
        let start = file.find("pipes.7]").unwrap();
        let end = file[start..].find("\n\n").map_or(file.len(), |end| start + end);
        file[start..end].lines().find_map(|line| line.strip_prefix("mask = ")).map(str::to_owned)
    };
    let is_masked = Some("{ src-ip = \"0xffffffff\" }".to_owned());
    let (rule, queue) =
        ("add pipe 7 ip from any to any", "queue 7 config pipe 7\nadd queue 7 ip from any to any");
    for (text, expected) in [
        (format!("{pipe} {of_source}\n{rule}"), is_masked.clone()),
        (format!("{pipe} {of_source}\n{queue}"), None),
        (format!("{pipe}\nsched 7 config {of_source} type fq_codel\n{rule}"), None),
        (format!("sched 7 config {of_source} type fq_codel\n{pipe}\n{rule}"), None),
        (format!("{pipe}\nsched 7 config {of_source} type fq_codel\n{queue}"), is_masked.clone()),
        (format!("{pipe} type qfq {of_source}\n{queue}"), is_masked),
    ] {
        assert_eq!(mask(&text), expected, "{text}");
    }
    fails(
        &format!("{pipe} {of_source}\n{queue}\n{rule}"),
        r#"
error: rule 200 leads to pipe 7, queues to its scheduler, and these have different masks
 --> test.conf:4:10
  |
4 | add pipe 7 ip from any to any
  |          ^
  |
  = help: in ipfw these are two links: give each a number of its own
"#,
    );
    let both = script(&format!("{pipe} {of_source}\n{queue}"));
    assert!(both.lines[0].remarks[0].contains("sched 7 config mask"), "{:?}", both.lines[0].remarks);
}

/// A line and a part of what is said about it.
#[test]
fn bad_lines_say_what_is_wrong() {
    let cases = [
        ("pipe 1 config bw", "a rate is missing after `bw`"),
        ("pipe 1 config delay 10 delay 20", "duplicate `delay`"),
        ("pipe 1 config red 0.002/5/15/0.1 codel", "duplicate `codel`"),
        ("pipe 1 config weight 3", "`weight` is an option of queues, not of a pipe"),
        ("queue 1 config pipe 1 weight 0", "found `0`, expected a weight from 1 to 65536"),
        ("queue 1 config pipe 1 weight 70000", "expected a weight from 1 to 65536"),
        ("queue 1 config pipe 0", "from 1 to 65534"),
        ("pipe 65535 config", "the number of a pipe from 1 to 65534"),
        ("pipe 1 config bw 10Mbps/s", "`Mbps/s` is not a unit of a rate"),
        ("pipe 1 config bw -1", "is below zero"),
        ("pipe 1 config bw 1.0001bit/s", "is not a whole number of bits a second"),
        ("pipe 1 config delay 10m", "`m` is not a unit of a time"),
        ("pipe 1 config queue 20X", "`X` is not a unit of a queue"),
        ("pipe 1 config delay 010", "`010` is octal in ipfw but looks decimal"),
        ("pipe 1 config bw 010Mbit/s", "`010Mbit/s` is octal in ipfw"),
        ("pipe 1 config queue 2Mbytes", "ipfw takes `2Mbytes` as a number of slots"),
        ("pipe 1 config codel bw 1Mbit/s", "`bw` is not an option of `codel`: ipfw ignores it there"),
        ("pipe 1 config type fq_pie delay 5", "write it before `type fq_pie`"),
        ("pipe 1 config bw 1Mbit/s; add pipe 1 in", "`;` and `&&` separate commands of a shell"),
        ("pipe 1 config plr 1.5", "expected a probability from 0 to 1"),
        ("pipe 1 config plr 0.1,0.2", "one probability, or four"),
        ("pipe 1 config red 0.002/15/5/0.1", "15, is not below the upper threshold, 5"),
        ("pipe 1 config red 0.002/5/15", "w_q/min_th/max_th/max_p"),
        ("pipe 1 config ecn", "follows `red`"),
        ("pipe 1 config mask", "the part of the header that the mask is for"),
        ("pipe 1 config mask src-ipp 0xff", "did you mean `src-ip`?"),
        ("pipe 1 config mask src-port 0x1ffff", "has a digit too many: src-port has 16 bits"),
        ("pipe 1 config mask proto 300", "expected a mask from 0 to 255"),
        ("pipe 1 config mask src-ip6 /129", "from 0 to 128"),
        ("sched 1 config type qfqq", "did you mean `qfq`?"),
        ("sched 1 config type gfq", "`gfq` exists in ipfw but not in narrows"),
        ("sched 1 config pipe 2", "scheduler 1 sends through pipe 2"),
        ("add 70000 allow in", "the number of a rule from 1 to 65534"),
        ("add 100 set 32 allow in", "the number of a set from 0 to 31"),
        ("add 100 prob 1.5 allow in", "a probability above 0 and at most 1"),
        ("add 100 prob 0 allow in", "a probability above 0 and at most 1"),
        ("add 100", "the action of the rule is missing"),
        ("add pipe", "the number of a pipe is missing after `pipe`"),
        ("add pipe one in", "found `one`, expected the number of a pipe from 1 to 65534"),
        ("add allow ip from any to any 99999", "expected a port from 0 to 65535"),
        ("add allow src-port 80-70", "`80-70` is a descending range"),
        ("add allow src-port htpp", "did you mean `http`?"),
        ("add allow src-port 010", "octal in ipfw but looks decimal"),
        ("add allow src-ip 10.0.0.0/33", "a number of bits from 0 to 32"),
        ("add allow src-ip 10.0.0", "expected an address or the name of a host"),
        ("add allow src-ip 10.0.0.0:255.255", "expected a mask such as 255.255.255.0"),
        ("add allow src-ip 10.0.0.0/24{7,300}", "from 0 to 255"),
        ("add allow src-ip 10.0.0.0/8{7}", "in an IPv4 network of 24 to 31 bits"),
        ("add allow src-ip nobody.example", "no host is called `nobody.example`: nobody knows it"),
        ("add allow src-ip table(1,2,3)", "expected a value from 0"),
        ("add allow tcp frm any to any", "found `frm`, expected `from`"),
        ("add allow tcp from any", "`to` is missing after `any`"),
        ("add allow tcp from not any to any", "`not any` matches no packet"),
        ("add allow { in or out", "this block has no end"),
        ("add allow in or out", "`or` outside of braces"),
        ("add allow not not in", "`not` twice"),
        ("add allow { in or { out } }", "a block within a block"),
        ("add allow { keep-state or in }", "`keep-state` cannot be part of an or-block"),
        ("add allow { MAC 1:2:3:4:5:6 1:2:3:4:5:7 or in }", "combines two conditions"),
        ("add allow tcp from any to any limit src-adr 4", "did you mean `src-addr`?"),
        ("add allow keep-state limit src-addr 4", "two of `keep-state`, `limit`"),
        ("add fwd 10.0.0.1,x ip from any to any", "expected a port"),
        ("add fwd 127.0.0.1 ip from any to any", "passes packets to a program"),
        ("add setmark 4294967296 ip from any to any", "expected a mark from 0 to 4294967295"),
        ("add setfib 65536 ip from any to any", "expected the number of a routing table from 0 to 65535"),
        ("add allow ip from any to any mark 1:x", "expected a mask"),
        ("add allow ip from any to any flow fl", "expected a table of flows"),
        ("table f create type flow:src-ip,port", "expected a field of a flow"),
        ("add check-state in", "`check-state` applies to every packet"),
        ("add allow tag 1 untag 2 in", "`untag` with another tag"),
        ("add allow tag 0 in", "a tag from 1 to 65534"),
        ("add allow tcpflags syn,ackk", "did you mean `ack`?"),
        ("add allow tcpflags syn,!syn", "set and not set"),
        ("add allow iptos lowdely", "did you mean `lowdelay`?"),
        ("add allow dscp 64", "a code point from 0 to 63"),
        ("add setdscp af14 in", "allowed: a number from 0 to 63"),
        ("add allow icmptypes 256", "an ICMP type from 0 to 255"),
        ("add allow ipversion 5", "4 or 6, a version of IP"),
        ("add allow MAC 1:2:3 any", "an address of six bytes"),
        ("add allow lookup src-ipp 1", "did you mean `src-ip`?"),
        ("add allow via 10.0.0.1", "names an interface by its address"),
        ("add allow establishd", "did you mean `established`?"),
        ("table 1 ad 10.0.0.0/8", "did you mean `add`?"),
        ("table 1 add 10.0.0.0/8 x", "expected a value from 0 to 4294967295"),
        ("table all add 10.0.0.0/8", "`add` is for one table, not for all"),
        ("table web create type port", "expected `addr`, `iface`, `mac`, `number` or `flow`"),
        ("sysctl net.inet.ip.fw.one_pass=2", "found `2`, expected 0 or 1"),
        ("set enable", "the number of a set is missing"),
        ("set disable 31", "set 31 cannot be disabled"),
        ("set enable 1 disable 1", "set 1 is both enabled and disabled"),
        ("set move 3 4", "found `4`, expected `to`"),
        ("delete", "the number of a rule is missing after `delete`"),
        ("delete 7-5", "`7-5` is a descending range"),
        ("-z list", "unknown flag `-z`"),
        ("list 100 now", "the number of a rule"),
        ("flush everything", "found `everything`, expected the end of the command"),
        ("pipe 1 cnfig bw 1", "did you mean `config`?"),
    ];
    for (line, expected) in cases {
        let error = Script::parse(line, "test.conf", &context()).expect_err(line).to_string();
        assert!(error.contains(expected), "{line}\n{error}");
        assert!(error.contains("test.conf:1:"), "{line}\n{error}");
    }
}

#[test]
fn lines_are_joined_as_in_the_papers_and_comments_left_out() {
    let script = script(
        "#!/bin/sh\n\
         add 100 pipe 1 ip \\\n  from any to any // kept\n\
         \tpipe 1 config bw 1Mbit/s # not kept\n\
         \tqueue 20\n\
         \tmask src-ip 0xff\n\
         // a remark\n\
         /sbin/ipfw -q add 200 allow { src-ip 1.2.3.4, 5.6.7.8 or not dst-port 80 , 443 }\n",
    );
    assert_eq!(script.rules[0].comment.as_deref(), Some("kept"));
    assert_eq!(
        ipfw::rule_text(&script.rules[1]),
        "200 allow ip from any to any { src-ip 1.2.3.4,5.6.7.8 or not dst-port 80,443 }"
    );
    let toml = script.to_toml("net", ["a", "b"]);
    assert!(toml.contains("queue = \"20 packets\"\nmask = { src-ip = \"0x000000ff\" }"), "{toml}");
    let numbers: Vec<usize> = script.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [2, 4, 8]);
}

#[test]
fn commands_change_what_is_there() {
    let script = script(
        "pipe 1 config bw 1Mbit/s\npipe 2 config delay 5\nqueue 7 config pipe 1 weight 3\nqueue 7 config queue 5\n\
         add allow in\nadd allow out\nadd 150 set 3 deny in\nadd 150 set 4 count out\nadd 900 set 31 count in\n\
         delete 100 // the first\nset move 4 to 5\nset disable 5 6 enable 3\nset swap 3 7\npipe 2 delete\n\
         table 1 add 10.0.0.0/8 1\ntable 1 add 10.0.0.0/8 2 192.0.2.1 0x10\ntable 1 add 2001:db8::/32\ntable 1 delete 192.0.2.1/32\n\
         table web create type addr\ntable web add 10.9.0.0/16 1.2.3.4\ndisable one_pass",
    );
    let listed: Vec<String> = script.rules.iter().map(ipfw::rule_text).collect();
    assert_eq!(
        listed,
        [
            "150 set 7 deny ip from any to any in",
            "150 set 5 count ip from any to any out",
            "200 allow ip from any to any out",
            "900 set 31 count ip from any to any in",
        ]
    );
    assert_eq!((script.disabled_sets, script.one_pass), (1 << 5 | 1 << 6, false));
    let tables = ipfw::table_lines(&script.tables, None);
    assert_eq!(
        tables,
        "---table(1)---\n10.0.0.0/8 2\n2001:db8::/32 0\n---table(web)---\n10.9.0.0/16 16909060\n"
    );
    assert_eq!(ipfw::table_lines(&script.tables, Some("1")), "10.0.0.0/8 2\n2001:db8::/32 0\n");
    let toml = script.to_toml("net", ["a", "b"]);
    assert!(toml.contains("[links.net.queues.7]\npipe = 1\nweight = 3\nqueue = \"5 packets\"\n"), "{toml}");
    assert!(toml.contains("disabled-sets = [5, 6]") && !toml.contains("pipes.2"), "{toml}");
    let remark = |number: usize| {
        script.lines.iter().find(|line| line.number == number).map(|line| line.remarks.join("; "))
    };
    assert_eq!(remark(6).as_deref(), Some("no number given: it gets 200"));
    assert!(remark(4).is_some_and(|remark| remark.contains("was configured before")));
    // `flush` leaves set 31.
    let mut script = script;
    script.apply(ipfw::Command::Flush(None)).unwrap();
    assert_eq!(script.rules.len(), 1);
    assert_eq!(ipfw::sets_line(script.disabled_sets).split(" enable").next(), Some("disable 5 6"));
    assert!(ipfw::sets_line(0).starts_with("enable 0 1 2") && ipfw::sets_line(0).ends_with(" 30\n"));
}

/// As in FreeBSD, PIE has both refinements unless told otherwise.
#[test]
fn pie_may_be_told_to_be_basic() {
    let toml =
        |options: &str| script(&format!("pipe 1 config bw 1M pie {options}\n")).to_toml("net", ["a", "b"]);
    for (options, derandomize, cap_drop) in
        [("", true, true), ("noderand", false, true), ("nocapdrop derand", true, false)]
    {
        let toml = toml(options);
        for key in [format!("derandomize = {derandomize}"), format!("cap-drop = {cap_drop}")] {
            assert!(toml.contains(&key), "{options}: {toml}");
        }
    }
    let script = script("pipe 1 config bw 1M pie ts\n");
    assert_eq!(script.lines[0].remarks[1..2], ["`ts` changes nothing: delays are measured by time stamps"]);
}

/// The keys of pipes and queues that directions of links have, too, are such keys with such values.
#[test]
fn keys_of_pipes_are_keys_of_links() {
    let script = script(
        "pipe 1 config bw 3Mbit/s delay 32ms queue 20 plr 0.06\n\
         pipe 2 config bw 100KByte/s delay 500us queue 30Kbytes red 0.002/5K/15K/0.1\n\
         pipe 3 config bw 1.5Gbit/s gred 0.01/5/15/1 ecn\n\
         pipe 4 config bw 64000 codel\n\
         pipe 5 config bw 1M pie target 20 tupdate 30ms alpha 0.125 beta 1.25 max_burst 100ms max_ecnth 0.2 ecn\n\
         pipe 6 config bw 1M plr 0.001,0.01,0.8,0.3\n\
         sched 1 config type fq_codel flows 512 quantum 300 target 5ms\n\
         sched 2 config type fq_pie noecn alpha 0.2\n\
         sched 3 config type prio\n\
         queue 1 config sched 6 codel target 10ms interval 200ms ecn\n\
         queue 2 config sched 1\n\
         queue 3 config sched 2\n",
    );
    let toml = script.to_toml("net", ["a", "b"]);
    let sections: Vec<&str> = toml.split("\n[links.net.").skip(1).collect();
    assert_eq!(sections.len(), 9, "{toml}");
    for section in sections {
        let keys: Vec<&str> = section
            .lines()
            .skip(1)
            // What only pipes and queues have, and a scheduler of classes, of which a plain link has none.
            .filter(|line| !["mask", "pipe", "scheduler = \"prio"].iter().any(|key| line.starts_with(key)))
            .collect();
        let file =
            format!("[hosts.a]\n[hosts.b]\n[links.net]\nbetween = [\"a\", \"b\"]\n{}\n", keys.join("\n"));
        Scenario::parse(&file, "net.toml").unwrap_or_else(|error| panic!("{section}\n{error}"));
    }
}

/// What rules name as interfaces: whose they are, what is guessed, and that no script passes whose pipes nothing reaches.
#[test]
fn interfaces_of_rules_are_those_of_the_hosts() {
    use narrows_scenario::Interfaces;
    let interfaces = |given: &[&str]| {
        let mut all = Interfaces::default();
        given.iter().for_each(|one| all.add(one).unwrap());
        all
    };
    let read = |rule: &str, given: &[&str]| {
        let text = format!("pipe 1 config bw 1Mbit/s\nadd 100 pipe 1 ip from any to any {rule}\n");
        Script::at_interfaces(&text, "x.conf", &interfaces(given))
    };
    let comes_to = |rule: &str, given: &[&str]| {
        let script = read(rule, given).unwrap_or_else(|error| panic!("{error}"));
        (ipfw::rule_text(&script.rules[0]), script.lines[1].remarks.concat())
    };
    let rule = |end: &str| format!("100 pipe 1 ip from any to any {end}");
    for (written, given, expected) in [
        ("out xmit em0", "em0=client", "out"),
        ("in via em0", "em0=client", "in"),
        ("out via em1", "em1=server", "in"),
        ("in recv em1", "em1=server", "out"),
        ("out recv em1", "em1=server", "out"),
        ("not in via em0", "em0=client", "not in via any"),
        ("recv em0", "em0=client", "in"),
        ("xmit em1", "em1=server", "in"),
        ("recv em1", "em1=server", "out"),
        ("via em*", "em1=server", "via any"),
    ] {
        assert_eq!(comes_to(written, &[given]), (rule(expected), String::new()), "{written} {given}");
    }
    let (guessed, remark) = comes_to("recv em0", &[]);
    assert_eq!(guessed, rule("in"));
    assert!(remark.starts_with("em0 is assumed to be the client's interface"), "{remark}");
    // Of a router with two, the one that is named first is taken as the client's side.
    let (_, remark) = comes_to("recv em0 xmit em1", &[]);
    assert!(
        remark.starts_with("em0 is assumed to be a router's interface towards the client, and em1"),
        "{remark}"
    );
    assert_eq!(comes_to("out recv em1 xmit em0", &["em0=server", "em1=client"]).0, rule("in in"));
    // Another than the one that is given is nobody's.
    for (written, given) in [("recv em0", &["em1=client"]), ("via none", &["em0=client"])] {
        match read(written, given) {
            Err(error) => {
                let shown = error.to_string();
                assert!(shown.contains("no packet can reach a pipe: there is no interface `em0`"), "{shown}");
                assert!(shown.contains("x.conf:2:") && shown.contains("--interface em0=client"), "{shown}");
            }
            // Who writes `none` means it.
            Ok(_) => assert_eq!(written, "via none"),
        }
    }
    let mut all = interfaces(&["em0=client"]);
    for wrong in ["em1", "=client", "em1=router", "em0=server"] {
        assert!(all.add(wrong).is_err(), "{wrong}");
    }
}

/// What is about the rest of a host says so, and so does what a firewall does with packets that a link passes on.
#[test]
fn what_concerns_a_host_alone_changes_nothing() {
    let text = "sysctl net.inet.tcp.tso=0\nsysctl kern.ipc.nmbclusters=65536\nsysctl -w net.inet.tcp.cc.algorithm=cubic\n\
                ipfw -q set 2 table 7 create or-flush\nipfw -q set 2 table 7 add 10.0.0.0/8\n\
                ipfw add 100 reass ip from any to any in\nipfw add 200 allow udp from table(7) to any 'loc\\-srv,5353'\n";
    let read = script(text);
    let remarks: Vec<String> = read.lines.iter().map(|line| line.remarks.concat()).collect();
    assert!(
        remarks[..3].iter().all(|line| line.contains("is a setting of a host, not of its rules")),
        "{remarks:?}"
    );
    assert!(remarks[3].contains("belongs to no set") && remarks[5].contains("`reass` counts"), "{remarks:?}");
}

/// What may be set in FreeBSD and not here says why; a value must be a number all the same.
#[test]
fn settings_without_effect_say_why() {
    let read =
        script("sysctl net.inet.ip.dummynet.io_fast=1\nsysctl net.inet.ip.dummynet.pipe_slot_limit=1000\n");
    let remarks: Vec<String> = read.lines.iter().map(|line| line.remarks.concat()).collect();
    assert!(remarks[0].contains("changes nothing here: every packet"), "{remarks:?}");
    assert!(remarks[1].contains("changes nothing here: queues may have any number of slots"), "{remarks:?}");
    let many = Script::parse("sysctl net.inet.ip.dummynet.hash_size=many", "x.conf", &context());
    assert!(many.expect_err("it is wrong").to_string().contains("found `many`"));
}
