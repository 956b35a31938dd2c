use super::*;

const LINK: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

fn of(name: &str, rest: &str) -> Interop {
    let made = Interop::translate(&format!("{name} {LINK} {rest}")).unwrap();
    made.scenario().unwrap_or_else(|error| panic!("{error}\n{}", made.text));
    made
}

#[track_caller]
fn has(made: &Interop, lines: &[&str]) {
    for line in lines {
        assert!(made.text.lines().any(|one| one == *line), "{line}:\n{}", made.text);
    }
}

#[test]
fn the_link_is_a_point_to_point_link_of_ns3() {
    let made = of("simple-p2p", "");
    let lines = ["rate = \"10000000bit\"", "delay = \"15000000ns\"", "queue = \"26 packets\""];
    has(&made, &lines);
    has(&made, &["overhead = { bytes = 2 }"]);
    assert_eq!((made.files.len(), made.rebinding), (0, None));
    // No limit of the simulator's; a time without a unit is in seconds.
    let made = Interop::translate("simple-p2p --delay=0.5 --bandwidth=1.5GB/s --queue=1").unwrap();
    has(&made, &["rate = \"12000000000bit\"", "delay = \"500000000ns\""]);
    made.scenario().unwrap();
}

#[test]
fn random_losses_have_a_cap_of_consecutive_ones() {
    for name in ["drop-rate", "corrupt-rate"] {
        let made = of(name, "--rate_to_client=30 --rate_to_server=2 --burst_to_client=3");
        has(
            &made,
            &["down.loss = { conditional = [\"30%\", \"30%\", \"30%\", \"0%\"] }", "up.loss = \"2%\""],
        );
    }
}

#[test]
fn listed_packets_are_lost() {
    let made = of("droplist", "--drops_to_server=7,2,3,2");
    has(&made, &["up.loss = { pattern = \"drops-to-server.pattern\" }"]);
    assert!(made.files[0].1.ends_with("\n2\n3\n7\n"), "{:?}", made.files);
    assert!(!made.text.contains("down.loss"));
    assert!(of("droplist", "").files.is_empty());
}

#[test]
fn a_blackhole_begins_earlier_by_the_delay_and_repeats() {
    let made = of("blackhole", "--on=5s --off=2s");
    has(
        &made,
        &["at = \"4985000000ns\"", "at = \"6985000000ns\"", "set = { \"bottleneck.loss\" = \"100%\" }"],
    );
    assert!(!made.text.contains("every"));
    let made = of("blackhole", "--on=5s --off=2s --repeat=3 --direction=toclient");
    has(&made, &["every = \"7000000000ns\"", "times = 3", "set = { \"bottleneck.down.loss\" = \"0%\" }"]);
}

#[test]
fn rebindings_have_a_time_and_a_period() {
    let seconds = |count: u64| Duration::from_millis(1000 * count);
    let made = of("rebind", "--first-rebind=1s --rebind-freq=5s --rebind-addr");
    let asked = InteropRebinding { first: seconds(1), every: Some(seconds(5)), address: true };
    assert_eq!(made.rebinding, Some(asked));
    let made = of("rebind", "--first-rebind=2s");
    assert_eq!(made.rebinding, Some(InteropRebinding { first: seconds(2), every: None, address: false }));
}

#[test]
fn cross_traffic_goes_to_the_client() {
    let made = of("tcp-cross-traffic", "");
    has(&made, &["from = \"client\"", "file = { tcp = { congestion = \"reno\" } }"]);
    // 512 bytes of data are a packet of 540.
    let made = of("udp-cross-traffic", "--crossdatarate=5.12Mbps");
    has(
        &made,
        &["from = \"server\"", "constant = \"5400000bit\"", "length = \"540 bytes\"", "start = \"20s\""],
    );
}

#[test]
fn errors_name_what_was_found_and_what_is_allowed() {
    for (text, said) in [
        ("", "found the scenario ``, expected one of `simple-p2p`"),
        ("p2p --delay=1ms", "found the scenario `p2p`"),
        ("udp-cross-traffic --delay=1ms --queue=2 --bandwidth=1Mbps", "needs `--crossdatarate=VALUE`"),
        (
            "udp-cross-traffic --delay=1ms --queue=2 --bandwidth=1Mbps --crossdatarate=2",
            "--crossdatarate: expected a rate above zero",
        ),
        (
            "simple-p2p --dealy=1ms",
            "found the option `--dealy=1ms`, expected one of `--delay`, `--bandwidth`",
        ),
        ("simple-p2p --delay=1ms --queue=2", "simple-p2p needs `--bandwidth=VALUE`"),
        ("simple-p2p --delay=1parsec --queue=2 --bandwidth=1Mbps", "found `1parsec`"),
        ("simple-p2p --delay=1ms --queue=2 --bandwidth=1mbit", "found `1mbit`"),
        ("simple-p2p --delay=1ms --queue=2 --bandwidth=0bps", "above zero"),
        ("simple-p2p --delay=1ms --queue=x --bandwidth=1Mbps", "a whole number from 0"),
        ("rebind --delay=1ms --queue=2 --bandwidth=1Mbps --first-rebind=0s", "above zero"),
        (
            "drop-rate --delay=1ms --queue=2 --bandwidth=1Mbps --rate_to_client=101 --rate_to_server=1",
            "from 0 to 100, found `101`",
        ),
        (
            "blackhole --delay=1ms --queue=2 --bandwidth=1Mbps --on=1s --off=1s --direction=up",
            "expected `both`, `toclient` or `toserver`, found `up`",
        ),
    ] {
        let error = Interop::translate(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
