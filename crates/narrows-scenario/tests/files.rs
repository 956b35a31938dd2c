//! The scenarios that come with narrows, the schema, and writing a scenario back.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::path::{Path, PathBuf};

use narrows_core::Engine;
use narrows_scenario::{LinkFlags, Scenario};
use serde_json::Value;

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

fn schema() -> Value {
    serde_json::from_str(&narrows_scenario::schema()).expect("it is JSON")
}

/// The text as JSON, for the schema.
fn json(text: &str) -> Value {
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

/// Uses every key that a file may have, but for those that exclude each other.
const EVERYTHING: &str = r#"
seed = "18446744073709551615"
duration = "1.5min"

[hosts.a]
namespace = "blue"
addresses = { one = ["10.1.0.1/24", "fd00::1/64"] }
[hosts.b]
pid = 4711
addresses = ["10.1.0.2/24"]
[hosts.c]

[junctions.middle]

[routers.north]
addresses = { east = ["10.3.0.1/24"], west = ["10.4.0.1/24", "fd04::1/64"] }
multipath = "packet"
routes = [
    { to = "b", via = ["east", "west"], weights = [30, 70], spread = "flow" },
    { to = "10.0.0.0/8", via = "west" },
]
[routers.south]
addresses = { east = ["10.3.0.2/24"], west = ["10.4.0.2/24", "fd04::2/64"] }

[links.one]
between = ["a", "middle"]
order = "allow"
jitter = "1ms"
mtu = { bytes = 1400, policy = "answer" }
[links.one.up]
rate = "1.234567mbit"
delay = "10ms"
queue = { bound = "64kB", drop = "head" }
overhead = { base = "frame", bytes = -4, minimum = 64, cells = { payload = 48, size = 53 } }
loss = { ingress = "1%", wire = 0.005 }
duplicate = "0.1%"
corrupt = 1e-4
reorder = { probability = "25%", gap = 5 }
line-limit = "1000 packets"
outage = true
scheduler = { type = "qfq", bound = "1MB", default = "drop", classes = [
    { name = "calls", weight = 8, queue = { type = "codel", target = "10ms", interval = "200ms", longest = "300 bytes", ecn = false }, longest = "300 bytes", match = [
        { protocol = ["udp", 200], dscp = ["ef", "va", 3], length = "..300 bytes", source = "a", destination = ["10.1.0.0/16", "fd00::7", "b"] },
        { source-port = 5060, destination-port = "6000-6100", port = [5060, "7000-7001"], length = "100..200 bytes" },
    ] },
    { name = "reds", queue = { type = "red", min = "5 packets", max = "15 packets", probability = 0.1, weight = 0.002, gentle = true, typical-packet = "512 bytes", longest-packet = "1500 bytes", ecn = true, bound = "60 packets", drop = "head" }, match = { length = "301 bytes.." } },
    { name = "pies", queue = { type = "pie", target = "15ms", update = "15ms", alpha = 0.125, beta = 1.25, burst = "150ms", mean-packet = "1024 bytes", ecn = true, max-ecn-threshold = "10%", derandomize = true, cap-drop = true, high-delay-boost = "250ms" }, match = { protocol = "icmp" } },
    { name = "fast", queue = { type = "dualpi2", target = "15ms", update = "16ms", alpha = 0.16, beta = 3.2, coupling = 2, step = "1ms", least = "2 packets", weights = { low = 10, classic = 1 } }, match = { dscp = "le" } },
    { name = "faster", queue = { type = "dualpi2", ramp = { from = "800us", to = "1.2ms" }, shift = "30ms" }, match = { dscp = "cs1" } },
    { name = "rest", queue = "gred", match = { protocol = "tcp" } },
] }
[links.one.down]
scheduler = { type = "drr", flows = 512, by = "addresses", quantum = "300 bytes", bound = "100 packets" }
overhead = "atm"
loss = "0.25%"
mtu = 576
reorder = "3%"

[links.two]
between = ["middle", "b"]
shared = true
rate = "5.5mbit"
scheduler = { type = "dcf", preamble = "short", basic-rate = "1mbit", window-min = 15, window-max = 255, retry-limit = 4, rts-threshold = "500 bytes", classes = [
    { name = "one", match = { from = "up" }, rate = "2mbit", hidden-from = ["third", "other"] },
    { name = "third", match = { dscp = "ef" }, hidden-from = "other" },
    { name = "other" },
] }
delay = { uniform = { low = "1ms", high = "2.5ms" }, order = "allow" }
queue = "7 packets"
overhead = { bytes = 8, cells = "atm" }
mtu = "none"
line-limit = "unlimited"

[links.three]
between = ["a", "c"]
rate = "1mbit"
up.scheduler = { type = "fq_codel", flows = 16, target = "1ms", interval = "20ms", ecn = false }
down.scheduler = { type = "fq_pie", quantum = "400 bytes", by = "source", alpha = 0.2 }
delay = { normal = { mean = "10ms", sd = "2ms" } }

[links.east]
between = ["north", "south"]
cost = 7
[links.west]
between = ["south", "north"]
[links.out]
between = ["c", "south"]
up.scheduler = { type = "hpd", bound-order = "earliest-deadline", bound-reading = "has-violated", bound = "90 packets", classes = [
    { name = "one", match = { dscp = "ef" }, ddp = 1, gamma = 896, g = 0, limit = "2ms", estimator = { type = "ewma-r", threshold = 25, cycle = "2ms" } },
    { name = "two", match = { dscp = "af11" }, ddp = 2, gamma = "auto", g = 1024, limit = "none", estimator = "ewma" },
    { name = "three", match = { dscp = "af21" }, queue = "9 packets", estimator = { type = "ewma-pe", steps = 8, width = "12.5%" } },
    { name = "four", match = { dscp = "af31" }, estimator = { type = "ewma" } },
    { name = "rest", ddp = 16, estimator = "ewma-pe" },
] }
down.scheduler = "hpd"

[links.ruled]
between = ["c", "north"]
cost = 9
one-pass = false
interface = "em0"
disabled-sets = [5, 30]
rules = [
    "100 pipe 1 out", "200 prob 0.25 queue 10 ip from 10.0.0.0/8 to any in via em0",
    "300 set 5 queue tablearg dst-ip table(lab)", "skipto 900 proto udp", "800 deny src-port 1-9",
]
[links.ruled.tables]
1 = ["10.0.0.0/8 5", "192.168.1.1 7", "fd00::/8", "80 3"]
"lab.1" = []
[links.ruled.pipes.1]
rate = "3mbit"
delay = "32ms"
mask = { src-ip = "0xff", dst-ip = "255.255.255.0", src-ip6 = "ffff::", dst-ip6 = "all", src-port = 1, dst-port = "0xffff", proto = "all", flow-id = "0xfffff", queue = true }
most = 17
idle = "2s"
[links.ruled.pipes.5]
rate = "4mbit"
scheduler = { type = "drr", quantum = "600 bytes" }
[links.ruled.pipes.6]
scheduler = "qfq"
queue = "codel"
[links.ruled.pipes.7]
scheduler = "prio"
[links.ruled.queues.10]
pipe = 5
weight = 20
mask = "all"
most = 9
queue = { type = "red", min = "5 packets", max = "15 packets", probability = 0.1, weight = 0.002 }
loss = "1%"
[links.ruled.queues.11]
pipe = 6
longest = "500 bytes"
[links.ruled.queues.12]
pipe = 7
priority = 3

[[traffic]]
name = "steady"
from = "a"
to = "b"
constant = "1000/s"
length = "1000 bytes"
start = "1s"
stop = "2s"
packets = 100
source = "10.9.0.1"
destination = "10.9.0.2"
source-port = 1
destination-port = 2
dscp = 46

[[traffic]]
from = "c.three"
to = "a.three"
poisson = "12mbit"
length = { mix = [{ length = "40 bytes", weight = 7 }, { length = "1500 bytes", weight = 1 }] }

[[traffic]]
from = "b"
to = "a.one"
on-off = { pace = "1/20ms", on = { exponential = "1s" }, off = { pareto = { mean = "2s", shape = 1.5 } } }

[[traffic]]
from = "b"
to = "a"
poisson = "1/s"
protocol = 89
ecn = "ect1"
dscp = "af41"

[[traffic]]
from = "b"
to = "a"
poisson = "1/s"
protocol = "sctp"

[[traffic]]
from = "a"
to = "b"
aimd = { ecn = true, size = "1 MB", window = 4 }
length = "1000 bytes"
start = "1s"
stop = "2s"
dscp = "le"

[[traffic]]
from = "a"
to = "b"
aimd = { scalable = true }
protocol = "udp"

[[traffic]]
name = "www"
from = "a"
to = "b"
web = { load = "4.9mbit", request = { exponential = "300 bytes" }, response = { pareto = { mean = "10 kB", shape = 1.5, most = "5 MB" } }, requests = 3, pause = { exponential = "1s" }, service = "2ms", patience = "9s", parallel = 7, arrivals = "constant", tcp = { congestion = "reno", mtu = 1400, buffer = "128 KiB", delayed-ack = "none", nagle = false } }
source-port = 2000
dscp = "af31"
start = "1s"
stop = "2s"

[[traffic]]
from = "a"
to = "b"
file = { size = { mix = [{ size = "1 kB", weight = 3 }, { size = "1 MB", weight = 1 }] }, put = true, transactions = 3 }

[[traffic]]
from = "a"
to = "b"
file = { size = "endless", users = 2, think = { pareto = { mean = "2s", shape = 1.5 } }, patience = "none" }

[[traffic]]
from = "a"
to = "b"
voip = { pace = "1/10s", duration = { exponential = "3min" }, payload = "80 bytes", interval = "10ms", talk = "1s", silence = { exponential = "1s" }, one-way = true, patience = "none", tcp = { delayed-ack = "40ms" } }
protocol = "tcp"

[[traffic]]
from = "a"
to = "b"
voip = { users = 3, duration = "1s" }

[[traffic]]
from = "a"
to = "b"
dns = { pace = "20/s", request = "50 bytes", response = "200 bytes", timeout = "1s", tries = 3, service = { exponential = "5ms" } }

[[traffic]]
from = "a"
to = "b"
telnet = { users = 1, exchanges = 5, request = "1 byte", response = { exponential = "80 bytes" }, pause = "0s" }

[[traffic]]
name = "played"
from = "a"
to = "c"
capture = "some.pcapng"

[[timeline]]
at = "5s"
from = "first-packet"
every = "10s"
times = 3
set = { "one.down.rate" = "2mbit", two = { delay = { uniform = { low = "0s", high = "1ms" } } } }
"#;

#[test]
fn the_examples_are_read_built_and_follow_the_schema() {
    let schema = schema();
    let files = examples();
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        Engine::<()>::new(scenario.network()).unwrap();
        assert!(!scenario.traffic.is_empty(), "{}: `narrows sim` has something to do", path.display());
        // One shows what is to be warned of.
        let expected = usize::from(path.ends_with("loop.toml"));
        assert_eq!(scenario.explain().warnings.len(), expected, "{}", scenario.explain());
        let text = std::fs::read_to_string(&path).unwrap();
        support::validate(&schema, &json(&text))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn everything_that_is_read_is_described_and_written_back() {
    let scenario = Scenario::parse(EVERYTHING, "folder/net.toml").unwrap_or_else(|error| panic!("{error}"));
    Engine::<()>::new(scenario.network()).unwrap();
    let schema = schema();
    support::validate(&schema, &json(EVERYTHING)).unwrap_or_else(|error| panic!("{error}"));
    let written = scenario.to_toml();
    let again =
        Scenario::parse(&written, "folder/net.toml").unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert!(again == scenario, "{written}");
    assert_eq!(again.to_toml(), written);
    support::validate(&schema, &json(&written)).unwrap_or_else(|error| panic!("{error}\n{written}"));
}

#[test]
fn flags_are_written_as_a_file() {
    let flags = LinkFlags::default()
        .with("rate", "1.5mbit/0.5mbit")
        .with("delay", "10ms")
        .with("jitter", "2ms/0ms")
        .with("loss", "1%")
        .with("queue", "13 packets/codel")
        .with("scheduler", "fq_codel/drr")
        .with("duplicate", "0.1%")
        .with("corrupt", "0.01")
        .with("reorder", "25% gap 5/none")
        .with("overhead", "ethernet/atm")
        .with("mtu", "1400")
        .with("order", "allow")
        .with("line-limit", "100 packets")
        .with("slots", "{ gap = \"10ms\", packets = 8 }")
        .with("burst", "3kB/0 bytes")
        .with("seed", "7")
        .with("duration", "31s");
    let scenario = Scenario::from_flags(&flags).unwrap_or_else(|error| panic!("{error}"));
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, &scenario.file).unwrap() == scenario, "{written}");
    support::validate(&schema(), &json(&written)).unwrap_or_else(|error| panic!("{error}\n{written}"));
}

/// What the parser says is allowed at some place, from its error about a key that is not.
fn allowed(text: &str) -> Vec<String> {
    let error = Scenario::parse(text, "t").unwrap_err().to_string();
    let line =
        error.lines().find_map(|line| line.split_once("allowed: ")).unwrap_or_else(|| panic!("{error}")).1;
    let mut keys: Vec<String> = line.split('`').skip(1).step_by(2).map(Into::into).collect();
    keys.sort();
    keys
}

fn described(schema: &Value, name: &str) -> Vec<String> {
    let place = if name.is_empty() { schema } else { &schema["$defs"][name] };
    assert_eq!(place["additionalProperties"], Value::Bool(false), "{name}");
    let mut keys: Vec<String> = place["properties"].as_object().unwrap().keys().cloned().collect();
    keys.sort();
    keys
}

#[test]
fn each_table_allows_the_keys_that_the_schema_describes() {
    let schema = schema();
    let link = |lines: &str| format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{lines}\n");
    let estimator = |kind: &str| {
        link(&format!(
            "scheduler = {{ type = \"hpd\", classes = [{{ name = \"x\", estimator = {{ type = \"{kind}\", zzz = 1 }} }}] }}"
        ))
    };
    let app = |line: &str| link(&format!("[[traffic]]\nfrom = \"a\"\nto = \"b\"\n{line}"));
    for (name, text) in [
        ("", "zzz = 1".to_string()),
        ("Host", "[hosts.a]\nzzz = 1".into()),
        ("Link", link("zzz = 1")),
        ("Direction", link("up.zzz = 1")),
        ("Router", "[routers.r]\nzzz = 1".into()),
        ("Route", "[routers.r]\nroutes = [{ zzz = 1 }]".into()),
        ("DelayModel", link("delay = { zzz = 1 }")),
        ("UniformDelay", link("delay = { uniform = { zzz = 1 } }")),
        ("NormalDelay", link("delay = { normal = { zzz = 1 } }")),
        ("LogNormalDelay", link("delay = { log-normal = { zzz = 1 } }")),
        ("ExponentialDelay", link("delay = { exponential = { zzz = 1 } }")),
        ("GammaDelay", link("delay = { gamma = { zzz = 1 } }")),
        ("WeibullDelay", link("delay = { weibull = { zzz = 1 } }")),
        ("ParetoDelay", link("delay = { pareto = { zzz = 1 } }")),
        ("TableDelay", link("delay = { table = { zzz = 1 } }")),
        ("SampleDelay", link("delay = { samples = { zzz = 1 } }")),
        ("HistogramDelay", link("delay = { histogram = { zzz = 1 } }")),
        ("CdfDelay", link("delay = { cdf = { zzz = 1 } }")),
        ("MixturePart", link("delay = { mixture = [{ zzz = 1 }] }")),
        ("ReplayedCell", link("delay = { cell = { zzz = 1 } }")),
        ("PatternParts", link("delay = { pattern = { zzz = 1 } }")),
        ("DelayClass", link("delay = { classes = [{ zzz = 1 }] }")),
        ("QueueParts", link("queue = { zzz = 1 }")),
        ("RedQueue", link("queue = { type = \"red\", zzz = 1 }")),
        ("GredQueue", link("queue = { type = \"gred\", zzz = 1 }")),
        ("ChokeQueue", link("queue = { type = \"choke\", zzz = 1 }")),
        ("SfbQueue", link("queue = { type = \"sfb\", zzz = 1 }")),
        ("CodelQueue", link("queue = { type = \"codel\", zzz = 1 }")),
        ("PieQueue", link("queue = { type = \"pie\", zzz = 1 }")),
        ("DualPi2Queue", link("queue = { type = \"dualpi2\", zzz = 1 }")),
        ("Ramp", link("queue = { type = \"dualpi2\", ramp = { zzz = 1 } }")),
        ("HalfWeights", link("queue = { type = \"dualpi2\", weights = { zzz = 1 } }")),
        ("prio-scheduler", link("scheduler = { type = \"prio\", zzz = 1 }")),
        ("fifo-scheduler", link("scheduler = { type = \"fifo\", zzz = 1 }")),
        ("pfifo_fast-scheduler", link("scheduler = { type = \"pfifo_fast\", zzz = 1 }")),
        ("drr-scheduler", link("scheduler = { type = \"drr\", zzz = 1 }")),
        ("qfq-scheduler", link("scheduler = { type = \"qfq\", zzz = 1 }")),
        ("wf2q+-scheduler", link("scheduler = { type = \"wf2q+\", zzz = 1 }")),
        ("gfq-scheduler", link("scheduler = { type = \"gfq\", zzz = 1 }")),
        ("kps-scheduler", link("scheduler = { type = \"kps\", zzz = 1 }")),
        ("sfq-scheduler", link("scheduler = { type = \"sfq\", zzz = 1 }")),
        ("fq_codel-scheduler", link("scheduler = { type = \"fq_codel\", zzz = 1 }")),
        ("fq_pie-scheduler", link("scheduler = { type = \"fq_pie\", zzz = 1 }")),
        ("csma-cd-scheduler", link("scheduler = { type = \"csma-cd\", zzz = 1 }")),
        ("dcf-scheduler", link("scheduler = { type = \"dcf\", zzz = 1 }")),
        ("dcf-class", link("scheduler = { type = \"dcf\", classes = [{ zzz = 1 }] }")),
        ("hpd-scheduler", link("scheduler = { type = \"hpd\", zzz = 1 }")),
        ("plugin-scheduler", link("scheduler = { plugin = \"x.wasm\", zzz = 1 }")),
        ("abe-scheduler", link("scheduler = { type = \"abe\", zzz = 1 }")),
        ("cake-scheduler", link("scheduler = { type = \"cake\", zzz = 1 }")),
        ("tbf-scheduler", link("scheduler = { type = \"tbf\", zzz = 1 }")),
        ("htb-scheduler", link("scheduler = { type = \"htb\", zzz = 1 }")),
        ("cbq-scheduler", link("scheduler = { type = \"cbq\", zzz = 1 }")),
        ("htb-class", link("scheduler = { type = \"htb\", classes = [{ zzz = 1 }] }")),
        (
            "cbq-class",
            link(
                "scheduler = { type = \"cbq\", bandwidth = \"1mbit\", avpkt = \"1kB\", classes = [{ zzz = 1 }] }",
            ),
        ),
        ("hpd-class", link("scheduler = { type = \"hpd\", classes = [{ zzz = 1 }] }")),
        ("Ewma", estimator("ewma")),
        ("EwmaR", estimator("ewma-r")),
        ("EwmaPe", estimator("ewma-pe")),
        ("Class", link("scheduler = { type = \"qfq\", classes = [{ zzz = 1 }] }")),
        ("Match", link("scheduler = { type = \"qfq\", classes = [{ name = \"x\", match = { zzz = 1 } }] }")),
        ("OverheadParts", link("overhead = { zzz = 1 }")),
        ("CellParts", link("overhead = { cells = { zzz = 1 } }")),
        ("LossParts", link("loss = { zzz = 1 }")),
        ("LossTable", link("loss = { wire = { zzz = 1 } }")),
        ("GilbertElliott", link("loss = { gilbert-elliott = { zzz = 1 } }")),
        ("Markov", link("loss = { markov = { zzz = 1 } }")),
        ("ChanceParts", link("duplicate = { zzz = 1 }")),
        ("CorruptParts", link("corrupt = { zzz = 1 }")),
        ("ReorderParts", link("reorder = { zzz = 1 }")),
        ("SlotParts", link("slots = { zzz = 1 }")),
        ("GapModel", link("slots = { gap = { zzz = 1 } }")),
        ("TraceParts", link("trace = { zzz = 1 }")),
        ("MtuParts", link("mtu = { zzz = 1 }")),
        ("Traffic", link("[[traffic]]\nzzz = 1")),
        ("Aimd", link("[[traffic]]\nfrom = \"a\"\nto = \"b\"\naimd = { zzz = 1 }")),
        ("Web", app("web = { zzz = 1 }")),
        ("FileTransfer", app("file = { zzz = 1 }")),
        ("Voip", app("voip = { zzz = 1 }")),
        ("Dns", app("dns = { zzz = 1 }")),
        ("Telnet", app("telnet = { zzz = 1 }")),
        ("Tcp", app("file = { tcp = { zzz = 1 } }")),
        ("RandomSizes", app("file = { size = { zzz = 1 } }")),
        ("ParetoSizes", app("file = { size = { pareto = { zzz = 1 } } }")),
        ("SizeWeight", app("file = { size = { mix = [{ zzz = 1 }] } }")),
        ("OnOff", link("[[traffic]]\nfrom = \"a\"\nto = \"b\"\non-off = { zzz = 1 }")),
        (
            "RandomPeriod",
            link("[[traffic]]\nfrom = \"a\"\nto = \"b\"\non-off = { pace = \"1/s\", on = { zzz = 1 } }"),
        ),
        ("Step", link("[[timeline]]\nzzz = 1")),
    ] {
        assert_eq!(allowed(&text), described(&schema, name), "{name}");
    }
}

#[test]
fn the_schema_refuses_what_the_parser_refuses() {
    let schema = schema();
    let link = |lines: &str| format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{lines}\n");
    for lines in [
        "rate = 10",
        "rate = \"10mbps\"",
        "rate = \"10\"",
        "delay = \"-10ms\"",
        "delay = \"10m\"",
        "delay = { gaussian = 1 }",
        "delay = { pareto = { shape = 3 } }",
        "delay = { normal = { mean = \"1ms\", sd = \"1ms\" }, below-zero = \"keep\" }",
        "delay = { samples = { values = [] } }",
        "delay = { cdf = { points = [[\"1ms\", 0, 1]] } }",
        "delay = { mixture = [] }",
        "delay = { feed = \"a b\" }",
        "delay = { feed = \"a\", on-empty = \"wait\" }",
        "loss = { gilbert-elliott = { p = 0.1 } }",
        "loss = { ingress = { markov = { p13 = 2 } } }",
        "loss = { conditional = [] }",
        "duplicate = { correlation = 0.1 }",
        "corrupt = { bit-errors = \"often\" }",
        "slots = { packets = 8 }",
        "slots = { gap = \"1ms\", packets = 0 }",
        "trace = { then = \"loop\" }",
        "trace = { file = \"x\", format = \"pcap\" }",
        "loss = 1.5",
        "loss = \"1 percent\"",
        "queue = 13",
        "queue = \"codle\"",
        "queue = { type = \"codel\", alpha = 1 }",
        "queue = { target = \"5ms\" }",
        "scheduler = \"cbq\"",
        "scheduler = { type = \"sfq\", classes = [] }",
        "scheduler = { type = \"drr\", flows = 0 }",
        "scheduler = { type = \"qfq\", classes = [{ weight = 1 }] }",
        "scheduler = { type = \"qfq\", classes = [{ name = \"x\", weight = 0 }] }",
        "queue = \"64kb\"",
        "order = \"sometimes\"",
        "overhead = \"token-ring\"",
        "mtu = 20",
        "mtu = { bytes = 1400, policy = \"blackhole\" }",
        "dealy = \"1ms\"",
        "up = { between = 1 }",
        "[[timeline]]\nset = {}",
        "[[traffic]]\nfrom = \"a\"",
    ] {
        let text = link(lines);
        assert!(Scenario::parse(&text, "t").is_err(), "{lines}");
        assert!(support::validate(&schema, &json(&text)).is_err(), "{lines}");
    }
    let plain = link("rate = \"10mbit\"");
    assert!(Scenario::parse(&plain, "t").is_ok() && support::validate(&schema, &json(&plain)).is_ok());
}
