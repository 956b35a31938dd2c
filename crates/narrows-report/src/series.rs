//! Time series of links: what each has done in an interval, as rows of CSV. `narrows sim` and live runs write the same rows.

use std::fmt::{self, Write as _};

use narrows_core::{Counters, DropReason, Duration, LinkView, Time};

/// The columns. Rows of links leave `flow` empty; rows of flows (of `narrows sim` alone) what a flow does not have.
pub const SERIES_HEAD: &str = "start_ns,end_ns,kind,name,flow,backlog_packets,backlog_bytes,in_flight_packets,\
                               sojourn_mean_ns,throughput_bps,delivered_packets,dropped_packets,marked_packets,\
                               offered_packets,drops\n";

/// What a link has counted up to an instant, over all its lanes, and what it holds.
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
    /// By reason, those that there were.
    drops: Vec<(DropReason, u64)>,
}

impl LinkCounts {
    /// Of a link at present.
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

    /// Appends the row of a link for the interval between two instants, `before` and `self` being what it had counted then.
    pub fn row(&self, before: &Self, span: (Time, Time), name: &str, rows: &mut String) {
        let drops =
            self.drops.iter().map(|&(reason, now)| (reason, now.saturating_sub(before.dropped(reason))));
        let drops: Vec<_> = drops.filter(|(_, packets)| *packets > 0).collect();
        let words: Vec<_> =
            drops.iter().map(|(reason, packets)| format!("{}={packets}", reason.name())).collect();
        let row = format_args!(
            "{},{},link,{},,{},{},{},{},{},{},{},{},{},{}",
            span.0.nanos(),
            span.1.nanos(),
            csv_field(name),
            self.backlog_packets,
            self.backlog_bytes,
            self.in_flight,
            OrEmpty(rounded(
                self.waited.saturating_sub(before.waited).nanos().into(),
                self.started.saturating_sub(before.started)
            )),
            OrEmpty(bits_per_second(self.wire_bits.saturating_sub(before.wire_bits), span.1.since(span.0))),
            self.left.saturating_sub(before.left),
            drops.iter().map(|(_, packets)| packets).sum::<u64>(),
            self.marked.saturating_sub(before.marked),
            self.offered.saturating_sub(before.offered),
            words.join(";"),
        );
        // A string takes everything.
        let _ = writeln!(rows, "{row}");
    }
}

/// A value of a CSV file: in quotes where it has to be (RFC 4180).
pub fn csv_field(value: &str) -> std::borrow::Cow<'_, str> {
    if value.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\"")).into()
    } else {
        value.into()
    }
}

/// A mean, rounded to the nearest; nothing of none.
pub fn rounded(sum: u128, count: u64) -> Option<u128> {
    let count = u128::from(count);
    (sum + count / 2).checked_div(count)
}

/// Bits a second, rounded to the nearest; nothing for an interval without length.
pub fn bits_per_second(bits: u64, span: Duration) -> Option<u128> {
    let nanos = u128::from(span.nanos());
    // 2^64 bits times 10^9 is below 2^94.
    (u128::from(bits) * 1_000_000_000 + nanos / 2).checked_div(nanos)
}

/// A cell.
pub struct OrEmpty(pub Option<u128>);

impl fmt::Display for OrEmpty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |value| write!(f, "{value}"))
    }
}
