//! Metrics of runs, sent to an OpenTelemetry collector by OTLP/HTTP in its JSON encoding.
//!
//! Source: the OpenTelemetry protocol (OTLP) specification 1.7 and `opentelemetry-proto` 1.7, in its JSON mapping: 64-bit integers
//! are strings, enumerations are numbers. The metrics are those of [`metrics`](crate::metrics), with cumulative
//! temporality. Names have dots between namespaces and no unit; units are UCUM's: a collector's Prometheus exporter
//! makes the names of `/metrics` of them. Only `http`, without TLS and without compression.

mod payload;
mod send;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::Uri;
use hyper::body::Bytes;
use hyper::http::uri::{Authority, PathAndQuery};
use narrows_io::random;
use narrows_live::clock::since_1970;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};

use crate::guard::Counts;
use crate::metrics::{ExportCounts, Observed, Samples};
use crate::runs::Runs;
use payload::Starts;
use send::{Refusal, post};

/// The port of collectors that an address without one means.
const PORT: u16 = 4318;
/// The path of metrics below a collector's address.
const PATH: &str = "/v1/metrics";
/// How long the first retry waits, and the factor of each further one; up to half of it more, at random.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const GROWTH: u32 = 2;
/// A collector may ask for a longer wait; this long at most.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Two calculations of the start of the same run differ by less than this.
const SAME_START_NS: u64 = 2_000_000_000;

/// The address of a collector, such as `http://127.0.0.1:4318`. Metrics go to `/v1/metrics` below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    authority: Authority,
    path: PathAndQuery,
}

/// Why a text is no address of a collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected an address such as http://127.0.0.1:4318")]
pub struct CollectorError(String);

impl FromStr for Collector {
    type Err = CollectorError;

    fn from_str(text: &str) -> Result<Self, CollectorError> {
        let uri = Uri::from_str(text).map_err(|error| CollectorError(error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(CollectorError(
                    "https is not supported: send to a collector on this host, or through a tunnel".into(),
                ));
            }
            _ => return Err(CollectorError("no http:// at the start".into())),
        }
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| CollectorError("no host".into()))?;
        if authority.as_str().contains('@') {
            return Err(CollectorError("user names and passwords are not supported".into()));
        }
        if uri.query().is_some() {
            return Err(CollectorError("a query".into()));
        }
        let base = uri.path().trim_end_matches('/');
        let path = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        let path = PathAndQuery::from_str(&path).map_err(|error| CollectorError(error.to_string()))?;
        Ok(Self { authority: authority.clone(), path })
    }
}

impl std::fmt::Display for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// An export of metrics.
#[derive(Clone, Debug)]
pub struct Export {
    /// Where metrics go.
    pub collector: Collector,
    /// The time from one export to the next; not zero. An export that has not succeeded by then is given up: the next
    /// one has all of its counters.
    pub every: Duration,
    /// Called when exports begin to fail, and when they succeed again.
    pub say: fn(&str),
}

/// Sends metrics for as long as the server runs.
pub(crate) async fn export(plan: Export, runs: Arc<Runs>, counts: Arc<Counts>) {
    let mut starts = Starts { server: since_1970(), runs: BTreeMap::new() };
    let mut state = State::default();
    let mut ticks = interval(plan.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    *counts.otlp.lock().unwrap_or_else(PoisonError::into_inner) = Some(ExportCounts::default());
    loop {
        let deadline = ticks.tick().await + plan.every;
        let observed = runs.observe().await;
        let now = since_1970();
        starts.update(&observed, now);
        let samples = Samples::of(&observed, &counts.read());
        let body = payload::payload(&samples, &starts, now).to_string();
        let outcome = deliver(&plan.collector, body.into(), deadline).await;
        if let Some(line) = state.note(&plan.collector, &outcome) {
            (plan.say)(&line);
        }
        *counts.otlp.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.counts);
        if let Err(Refusal::NotNow { wait: Some(wait), .. }) = outcome {
            sleep_until(Instant::now() + wait.min(LONGEST_WAIT)).await;
        }
    }
}

/// Sends a body, and again after a failure that may pass, until the deadline. Returns the number of data points that the
/// collector rejected.
async fn deliver(collector: &Collector, body: Bytes, deadline: Instant) -> Result<u64, Refusal> {
    let mut wait = FIRST_WAIT;
    loop {
        let attempt = timeout_at(deadline, post(collector, body.clone())).await;
        let refusal = match attempt {
            Ok(Ok(rejected)) => return Ok(rejected),
            Ok(Err(refusal)) => refusal,
            Err(_) => Refusal::NotNow { why: "no answer in time".into(), wait: None },
        };
        let Refusal::NotNow { wait: asked, .. } = &refusal else { return Err(refusal) };
        // Collectors that were down are not asked by all at one instant.
        let part = random::bits().map_or(0, |bits| bits % 512) as u32;
        let next = Instant::now() + asked.unwrap_or(wait + wait * part / 1024);
        if next >= deadline {
            return Err(refusal);
        }
        sleep_until(next).await;
        wait *= GROWTH;
    }
}

/// What has become of exports.
#[derive(Debug, Default)]
struct State {
    counts: ExportCounts,
    /// Exports given up since the last that succeeded.
    failing: u64,
    /// Whether rejected points have been told.
    told_rejected: bool,
}

impl State {
    /// Counts an export; returns what is to be said.
    fn note(&mut self, collector: &Collector, outcome: &Result<u64, Refusal>) -> Option<String> {
        match outcome {
            Ok(rejected) => {
                self.counts.exports += 1;
                self.counts.rejected_points += rejected;
                let failed = std::mem::take(&mut self.failing);
                if failed > 0 {
                    return Some(format!(
                        "OTLP: {collector} accepts metrics again; {failed} exports were given up"
                    ));
                }
                let first = *rejected > 0 && !std::mem::replace(&mut self.told_rejected, true);
                first.then(|| {
                    format!("OTLP: {collector} rejected {rejected} data points; later ones are counted")
                })
            }
            Err(refusal) => {
                self.counts.failed += 1;
                self.failing += 1;
                let why = refusal.why();
                (self.failing == 1)
                    .then(|| format!("OTLP: cannot send metrics to {collector}: {why}; exports go on, failed ones are counted"))
            }
        }
    }
}

impl Starts {
    /// Takes the starts of runs from how long they have been running.
    fn update(&mut self, observed: &[Observed], now: u64) {
        for one in observed {
            let Some((stats, _)) = &one.answer else { continue };
            let running = stats.report.end_ns.saturating_sub(stats.report.start_ns);
            let start = now.saturating_sub(running);
            let known = self.runs.entry(one.run.clone()).or_insert(start);
            // Another run of the same name.
            if known.abs_diff(start) > SAME_START_NS {
                *known = start;
            }
        }
        self.runs.retain(|run, _| observed.iter().any(|one| one.run == *run));
    }
}

#[cfg(test)]
mod tests;
