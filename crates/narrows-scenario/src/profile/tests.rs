use narrows_core::{Duration, Probability, Rate};

use super::Profile;

fn read(text: &str) -> Profile {
    Profile::read("x.profile", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    Profile::read("x.profile", text.as_bytes()).expect_err(text).to_string()
}

fn point(percent: u64, micros: u64) -> (Probability, Duration) {
    (Probability::from_ratio(percent, 100).unwrap(), Duration::from_micros(micros))
}

/// The example of ipfw's manual, its comments and all.
const MANUAL: &str = "
name    bla_bla_bla
samples 100
loss-level    0.86
prob    delay
0       200\t# minimum overhead is 200ms
0.5     200
0.5     300
0.8     1000
0.9     1300
1       1300
";

#[test]
fn the_example_of_the_manual() {
    let profile = read(MANUAL);
    assert_eq!((profile.name(), profile.rate()), (Some("bla_bla_bla"), None));
    assert_eq!(profile.points()[3], point(80, 1_000_000));
    let times = profile.air_time().times();
    let millis: Vec<u64> =
        [0, 49, 50, 65, 80, 85, 90, 99].map(|at: usize| times[at].nanos() / 1_000_000).into();
    assert_eq!(millis, [200, 200, 300, 650, 1000, 1150, 1300, 1300]);
    assert_eq!((times.len(), profile.air_time().lost(), profile.loss()), (100, 14, 0.14));
    assert!(profile.remarks().is_empty());
}

/// As it stands in the paper: numbers without a unit, and the unit in a comment.
#[test]
fn the_unit_of_the_papers_own_file() {
    let text = "name profile_foo\nbandwidth 2Mbit/s\nloss-level 0.99\nsamples 5\nprob delay # delay in us\n\
                0.2 100\n0.4 130\n0.5 130\n0.8 1500\n0.98 2000\n";
    let profile = read(text);
    assert_eq!(profile.points()[3], point(80, 1_500));
    assert!(profile.remarks().iter().any(|remark| remark.starts_with("times are in us, as the comment")));
    // Without the word it is what FreeBSD takes it for, and much too long.
    let millis = read(&text.replace(" # delay in us", ""));
    assert_eq!(millis.points()[3], point(80, 1_500_000));
    let remark = millis.remarks().last().unwrap();
    assert!(remark.starts_with("a packet of 1500 bytes takes 6ms at 2mbit"), "{remark}");
    assert!(remark.ends_with("are the times of the profile in another unit than ms?"), "{remark}");
    assert!(!profile.remarks().iter().any(|remark| remark.contains("another unit")));
    // Where the link says the rate, `check` says it.
    let files = crate::Files::default();
    files.add("p", text.replace(" # delay in us", "").as_bytes());
    let net =
        "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"2mbit\"\nprofile = \"p\"\n";
    let shown = crate::Scenario::parse_with(net, "n.toml", files).unwrap().explain().to_string();
    assert!(shown.contains("as long: are the times of the profile in another unit than ms?"), "{shown}");
}

/// That of the paper: another word for the rate, `samples` as the number of corners, a curve without its ends.
#[test]
fn the_example_of_the_paper() {
    let text = "name profile_foo\nbandwidth 2Mbit/s\nloss-level 0.99\nsamples 5\nprob delay # delay in us\n\
                0.2 100us\n0.4 130us\n0.5 130us\n0.8 1500us\n0.98 2000us\n";
    let profile = read(text);
    assert_eq!(profile.rate(), Some(Rate::from_bits_per_second(2_000_000)));
    assert_eq!(profile.air_time().times().len(), 100);
    assert_eq!(profile.air_time().times()[0], Duration::from_micros(100));
    assert_eq!(profile.air_time().longest(), Duration::from_micros(2_000));
    assert_eq!(profile.air_time().lost(), 1);
    assert_eq!(
        profile.remarks(),
        ["samples 5 is the number of points: taken for that, with a resolution of 100"]
    );
    // Without units they are milliseconds.
    assert_eq!(read(&text.replace("us\n", "\n")).air_time().longest(), Duration::from_millis(2_000));
}

#[test]
fn points_in_any_order_columns_in_either_numbers_of_all_kinds() {
    let expected = [point(0, 100), point(25, 250), point(100, 4_000)];
    for text in [
        "prob delay\n0 0.1\n0.25 0.25\n1 4\n",
        "delay prob\n4 1\n0.1 0\n0.25 0.25\n",
        "Delay PROB\r\n4ms 100%\r\n\r\n100us 0%\n  250000ns\t25% # a quarter\n",
        "\u{feff}prob delay\n1 0.004s\n.25 250µs\n0e0 1e-1\nsamples 64\nname x\n",
    ] {
        let profile = read(text);
        assert_eq!(profile.points(), expected, "{text}");
    }
    // To the nearest nanosecond.
    let fine = read("prob delay\n0 0.0000014\n1 0.0000016\n");
    assert_eq!(fine.points().iter().map(|point| point.1.nanos()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn rates_as_ipfw_has_them() {
    let rate =
        |text: &str| read(&format!("bw {text}\nprob delay\n0 1\n1 1\n")).rate().map(|r| r.bits_per_second());
    for (text, bits) in [
        ("2Mbit/s", 2_000_000),
        ("5.5Mbit/s", 5_500_000),
        ("11M", 11_000_000),
        ("64Kbit/s", 64_000),
        ("100KByte/s", 800_000),
        ("1GB/s", 8_000_000_000),
        ("1500", 1_500),
        ("10mbit", 10_000_000),
        ("10Gbit/s", 10_000_000_000),
    ] {
        assert_eq!(rate(text), Some(bits), "{text}");
    }
    assert_eq!(rate("0"), None);
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    const POINTS: &str = "prob delay\n0 1\n1 1\n";
    for (text, place, what) in [
        (
            "prob delay\n0.2 100\n0.4 50\n",
            "x.profile:3:1",
            "the probability decreases, from 0.4 to 0.2, while the time increases, from 50ms to 100ms",
        ),
        (
            "delay prob\n100 0.2\n50 0.1\n  200  0.15\n",
            "x.profile:4:8",
            "from 0.2 to 0.15, while the time increases, from 100ms to 200ms",
        ),
        ("prob delay\n0 1\n1.5 2\n", "x.profile:3:1", "`1.5` is too large for a probability from 0 to 1"),
        ("prob delay\n0 1\n101% 2\n", "x.profile:3:1", "`101` is too large for a probability from 0 to 1"),
        ("prob delay\n-0.5 1\n1 2\n", "x.profile:2:1", "`-0.5` is below zero"),
        ("prob delay\n0 1\n1 -2\n", "x.profile:3:3", "`-2` is below zero"),
        (
            "prob delay\n0 1\n1 two\n",
            "x.profile:3:3",
            "found `two`, expected a time, in ms or with one of the units ns, us, ms, s",
        ),
        ("prob delay\n0 1\n1 ms\n", "x.profile:3:3", "found `ms`, expected a time"),
        ("prob delay\n0 1\n1 2m\n", "x.profile:3:3", "found `2m`, expected a time"),
        ("prob delay\n0 1\n1 1e9\n", "x.profile:3:3", "`1e9` is too large for a time"),
        ("prob delay\n0 1 2\n", "x.profile:2:1", "3 words on a line of two"),
        ("prob delay\n0\n", "x.profile:2:1", "1 words on a line of two"),
        ("0 1\nprob delay\n", "x.profile:1:1", "found `0` before the columns have names"),
        ("prob time\n", "x.profile:1:6", "found `time`, expected `delay`"),
        ("prob delay\n0 1\n", "x.profile:1:1", "at least two points, and this one has 1"),
        ("prob delay\ndelay prob\n", "x.profile:2:1", "duplicate `delay`"),
        ("samples 4\nsamples 5\n", "x.profile:2:1", "duplicate `samples`"),
        ("bw 2Mbit/s\nbandwidth 2Mbit/s\n", "x.profile:2:1", "duplicate `bandwidth`"),
        ("bw em0\n", "x.profile:1:4", "found `em0`, expected a rate such as 2Mbit/s"),
        ("bw 2Mbot/s\n", "x.profile:1:4", "found `2Mbot/s`, expected a rate"),
        ("bw 9999999999G\n", "x.profile:1:4", "is too large for a rate"),
        ("loss-level 1.01\n", "x.profile:1:12", "`1.01` is too large for a probability"),
        ("loss-levle 0.5\n", "x.profile:1:1", "did you mean `loss-level`?"),
        ("samples many\n", "x.profile:1:9", "found `many`, expected a number of samples"),
    ] {
        let error = refused(text);
        assert!(error.contains(place) && error.contains(what), "{text:?}: {error}");
    }
    for samples in ["0", "1", "1025", "99999999999"] {
        let error = refused(&format!("samples {samples}\n{POINTS}"));
        assert!(error.contains("x.profile:1:9"), "{error}");
    }
    assert!(refused("").contains("the file is empty"));
    assert!(refused("name x\n").contains("there is no line `prob delay` or `delay prob`"));
    let error = Profile::read("x.profile", b"name \xff\n").unwrap_err().to_string();
    assert!(error.contains("x.profile:1:6") && error.contains("not UTF-8"), "{error}");
}

#[test]
fn there_are_not_too_many_points() {
    let points = |count: usize| format!("prob delay\n{}", "0.5 1\n".repeat(count));
    assert_eq!(read(&points(Profile::MOST_POINTS)).points().len(), Profile::MOST_POINTS);
    assert!(refused(&points(Profile::MOST_POINTS + 1)).contains("more than 10000 points"));
}

#[test]
fn what_it_comes_to() {
    // 1,500 bytes at 8 Mbit/s are 1.5 ms; with 0.5 ms on average they are 2 ms, of which a quarter is lost.
    let info = read(
        "bw 8Mbit/s\nname z\nloss-level 0.75\nsamples 4\nprob delay\n0 0.2\n0.5 0.2\n0.5 0.8\n1 0.8\n1 0.8\n",
    )
    .info();
    assert_eq!((info.min_ns, info.max_ns, info.loss), (200_000, 800_000, 0.25));
    assert!((info.mean_ns - 500_000.0).abs() < 1e-6);
    let full = info.throughput[2];
    assert!((full.each_ns - 2e6).abs() < 1e-6 && (full.packets_per_second - 375.0).abs() < 1e-9);
    let text = info.to_string();
    for line in [
        "name        z\n",
        "rate        8mbit\n",
        "air time    200us to 800us extra per packet, 500us on average\n",
        "curve       5 points, looked up at 4 probabilities\n",
        "loss        25.0000 % of packets, after their air time (from 0.75 on)\n",
        " 1500 bytes 2ms each: at most 375.0 a second, 4.500 Mbit/s\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

proptest::proptest! {
    /// Whatever the bytes, it is read or refused.
    #[test]
    fn nothing_panics(words in proptest::collection::vec("(prob|delay|name|bw|samples|loss-level|[0-9.%]{1,4}|1e[0-9]{1,4}|us|ms|\\PC{0,3}|[ \\t\\n#]){1,3}", 0..30)) {
        let text = words.join(" ").replace("  ", "\n");
        if let Ok(profile) = Profile::read("x", text.as_bytes()) {
            profile.info();
        }
    }
}
