//! Recent lateness of packets, from the histograms of two reports.

use std::collections::BTreeMap;

use narrows_live::control::{CurrentPort, CurrentScenario};
use narrows_report::{Direction, Report};

/// Lateness of packets released between two answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    /// The upper end of the histogram bucket with the 99th percentile; the maximum number if that bucket
    /// has no end.
    pub(super) p99_ns: u64,
    /// Number of packets.
    pub(super) packets: u64,
}

/// Packets by lateness: the upper ends of buckets, and the number of packets in each.
type Histogram = BTreeMap<u64, u64>;

/// Packets released at each port.
#[derive(Clone, Debug, Default)]
pub(super) struct Released(BTreeMap<String, Histogram>);

impl Released {
    pub(super) fn of(report: &Report) -> Self {
        let ports = report.ports.iter().map(|port| {
            let steps = port.lateness.iter().flat_map(|late| &late.histogram);
            let histogram = steps.map(|step| (step.up_to_ns.unwrap_or(u64::MAX), step.packets));
            (port.name.clone(), histogram.collect())
        });
        Self(ports.collect())
    }

    /// For one port since `before`; `None` if nothing was released.
    pub(super) fn since(&self, before: &Self, port: &str) -> Option<Late> {
        late(&grown(self.0.get(port)?, before.0.get(port)))
    }

    /// For all ports.
    pub(super) fn since_at_all(&self, before: &Self) -> Option<Late> {
        let mut sum = Histogram::new();
        for (port, histogram) in &self.0 {
            for (step, packets) in grown(histogram, before.0.get(port)) {
                *sum.entry(step).or_default() += packets;
            }
        }
        late(&sum)
    }
}

fn grown(now: &Histogram, before: Option<&Histogram>) -> Histogram {
    let then = |step| before.and_then(|before| before.get(step)).copied().unwrap_or(0);
    now.iter().map(|(step, packets)| (*step, packets.saturating_sub(then(step)))).collect()
}

fn late(histogram: &Histogram) -> Option<Late> {
    let packets: u64 = histogram.values().sum();
    // All but one in a hundred.
    let within = packets - packets / 100;
    let mut seen = 0;
    let step = histogram.iter().find(|(_, packets)| {
        seen += **packets;
        seen >= within
    });
    step.filter(|_| packets > 0).map(|(step, _)| Late { p99_ns: *step, packets })
}

/// Ports by the link where their packets enter, and their host.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports<'a>(BTreeMap<(&'a str, &'a str), &'a str>);

impl<'a> Ports<'a> {
    pub(super) fn of(settings: &'a CurrentScenario) -> Self {
        let entry = |port: &'a CurrentPort| ((whole(&port.link), port.host.as_str()), port.port.as_str());
        Self(settings.ports.iter().map(entry).collect())
    }

    /// The port at the end of a direction, if there is one: packets of `access.down` leave where those of
    /// `access.up` enter.
    pub(super) fn behind(&self, direction: &Direction) -> Option<&'a str> {
        let link = direction.rules.as_deref().unwrap_or(&direction.link);
        self.0.get(&(whole(link), direction.to.as_str())).copied()
    }
}

/// The link of this direction.
fn whole(link: &str) -> &str {
    link.strip_suffix(".up").or(link.strip_suffix(".down")).unwrap_or(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_is_that_of_what_was_released_since() {
        let histogram = |steps: &[(u64, u64)]| steps.iter().copied().collect::<Histogram>();
        let before = histogram(&[(1_000, 1_000_000), (50_000, 10)]);
        let now = histogram(&[(1_000, 1_000_098), (50_000, 11), (u64::MAX, 1)]);
        let since = grown(&now, Some(&before));
        assert_eq!(late(&since), Some(Late { p99_ns: 50_000, packets: 100 }));
        assert_eq!(late(&grown(&now, Some(&now))), None);
        assert_eq!(late(&grown(&now, None)).unwrap().p99_ns, 1_000);
    }
}
