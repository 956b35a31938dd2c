//! A long run at most of what it can: whether anything grows or drifts, and whether everything adds up at its end.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use narrows_live::control::Client;
use narrows_report::Step;
use serde_json::Value;

use crate::Outcome;
use crate::inside::{offer, stay};
use crate::udp::{SMALL, offered};
use crate::way::{NARROWS, Way, number, scratch};

/// Looks in all.
const LOOKS: u32 = 20;
/// Of what it delivers of more than it can take.
const LOAD: f64 = 0.8;
/// Memory may grow by so many kB from the second look on: pools find their size in the beginning.
const MAY_GROW: f64 = 4096.0;
/// The least median of the second half may be so many times that of the first: the steps of the histogram double.
const MAY_DRIFT: f64 = 4.0;

/// `span` is a number of seconds, or of minutes with an `m`.
pub(crate) fn soak(span: &str, flags: &[&str]) -> Outcome<()> {
    let seconds: u32 = match span.strip_suffix('m') {
        Some(minutes) => minutes.parse::<u32>()? * 60,
        None => span.strip_suffix('s').unwrap_or(span).parse()?,
    };
    let own: Vec<String> = ["--delay", "1ms"].iter().chain(flags).map(|flag| (*flag).into()).collect();
    let (most, _) = offered(&Way::Narrows(own.clone()), 3, 0, SMALL)?;
    let rate = (most.came * LOAD) as u32;
    println!("delivered {:.0} a second of {:.0}; soak at {rate} for {seconds} s", most.came, most.sent);

    let (file, json) = (scratch("server"), scratch("report.json"));
    let mut command = Command::new(NARROWS);
    command.arg("run").args(&own).arg("--quiet").arg("--json").arg(&json).args([
        "--on",
        "server",
        &stay(&file)?,
    ]);
    command.args(["--", "sh", "-c", &offer(&file, seconds, rate, SMALL)?]);
    let mut running = command.stdout(Stdio::piped()).spawn()?;
    println!("{:>8} {:>12} {:>14} {:>14} {:>12}", "at, s", "memory, kB", "late: half", "99 %", "delivered/s");
    let mut looks: Vec<Look> = Vec::new();
    let mut medians: Vec<f64> = Vec::new();
    while running.try_wait()?.is_none() && looks.len() < LOOKS as usize {
        sleep(Duration::from_secs_f64((f64::from(seconds) / f64::from(LOOKS)).max(0.5)));
        let Some(look) = Look::at(running.id()) else { continue };
        if let Some(before) = looks.last() {
            let [half, most] = [0.5, 0.99].map(|share| look.late_since(before, share));
            medians.push(half);
            let [half, most] = [half, most].map(|nanos| format!("≤ {} µs", nanos / 1e3));
            let delivered = (look.delivered - before.delivered) / (look.at - before.at);
            println!("{:>8.1} {:>12} {half:>14} {most:>14} {delivered:>12.0}", look.at, look.memory);
        }
        looks.push(look);
    }
    let ended = running.wait_with_output()?;
    let report: Value = serde_json::from_slice(&fs::read(&json)?)?;
    let _ = (fs::remove_file(json), fs::remove_file(file));
    println!("{}", String::from_utf8_lossy(&ended.stdout).trim());
    let violations = report["conservation"]["violations"].as_array().map_or(0, Vec::len);
    let lost = number(&report, "/losses/receive_ring_dropped_packets");
    let failed = number(&report, "/losses/send_failed_packets");
    println!(
        "receive buffer overruns: {lost}; refused by interfaces: {failed}; sums that are wrong: {violations}"
    );
    let grown = match (looks.get(1), looks.last()) {
        (Some(first), Some(last)) => last.memory - first.memory,
        _ => 0.0,
    };
    let verdict = if grown > MAY_GROW { "GREW" } else { "did not grow" };
    println!("memory {verdict}: {grown:+} kB from the second look to the last");
    // The first and the last interval have the run's beginning and end in them.
    let inner = medians.get(1..medians.len().saturating_sub(1)).unwrap_or_default();
    let (early, late) = inner.split_at(inner.len() / 2);
    let least = |medians: &[f64]| medians.iter().copied().fold(f64::INFINITY, f64::min);
    let drifts = least(late).is_finite() && least(late) > MAY_DRIFT * least(early);
    let verdict = if drifts { "GREW" } else { "did not grow" };
    println!(
        "lateness {verdict}: the least median of the first half {} µs, of the second {} µs",
        least(early) / 1e3,
        least(late) / 1e3
    );
    if violations > 0 || grown > MAY_GROW || drifts { Err("the soak found something".into()) } else { Ok(()) }
}

/// What a run is like at an instant.
#[derive(Debug)]
struct Look {
    /// Seconds since its beginning.
    at: f64,
    /// Resident, in kB.
    memory: f64,
    delivered: f64,
    /// Packets that were no later than each bound of the report's histogram, in nanoseconds.
    late: Vec<(f64, f64)>,
}

impl Look {
    fn at(process: u32) -> Option<Self> {
        let report = Client::find(Some(&process.to_string())).ok()?.stats().ok()?.report;
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let memory = memory.split_whitespace().next()?.parse().ok()?;
        let bound = |step: &Step| step.up_to_ns.map_or(f64::INFINITY, |nanos| nanos as f64);
        let late = report.lateness?.histogram.iter().map(|step| (bound(step), step.packets as f64)).collect();
        let delivered = report.conservation.delivered_packets as f64;
        Some(Self { at: report.end_ns as f64 / 1e9, memory, delivered, late })
    }

    /// The bound in nanoseconds that this share of the packets since another look kept; infinite beyond the last.
    fn late_since(&self, before: &Self, share: f64) -> f64 {
        let then = |bound: f64| before.late.iter().find(|step| step.0 == bound).map_or(0.0, |step| step.1);
        let since: Vec<_> =
            self.late.iter().map(|&(bound, packets)| (bound, packets - then(bound))).collect();
        let all: f64 = since.iter().map(|step| step.1).sum();
        let mut sum = 0.0;
        for (bound, packets) in since {
            sum += packets;
            if sum >= share * all {
                return bound;
            }
        }
        f64::INFINITY
    }
}
