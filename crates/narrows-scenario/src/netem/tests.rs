use super::*;
use crate::direction::Direction;
use crate::files::Files;
use crate::node::Node;
use crate::units::Share;
use crate::value::Surroundings;
use narrows_core::{Duration, Rate, Time};
use proptest::prelude::*;

/// The keys that a text comes to, one a line.
fn keys(text: &str) -> String {
    let qdisc = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let keys = qdisc.assignments().unwrap_or_else(|error| panic!("{error}"));
    keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

fn netem_of(text: &str) -> Netem {
    match parse(text).unwrap_or_else(|error| panic!("{error}")).kind {
        Kind::Netem(netem) => *netem,
        Kind::Delay(delay) => panic!("{delay:?}"),
    }
}

fn bare(text: &str) -> Vec<(String, String)> {
    parse(text).unwrap().explain().options.into_iter().flat_map(|option| option.bare_numbers).collect()
}

#[test]
fn every_option_becomes_keys() {
    let same = |text: &str, expected: &str| assert_eq!(keys(text).trim_end(), expected, "{text}");
    same("", "");
    same("delay 100ms", r#"delay = "100ms""#);
    same("latency 0.1s", r#"delay = "100ms""#);
    same("delay 100ms 0ms", r#"delay = "100ms""#);
    same("delay 100ms 10ms", "delay = { uniform = { low = \"90ms\", high = \"110ms\" } }\norder = \"allow\"");
    same(
        "delay 5ms 10ms 25%",
        "delay = { uniform = { low = \"0ns\", high = \"20ms\" }, shift = \"-5ms\", correlation = \"25%\" }\norder = \"allow\"",
    );
    same(
        "delay 9ms 2ms distribution pareto rate 8mbit",
        "rate = \"8mbit\"\noverhead = \"frame\"\nqueue = \"1000 packets\"\n\
         delay = { table = { name = \"pareto\", mean = \"9ms\", sd = \"2ms\" } }",
    );
    same(
        "delay 9ms 2ms distribution tables/mine.dist",
        "delay = { table = { file = \"tables/mine.dist\", mean = \"9ms\", sd = \"2ms\" } }\norder = \"allow\"",
    );
    same("loss 1%", r#"loss = { ingress = "1%" }"#);
    same("drop 1% ecn", r#"loss = { ingress = { rate = "1%", ecn = true } }"#);
    same("loss random 1 30", r#"loss = { ingress = { rate = "1%", correlation = "30%" } }"#);
    same(
        "loss state 1%",
        r#"loss = { ingress = { markov = { p13 = "1%", p31 = "99%", p32 = "0%", p23 = "100%", p14 = "0%" } } }"#,
    );
    same(
        "loss state p13 1% p31 20% p32 5% p23 30% p14 0.5%",
        r#"loss = { ingress = { markov = { p13 = "1%", p31 = "20%", p32 = "5%", p23 = "30%", p14 = "0.5%" } } }"#,
    );
    same(
        "loss gemodel 1% 10% 70% 0.1%",
        r#"loss = { ingress = { gilbert-elliott = { p = "1%", r = "10%", loss-bad = "70%", loss-good = "0.1%" } } }"#,
    );
    same("loss gemodel p 2% r 50%", keys("loss gemodel 2% 50% 100% 0%").trim_end());
    same("loss 0%", "");
    same("duplicate 1% 25%", r#"duplicate = { rate = "1%", correlation = "25%" }"#);
    same("corrupt 0.1%", r#"corrupt = "0.1%""#);
    same(
        "delay 10ms reorder 25% 50% gap 5",
        "delay = \"10ms\"\nreorder = { rate = \"25%\", correlation = \"50%\", gap = 5 }",
    );
    same("delay 10ms reorder 25%", "delay = \"10ms\"\nreorder = \"25%\"");
    same("gap 5 delay 20ms", "delay = \"20ms\"\nreorder = \"100% gap 5\"");
    same("gap 0 delay 20ms", "delay = \"20ms\"");
    same("limit 50", r#"line-limit = "50 packets""#);
    same("limit 50 rate 1mbit", "rate = \"1mbit\"\noverhead = \"frame\"\nqueue = \"50 packets\"");
    same("rate 0bit", "");
    same(
        "rate 1mbit -14 48 5",
        "rate = \"1mbit\"\noverhead = { base = \"frame\", bytes = -14, cells = { payload = 48, size = 53 } }\nqueue = \"1000 packets\"",
    );
    same("rate 1mbit packetoverhead -14 cellsize 48 celloverhead 5", keys("rate 1mbit -14 48 5").trim_end());
    same("slot 5ms", r#"slots = { gap = "5ms" }"#);
    same(
        "slot 800us 10ms bytes 64k packets 42",
        r#"slots = { gap = { uniform = { low = "800us", high = "10ms" } }, packets = 42, bytes = 65536 }"#,
    );
    same(
        "slot distribution pareto 1ms 0.1ms packets 3",
        r#"slots = { gap = { table = { name = "pareto", mean = "1ms", sd = "100us" } }, packets = 3 }"#,
    );
    same(
        "root delay limit 1500 reorder true",
        "delay = { feed = \"delay\", on-empty = \"zero\" }\nline-limit = \"1500 packets\"\norder = \"allow\"",
    );
    same("root netem delay 1ms", r#"delay = "1ms""#);
    assert_eq!(netem_of("seed 18446744073709551615").seed, Some(u64::MAX));
}

#[test]
fn the_beginning_of_a_word_is_enough_where_it_is_of_one_only() {
    let short = "del 5ms 1ms dis normal los 1% dup 2% cor 3% lim 10 reo 4% g 2 ra 5kbit e se 6 sl 1ms";
    let long = "delay 5ms 1ms distribution normal loss 1% duplicate 2% corrupt 3% limit 10 reorder 4% gap 2 \
                rate 5kbit ecn seed 6 slot 1ms";
    assert_eq!(parse(short).unwrap(), parse(long).unwrap());
    let message = parse("d 5ms").unwrap_err().to_string();
    assert!(message.contains("`d` could be `delay`, `distribution`, `drop` or `duplicate`"), "{message}");
}

#[test]
fn units_are_those_of_tc() {
    let delay = |text: &str| netem_of(&format!("delay {text}")).delay.nanos();
    let times = [("1s", 1_000_000_000), ("1secs", 1_000_000_000), ("1.5msec", 1_500_000), ("2usecs", 2_000)];
    for (text, nanos) in
        times.into_iter().chain([("3NS", 3), ("7", 7), (".5ms", 500_000), ("1e3us", 1_000_000)])
    {
        assert_eq!(delay(text), nanos, "{text}");
    }
    // What is left of a nanosecond goes, as in tc.
    assert_eq!(delay("0.3333333333us"), 333);
    let rate = |text: &str| netem_of(&format!("rate {text}")).rate.unwrap().rate.bits_per_second();
    let rates = [
        ("20000", 20_000),
        ("5KBps", 40_000),
        ("1mbps", 8_000_000),
        ("1Mibit", 1 << 20),
        ("1gibps", 8 << 30),
    ];
    for (text, bits) in rates {
        assert_eq!(rate(text), bits, "{text}");
    }
    let limit = |text: &str| netem_of(&format!("limit {text}")).limit.unwrap();
    assert_eq!(
        [limit("10"), limit("10k"), limit("1kb"), limit("8kbit"), limit("1.5k")],
        [10, 10240, 1024, 1024, 1536]
    );
    let share = |text: &str| netem_of(&format!("corrupt {text}")).corrupt.share.to_string();
    assert_eq!([share("0.05"), share("5"), share("100%"), share("1e-3%")], ["0.05%", "5%", "100%", "0.001%"]);
    assert_eq!(netem_of("rate 1mbit 0x10 010").rate.unwrap().packet_overhead, 16);
    assert_eq!(netem_of("rate 1mbit 0x10 010").rate.unwrap().cell_size, 8);
}

#[test]
fn bare_numbers_are_explained() {
    let pairs = |text: &str| {
        bare(text).into_iter().map(|(number, taken)| format!("{number}: {taken}")).collect::<Vec<_>>()
    };
    assert_eq!(pairs("delay 100"), ["100: 100ns (older tc: 100us)"]);
    assert_eq!(pairs("slot 10 200"), ["10: 10ns", "200: 200ns"]);
    assert_eq!(pairs("loss 0.05 25"), ["0.05: 0.05%", "25: 25%"]);
    assert_eq!(pairs("rate 20000 20"), ["20000: 20000bit a second", "20: 20 bytes more for each packet"]);
    assert_eq!(pairs("rate 1mbps"), ["1mbps: bytes per second (tc's `bps`): 8mbit"]);
    assert_eq!(pairs("limit 10k"), ["10k: 10240 packets"]);
    assert!(pairs("delay 100ms 10ms 25% loss 1% rate 1mbit duplicate 0").is_empty());
    assert_eq!(exact("limit 10 delay 1ms limit 10"), exact("delay 1ms limit 10"));
}

/// What is wrong is pointed at: the column, the word, and what is said of it.
#[test]
fn errors_point_at_the_word() {
    let cases = [
        ("dely 10ms", 1, "`dely` is not an option of netem", "did you mean `delay`?"),
        (
            "delay 10ms los 1% duplicte 2%",
            19,
            "`duplicte` is not an option of netem",
            "did you mean `duplicate`?",
        ),
        ("delay 10mss", 7, "`mss` is not a unit of a time", "did you mean `ms`?"),
        ("delay ten", 7, "`ten` is not a time", "units of a time"),
        ("delay -5ms", 7, "`-5ms` is below zero", ""),
        ("delay 10ms 25%", 12, "`%` is not a unit of a time", "a correlation follows the jitter"),
        ("delay", 6, "`delay` lacks a time", ""),
        ("delay 1ms jitter 2ms", 11, "no option `jitter`", "delay 100ms 10ms"),
        ("delay 1ms delay 2ms", 11, "duplicate `delay`", "remove one"),
        ("loss 101%", 6, "`101%` is more than 100%", ""),
        ("loss abc%", 6, "`abc%` is not a loss model", "`random`, `state` or `gemodel`"),
        ("loss gemodl 1%", 6, "`gemodl` is not a loss model", "did you mean `gemodel`?"),
        ("loss 1% loss gemodel 1%", 9, "duplicate `loss`", ""),
        ("loss 1% loss 1%", 9, "duplicate `loss`", ""),
        ("ecn delay 1ms", 1, "`ecn` without `loss`", "loss 1% ecn"),
        ("reorder 25%", 1, "`reorder` without a delay to skip", "delay 10ms reorder"),
        ("gap 5", 1, "`gap` without a delay to skip", ""),
        ("delay 1ms distribution normal", 11, "a constant delay", "delay 100ms 20ms"),
        ("delay 9ms 1ms distribution nromal", 28, "`nromal` is not a distribution", "did you mean `normal`?"),
        ("limit 0", 7, "passes nothing", ""),
        ("limit many", 7, "`many` is not a number of packets", ""),
        ("rate 10%", 6, "a share of a device's speed", ""),
        ("rate 1mbits", 6, "`mbits` is not a unit of a rate", "did you mean `mbit`?"),
        ("rate 1mbit 5.5", 12, "found `5.5`, expected a number of bytes", ""),
        ("rate 1mbit 0 48 -48", 6, "nothing left on the wire", ""),
        ("slot 5ms 1ms", 10, "below the shortest", ""),
        ("slot distribution normal 5ms", 29, "`distribution` lacks a jitter", ""),
        ("slot soon", 6, "expected a time or `distribution`", ""),
        ("seed -1", 6, "expected a seed", ""),
        ("root tbf rate 1mbit", 6, "unknown queueing discipline `tbf`", "netem's `rate`"),
        ("root netm delay 1ms", 6, "unknown queueing discipline `netm`", "did you mean `netem`?"),
        ("root delay reorder maybe", 20, "expected `true` or `false`", ""),
        ("root delay limt 5", 12, "`limt` is not an option of delay", "did you mean `limit`?"),
        ("qdisc add dev eth0 root netem", 1, "is not among the options", "what follows `netem`"),
    ];
    for (text, column, title, help) in cases {
        let message = parse(text).expect_err(text).to_string();
        assert!(message.contains(&format!("netem:1:{column}\n")), "{text}: {message}");
        assert!(message.contains(title) && message.contains(help), "{text}: {message}");
    }
}

#[test]
fn a_cell_that_loses_bytes_is_for_exact_netem_only() {
    let qdisc = parse("rate 1mbit 0 48 -5").unwrap();
    assert!(qdisc.assignments().unwrap_err().to_string().contains("--exact-netem"));
    let netem = exact("rate 1mbit 0 48 -5");
    assert_eq!(netem.rate.map(|rate| (rate.cell_size, rate.cell_overhead)), Some((48, -5)));
}

fn exact(text: &str) -> narrows_core::netem::Netem {
    netem_of(text).exact(&Node::typed(text, 0), &Files::default()).unwrap()
}

/// What tc puts on netlink, worked out by hand from `q_netem.c`.
#[test]
fn exact_netem_has_the_kernels_numbers() {
    use narrows_core::netem::{Loss, Share, SlotGap};
    let raw = Share::from_raw;
    let netem = exact("delay 100ms 20ms 25% distribution normal loss 0.3% rate 1001bit -14 limit 50");
    assert_eq!(
        (netem.limit, netem.delay, netem.jitter),
        (50, Duration::from_millis(100), Duration::from_millis(20))
    );
    // 0.25·(2³² − 1) = 1073741823.75, 0.003·(2³² − 1) = 12884901.885
    assert_eq!(netem.delay_correlation, raw(1_073_741_824));
    let Loss::Random(loss) = netem.loss else { panic!("{:?}", netem.loss) };
    assert_eq!(loss.share, raw(12_884_902));
    let rate = netem.rate.unwrap();
    assert_eq!((rate.bytes_per_second, rate.packet_overhead), (125, -14), "whole bytes a second");
    assert_eq!(netem.table.unwrap().values().len(), 4096);
    let netem = exact("loss gemodel 1% 10% 70% 0.1%");
    // 1-H is kept complemented: 2³² − 1 − rint(0.7·(2³² − 1)), 0.7·(2³² − 1) = 3006477106.5 to even.
    let of = |p: u32, r: u32, h: u32, k: u32| Loss::GilbertElliott {
        p: raw(p),
        r: raw(r),
        h: raw(h),
        loss_in_good: raw(k),
    };
    assert_eq!(netem.loss, of(42_949_673, 429_496_730, u32::MAX - 3_006_477_106, 4_294_967));
    // tc does not send the correlation of duplicates alone.
    assert_eq!(exact("duplicate 1% 25%").duplication.correlation, Share::ZERO);
    assert_eq!(exact("duplicate 1% 25% corrupt 1% 1%").duplication.correlation, raw(1_073_741_824));
    let netem = exact("delay 10ms reorder 25%");
    assert_eq!((netem.reorder.share, netem.gap), (raw(1_073_741_824), 1));
    let netem = exact("delay 10ms gap 5");
    assert_eq!((netem.reorder.share, netem.gap), (Share::ONE, 5));
    let slots = exact("slot 1ms 2ms packets 3").slots.unwrap();
    assert_eq!(slots.gap, SlotGap::Between(Duration::from_millis(1), Duration::from_millis(2)));
    assert_eq!((slots.packets, slots.bytes), (3, 0));
}

#[test]
fn exact_netem_is_that_of_a_release() {
    use narrows_core::netem::Generation;
    let of = |release: &str| exact(&format!("delay 1ms kernel {release}")).generation;
    assert_eq!((of("5.10"), of("6.10")), (Generation::Linux5_10, Generation::Linux5_10));
    assert_eq!((of("6.12"), of("7.0")), (Generation::Linux6_11, Generation::Linux6_13));
    assert_eq!((of("7.3"), exact("delay 1ms").generation), (Generation::Linux7_1, Generation::Linux7_1));
    for unknown in ["5.9", "6.20", "7.4", "6", "6.1.2", "6.x", "-6.1", "six"] {
        let error = parse(&format!("kernel {unknown} delay 1ms")).unwrap_err().to_string();
        assert!(
            error.contains(&format!("found `{unknown}`, expected a release of Linux from 5.10 to 7.3")),
            "{error}"
        );
    }
    let old = parse("delay 10ms kernel 6.1").unwrap();
    assert_eq!(old.text(), "delay 10ms kernel 6.1");
    assert_eq!(parse("loss 1%").unwrap().changed_from(&old).text(), "loss 1% kernel 6.1");
    let error = old.assignments().unwrap_err().to_string();
    assert!(error.contains("`kernel 6.1` without exact mode") && error.contains("--exact-netem"), "{error}");
}

/// As `netem_change` of Linux 6.1 does with what tc sends.
#[test]
fn a_change_keeps_what_tc_does_not_send() {
    let before = "delay 100ms 10ms 25% distribution normal loss 1% 30% duplicate 2% 40% corrupt 3% reorder 4% \
                  rate 1mbit 20 slot 5ms packets 2 limit 50";
    let after = |text: &str| parse(text).unwrap().changed_from(&parse(before).unwrap()).text();
    assert_eq!(after("loss 1%"), "loss 1% 30% corrupt 3% rate 1mbit 20 slot 5ms 5ms packets 2");
    assert_eq!(
        after("delay 5ms 1ms"),
        "delay 5ms 1ms 25% distribution normal corrupt 3% rate 1mbit 20 slot 5ms 5ms packets 2"
    );
    // One correlation sets all three.
    assert_eq!(
        after("delay 5ms 1ms 2% loss 9% duplicate 8%"),
        "delay 5ms 1ms 2% distribution normal loss 9% duplicate 8% corrupt 3% rate 1mbit 20 slot 5ms 5ms packets 2"
    );
    assert_eq!(after("rate 2mbit corrupt 1% slot 1ms"), "corrupt 1% rate 2mbit slot 1ms 1ms");
    let marked = parse("loss 1% ecn").unwrap();
    assert_eq!(parse("loss 2%").unwrap().changed_from(&marked).text(), "loss 2% ecn");
    assert_eq!(parse("delay 1ms").unwrap().changed_from(&marked).text(), "delay 1ms");
    // Another discipline begins anew.
    assert_eq!(
        parse("root delay limit 5").unwrap().changed_from(&marked).text(),
        "root delay limit 5 reorder false"
    );
}

#[test]
fn commands_are_read_as_they_are_published() {
    let command = |text: &str| Command::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let full = command("# tc qdisc add dev eth0 root handle 1:0 netem delay 100ms \\\n   loss 1%");
    assert_eq!(
        (full.verb, full.device.as_deref(), full.handle.as_deref()),
        (Verb::Add, Some("eth0"), Some("1:0"))
    );
    assert_eq!(full.qdisc.unwrap().text(), "delay 100ms loss 1%");
    let inner = command("sudo tc qdisc change dev eth0 parent 1:1 handle 10: netem delay 5ms");
    assert_eq!((inner.verb, inner.parent.as_deref()), (Verb::Change, Some("1:1")));
    for (text, verb) in [
        ("qdisc replace dev a.up root netem loss 1%", Verb::Replace),
        ("tc qdisc del dev a.up root", Verb::Delete),
        ("tc qdisc delete dev a.up root netem", Verb::Delete),
        ("tc qdisc", Verb::Show),
        ("qdisc ls dev a.up", Verb::Show),
    ] {
        assert_eq!(command(text).verb, verb, "{text}");
    }
    assert!(command("tc -s qdisc show").statistics);
    assert!(Command::is_meant("$ tc qdisc show") && !Command::is_meant("delay 1ms"));
    let cases = [
        ("tc filter add dev eth0", 4, "`filter` is not understood"),
        ("tc qdisc ad dev eth0 root netm delay 1ms", 27, "unknown queueing discipline `netm`"),
        ("tc qdisc put dev eth0", 10, "`put` is not a command about a qdisc"),
        ("tc qdisc add root netem", 4, "`dev` is missing"),
        ("tc qdisc add dev eth0 root", 4, "the queueing discipline is missing"),
        ("tc qdisc add dev eth0 netem delay 1ms", 23, "`root` is missing before `netem`"),
        ("tc qdisc add dev eth0 ingress", 23, "`ingress` is not understood"),
        ("tc qdisc add dev eth0 root stab linklayer atm netem", 28, "`stab` is not understood"),
        ("tc -x qdisc show", 4, "unknown flag `-x`"),
        ("tc qdisc add dev eth0 root netem dely 1ms", 34, "`dely` is not an option of netem"),
    ];
    for (text, column, title) in cases {
        let message = Command::parse(text).expect_err(text).to_string();
        assert!(
            message.contains(&format!("tc:1:{column}\n")) && message.contains(title),
            "{text}: {message}"
        );
    }
}

/// A direction to which a qdisc was assigned.
fn direction(qdisc: &Qdisc) -> Direction {
    let files = Files::given([("mine.dist", b"-8192 0 8192".to_vec())]);
    let around = Surroundings { hosts: &[], shared: false, stations: &[], files: &files, at: Time::ZERO };
    let mut direction = Direction::default();
    for (key, value) in qdisc.assignments().unwrap() {
        direction
            .set(key, &Node::typed(&value, 0), around)
            .unwrap_or_else(|problem| panic!("{key}={value}: {problem:?}"));
    }
    direction
}

#[test]
fn what_is_in_force_is_said_of_links_that_were_made_otherwise() {
    let said = |entries: &[(&str, &str)]| {
        let files = Files::default();
        let around = Surroundings { hosts: &[], shared: false, stations: &[], files: &files, at: Time::ZERO };
        let mut direction = Direction::default();
        for (key, value) in entries {
            direction.set(key, &Node::typed(value, 0), around).unwrap();
        }
        let current = direction.netem();
        (current.qdisc.map(|qdisc| qdisc.text()).unwrap_or_default(), current.unrepresentable)
    };
    assert_eq!(said(&[]), (String::new(), vec![]));
    // NetEm counts the Ethernet header, `ip` does not.
    assert_eq!(said(&[("rate", "1mbit"), ("queue", "13 packets")]).0, "limit 13 rate 1mbit -14");
    assert_eq!(
        said(&[("delay", "50ms"), ("jitter", "5ms"), ("order", "allow"), ("loss", "1%")]),
        ("delay 50ms 5ms distribution normal loss 1%".into(), vec![])
    );
    assert_eq!(said(&[("delay", "50ms"), ("jitter", "5ms")]).1, ["order"], "NetEm would not keep it");
    assert_eq!(said(&[("scheduler", "fq_codel"), ("delay", "1ms")]), ("delay 1ms".into(), vec!["scheduler"]));
    assert_eq!(
        said(&[("mtu", "1400 bytes"), ("loss", "{ ingress = \"1%\", wire = \"1%\" }")]).1,
        ["loss", "mtu"]
    );
    let exact = said(&[("exact-netem", "delay 10ms loss 1% 25%")]).0;
    assert_eq!(exact, "limit 1000 delay 10ms loss 1% 25%", "the limit that holds, as tc shows it");
}

#[test]
fn another_qdisc_sets_back_what_it_does_not_say() {
    let before = direction(&parse("delay 10ms 1ms loss 1% rate 1mbit").unwrap()).netem();
    let text = |qdisc: Option<&str>| {
        let qdisc = qdisc.map(|text| parse(text).unwrap());
        let all = replacement(&before.keys, false, qdisc.as_ref()).unwrap();
        all.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(
        text(Some("loss 2%")),
        [
            "rate=\"unlimited\"",
            "overhead=\"ip\"",
            "queue=\"fifo\"",
            "delay=\"0ms\"",
            "loss={ ingress = \"2%\" }"
        ]
    );
    assert_eq!(text(None).len(), 5);
    let exact = replacement(&["exact-netem"], true, Some(&parse("loss 1%").unwrap())).unwrap();
    assert_eq!(exact, [("exact-netem", "\"loss 1%\"".to_owned())]);
}

fn share() -> impl Strategy<Value = Share> {
    (0u32..=1000).prop_map(|thousandths| {
        let text = format!("{}.{}%", thousandths / 10, thousandths % 10);
        Share::read(&Node::typed(&text, 0)).unwrap()
    })
}

fn chance() -> impl Strategy<Value = Chance> {
    (share(), share()).prop_map(|(share, correlation)| Chance {
        share,
        correlation: if share.is_zero() || correlation == Share::ZERO.complement() {
            Share::ZERO
        } else {
            correlation
        },
    })
}

fn time() -> impl Strategy<Value = Duration> {
    (1u64..5_000_000_000).prop_map(Duration::from_nanos)
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Normal),
        Just(Shape::Pareto),
        Just(Shape::ParetoNormal),
        Just(Shape::File("mine.dist".into()))
    ]
}

fn loss() -> impl Strategy<Value = LossOption> {
    let half = || share().prop_map(|share| if share.as_f64() > 0.5 { Share::ZERO } else { share });
    prop_oneof![
        chance().prop_filter("none", |chance| !chance.share.is_zero()).prop_map(LossOption::Random),
        [half(), half(), half(), half(), half()]
            .prop_filter("a chain that moves", |[p13, p31, p32, p23, p14]| {
                !p13.is_zero() && !p31.is_zero() && !p32.is_zero() && !p23.is_zero() && !p14.is_zero()
            })
            .prop_map(|[p13, p31, p32, p23, p14]| LossOption::State { p13, p31, p32, p23, p14 }),
        (half(), half(), share(), share())
            .prop_filter("a chain that moves", |(p, r, ..)| !p.is_zero() && !r.is_zero())
            .prop_map(|(p, r, loss_bad, loss_good)| LossOption::GilbertElliott { p, r, loss_bad, loss_good }),
    ]
}

prop_compose! {
    fn rates()(bits in 8u64..1_000_000_000_000, overhead in -64i32..64, cell in prop_oneof![Just(0u32), 1u32..100], more in 0i32..20)
        -> RateOption {
        let rate = Rate::from_bits_per_second(bits);
        RateOption { rate, packet_overhead: overhead, cell_size: cell, cell_overhead: if cell > 0 { more } else { 0 } }
    }
}

prop_compose! {
    fn slots()(low in time(), more in 0u64..1_000_000, packets in 0u32..100, bytes in 0u32..100_000, drawn in proptest::option::of(shape()))
        -> Slot {
        let gap = match drawn {
            Some(shape) => SlotGap::Distribution { shape, delay: low, jitter: Duration::from_nanos(more + 1) },
            None => SlotGap::Between { low, high: low + Duration::from_nanos(2 * more) },
        };
        Slot { gap, packets, bytes }
    }
}

prop_compose! {
    fn netems()(
        limit in proptest::option::of(1u64..100_000),
        delay in time(),
        jitter in prop_oneof![Just(Duration::ZERO), time()],
        distribution in proptest::option::of(shape()),
        loss in proptest::option::of(loss()),
        ecn: bool,
        duplicate in chance(),
        corrupt in chance(),
        reorder in chance(),
        gap in proptest::option::of(2u32..100),
        rate in proptest::option::of(rates()),
        slot in proptest::option::of(slots()),
        correlation in share(),
        kernel in prop_oneof![3 => Just(None), 1 => prop_oneof![Just("5.10"), Just("6.12"), Just("7.0"), Just("7.2")].prop_map(Linux::parse)],
    ) -> Netem {
        let varies = jitter > Duration::ZERO;
        Netem {
            limit,
            delay,
            jitter,
            delay_correlation: if varies && correlation != Share::ZERO.complement() { correlation } else { Share::ZERO },
            distribution: distribution.filter(|_| varies),
            loss,
            ecn: ecn && loss.is_some(),
            duplicate,
            corrupt,
            reorder,
            gap,
            rate,
            slot,
            seed: None,
            kernel,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is written is read again as the same, and so is what a link of these keys says.
    #[test]
    fn options_written_and_read_and_assigned_are_the_same(netem in netems()) {
        let qdisc = parse(&netem.text()).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(&qdisc.kind, &Kind::Netem(Box::new(netem.clone())));
        prop_assert!(qdisc.explain().options.iter().all(|option| !option.meaning.is_empty()));

        // Two queues are of no release.
        let netem = Netem { kernel: None, ..netem };
        let qdisc = Qdisc { kind: Kind::Netem(Box::new(netem.clone())), clauses: Vec::new() };
        let current = direction(&qdisc).netem();
        prop_assert_eq!(&current.unrepresentable, &Vec::<&str>::new());
        // A rate has a limit, said or not; a gap alone is a reordering of all.
        let mut expected = netem;
        if expected.rate.is_some() {
            expected.limit = Some(expected.limit.unwrap_or(DEFAULT_LIMIT));
        }
        if let Some((chance, gap)) = expected.reordering() {
            expected.reorder = chance;
            expected.gap = Some(gap).filter(|gap| *gap > 1);
        }
        prop_assert_eq!(current.qdisc.map(|qdisc| qdisc.text()), Some(expected.text()));
    }

    /// No text whatever brings the reader down, and what it takes it can explain.
    #[test]
    fn no_text_is_too_strange(words in proptest::collection::vec(
        prop_oneof![
            proptest::sample::select(vec![
                "delay", "loss", "gemodel", "state", "rate", "slot", "distribution", "normal", "limit", "ecn", "root", "netem",
                "reorder", "gap", "duplicate", "corrupt", "10ms", "1%", "5", "-3", "1mbit", "packets", "bytes", "tc", "qdisc",
                "add", "dev", "x",
            ]).prop_map(str::to_owned),
            "\\PC{0,6}",
        ], 0..12)) {
        let text = words.join(" ");
        if let Ok(qdisc) = parse(&text) {
            let _ = (qdisc.explain().to_string(), qdisc.assignments());
            prop_assert_eq!(parse(&qdisc.text()).unwrap(), qdisc);
        }
        let _ = Command::parse(&text);
    }
}

#[test]
fn what_a_scenario_cannot_say_is_shown_where_it_stands() {
    let error = parse("rate 1mbit 20 53 -5").unwrap().assignments().unwrap_err().to_string();
    assert!(
        error.contains("cells that are shorter on the wire") && error.contains("1 | rate 1mbit 20 53 -5"),
        "{error}"
    );
}
