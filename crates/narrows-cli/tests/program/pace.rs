//! How the packet loop waits, where it runs and before whom; that is its own affair, not that of the programs.

use std::fs;

use narrows_io::scheduling::{Priority, set_priority};

use crate::common::{finish, narrows, run, sound};

/// The processors that a process may use, as its status says.
fn allowed(status: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs namespaces, ping"]
fn every_way_to_wait_gives_the_same_delays_and_is_reported() {
    let line = "ping -c 3 -i 0.05 $NARROWS_SERVER >&2";
    for wait in ["spin", "hybrid", "timer"] {
        let ended = finish(&mut run(["--delay", "3ms", "--wait", wait, "--json", "-"], line)).expect(0);
        let report = ended.json();
        sound(&report);
        assert_eq!(report["host"]["wait"], wait);
        assert_eq!(report["host"]["timer_slack_ns"], 1);
        assert_eq!(report["host"]["processor"], serde_json::Value::Null);
        assert_eq!(
            (&report["host"]["priority"], &report["host"]["throttle_pause_ns"]),
            (&"usual".into(), &0.into())
        );
        // Only a thread that would poll gathers packets instead, where others want its processor.
        assert!(wait == "hybrid" || report["host"]["gather_ns"] == 0, "{ended}");
        for pair in report["pairs"].as_array().unwrap() {
            assert_eq!(
                (&pair["delay"]["min_ns"], &pair["delay"]["max_ns"]),
                (&3_000_000.into(), &3_000_000.into())
            );
        }
        assert!(ended.err.contains(&format!("packet thread ({wait}): ")), "{ended}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn packet_threads_are_bound_to_a_processor_and_programs_are_not() {
    let own = allowed(&fs::read_to_string("/proc/self/status").unwrap());
    let first = own.split([',', '-']).next().unwrap();
    let line = "grep Cpus_allowed_list /proc/self/status; \
                grep -h Cpus_allowed_list $(dirname $(grep -l packets /proc/$PPID/task/*/comm))/status >&2";
    let ended = finish(&mut run(["--quiet", "--cpu", first], line)).expect(0);
    assert_eq!(allowed(&ended.out), own, "{ended}");
    assert_eq!(allowed(&ended.err), first, "{ended}");
    let ended = finish(&mut run(["--cpu", "1023"], "true")).expect(2);
    assert!(ended.err.contains("--cpu 1023") && ended.err.contains("may use "), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn programs_have_the_usual_priority_whatever_the_loop_has() {
    // Behind the name, which is in brackets: nice is the 17th field, the policy the 39th.
    let line = "ping -c 3 -i 0.05 $NARROWS_SERVER >&2; sed 's/.*) //' /proc/self/stat | cut -d' ' -f17,39";
    for (name, priority) in [("high", Priority::High), ("real-time", Priority::RealTime)] {
        let flags = ["--wait", "spin", "--priority", name];
        let ended = finish(&mut run(flags, line));
        let is_allowed = std::thread::spawn(move || set_priority(priority)).join().unwrap().is_ok();
        if !is_allowed {
            assert!(ended.code() == 2 && ended.err.contains("CAP_SYS_NICE"), "{ended}");
            continue;
        }
        let ended = ended.expect(0);
        assert_eq!(ended.out, "0 0\n", "nice 0 and SCHED_OTHER: {ended}");
        assert!(ended.err.contains(&format!("it ran with {name} priority")), "{ended}");
        assert_eq!(
            ended.err.contains("to stay below the kernel's real-time limit"),
            name == "real-time",
            "{ended}"
        );
    }
}

/// The upper bound holds on any machine; a thread that polls would take all of a processor.
#[test]
#[ignore = "needs namespaces"]
fn a_packet_thread_takes_no_more_of_a_processor_than_it_may() {
    let flags = ["--wait", "spin", "--max-cpu", "12.5%", "--probe=100", "--json", "-"];
    let ended = finish(&mut run(flags, "sleep 2")).expect(0);
    let report = ended.json();
    sound(&report);
    let host = &report["host"];
    assert_eq!(host["max_processor_share"], 0.125);
    let (share, used) =
        (host["loop_processor_share"].as_f64().unwrap(), host["loop_processor_ns"].as_u64().unwrap());
    assert!(share < 0.14 && used > 0, "{share}: {ended}");
    assert!(host["throttle_pause_ns"].as_u64() > Some(100_000_000), "{ended}");
    assert!(ended.err.contains("to stay below --max-cpu 12.5%"), "{ended}");
    for wrong in ["12", "0.5%", "101%", "much"] {
        let ended = finish(&mut run(["--max-cpu", wrong], "true")).expect(2);
        assert!(ended.err.contains(wrong) && ended.err.contains("from 1% to 100%"), "{ended}");
    }
}

#[test]
fn the_doctor_explains_what_the_kernel_does_to_real_time_threads() {
    let ended = finish(&mut narrows(["doctor"]));
    assert!(ended.out.contains("--priority high ") && ended.out.contains("real-time share"), "{ended}");
    let words = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let bound = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
    assert_eq!(
        words.contains("stops real-time threads"),
        bound.trim().parse::<i64>().unwrap() > 0,
        "{ended}"
    );
}

/// Polling would take time from programs that compute, twice as many as there are processors.
#[test]
#[ignore = "needs namespaces"]
fn packets_are_gathered_where_other_programs_want_the_processor() {
    let busy = 2 * std::thread::available_parallelism().unwrap().get();
    let line =
        format!("for n in $(seq {busy}); do timeout 2 sh -c 'while :; do :; done' & done; wait || true");
    let flags = ["--delay", "5ms", "--probe=2000", "--json", "-"];
    let ended = finish(&mut run(flags, &line)).expect(0);
    let report = ended.json();
    sound(&report);
    assert!(report["host"]["gather_ns"].as_u64() > Some(0), "{ended}");
    assert!(ended.err.contains("0.1 ms at a time: other programs wanted its processor"), "{ended}");
}
