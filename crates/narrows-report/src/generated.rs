//! Results of the scenario's own traffic.

use std::fmt::{self, Formatter};

use narrows_core::source::Arrivals;
use narrows_core::{Event, Tally, Verdict};
use narrows_scenario::{Scenario, Traffic, TrafficSource};
use serde::{Deserialize, Serialize};

use crate::figures::{Quantiles, Spread, quantiles};
use crate::human::{count, percent, shortened, span};
use crate::info::Word;

/// Counts the packets of a traffic source during a run.
#[derive(Debug, Default)]
pub struct SourceMeter {
    offered: Tally,
    delivered: Tally,
    dropped: u64,
    missed: u64,
    /// Packets handed in whose last copy has no verdict yet; negative in a part of a run that saw more leave than
    /// arrive.
    inside: i64,
    delay: Option<Box<Spread>>,
}

impl SourceMeter {
    /// A packet is handed in.
    pub fn offered(&mut self, length: u32) {
        self.offered.packets += 1;
        self.offered.bytes += u64::from(length);
        self.inside += 1;
    }

    /// A packet was due but could not be sent in time.
    pub fn missed(&mut self) {
        self.missed += 1;
    }

    /// Records an event; `is_last`: no copy of the packet is inside any more.
    pub fn verdict<B>(&mut self, event: &Event<'_, B>, is_last: bool) {
        self.inside -= i64::from(is_last);
        match event.verdict {
            Verdict::Delivered(_) => {
                self.delivered.packets += 1;
                self.delivered.bytes += u64::from(event.length);
                let delay = self.delay.get_or_insert_with(|| Box::new(Spread::new()));
                delay.record(event.at.since(event.arrival));
            }
            Verdict::Dropped { .. } => self.dropped += 1,
        }
    }

    /// Adds the counters of the same source from another part of the run.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [(&mut self.offered, other.offered), (&mut self.delivered, other.delivered)] {
            sum.packets += more.packets;
            sum.bytes += more.bytes;
        }
        self.dropped += other.dropped;
        self.missed += other.missed;
        self.inside += other.inside;
        if let Some(more) = &other.delay {
            self.delay.get_or_insert_with(|| Box::new(Spread::new())).add(more);
        }
    }

    /// The reports on all sources, from counters of parts of a run, each with the index of its source among the
    /// traffic.
    pub fn reports<'a>(
        infos: &[SourceInfo],
        counted: impl IntoIterator<Item = (u32, &'a Self)>,
    ) -> Vec<SourceReport> {
        let mut sums: Vec<Self> = infos.iter().map(|_| Self::default()).collect();
        for (place, meter) in counted {
            if let Some(sum) = sums.get_mut(place as usize) {
                sum.add(meter);
            }
        }
        infos.iter().zip(&sums).map(|(info, sum)| sum.report(info)).collect()
    }

    /// The report on it.
    fn report(&self, info: &SourceInfo) -> SourceReport {
        let SourceInfo { name, kind, from, to } = info.clone();
        SourceReport {
            name,
            kind: kind.into(),
            from,
            to,
            offered_packets: self.offered.packets,
            offered_bytes: self.offered.bytes,
            delivered_packets: self.delivered.packets,
            delivered_bytes: self.delivered.bytes,
            dropped_packets: self.dropped,
            missed_packets: self.missed,
            inside_packets: u64::try_from(self.inside).unwrap_or(0),
            delay: self.delay.as_deref().map(quantiles),
        }
    }
}

/// The description of a traffic source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// Its kind: `constant`, `poisson`, `on-off`, `aimd`, `capture`, or an application such as `web`.
    pub kind: &'static str,
    /// The port where its packets enter.
    pub from: String,
    /// The port that its packets are addressed to.
    pub to: String,
}

impl SourceInfo {
    /// All sources of a scenario, in file order.
    pub fn all(scenario: &Scenario) -> Vec<Self> {
        let info = |traffic: &Traffic| Self {
            name: traffic.name.clone(),
            kind: kind(&traffic.source),
            from: traffic.from.clone(),
            to: traffic.to.clone(),
        };
        scenario.traffic.iter().map(info).collect()
    }
}

fn kind(source: &TrafficSource) -> &'static str {
    match source {
        TrafficSource::Generated { config, .. } => match config.arrivals {
            Arrivals::Constant(_) => "constant",
            Arrivals::Poisson(_) => "poisson",
            Arrivals::OnOff { .. } => "on-off",
        },
        TrafficSource::Aimd { .. } => "aimd",
        TrafficSource::App { config, .. } => config.kind.name(),
        TrafficSource::Capture { .. } => "capture",
        _ => "other",
    }
}

/// Results of a traffic source. For responsive sources (`aimd`, applications), packets in the reverse direction count
/// as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// The name of the source.
    pub name: String,
    /// Its kind: `constant`, `poisson`, `on-off`, `aimd`, `capture`, or an application such as `web`.
    pub kind: Word,
    /// The port where its packets enter.
    pub from: String,
    /// The port that its packets are addressed to.
    pub to: String,
    /// Packets that entered the network.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that were delivered, copies and fragments included.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Packets that were due but not sent, because the host could not generate them in time; 0 in virtual time.
    pub missed_packets: u64,
    /// Packets inside the network at the end.
    pub inside_packets: u64,
    /// The one-way delay; `None` if none was delivered.
    pub delay: Option<Quantiles>,
}

/// A table of all sources.
pub(crate) fn print(all: &[SourceReport], most_rows: usize, f: &mut Formatter<'_>) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    let width = all.iter().map(|one| label(one).chars().count()).max().unwrap_or(0).clamp(17, 36) + 2;
    writeln!(
        f,
        "\n{:<width$}{:>12}{:>12}{:>10}{:>9}{:>9}{:>11}{:>11}",
        "generated traffic", "offered", "delivered", "dropped", "share", "inside", "delay p50", "p99"
    )?;
    for one in all.iter().take(most_rows) {
        // Of all that there are, copies included.
        let all = one.delivered_packets + one.dropped_packets + one.inside_packets;
        let share = one.dropped_packets as f64 / all.max(one.offered_packets).max(1) as f64;
        let share = if one.dropped_packets > 0 { percent(share) } else { "-".into() };
        let [p50, p99] = [|delay: Quantiles| delay.p50_ns, |delay: Quantiles| delay.p99_ns]
            .map(|of| one.delay.map_or("-".into(), |delay| span(of(delay))));
        write!(f, "  {:<w$}", shortened(&label(one), width - 2), w = width - 2)?;
        write!(f, "{:>12}{:>12}", count(one.offered_packets), count(one.delivered_packets))?;
        write!(f, "{:>10}{share:>9}{:>9}", count(one.dropped_packets), count(one.inside_packets))?;
        writeln!(f, "{p50:>11}{p99:>11}")?;
    }
    if all.len() > most_rows {
        writeln!(f, "  {} more sources", all.len() - most_rows)?;
    }
    Ok(())
}

/// One line for a summary: `3 sources: 12,000 packets offered, 11,900 delivered, 100 dropped`.
pub(crate) fn sum(all: &[SourceReport]) -> String {
    let sum = |of: fn(&SourceReport) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let sources = if all.len() == 1 { all[0].name.clone() } else { format!("{} sources", all.len()) };
    let mut text = format!(
        "{sources}: {} packets offered, {} delivered, {} dropped",
        count(sum(|one| one.offered_packets)),
        count(sum(|one| one.delivered_packets)),
        count(sum(|one| one.dropped_packets))
    );
    let missed = sum(|one| one.missed_packets);
    if missed > 0 {
        text += &format!(", {} not sent in time", count(missed));
    }
    text
}

fn label(one: &SourceReport) -> String {
    format!("{} ({})", one.name, one.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, offered: u64, dropped: u64, missed: u64) -> SourceReport {
        let info = SourceInfo { name: name.into(), kind: "constant", from: "a.l".into(), to: "b.l".into() };
        let mut meter = SourceMeter::default();
        (0..offered).for_each(|_| meter.offered(1000));
        (0..missed).for_each(|_| meter.missed());
        meter.dropped = dropped;
        meter.inside = 3;
        let mut sum = SourceMeter::default();
        // In two parts, of which the second has seen nothing new.
        sum.add(&meter);
        sum.add(&SourceMeter::default());
        sum.report(&info)
    }

    struct Table<'a>(&'a [SourceReport]);

    impl fmt::Display for Table<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            print(self.0, 24, f)
        }
    }

    #[test]
    fn sources_are_told_in_a_table_and_in_a_line() {
        let all = [report("bulk", 1200, 12, 0), report("voice", 50, 0, 7)];
        assert_eq!((all[0].offered_bytes, all[1].missed_packets), (1_200_000, 7));
        let text = Table(&all).to_string();
        let expected = "
generated traffic       offered   delivered   dropped    share   inside  delay p50        p99
  bulk (constant)         1,200           0        12   1.00 %        3          -          -
  voice (constant)           50           0         0        -        3          -          -
";
        assert_eq!(text, expected, "{text}");
        let line = "2 sources: 1,250 packets offered, 0 delivered, 12 dropped, 7 not sent in time";
        assert_eq!(sum(&all), line);
    }
}
