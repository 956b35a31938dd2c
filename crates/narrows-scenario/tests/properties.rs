//! No text makes the parser panic, and what it accepts can be built, explained, written back and read again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::{Engine, Time};
use narrows_scenario::{Files, LinkFlags, Scenario};
use proptest::prelude::*;

/// Pieces of scenarios, right and wrong.
const PIECES: &[&str] = &[
    "seed = 7",
    "duration = \"31s\"",
    "[hosts.client]",
    "[hosts.server]",
    "[hosts.\"x y\"]",
    "addresses = [\"10.0.0.1/24\"]",
    "[junctions.j]",
    "[junctions.client]",
    "[links.access]",
    "[links.a]",
    "[links.b]",
    "[links.access.up]",
    "[links.a.down]",
    "between = [\"client\", \"server\"]",
    "between = [\"client\", \"j\"]",
    "between = [\"j\", \"server\"]",
    "between = [\"j\", \"k\"]",
    "between = [\"client\", \"r\"]",
    "between = [\"r\", \"server\"]",
    "between = [\"r\", \"j\"]",
    "[routers.r]",
    "[routers.j]",
    "multipath = \"packet\"",
    "routes = [{ to = \"server\", via = [\"a\", \"b\"], weights = [1, 2] }]",
    "routes = [{ to = \"0.0.0.0/0\", via = \"access\" }]",
    "addresses = { a = [\"10.0.0.2/24\"] }",
    "cost = 7",
    "[junctions.k]",
    "shared = true",
    "rate = \"10mbit\"",
    "rate = \"1000tbit\"",
    "rate = 5",
    "delay = \"10ms\"",
    "delay = \"876000h\"",
    "delay = { normal = { mean = \"10ms\", sd = \"876000h\" } }",
    "delay = { uniform = { low = \"0ms\", high = \"1h\" }, order = \"allow\" }",
    "jitter = \"2ms\"",
    "order = \"keep\"",
    "queue = \"13 packets\"",
    "queue = { bound = \"1B\", drop = \"head\" }",
    "queue = { type = \"red\", min = \"1 packet\", weight = 1 }",
    "queue = \"dualpi2\"",
    "queue = { type = \"choke\", bound = \"1 packet\", candidates = 64, max = \"2 packets\" }",
    "queue = { type = \"sfb\", bin-target = \"1 packet\", bin-max = \"1 packet\", penalty-rate = 4294967295, penalty-burst = 4294967295, rehash = \"1ms\" }",
    "scheduler = \"fq_codel\"",
    "scheduler = { type = \"drr\", flows = 3, quantum = \"256B\" }",
    "scheduler = { type = \"qfq\", classes = [{ name = \"a\", weight = 16777216, match = { source = \"client\" } }, { name = \"b\" }] }",
    "down.scheduler = { type = \"prio\", default = \"drop\", classes = [{ name = \"a\", match = { port = 1 }, queue = \"pie\" }] }",
    "scheduler = \"dcf\"",
    "scheduler = { type = \"hhf\", quantum = \"256B\", admit = \"1B\", reset = \"1us\", evict = \"1us\", weight = 1000, heavy-limit = 65536, bound = \"1 packet\" }",
    "scheduler = { type = \"cake\", bandwidth = \"20mbit\", tins = \"diffserv8\", isolation = \"hosts\", rtt = \"1us\", overhead = -64, mpu = \"256 bytes\", cells = \"ptm\", ingress = true, wash = true, bound = \"1MB\" }",
    "scheduler = { type = \"csma-cd\", propagation = 5, slot = 4096, backoff-limit = 4, attempt-limit = 3 }",
    "scheduler = { type = \"hpd\", bound-order = \"earliest-deadline\", classes = [{ name = \"a\", match = { dscp = 46 }, ddp = 4294967295, limit = \"1ns\", gamma = 1024, g = 0, estimator = { type = \"ewma-r\", threshold = 0 } }, { name = \"b\", gamma = \"auto\", estimator = { type = \"ewma-pe\", steps = 255, width = \"12.5%\" } }] }",
    "overhead = { bytes = -65536, cells = { payload = 1, size = 65536 } }",
    "loss = 0.1",
    "loss = { ingress = \"100%\" }",
    "reorder = \"1% gap 3\"",
    "delay = { log-normal = { median = \"10ms\", sigma = 0.25 }, shift = \"-1ms\", correlation = \"20ms\", per-byte = \"0.8ns\" }",
    "delay = { gamma = { mean = \"10ms\", sd = \"1ns\" }, minimum = \"9ms\", maximum = \"11ms\", correlation = \"25%\" }",
    "delay = { weibull = { shape = 0.05, scale = \"1h\" }, below-zero = \"truncate\" }",
    "delay = { pareto = { shape = 0.05, minimum = \"1ns\" }, order = \"allow\" }",
    "delay = { pareto-normal = { mean = \"1ms\", sd = \"1ms\" } }",
    "delay = { table = { name = \"pareto\", mean = \"10ms\", sd = \"2ms\" } }",
    "delay = { table = { file = \"x.dist\", mean = \"10ms\", sd = \"2ms\" } }",
    "delay = { samples = { file = \"rtt.txt\", unit = \"ms\", column = 1 } }",
    "delay = { histogram = { bins = [[\"1ms\", \"2ms\", 0.3], [\"2ms\", \"2ms\", 1000000000]] } }",
    "delay = { cdf = { points = [[\"1ms\", \"0.1%\"], [\"2ms\", 0.5], [\"9ms\", 1]] } }",
    "delay = { mixture = [{ weight = 9, normal = { mean = \"1ms\", sd = \"9ms\" } }, { weight = 0.1, exponential = { mean = \"1ms\" }, shift = \"5ms\" }] }",
    "delay = { pattern = \"d.pattern\" }",
    "down.delay = { feed = \"a\", on-empty = \"repeat\", lead = 7, ask = \"2ms\" }",
    "up.delay = { classes = [{ match = \"udp\", delay = { feed = \"b\" } }, { match = { port = 1 }, delay = \"1ms\" }] }",
    "loss = { gilbert-elliott = { p = 1e-7, r = 0.3, loss-bad = 1, loss-good = \"1%\" }, ecn = true }",
    "loss = { ingress = { markov = { p13 = 0.1, p31 = 0.2, p14 = 0.9 } }, with-delay = [[\"1ms\", \"0%\"], [\"2ms\", \"100%\"]] }",
    "loss = { conditional = [0.1, 0, 1] }",
    "loss = { wire = { pattern = \"l.pattern\" } }",
    "loss = { rate = \"1%\", correlation = \"99.9%\" }",
    "corrupt = { bit-errors = \"10%\" }",
    "corrupt = { pattern = { file = \"b.pattern\" } }",
    "duplicate = { rate = 0.5, correlation = 0.5 }",
    "slots = { gap = { uniform = { low = \"0ms\", high = \"1h\" } }, packets = 4294967295, bytes = \"1B\" }",
    "slots = { gap = \"1ns\" }",
    "trace = \"cell.down\"",
    "down.trace = { file = \"path.csv\", then = \"end\", start = \"1s\" }",
    "up.trace = { file = \"path.csv\", then = \"loop\", start = \"1h\" }",
    "netem = \"delay 10ms 5ms 25% distribution pareto loss gemodel 1% 30% duplicate 1% slot 1ms\"",
    "exact-netem = \"delay 10ms 5ms 25% loss 1% rate 1mbit limit 50\"",
    "exact-netem = \"none\"",
    "profile = \"radio.profile\"",
    "burst = \"10kB\"",
    "mtu = 68",
    "line-limit = \"1 packet\"",
    "outage = true",
    "[[traffic]]",
    "from = \"client\"",
    "to = \"server\"",
    "constant = \"1000000000/s\"",
    "poisson = \"1bit\"",
    "on-off = { pace = \"1/876000h\", on = \"1ns\", off = { pareto = { mean = \"1ns\", shape = 1.0001 } } }",
    "length = { mix = [{ length = \"40 bytes\", weight = 1000000000 }] }",
    "capture = \"x\"",
    "aimd = { scalable = true, window = 1000000, size = \"1000 GB\" }",
    "web = { load = \"1bit\", response = { pareto = { mean = \"1000 GB\", shape = 1.0001, most = \"1B\" } } }",
    "file = { put = true, users = 16384, tcp = { congestion = \"none\", buffer = \"1 GiB\", mtu = 576 } }",
    "voip = { pace = \"1/876000h\", duration = \"1ns\", talk = \"1ns\", silence = { exponential = \"876000h\" } }",
    "dns = { load = \"1000tbit\", tries = 1000000, timeout = \"1ns\" }",
    "telnet = { users = 1, response = { mix = [{ size = \"1B\", weight = 1 }] }, pause = \"0s\" }",
    "protocol = \"tcp\"",
    "protocol = 255",
    "ecn = \"ce\"",
    "[[timeline]]",
    "at = \"5s\"",
    "every = \"1ns\"",
    "times = 9223372036854775806",
    "set = { access.outage = true }",
    "set = { \"access.rate\" = \"1bit\", a = { up = { delay = \"1ms\" } } }",
    "set = { \"access.scheduler.a.weight\" = 3, \"access.queue.target\" = \"3ms\" }",
    "set = { \"access.delay.correlation\" = \"5ms\", \"access.loss.gilbert-elliott.p\" = 0.5 }",
    "set = { \"access.trace\" = \"path.csv\", \"access.delay\" = { feed = \"late\" } }",
    "set = {}",
    "= = =",
    "\u{0}",
    "é = \"…\"",
];

/// The files that they name.
const FILES: &[(&str, &str)] = &[
    ("cell.down", "1\n2\n2\n5\n"),
    ("path.csv", "time_s,rate_mbit,delay_ms,loss,queue_packets\n0,10,5,0,10\n1,0,6,1,5\n2,,,,\n"),
    ("rtt.txt", "10\n12\n"),
    ("radio.profile", "bw 2Mbit/s\nprob delay\n0 1\n1 2\n"),
    ("x.dist", "-8192 0 8192\n"),
    ("d.pattern", "pattern delay\nper millisecond\nlength 10\n1 3ms\n"),
    ("l.pattern", "pattern loss\nper packet\nlength 10\n3\n"),
    ("b.pattern", "pattern bit-errors\nper bit\nlength 1000000\n77\n"),
];

fn files() -> Files {
    Files::given(FILES.iter().map(|(name, contents)| (*name, contents.as_bytes().to_vec())))
}

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..14).prop_map(|lines| lines.join("\n"))
}

/// One of the example files, with a few bytes replaced, removed or doubled.
fn mutated() -> impl Strategy<Value = String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files =
        ["adsl", "bursty", "chain", "half-duplex", "jitter", "l4s", "outage", "voip-and-bulk", "wifi"].map(
            |name| {
                std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("the example is there")
            },
        );
    let edit = (any::<prop::sample::Index>(), 0usize..12, "[ -~é\n]{0,6}");
    (proptest::sample::select(files.to_vec()), proptest::collection::vec(edit, 1..6)).prop_map(
        |(text, edits)| {
            let mut chars: Vec<char> = text.chars().collect();
            for (at, length, new) in edits {
                let at = at.index(chars.len());
                let end = (at + length).min(chars.len());
                chars.splice(at..end, new.chars());
                if chars.is_empty() {
                    break;
                }
            }
            chars.into_iter().collect()
        },
    )
}

/// Everything that is done with a scenario that was accepted.
fn use_it(scenario: &Scenario) {
    let explanation = scenario.explain();
    assert!(explanation.to_string().contains("seed"));
    serde_json::to_string(&explanation).unwrap();
    let written = scenario.to_toml();
    // What it has read so far is all that it takes to read it again.
    let read = scenario.files().into_iter().map(|file| (file.name, file.contents.to_vec()));
    let again = Scenario::parse_with(&written, &scenario.file, Files::given(read))
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert!(again == *scenario, "{written}");
    Engine::<()>::new(scenario.network()).unwrap();
    let mut timeline = scenario.timeline();
    timeline.first_packet(Time::ZERO);
    let mut live = scenario.clone();
    let mut last = Time::ZERO;
    for event in timeline.take(50) {
        assert!(event.at >= last);
        last = event.at;
        live.assign_at(event.at, &event.changes).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn try_it(text: &str) {
    match Scenario::parse_with(text, "net.toml", files()) {
        Ok(scenario) => use_it(&scenario),
        Err(error) => {
            assert!(error.to_string().starts_with("error: "), "{error}");
            assert!(error.count() > 0);
        }
    }
}

#[test]
fn no_depth_does() {
    for (open, close) in [("[", "]"), ("{ a = ", " }"), ("[{ a = ", " }]")] {
        let deep = format!("seed = {}1{}", open.repeat(50_000), close.repeat(50_000));
        try_it(&deep);
        let flags = LinkFlags::default().with("rate", &deep[7..]);
        assert!(Scenario::from_flags(&flags).is_err());
    }
    try_it(&format!("seed.{}a = 1", "a.".repeat(50_000)));
    try_it(&format!("[{}a]", "a.".repeat(50_000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        try_it(&text);
    }

    #[test]
    fn no_pieces_in_any_order_do(text in pieces()) {
        try_it(&text);
    }

    #[test]
    fn no_pieces_after_a_good_beginning_do(text in pieces()) {
        let begin = "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n";
        try_it(&format!("{begin}{text}"));
    }

    #[test]
    fn no_change_of_an_example_does(text in mutated()) {
        try_it(&text);
    }

    #[test]
    fn no_flags_and_no_assignment_do(
        flags in proptest::array::uniform12(proptest::option::of("[0-9./%a-z{}\" -]{0,16}")),
        scheduler in proptest::option::of("(none|drr|qfq|fq_codel|prio|dcf|[a-z{}/]{0,9})"),
        key in proptest::sample::select(vec![
            "rate", "delay", "jitter", "order", "queue", "overhead", "loss", "reorder", "mtu", "line-limit",
            "outage", "queue.bound", "loss.wire", "delay.correlation", "delay.normal.sd", "loss.gilbert-elliott.p", "slots.gap", "trace",
            "corrupt.rate", "reorder.correlation", "netem", "exact-netem", "duplicate.correlation", "zzz", "", "scheduler", "scheduler.a.weight", "scheduler.type",
            "scheduler.flows", "scheduler.a.queue.bound", "queue.type", "queue.target",
        ]),
        way in proptest::sample::select(vec!["", ".up", ".down", ".across"]),
        value in "\\PC{0,24}",
    ) {
        let [rate, delay, jitter, order, loss, queue, overhead, duplicate, corrupt, reorder, mtu, line_limit] = flags;
        let flags = LinkFlags::default().given("rate", rate).given("delay", delay).given("jitter", jitter).given("order", order).given("loss", loss).given("queue", queue).given("overhead", overhead).given("duplicate", duplicate).given("corrupt", corrupt).given("reorder", reorder).given("mtu", mtu).given("line-limit", line_limit).given("scheduler", scheduler);
        if let Ok(scenario) = Scenario::from_flags(&flags) {
            use_it(&scenario);
        }
        let mut scenario = Scenario::from_flags(&LinkFlags::default()).unwrap();
        match scenario.assign(&format!("link{way}.{key}={value}")) {
            Ok(_) => use_it(&scenario),
            Err(error) => assert!(error.to_string().starts_with("error: "), "{error}"),
        }
    }

    /// A number and a unit that are right in themselves are accepted, exactly or not at all.
    #[test]
    fn units_are_exact(
        whole in 0u64..1_000_000, part in 0u32..1_000_000, unit in proptest::sample::select(vec![
            ("ns", 1u128), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000),
        ]),
    ) {
        let (name, factor) = unit;
        let flags = LinkFlags::default().with("delay", format!("{whole}.{part:06}{name}"));
        let millionths = (u128::from(whole) * 1_000_000 + u128::from(part)) * factor;
        match Scenario::from_flags(&flags) {
            Ok(scenario) => {
                let mean = scenario.links[0].directions()[0].1.effective_delay().mean().unwrap();
                prop_assert_eq!(u128::from(mean.nanos()) * 1_000_000, millionths);
            }
            Err(_) => prop_assert!(!millionths.is_multiple_of(1_000_000)),
        }
    }
}
