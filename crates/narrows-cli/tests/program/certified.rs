//! Runs that certify themselves: bounds on lateness, and what a run that broke one ends with.

use crate::common::{finish, narrows, run, sound};

const PING: &str = "ping -c 3 -i 0.05 $NARROWS_SERVER >&2";

/// No packet leaves at the very nanosecond at which it should, and none an hour late: both on any machine.
#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_that_was_later_than_it_may_be_has_an_exit_status_of_its_own() {
    let flags = |bound| ["--delay", "2ms", "--json", "-", "--max-lateness", bound];
    let ended = finish(&mut run(flags("p50=1ns,max=1h"), PING)).expect(75);
    let complaint = "narrows: the run was too late: p50 at most 1 ns, VIOLATED: ";
    assert!(ended.err.contains(complaint), "{ended}");
    assert!(!ended.err.contains("too late: max"), "{ended}");
    let report = ended.json();
    sound(&report);
    let certificates = report["certificates"].as_array().unwrap();
    let kept: Vec<_> = certificates.iter().map(|c| (c["quantile"].as_str(), c["met"].as_bool())).collect();
    assert_eq!(kept, [(Some("p50"), Some(false)), (Some("max"), Some(true))]);
    let released = report["lateness"]["packets"].as_u64().unwrap();
    assert!(released >= 6, "three pings and three answers: {report:#}");
    assert_eq!(certificates[0]["later_packets"], released);
    let violations = &report["lateness_violations"];
    assert_eq!(
        (violations.as_array().unwrap().len(), &violations[0]["bound_ns"]),
        (1, &1.into()),
        "{report:#}"
    );
    let intervals = violations[0]["intervals"].as_array().unwrap();
    assert_eq!(intervals.iter().map(|i| i["packets"].as_u64().unwrap()).sum::<u64>(), released);
    for interval in intervals {
        assert_eq!(interval["steal_ns"].is_u64(), report["host"]["steal_ns"].is_u64(), "{report:#}");
        let waited = interval["run_queue_wait_ns"].as_u64();
        assert!(waited <= report["host"]["run_queue_wait_ns"].as_u64(), "{report:#}");
    }
    let steps = report["lateness"]["histogram"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["packets"].as_u64().unwrap()).sum::<u64>(), released);
    assert!(report["host"]["loop_processor_ns"].as_u64() > Some(0), "{report:#}");
    let stolen = report["host"]["steal_share"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&stolen), "{report:#}");

    let ended = finish(&mut run(flags("max=1h"), PING)).expect(0);
    assert!(ended.err.contains("max at most 3600 s, met: "), "{ended}");
    assert_eq!(ended.json()["lateness_violations"], serde_json::json!([]), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn the_programs_own_failure_wins_and_the_broken_bound_is_told_all_the_same() {
    let line = format!("{PING} 2>&1; exit 3");
    let ended = finish(&mut run(["--quiet", "--max-lateness", "max=1ns"], &line)).expect(3);
    assert!(ended.err.contains("too late: max at most 1 ns, VIOLATED"), "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_without_packets_keeps_its_bounds_and_says_so() {
    let ended = finish(&mut run(["--max-lateness", "max=1ns"], "true")).expect(0);
    assert!(ended.err.contains("no packet was released, so no bound could be violated"), "{ended}");
}

#[test]
fn a_bound_that_is_none_is_refused_before_anything_runs() {
    for (bound, words) in [
        ("p98=50us", &["`p98` is not a quantile", "p50, p90, p99, p99.9, max"][..]),
        ("p99=50", &["`50` has no unit", "--max-lateness"]),
        ("p99", &["found `p99`", "p99=50us"]),
    ] {
        let ended = finish(&mut narrows(["run", "--max-lateness", bound, "--", "echo", "ran"])).expect(2);
        assert!(ended.out.is_empty() && words.iter().all(|word| ended.err.contains(word)), "{ended}");
    }
}
