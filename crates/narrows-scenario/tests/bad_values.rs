//! What a person reads who made a mistake in a distribution, a model of loss, a trace or a file: the whole text.

use narrows_scenario::{Files, Scenario};

/// The files beside the scenario.
fn files() -> Files {
    Files::given([
        ("down.csv", b"delay,probability\n1ms,0.2\n2ms,0.6\n3ms,0.5\n4ms,1\n".to_vec()),
        ("empty.txt", b"# nothing\n".to_vec()),
        ("back.csv", b"time_s,rate_mbit\n0,10\n2,5\n1,7\n".to_vec()),
        ("cell.down", b"1\n2\n5\n".to_vec()),
        ("rate.csv", b"time_s,rate_mbit,delay_ms,loss\n0,10,20,0\n1,5,30,0.1\n2,,,\n".to_vec()),
        ("words.txt", b"1ms\n2ms\nthree\n".to_vec()),
        ("big.dist", b"1 2 3\n40000\n".to_vec()),
        ("delay.pattern", b"pattern delay\nper packet\nlength 10\n1 3ms\n5 4ms\n".to_vec()),
    ])
}

/// The error about a link with these lines, the first of which is line 6.
#[track_caller]
fn fails(lines: &str, expected: &str) {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n"
    );
    let error = Scenario::parse_with(&text, "net.toml", files()).expect_err("it is wrong");
    let found = error.to_string();
    assert_eq!(found, expected.trim_matches('\n'), "\n{found}\n");
}

#[test]
fn distributions() {
    fails(
        r#"delay = { gamma = { shape = 0, scale = "1ms" } }"#,
        r#"
error: shape must be from 0.01 to 1e9, not 0
 --> net.toml:6:19
  |
6 | delay = { gamma = { shape = 0, scale = "1ms" } }
  |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.delay.gamma`
"#,
    );
    fails(
        r#"delay = { normal = { mean = "10ms", sd = "1ms" }, minimum = "1s" }"#,
        r#"
error: no delay is left: none is 1s or more
 --> net.toml:6:51
  |
6 | delay = { normal = { mean = "10ms", sd = "1ms" }, minimum = "1s" }
  |                                                   ^^^^^^^ in `links.access.delay`
"#,
    );
    fails(
        r#"delay = { normal = { mean = "10ms", sd = "1ms" }, minimum = "20ms", maximum = "15ms" }"#,
        r#"
error: `minimum` is 20ms, above `maximum`, which is 15ms
 --> net.toml:6:69
  |
6 | delay = { normal = { mean = "10ms", sd = "1ms" }, minimum = "20ms", maximum = "15ms" }
  |                                                                     ^^^^^^^ in `links.access.delay`
"#,
    );
    fails(
        r#"delay = { cdf = { points = [["1ms", 0.5], ["2ms", 0.4], ["3ms", 1]] } }"#,
        r#"
error: the probability falls, from 50% to 40%
 --> net.toml:6:43
  |
6 | delay = { cdf = { points = [["1ms", 0.5], ["2ms", 0.4], ["3ms", 1]] } }
  |                                           ^^^^^^^^^^^^ in `links.access.delay.cdf.points`
"#,
    );
    fails(
        r#"delay = { cdf = { points = [["1ms", 0], ["2ms", 0.5]] } }"#,
        r#"
error: the last probability is 50%, not 100%
 --> net.toml:6:28
  |
6 | delay = { cdf = { points = [["1ms", 0], ["2ms", 0.5]] } }
  |                            ^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.delay.cdf.points`
"#,
    );
    fails(
        r#"delay = { samples = { values = [] } }"#,
        r#"
error: the list is empty
 --> net.toml:6:32
  |
6 | delay = { samples = { values = [] } }
  |                                ^^ in `links.access.delay.samples.values`
"#,
    );
    fails(
        r#"delay = { table = { name = "paretto", mean = "10ms", sd = "2ms" } }"#,
        r#"
error: `paretto` is not a table
 --> net.toml:6:28
  |
6 | delay = { table = { name = "paretto", mean = "10ms", sd = "2ms" } }
  |                            ^^^^^^^^^ in `links.access.delay.table.name`
  |
  = help: did you mean `pareto`?
  = help: allowed: `normal`, `pareto` or `paretonormal`
  = help: or name a file: file = "x.dist"
"#,
    );
    fails(
        r#"delay = { normal = { mean = "10ms", sd = "1ms" }, correlation = "100%" }"#,
        r#"
error: found `100%`, expected a correlation below 100%
 --> net.toml:6:65
  |
6 | delay = { normal = { mean = "10ms", sd = "1ms" }, correlation = "100%" }
  |                                                                 ^^^^^^ in `links.access.delay.correlation`
  |
  = help: write a time, such as "20ms", over which delays change, or the rank correlation of one packet and the next, such as "25%"
"#,
    );
    fails(
        r#"delay = { pareto = { shape = 3 } }"#,
        r#"
error: `minimum` is missing
 --> net.toml:6:20
  |
6 | delay = { pareto = { shape = 3 } }
  |                    ^^^^^^^^^^^^^ in `links.access.delay.pareto`
  |
  = help: write it like pareto = { shape = 3, minimum = "10ms" }
"#,
    );
    fails(
        r#"delay = { log-normal = { mean = "1ms", sigma = 2 } }"#,
        r#"
error: `mean` beside `median` or `sigma`
 --> net.toml:6:26
  |
6 | delay = { log-normal = { mean = "1ms", sigma = 2 } }
  |                          ^^^^ in `links.access.delay.log-normal`
  |
  = help: say `median` and `sigma`, or `mean` and `sd`
"#,
    );
    fails(
        r#"delay = { mixture = [{ weight = 0, constant = "1ms" }] }"#,
        r#"
error: found `0`, expected a weight above zero
 --> net.toml:6:33
  |
6 | delay = { mixture = [{ weight = 0, constant = "1ms" }] }
  |                                 ^ in `links.access.delay.mixture.weight`
  |
  = help: write it like mixture = [ { weight = 9, normal = { mean = "10ms", sd = "1ms" } }, { weight = 1, constant = "50ms" } ]
"#,
    );
    fails(
        r#"delay = { uniform = { low = "5ms", high = "1ms" } }"#,
        r#"
error: `low` is 5ms, above `high`, which is 1ms
 --> net.toml:6:21
  |
6 | delay = { uniform = { low = "5ms", high = "1ms" } }
  |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.delay.uniform`
"#,
    );
    fails(
        r#"delay = { histogram = { bins = [["1ms", "3ms", 1], ["2ms", "4ms", 1]] } }"#,
        r#"
error: bin 2 starts before the one below it ends
 --> net.toml:6:23
  |
6 | delay = { histogram = { bins = [["1ms", "3ms", 1], ["2ms", "4ms", 1]] } }
  |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.delay.histogram`
"#,
    );
    fails(
        r#"delay = { gamma = { mean = "1ms", sd = "0ms" } }"#,
        r#"
error: sd must be more than zero and at most 104 days, not 0s
 --> net.toml:6:19
  |
6 | delay = { gamma = { mean = "1ms", sd = "0ms" } }
  |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.delay.gamma`
"#,
    );
}

#[test]
fn files_named_by_values() {
    fails(
        r#"delay = { cdf = { file = "down.csv" } }"#,
        r#"
error: the probability falls, from 0.6 to 0.5
 --> down.csv:4:1
  |
4 | 3ms,0.5
  | ^^^^^^^
  |
 ::: net.toml:6:26
  |
6 | delay = { cdf = { file = "down.csv" } }
  |                          ---------- in `links.access.delay.cdf.file`
"#,
    );
    fails(
        r#"delay = { samples = { file = "empty.txt", unit = "ms" } }"#,
        r#"
error: empty.txt: there is no number in this file
 --> net.toml:6:30
  |
6 | delay = { samples = { file = "empty.txt", unit = "ms" } }
  |                              ^^^^^^^^^^^ in `links.access.delay.samples.file`
"#,
    );
    fails(
        r#"delay = { samples = { file = "words.txt" } }"#,
        r#"
error: found `three`, expected a delay, such as 10.5 or 10.5ms
 --> words.txt:3:1
  |
3 | three
  | ^^^^^
  |
 ::: net.toml:6:30
  |
6 | delay = { samples = { file = "words.txt" } }
  |                              ----------- in `links.access.delay.samples.file`
"#,
    );
    fails(
        r#"delay = { samples = { file = "none.txt", unit = "ms" } }"#,
        r#"
error: the file `none.txt` cannot be read: it is not among the files that the scenario included
 --> net.toml:6:30
  |
6 | delay = { samples = { file = "none.txt", unit = "ms" } }
  |                              ^^^^^^^^^^ in `links.access.delay.samples.file`
"#,
    );
    fails(
        r#"delay = { table = { file = "big.dist", mean = "10ms", sd = "2ms" } }"#,
        r#"
error: found `40000`, expected a whole number from -32768 to 32767 (8192 is one standard deviation)
 --> big.dist:2:1
  |
2 | 40000
  | ^^^^^
  |
 ::: net.toml:6:28
  |
6 | delay = { table = { file = "big.dist", mean = "10ms", sd = "2ms" } }
  |                            ---------- in `links.access.delay.table.file`
"#,
    );
    fails(
        r#"loss = { pattern = { file = "delay.pattern" } }"#,
        r#"
error: `delay.pattern` is a pattern of delay
 --> net.toml:6:29
  |
6 | loss = { pattern = { file = "delay.pattern" } }
  |                             ^^^^^^^^^^^^^^^ in `links.access.loss.pattern`
  |
  = help: expected a pattern of loss
"#,
    );
}

#[test]
fn traces_and_what_they_give() {
    fails(
        r#"trace = "back.csv""#,
        r#"
error: the time `1` goes back: the previous row is at 2s
 --> back.csv:4:1
  |
4 | 1,7
  | ^
  |
 ::: net.toml:6:9
  |
6 | trace = "back.csv"
  |         ---------- in `links.access.trace`
  |
  = help: rows are in order of time
"#,
    );
    fails(
        r#"trace = "rate.csv"
rate = "1mbit""#,
        r#"
error: both the trace rate.csv and `rate` set the rate
 --> net.toml:7:1
  |
7 | rate = "1mbit"
  | ^^^^ in `links.access.rate`
  |
  = help: remove `rate`, or set `then = "end"` to use it after the trace
"#,
    );
    fails(
        r#"[links.access.down]
trace = "rate.csv"
delay = "1ms""#,
        r#"
error: both the trace rate.csv and `delay` set the delay
 --> net.toml:8:1
  |
8 | delay = "1ms"
  | ^^^^^ in `links.access.down.delay`
  |
  = help: remove `delay`, or set `then = "end"` to use it after the trace
"#,
    );
    fails(
        r#"trace = { file = "rate.csv", then = "lop" }"#,
        r#"
error: `lop` is not a value of `then`
 --> net.toml:6:37
  |
6 | trace = { file = "rate.csv", then = "lop" }
  |                                     ^^^^^ in `links.access.trace.then`
  |
  = help: did you mean `loop`?
  = help: allowed: `loop`, `hold` or `end`
"#,
    );
    fails(
        r#"trace = { file = "rate.csv", start = "3s" }"#,
        r#"
error: the trace `rate.csv` ends at 2s, but `start` is 3s
 --> net.toml:6:9
  |
6 | trace = { file = "rate.csv", start = "3s" }
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.trace.start`
"#,
    );
    fails(
        r#"trace = { file = "cell.down", then = "hold" }"#,
        r#"
error: the trace cell.down consists of opportunities; it has no last value to hold
 --> net.toml:6:1
  |
6 | trace = { file = "cell.down", then = "hold" }
  | ^^^^^ in `links.access.trace`
  |
  = help: set `then = "loop"` or `then = "end"`
"#,
    );
    fails(
        r#"trace = { file = "rate.csv", then = "end" }
delay = { normal = { mean = "1ms", sd = "1ms" } }"#,
        r#"
error: `delay` cannot apply after the trace rate.csv: it varies
 --> net.toml:7:1
  |
7 | delay = { normal = { mean = "1ms", sd = "1ms" } }
  | ^^^^^ in `links.access.delay`
  |
  = help: use a plain value, or none
"#,
    );
}

#[test]
fn netem_words_beside_other_keys_or_mistyped() {
    fails(
        r#"exact-netem = "delay 100ms"
loss = "1%""#,
        r#"
error: `loss` with `exact-netem`, which replaces all other keys of the link
 --> net.toml:7:1
  |
7 | loss = "1%"
  | ^^^^ in `links.access.loss`
  |
  = help: use the NetEm option, or `netem` instead, which combines with other keys
"#,
    );
    fails(
        r#"netem = "delay 100ms loss 1%"
loss = "1%""#,
        r#"
error: `loss` with `netem`, which sets loss = { ingress = "1%" }
 --> net.toml:7:1
  |
6 | netem = "delay 100ms loss 1%"
  | ----- here
7 | loss = "1%"
  | ^^^^ in `links.access.loss`
  |
  = help: remove one of the two
"#,
    );
    fails(
        r#"netem = "dely 100ms""#,
        r#"
error: `dely` is not an option of netem
 --> net.toml:6:10
  |
6 | netem = "dely 100ms"
  |          ^^^^ in `links.access.netem`
  |
  = help: did you mean `delay`?
  = help: allowed: `limit`, `delay`, `latency`, `distribution`, `loss`, `drop`, `duplicate`, `reorder`, `corrupt`, `seed`, `rate`, `slot`, `ecn`, `gap` or `kernel`
"#,
    );
}

#[test]
fn keys_that_do_not_go_together() {
    fails(
        r#"delay = { normal = { mean = "10ms", sd = "1ms" }, exponential = { mean = "1ms" } }"#,
        r#"
error: more than one delay
 --> net.toml:6:51
  |
6 | delay = { normal = { mean = "10ms", sd = "1ms" }, exponential = { mean = "1ms" } }
  |           ------ the first                        ^^^^^^^^^^^ in `links.access.delay`
  |
  = help: keep one; several in one are a `mixture`, or `classes` of packets
"#,
    );
    fails(
        r#"delay = { exponential = { mean = "1ms" } }
jitter = "1ms""#,
        r#"
error: a jitter of 1ms on a delay that already varies (exponential, mean 1ms)
 --> net.toml:7:1
  |
7 | jitter = "1ms"
  | ^^^^^^ in `links.access.jitter`
  |
  = help: `jitter` turns a constant delay into a normal distribution; remove one of the two, or set `jitter = "0ms"`
"#,
    );
    fails(
        r#"delay = { normal = { mean = "10ms", sd = "1ms" }, feed = "x" }"#,
        r#"
error: more than one delay
 --> net.toml:6:51
  |
6 | delay = { normal = { mean = "10ms", sd = "1ms" }, feed = "x" }
  |           ------ the first                        ^^^^ in `links.access.delay`
  |
  = help: keep one; several in one are a `mixture`, or `classes` of packets
"#,
    );
    fails(
        r#"delay = { feed = "x", correlation = "20ms" }"#,
        r#"
error: `correlation` cannot be used with `feed`
 --> net.toml:6:23
  |
6 | delay = { feed = "x", correlation = "20ms" }
  |                       ^^^^^^^^^^^ in `links.access.delay`
  |
  = help: it goes with a distribution
"#,
    );
    fails(
        r#"delay = { normal = { mean = "10ms", sd = "1ms" }, on-empty = "last" }"#,
        r#"
error: `on-empty` cannot be used with `normal`
 --> net.toml:6:51
  |
6 | delay = { normal = { mean = "10ms", sd = "1ms" }, on-empty = "last" }
  |                                                   ^^^^^^^^ in `links.access.delay`
  |
  = help: it goes with `feed`
"#,
    );
    fails(
        r#"delay = { feed = "x", lead = "4096 packets" }"#,
        r#"
error: found `4096 packets`, expected a number of values from 1 to 1048576, such as "4096 values", or a time, such as "100ms"
 --> net.toml:6:30
  |
6 | delay = { feed = "x", lead = "4096 packets" }
  |                              ^^^^^^^^^^^^^^ in `links.access.delay.lead`
"#,
    );
}

#[test]
fn classes() {
    fails(
        r#"delay = { classes = [{ delay = "1ms" }, { match = "udp", delay = "2ms" }] }"#,
        r#"
error: no packet is left for this class
 --> net.toml:6:41
  |
6 | delay = { classes = [{ delay = "1ms" }, { match = "udp", delay = "2ms" }] }
  |                                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.delay.classes`
  |
  = help: the class before it has no `match` and takes every packet; it must be last
"#,
    );
    fails(
        r#"delay = { classes = [{ match = "upd", delay = "2ms" }] }"#,
        r#"
error: `upd` is not a protocol
 --> net.toml:6:32
  |
6 | delay = { classes = [{ match = "upd", delay = "2ms" }] }
  |                                ^^^^^ in `links.access.delay.classes.match`
  |
  = help: allowed: `tcp`, `udp`, `icmp`, `icmpv6`, `sctp`, `dccp`, `udplite`, `igmp`, `ipip`, `gre`, `esp`, `ah` or `ospf`
  = help: or a number from 0 to 255
"#,
    );
}

#[test]
fn losses() {
    fails(
        r#"loss = { gilbert-elliott = { p = 0.1 } }"#,
        r#"
error: `r` is missing
 --> net.toml:6:28
  |
6 | loss = { gilbert-elliott = { p = 0.1 } }
  |                            ^^^^^^^^^^^ in `links.access.loss.gilbert-elliott`
  |
  = help: write it like gilbert-elliott = { p = "1%", r = "30%" }
"#,
    );
    fails(
        r#"loss = { markov = { p13 = 0.7, p14 = 0.6, p31 = 0.5 } }"#,
        r#"
error: the probabilities of leaving state 1 sum to 1.3: no more than 1 is possible
 --> net.toml:6:19
  |
6 | loss = { markov = { p13 = 0.7, p14 = 0.6, p31 = 0.5 } }
  |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `links.access.loss.markov`
  |
  = help: write it like markov = { p13 = "1%", p31 = "30%", p32 = "10%", p23 = "40%", p14 = "0.1%" }
"#,
    );
    fails(
        r#"loss = { rate = "1%", conditional = ["1%"] }"#,
        r#"
error: more than one model of loss
 --> net.toml:6:23
  |
6 | loss = { rate = "1%", conditional = ["1%"] }
  |          ----         ^^^^^^^^^^^ in `links.access.loss`
  |          |
  |          the first
  |
  = help: keep one; `ingress` and `wire` may have one each
"#,
    );
    fails(
        r#"loss = { gilbert-elliott = { p = 0.1, r = 0.5 }, correlation = "25%" }"#,
        r#"
error: `correlation` cannot be used with `gilbert-elliott`
 --> net.toml:6:50
  |
6 | loss = { gilbert-elliott = { p = 0.1, r = 0.5 }, correlation = "25%" }
  |                                                  ^^^^^^^^^^^ in `links.access.loss`
  |
  = help: it goes with `rate`; the other models say themselves how losses follow one another
"#,
    );
    fails(
        r#"loss = { rate = "1%", ingress = "2%" }"#,
        r#"
error: `rate` beside `ingress`
 --> net.toml:6:10
  |
6 | loss = { rate = "1%", ingress = "2%" }
  |          ^^^^         ------- this table selects where packets are lost
  |          |
  |          in `links.access.loss`
  |
  = help: write ingress = { rate = … }
"#,
    );
    fails(
        r#"loss = { with-delay = [["20ms", "1%"], ["10ms", "2%"]] }"#,
        r#"
error: the delay 10ms is not above the previous one, 20ms
 --> net.toml:6:40
  |
6 | loss = { with-delay = [["20ms", "1%"], ["10ms", "2%"]] }
  |                                        ^^^^^^^^^^^^^^ in `links.access.loss.with-delay`
"#,
    );
}

#[test]
fn corruption_and_slots() {
    fails(
        r#"corrupt = { bit-errors = "20%" }"#,
        r#"
error: a bit error rate of 20% is too high: at most 10% is allowed
 --> net.toml:6:26
  |
6 | corrupt = { bit-errors = "20%" }
  |                          ^^^^^ in `links.access.corrupt.bit-errors`
"#,
    );
    fails(
        r#"slots = { packets = 8 }"#,
        r#"
error: `gap` is missing
 --> net.toml:6:9
  |
6 | slots = { packets = 8 }
  |         ^^^^^^^^^^^^^^^ in `links.access.slots`
  |
  = help: write it like slots = { gap = "10ms", packets = 8 }
"#,
    );
    fails(
        r#"slots = "10ms""#,
        r#"
error: found `10ms`, expected a table such as { gap = "10ms", packets = 8 }, or "none"
 --> net.toml:6:9
  |
6 | slots = "10ms"
  |         ^^^^^^ in `links.access.slots`
"#,
    );
}
