//! Runs in a time namespace, whose monotonic clock is not the one that the kernel stamps frames by.

use std::process::Command;

use crate::common::{Finished, NARROWS, finish, sound};

/// A run of six pings there, 20 ms away.
fn pings(clock_ahead_by: &str, backend: &str) -> Finished {
    let mut command = Command::new("unshare");
    command
        .args(["--fork", "-T", "--monotonic", clock_ahead_by, NARROWS, "run", "--quiet", "--json", "-"])
        .args(["--backend", backend, "--delay", "20ms", "--max-lateness", "max=1h"])
        .args(["--", "sh", "-c", "ping -c 6 -i 0.2 $NARROWS_SERVER >&2"])
        .env_remove("NARROWS_CONTROL")
        .env_remove("NARROWS_RUN");
    finish(&mut command)
}

/// The least round trip that ping shows, in milliseconds: `rtt min/avg/max/mdev = 40.12/40.19/40.53/0.15 ms`.
fn least_round_trip(ended: &Finished) -> f64 {
    let line = ended.err.lines().find(|line| line.starts_with("rtt ")).unwrap_or_else(|| panic!("{ended}"));
    let least = line.split(" = ").nth(1).and_then(|values| values.split('/').next());
    least.and_then(|least| least.parse().ok()).unwrap_or_else(|| panic!("{ended}"))
}

/// However busy the host is, nothing comes back sooner than it should.
#[test]
#[ignore = "needs root, af_xdp, time namespaces, ping"]
fn delays_are_those_asked_for_whatever_the_clock_of_the_namespace_shows() {
    for ahead in ["5", "-60"] {
        for backend in ["af_packet", "af_xdp"] {
            let ended = pings(ahead, backend).expect(0);
            assert!(ended.err.contains(" 6 received"), "{ahead} {backend}: {ended}");
            assert!(least_round_trip(&ended) >= 40.0, "{ahead} {backend}: {ended}");
            let report = ended.json();
            sound(&report);
            assert_eq!(report["losses"]["implausible_stamp_packets"], 0, "{ahead} {backend}: {report:#}");
            assert_eq!(report["certificates"][0]["met"], true, "{ahead} {backend}: {report:#}");
        }
    }
}
