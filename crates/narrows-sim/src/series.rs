//! Backlog, sojourn and throughput over time: one row for each link and each flow in each interval.
//!
//! | column | of a link | of a flow |
//! |---|---|---|
//! | `start_ns`, `end_ns` | the interval; it includes its end, and its start only for the first interval | the same |
//! | `kind` | `link` | `flow` |
//! | `name` | the link | the traffic source or capture |
//! | `flow` | | protocol, addresses and ports |
//! | `backlog_packets`, `backlog_bytes` | in the queue at `end_ns` | |
//! | `in_flight_packets` | in the delay line at `end_ns` | |
//! | `sojourn_mean_ns` | mean time in the queue, of packets whose transmission began in the interval | mean time in the network, of packets delivered in the interval |
//! | `throughput_bps` | bits sent by the transmitter, overhead included, divided by the interval; a transmission counts when it ends | bits delivered, from the network header on, divided by the interval |
//! | `delivered_packets` | leaving the link | delivered at a port |
//! | `dropped_packets` | dropped by the link | dropped anywhere |
//! | `marked_packets` | marked "congestion experienced" by the link | delivered with "congestion experienced" |
//! | `offered_packets` | offered to the link | |
//! | `drops` | by reason: `queue full=3;wire loss=1` | |
//!
//! A mean over no packets is left empty. A flow has a row for each interval in which it had a verdict.

use std::collections::BTreeMap;

use narrows_columns as columns;
use narrows_core::{Duration, Engine, Event, FlowKey, Time, Verdict};
use narrows_frame::{Address, transport};
use narrows_report::{LinkCounts, SeriesRow, bits_per_second, rounded};

use crate::error::SimError;
use crate::names::Names;
use crate::observe::SeriesObserver;
use crate::output::Rows;
use narrows_traffic::Body;

pub(crate) struct Series {
    sink: Sink,
    interval: Duration,
    start: Time,
    /// Each link's counters at the start of the interval.
    links: Vec<LinkCounts>,
    flows: BTreeMap<(u32, FlowKey), FlowMark>,
}

/// Where rows go.
pub(crate) enum Sink {
    File(Rows<columns::Series>),
    Observer(SeriesObserver),
}

impl Sink {
    fn put(&mut self, row: &SeriesRow<'_>) -> Result<(), SimError> {
        match self {
            Self::File(rows) => rows.put(row),
            Self::Observer(observer) => {
                observer(row);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<(), SimError> {
        match self {
            Self::File(rows) => rows.finish(),
            Self::Observer(_) => Ok(()),
        }
    }
}

/// A flow's counters for the interval.
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
    pub(crate) fn new<B>(sink: Sink, interval: Duration, engine: &Engine<B>) -> Self {
        let links = vec![LinkCounts::default(); engine.links().len()];
        Self { sink, interval, start: Time::ZERO, links, flows: BTreeMap::new() }
    }

    /// The end of the current interval. Call [`Series::close`] after all inputs and events up to and including that
    /// instant, and before any later one.
    pub(crate) fn next_end(&self) -> Time {
        self.start + self.interval
    }

    pub(crate) fn event(&mut self, event: &Event<'_, Body>) {
        // A mark or ECN codepoint that a packet gets on its path does not make it another flow.
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
        // Links may have been added.
        self.links.resize(engine.links().len(), LinkCounts::default());
        for (link, mark) in engine.links().zip(&mut self.links) {
            let view = engine.view(link);
            let now = LinkCounts::of(&view);
            self.sink.put(&now.row(mark, (self.start, end), view.name()))?;
            *mark = now;
        }
        for ((feed, key), flow) in &self.flows {
            self.sink.put(&SeriesRow {
                start: self.start,
                end,
                kind: "flow",
                name: &names.feeds[*feed as usize],
                flow: flow_name(key),
                backlog_packets: None,
                backlog_bytes: None,
                in_flight_packets: None,
                sojourn_mean_ns: rounded(flow.sojourn, flow.delivered),
                throughput_bps: bits_per_second(flow.bytes.saturating_mul(8), span),
                delivered_packets: flow.delivered,
                dropped_packets: flow.dropped,
                marked_packets: flow.marked,
                offered_packets: None,
                drops: String::new(),
            })?;
        }
        self.flows.clear();
        self.start = end;
        Ok(())
    }

    /// Closes the interval that `end` cuts short, if its length is not zero.
    pub(crate) fn finish<B>(mut self, end: Time, names: &Names, engine: &Engine<B>) -> Result<(), SimError> {
        if end > self.start {
            self.close(end, names, engine)?;
        }
        self.sink.finish()
    }
}

fn flow_name(key: &FlowKey) -> String {
    let transport = transport(key);
    if transport.is_empty() {
        return String::new();
    }
    let (source, destination) = (Address::source(key), Address::destination(key));
    format!("{transport} {source} {} > {destination} {}", key.source_port, key.destination_port)
}
