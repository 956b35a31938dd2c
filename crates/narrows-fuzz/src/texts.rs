//! Texts that people and programs write: scenarios, scripts of ipfw and tc, NetEm's words, tables, traces.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use narrows_core::{Engine, Time};
use narrows_report::read_series;
use narrows_scenario::ipfw::{self, Context};
use narrows_scenario::pattern::Pattern;
use narrows_scenario::tables::{SampleColumn, read_cdf, read_dist, read_histogram, read_samples};
use narrows_scenario::trace::{Columns, Format, Trace};
use narrows_scenario::{Files, Profile, Scenario, netem as words, tc as scripts};

/// Longer texts take time and tell nothing more.
const LONGEST: usize = 1 << 14;

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST)
}

/// A scenario: what is read can be built, explained and changed.
///
/// # Panics
/// When what was accepted is no network.
pub fn scenario(bytes: &[u8]) {
    // Names of hosts in rules would be looked up in the world: rules have a target of their own.
    let Some(text) = text(bytes).filter(|text| !text.contains("rules")) else { return };
    let files = Files::given(FILES.map(|(name, content)| (name, content.as_bytes().to_vec())));
    let Ok(mut scenario) = Scenario::parse_with(text, "fuzz.toml", files) else { return };
    let network = scenario.network();
    // Large numbers of flows are allowed, and take memory.
    if text.len() < 4000 {
        Engine::<()>::new(network).unwrap_or_else(|error| panic!("accepted, but {error}\n{text}"));
    }
    scenario.explain();
    let mut timeline = scenario.timeline();
    for event in std::iter::from_fn(|| timeline.next()).take(10) {
        drop(scenario.change_at(event.at.min(Time::NEVER), &event.changes));
    }
}

const FILES: [(&str, &str); 4] = [
    ("cell.down", "1\n2\n2\n5\n"),
    ("path.csv", "time_s,rate_mbit,delay_ms,loss,queue_packets\n0,10,5,0,10\n1,0,6,1,5\n2,,,,\n"),
    ("rtt.txt", "10\n12\n"),
    ("x.dist", "-8192 0 8192\n"),
];

/// Words of scenarios.
pub const OF_SCENARIOS: &[&str] = &[
    "rate = ",
    "delay = ",
    "queue = ",
    "scheduler = ",
    "loss = ",
    "mtu = ",
    "[links.x]\n",
    "[hosts.x]\n",
    "\"1ms\"",
    "\"1mbit\"",
    "\"-1\"",
    "\"9e99s\"",
    "{ ",
    "}",
    "[",
    "]",
    "type = ",
    "\"fq_codel\"",
    "\"pie\"",
    "[[timeline]]\n",
    "18446744073709551616",
    "0",
    "true",
    "classes = ",
    "match = ",
    "netem = ",
    "trace = \"path.csv\"",
    "samples = { file = \"rtt.txt\" }",
    "shared = true",
    "\n",
    "\"",
    "\u{e9}",
];

/// Files below a folder of the repository, where it is there; the seeds that are built in do else.
fn repository(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(folder);
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = entries
        .filter(|path| path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)))
        .collect();
    paths.sort();
    paths.into_iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// The scenarios that come with the program.
pub fn scenarios() -> Vec<Vec<u8>> {
    let plain = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\n";
    let mut all = repository("", &["toml"]);
    all.push(plain.into());
    all
}

/// A script of ipfw: what is read can be listed, and read again; as a scenario it is a network.
///
/// # Panics
/// When a rule that was listed is another one.
pub fn ipfw(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let hosts = [("client".to_owned(), vec![IpAddr::from([198, 18, 0, 1])])];
    let context = Context { interfaces: &["net"], hosts: &hosts, resolve: nobody, ..Context::default() };
    for line in text.lines().take(20) {
        if let Ok((command, _)) = ipfw::Command::parse(line, &context) {
            command.explain();
        }
    }
    let Ok(script) = ipfw::Script::parse(text, "fuzz", &context) else { return };
    for rule in &script.rules {
        let listed = ipfw::rule_text(rule);
        let read = ipfw::rule(&listed, &context).unwrap_or_else(|error| panic!("{listed}\n{error}"));
        assert_eq!(ipfw::rule_text(&read), listed);
    }
    script.to_toml("net", ["client", "server"]);
}

fn nobody(_: &str) -> io::Result<Vec<IpAddr>> {
    Err(io::Error::other("no name is looked up here"))
}

/// Words of ipfw.
pub const OF_IPFW: &[&str] = &[
    "add",
    "pipe",
    "queue",
    "sched",
    "config",
    "table",
    "1",
    "65535",
    "65536",
    "bw",
    "1Mbit/s",
    "delay",
    "10ms",
    "mask",
    "src-ip",
    "0xff",
    "/24",
    "dst-port",
    "all",
    "red",
    "0.002/5/15/0.1",
    "codel",
    "ecn",
    "type",
    "fq_codel",
    "limit",
    "allow",
    "deny",
    "skipto",
    "tablearg",
    "ip",
    "tcp",
    "from",
    "any",
    "to",
    "me6",
    "not",
    "{",
    "}",
    "or",
    ",",
    "-",
    "keep-state",
    "setup",
    "in",
    "out",
    "prob",
    "0.5",
    "plr",
    "//",
    "\n",
    "\\\n",
    "set",
    "swap",
    "1,2-5",
    "10.0.0.0/8",
];

/// The scripts that come with the program.
pub fn ipfw_scripts() -> Vec<Vec<u8>> {
    let mut all = repository("ipfw", &["conf"]);
    all.push(b"pipe 1 config bw 1Mbit/s delay 10ms\nadd pipe 1 ip from any to any\n".to_vec());
    all
}

/// A script of tc: what is read can be explained, carried out, and written as a scenario, which is read; what that shows as
/// tc's commands makes the same again.
///
/// # Panics
/// When it cannot.
pub fn tc(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    scripts::Script::is_meant(text);
    drop(words::Command::parse(text));
    drop(scripts::ClassShow::parse(text));
    drop(scripts::FilterShow::parse(text));
    let Ok(script) = scripts::Script::parse(text, "fuzz") else { return };
    drop(script.explain());
    for exact in [false, true] {
        let Ok(devices) = script.devices(exact) else { continue };
        let names: BTreeSet<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(devices.len(), names.len(), "{text}");
        if let Ok(made) = script.scenario_text(exact) {
            let read = Scenario::parse_with(&made, "made.toml", Files::default());
            let read = read.unwrap_or_else(|error| panic!("{text}\nmade\n{made}\n{error}"));
            for (_, direction) in read.links.iter().flat_map(|link| link.directions()) {
                direction.tc(scripts::Handle::FIRST).iter().for_each(|tree| shown_again(tree, exact, text));
            }
        }
    }
}

/// What can be shown in full makes the same once more, read as `text` was, of which it was made: the single queue of a NetEm
/// without options is a FIFO of a link with two queues.
fn shown_again(tree: &scripts::CurrentConfig, exact: bool, text: &str) {
    if !tree.unrepresentable.is_empty() || tree.filters.iter().any(|filter| filter.words.is_none()) {
        return;
    }
    let commands = tree.commands("eth0");
    let script =
        scripts::Script::parse(&commands, "shown").unwrap_or_else(|error| panic!("{commands}\n{error}"));
    let made = script.scenario_text(exact).unwrap_or_else(|error| panic!("{commands}\n{error}"));
    let read = Scenario::parse_with(&made, "made.toml", Files::default());
    let read = read.unwrap_or_else(|error| panic!("{commands}\nmade\n{made}\n{error}"));
    let (_, first) = read.links[0].directions()[0].clone();
    let again = first.tc(scripts::Handle::FIRST).map(|tree| tree.commands("eth0")).unwrap_or_default();
    assert_eq!(renumbered(&again), renumbered(&commands), "{text}\nmade\n{commands}\nmade\n{made}");
}

/// Commands with handles in the order in which they come: a qdisc whose handle the scenario does not keep gets another.
fn renumbered(commands: &str) -> String {
    let mut majors: Vec<&str> = Vec::new();
    let mut one = |word| -> String {
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parts = str::split_once(word, ':').filter(|(major, minor)| is_hex(major) && is_hex(minor));
        let Some((major, minor)) = parts else { return word.into() };
        let at = majors.iter().position(|known| *known == major).unwrap_or_else(|| {
            majors.push(major);
            majors.len() - 1
        });
        format!("{at}:{minor}")
    };
    commands.split([' ', '\n']).map(|word| one(word) + " ").collect()
}

/// NetEm's options: what is read has a text, which reads as the same.
///
/// # Panics
/// When it does not.
pub fn netem(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(read) = words::parse(text) else { return };
    let listed = read.text();
    let again = words::parse(&listed).unwrap_or_else(|error| panic!("{text}\nlisted as\n{listed}\n{error}"));
    assert_eq!(again.text(), listed, "{text}");
    read.seed();
    drop(read.assignments());
}

/// Words of tc and of its NetEm.
pub const OF_TC: &[&str] = &[
    "tc",
    "qdisc",
    "class",
    "filter",
    "add",
    "change",
    "del",
    "dev",
    "eth0",
    "root",
    "parent",
    "1:",
    "1:1",
    "ffff:",
    "handle",
    "classid",
    "flowid",
    "netem",
    "kernel",
    "6.1",
    "tbf",
    "htb",
    "hfsc",
    "rt",
    "ls",
    "ul",
    "m1",
    "m2",
    "umax",
    "dmax",
    "cbq",
    "prio",
    "sfq",
    "red",
    "fq_codel",
    "dualpi2",
    "choke",
    "sfb",
    "hhf",
    "rehash",
    "hpd",
    "rate",
    "1mbit",
    "burst",
    "10kb",
    "latency",
    "50ms",
    "limit",
    "delay",
    "10ms",
    "25%",
    "loss",
    "gemodel",
    "state",
    "ecn",
    "duplicate",
    "corrupt",
    "reorder",
    "gap",
    "slot",
    "distribution",
    "normal",
    "seed",
    "0",
    "4294967296",
    "-1",
    "u32",
    "match",
    "ip",
    "dport",
    "80",
    "0xffff",
    "protocol",
    "police",
    "drop",
    "\\\n",
    "\n",
    "#",
    "handle",
    "fw",
    "2:",
    "divisor",
    "ht",
    "link",
    "hashkey",
    "for",
    "in",
    "do",
    "done",
    "if",
    "[",
    "]",
    "then",
    "fi",
    "{1..3}",
    "$((1+",
    "$(seq",
    "))",
    "<<EOF",
    "EOF",
    "iptables",
    "-t",
    "mangle",
    "-A",
    "POSTROUTING",
    "-j",
    "MARK",
    "--set-mark",
    "!",
];

/// The scripts that come with the program.
pub fn tc_scripts() -> Vec<Vec<u8>> {
    let mut all = repository("tc", &["sh"]);
    all.push(b"tc qdisc add dev eth0 root netem delay 10ms\n".to_vec());
    all
}

/// Options of every kind.
pub fn netem_words() -> Vec<Vec<u8>> {
    [
        "delay 100ms 20ms 25% distribution normal",
        "limit 1000 loss 1% 25% ecn duplicate 1% corrupt 0.1% reorder 25% 50% gap 5",
        "loss gemodel 1% 10% 70% 0.1%",
        "loss state 1% 2% 3% 4% 5%",
        "rate 1mbit 14 48 5 delay 1ms",
        "slot 1ms 2ms packets 10 bytes 3000",
        "slot distribution normal 1ms 1ms seed 7",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Tables, samples, distributions, traces, patterns, profiles and series, in every format: a wrong one is an error.
///
/// # Panics
/// When a distribution that was accepted is none.
pub fn table(bytes: &[u8]) {
    if bytes.len() > LONGEST {
        return;
    }
    drop(read_dist("fuzz", bytes));
    drop(read_histogram("fuzz", bytes, None));
    drop(read_samples("fuzz", bytes, &SampleColumn::default()).map(|samples| samples.durations()));
    if let Ok(points) = read_cdf("fuzz", bytes, None) {
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "{points:?}");
    }
    drop(Pattern::read("fuzz", bytes).map(|pattern| (pattern.info(), pattern.text())));
    drop(Profile::read("fuzz", bytes).map(|profile| profile.info()));
    drop(std::str::from_utf8(bytes).map(read_series));
    for name in ["fuzz", "fuzz.csv", "fuzz.down", "fuzz.json", "fuzz.pattern"] {
        drop(Trace::read(name, bytes, None).map(|trace| trace.info()));
    }
    for &format in Format::ALL {
        drop(Trace::read("fuzz", bytes, Some(format)).map(|trace| trace.write(Format::SABRE)));
    }
    let columns = std::str::from_utf8(bytes).ok().and_then(|text| text.lines().next()?.parse().ok());
    let default = || "time=1,rate=2,unit=mbit".parse::<Columns>().expect("these are columns");
    let columns = columns.unwrap_or_else(default);
    drop(Trace::read_columns("fuzz", bytes, &columns).map(|trace| trace.info()));
}

/// Words of tables and traces.
pub const OF_TABLES: &[&str] = &[
    "0",
    "1",
    "-1",
    "1e9",
    "1e-9",
    "nan",
    "inf",
    "10ms",
    "5us",
    "100%",
    "0.5",
    "time_s",
    "rate_mbit",
    "delay_ms",
    ",",
    ";",
    "\t",
    "\n",
    "#",
    "prob",
    "bw",
    "loss-level",
    "delay",
    "per packet",
    "length",
    "18446744073709551616",
    "{",
    "[",
];

/// One of each format.
pub fn tables() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [
        "# mean\n-8192 0 8192\n1 2 3\n",
        "1ms 10\n2ms 20\n4ms 0\n",
        "10ms 0.1\n20ms 50%\n30ms 1\n",
        "rtt,loss\n10.5,0\n11,1\n",
        "bw 2Mbit/s\nloss-level 0.9\nprob delay\n0 1\n0.5 2\n1 9\n",
        "pattern loss\nper packet\nlength 10\n3\n7-9\n",
        "pattern delay\nper millisecond\nlength 10\n1 3ms\n",
        "1\n2\n2\n5\n",
        "start_ns,end_ns,kind,name,backlog_packets,sojourn_mean_ns,throughput_bps,dropped_packets,marked_packets\n\
         0,9,link,\"a,b\",3,20,1000,2,0\n9,18,link,\"a,b\",0,,0,0,0\n",
        "time_s,rate_mbit,delay_ms,loss,queue_packets\n0,10,5,0,10\n1,0,6,1,5\n2,,,,\n",
        "[{\"duration_ms\": 1, \"bandwidth_kbps\": 2, \"latency_ms\": 3}]\n",
        "0.0\t1.5\n0.5\t2\n",
        "1300000000 500000 59.9 10.7 250000 1000\n",
        "386,2016-06-01 00:04:11,http://a,1.2.3.4,1,1,10\n",
        "time=t,rate=\"r\",unit=mbit\nt,\"r\"\n1,2\n",
        r#"{"RepeatedBwPatternConfig":{"pattern":[{"TraceBwConfig":{"pattern":[["25ms",["10Mbps","20Mbps"]]]}}],"count":0}}"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    all.extend(
        repository("traces", &["csv", "down", "up", "json", "pattern"])
            .into_iter()
            .filter(|f| f.len() < LONGEST),
    );
    all.extend(repository("profiles", &["profile"]).into_iter().filter(|f| f.len() < LONGEST));
    all
}
