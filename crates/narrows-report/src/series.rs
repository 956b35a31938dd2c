//! Time series of links: each link's activity per interval, as CSV rows. `narrows sim` and live runs write the same
//! rows.

use std::fmt;

use narrows_core::{Counters, DropReason, Duration, LinkView, Time};

/// The columns. Rows of links leave `flow` empty; rows of flows (`narrows sim` only) leave empty what a flow does not
/// have.
pub const SERIES_HEAD: &str = "start_ns,end_ns,kind,name,flow,backlog_packets,backlog_bytes,in_flight_packets,\
                               sojourn_mean_ns,throughput_bps,delivered_packets,dropped_packets,marked_packets,\
                               offered_packets,drops\n";

/// The counters of a link up to an instant, over all its lanes, and its present contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    backlog_packets: u64,
    backlog_bytes: u64,
    in_flight: u64,
    waited: Duration,
    started: u64,
    wire_bits: u64,
    offered: u64,
    left: u64,
    marked: u64,
    /// Drops by reason, without zeros.
    drops: Vec<(DropReason, u64)>,
}

impl LinkCounts {
    /// The counters of a link at present.
    pub fn of(view: &LinkView<'_>) -> Self {
        let (counters, backlog) = (view.counters(), view.backlog());
        let mut sum = Self {
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            in_flight: view.in_flight(),
            started: view.transmitting(),
            ..Self::default()
        };
        for Counters { waited, sent, wire_bits, arrived, left, marked, .. } in &*counters {
            sum.waited += *waited;
            sum.started += sent.packets;
            sum.wire_bits += wire_bits;
            sum.offered += arrived.packets;
            sum.left += left.packets;
            sum.marked += marked;
        }
        let all = |reason| counters.iter().map(|lane| lane.dropped(reason).packets).sum::<u64>();
        let drops = DropReason::ALL.into_iter().map(|reason| (reason, all(reason)));
        sum.drops = drops.filter(|(_, packets)| *packets > 0).collect();
        sum
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.iter().find(|(of, _)| *of == reason).map_or(0, |(_, packets)| *packets)
    }

    /// The row of a link for an interval; `before` and `self` are its counters at the start and the end.
    pub fn row<'a>(&self, before: &Self, (start, end): (Time, Time), name: &'a str) -> SeriesRow<'a> {
        let drops =
            self.drops.iter().map(|&(reason, now)| (reason, now.saturating_sub(before.dropped(reason))));
        let drops: Vec<_> = drops.filter(|(_, packets)| *packets > 0).collect();
        let words: Vec<_> =
            drops.iter().map(|(reason, packets)| format!("{}={packets}", reason.name())).collect();
        let waited = self.waited.saturating_sub(before.waited).nanos().into();
        let bits = self.wire_bits.saturating_sub(before.wire_bits);
        SeriesRow {
            start,
            end,
            kind: "link",
            name,
            flow: String::new(),
            backlog_packets: Some(self.backlog_packets),
            backlog_bytes: Some(self.backlog_bytes),
            in_flight_packets: Some(self.in_flight),
            sojourn_mean_ns: rounded(waited, self.started.saturating_sub(before.started)),
            throughput_bps: bits_per_second(bits, end.since(start)),
            delivered_packets: self.left.saturating_sub(before.left),
            dropped_packets: drops.iter().map(|(_, packets)| packets).sum(),
            marked_packets: self.marked.saturating_sub(before.marked),
            offered_packets: Some(self.offered.saturating_sub(before.offered)),
            drops: words.join(";"),
        }
    }
}

/// A row of a series: the activity of a link or a flow in an interval. The columns are in [`SERIES_HEAD`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRow<'a> {
    /// The start of the interval. The interval includes its end, and its start only if it is the first one.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// `link` or `flow`.
    pub kind: &'static str,
    /// The link, or the traffic source or capture.
    pub name: &'a str,
    /// For a flow: protocol, addresses and ports.
    pub flow: String,
    /// For a link: packets in the queue at the end.
    pub backlog_packets: Option<u64>,
    /// For a link: bytes in the queue at the end.
    pub backlog_bytes: Option<u64>,
    /// For a link: packets in the delay line at the end.
    pub in_flight_packets: Option<u64>,
    /// The mean time in the queue, or for a flow in the network; `None` without packets.
    pub sojourn_mean_ns: Option<u64>,
    /// Bits sent, or for a flow delivered, divided by the interval.
    pub throughput_bps: Option<u64>,
    /// Packets that left the link, or for a flow were delivered at a port.
    pub delivered_packets: u64,
    /// Packets dropped by the link, or for a flow anywhere.
    pub dropped_packets: u64,
    /// Packets marked "congestion experienced".
    pub marked_packets: u64,
    /// For a link: packets offered to it.
    pub offered_packets: Option<u64>,
    /// Drops by reason: `queue full=3;wire loss=1`.
    pub drops: String,
}

/// A line of CSV, without the line end.
impl fmt::Display for SeriesRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            self.start.nanos(),
            self.end.nanos(),
            self.kind,
            csv_field(self.name),
            csv_field(&self.flow),
            OrEmpty(self.backlog_packets),
            OrEmpty(self.backlog_bytes),
            OrEmpty(self.in_flight_packets),
            OrEmpty(self.sojourn_mean_ns),
            OrEmpty(self.throughput_bps),
            self.delivered_packets,
            self.dropped_packets,
            self.marked_packets,
            OrEmpty(self.offered_packets),
            self.drops,
        )
    }
}

/// A CSV value, quoted where necessary (RFC 4180).
pub fn csv_field(value: &str) -> std::borrow::Cow<'_, str> {
    if value.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\"")).into()
    } else {
        value.into()
    }
}

/// A mean, rounded to the nearest; `None` if `count` is zero.
pub fn rounded(sum: u128, count: u64) -> Option<u64> {
    let count = u128::from(count);
    (sum + count / 2).checked_div(count).map(saturated)
}

/// Bits per second, rounded to the nearest; `None` for an interval of length zero.
pub fn bits_per_second(bits: u64, span: Duration) -> Option<u64> {
    let nanos = u128::from(span.nanos());
    // 2^64 bits times 10^9 is below 2^94.
    (u128::from(bits) * 1_000_000_000 + nanos / 2).checked_div(nanos).map(saturated)
}

fn saturated(value: u128) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

/// A cell.
struct OrEmpty(Option<u64>);

impl fmt::Display for OrEmpty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |value| write!(f, "{value}"))
    }
}
