//! Backlog, sojourn and throughput over time, as CSV: one row for each link and each flow in each interval.
//!
//! | column | of a link | of a flow |
//! |---|---|---|
//! | `start_ns`, `end_ns` | the interval; it includes its end and not its start, but for the first | the same |
//! | `kind` | `link` | `flow` |
//! | `name` | the link | the traffic source or capture |
//! | `flow` | | protocol, addresses and ports |
//! | `backlog_packets`, `backlog_bytes` | in the queue at `end_ns` | |
//! | `in_flight_packets` | in the delay line at `end_ns` | |
//! | `sojourn_mean_ns` | mean time in the queue, of packets whose transmission began in the interval | mean time in the network, of packets delivered in it |
//! | `throughput_bps` | bits sent by the transmitter, overhead included, by the interval; a transmission counts when it ends | bits delivered, from the network header on, by the interval |
//! | `delivered_packets` | out of the link | at a port |
//! | `dropped_packets` | by the link | anywhere |
//! | `marked_packets` | "congestion experienced", by the link | of those delivered, those with "congestion experienced" |
//!
//! A mean of nothing is left empty. A flow has a row in an interval in which it had a verdict.

use std::collections::BTreeMap;
use std::io::Write;

use narrows_core::{Counters, Duration, Engine, Event, FlowKey, LinkView, Time, Verdict};

use crate::error::SimError;
use crate::names::{Address, Names, csv, transport};
use crate::output::Output;
use narrows_traffic::Body;

const HEAD: &str = "start_ns,end_ns,kind,name,flow,backlog_packets,backlog_bytes,in_flight_packets,sojourn_mean_ns,\
                    throughput_bps,delivered_packets,dropped_packets,marked_packets\n";

pub(crate) struct Series {
    output: Output,
    interval: Duration,
    start: Time,
    links: Vec<LinkMark>,
    flows: BTreeMap<(u32, FlowKey), FlowMark>,
    lines: Vec<u8>,
}

/// What a link had counted at the start of the interval, over all its lanes.
#[derive(Clone, Copy, Default)]
struct LinkMark {
    waited: Duration,
    started: u64,
    wire_bits: u64,
    left: u64,
    dropped: u64,
    marked: u64,
}

/// What a flow has had in the interval.
#[derive(Default)]
struct FlowMark {
    delivered: u64,
    dropped: u64,
    marked: u64,
    bytes: u64,
    sojourn: u128,
}

impl Series {
    /// `interval` must not be zero.
    pub(crate) fn new<B>(
        mut output: Output,
        interval: Duration,
        engine: &Engine<B>,
    ) -> Result<Self, SimError> {
        output.put(HEAD.as_bytes())?;
        let links = vec![LinkMark::default(); engine.links().len()];
        Ok(Self { output, interval, start: Time::ZERO, links, flows: BTreeMap::new(), lines: Vec::new() })
    }

    /// The end of the interval that is being measured: [`Series::close`] is to be called after all inputs and events up
    /// to and including that instant, and before any other.
    pub(crate) fn next_end(&self) -> Time {
        self.start + self.interval
    }

    pub(crate) fn event(&mut self, event: &Event<'_, Body>) {
        // A mark or a congestion signal that a packet gets on its way does not make it another flow.
        let key = FlowKey { mark: 0, traffic_class: 0, tcp_flags: 0, ..event.key };
        let flow = self.flows.entry((event.body.get().source, key)).or_default();
        match event.verdict {
            Verdict::Delivered(_) => {
                flow.delivered += 1;
                flow.marked += u64::from(event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED);
                flow.bytes += u64::from(event.length);
                flow.sojourn += u128::from(event.at.since(event.arrival).nanos());
            }
            Verdict::Dropped { .. } => flow.dropped += 1,
        }
    }

    /// Writes the rows of the interval that ends at `end`, and starts the next one.
    pub(crate) fn close<B>(&mut self, end: Time, names: &Names, engine: &Engine<B>) -> Result<(), SimError> {
        let span = end.since(self.start);
        self.lines.clear();
        let mut rows = Ok(());
        // Links may have been added.
        self.links.resize(engine.links().len(), LinkMark::default());
        for (link, mark) in engine.links().zip(&mut self.links) {
            let view = engine.view(link);
            let now = LinkMark::of(&view);
            let row = now.since(*mark);
            *mark = now;
            rows = rows.and(writeln!(
                self.lines,
                "{},{},link,{},,{},{},{},{},{},{},{},{}",
                self.start.nanos(),
                end.nanos(),
                csv(view.name()),
                view.backlog().packets,
                view.backlog().bytes,
                view.in_flight(),
                mean(row.waited.nanos().into(), row.started),
                by_time(row.wire_bits, span),
                row.left,
                row.dropped,
                row.marked,
            ));
        }
        for ((feed, key), flow) in &self.flows {
            rows = rows.and(writeln!(
                self.lines,
                "{},{},flow,{},{},,,,{},{},{},{},{}",
                self.start.nanos(),
                end.nanos(),
                csv(&names.feeds[*feed as usize]),
                csv(&flow_name(key)),
                mean(flow.sojourn, flow.delivered),
                by_time(flow.bytes.saturating_mul(8), span),
                flow.delivered,
                flow.dropped,
                flow.marked,
            ));
        }
        rows.map_err(|error| self.output.error(error))?;
        self.flows.clear();
        self.start = end;
        self.output.put(&self.lines)
    }

    /// Closes the interval that `end` cuts short, if it has any length.
    pub(crate) fn finish<B>(mut self, end: Time, names: &Names, engine: &Engine<B>) -> Result<(), SimError> {
        if end > self.start {
            self.close(end, names, engine)?;
        }
        self.output.finish()
    }
}

impl LinkMark {
    fn of(view: &LinkView<'_>) -> Self {
        let mut sum = Self { started: view.transmitting(), ..Self::default() };
        for Counters { waited, sent, wire_bits, left, marked, .. } in &*view.counters() {
            sum.waited += *waited;
            sum.started += sent.packets;
            sum.wire_bits += wire_bits;
            sum.left += left.packets;
            sum.marked += marked;
        }
        sum.dropped = view.counters().iter().map(|lane| lane.dropped_in_all().packets).sum();
        sum
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            waited: self.waited.saturating_sub(earlier.waited),
            started: self.started - earlier.started,
            wire_bits: self.wire_bits - earlier.wire_bits,
            left: self.left - earlier.left,
            dropped: self.dropped - earlier.dropped,
            marked: self.marked - earlier.marked,
        }
    }
}

fn flow_name(key: &FlowKey) -> String {
    let transport = transport(key);
    if transport.is_empty() {
        return String::new();
    }
    let (source, destination) = (Address(key.network, key.source), Address(key.network, key.destination));
    format!("{transport} {source} {} > {destination} {}", key.source_port, key.destination_port)
}

/// Rounded to the nearest; empty for none.
fn mean(sum: u128, count: u64) -> String {
    let count = u128::from(count);
    (sum + count / 2).checked_div(count).map_or_else(String::new, |mean| mean.to_string())
}

/// Bits a second, rounded to the nearest; empty for an interval without length.
fn by_time(bits: u64, span: Duration) -> String {
    let nanos = u128::from(span.nanos());
    // 2^64 bits times 10^9 is below 2^94.
    let rate = (u128::from(bits) * 1_000_000_000 + nanos / 2).checked_div(nanos);
    rate.map_or_else(String::new, |rate| rate.to_string())
}
