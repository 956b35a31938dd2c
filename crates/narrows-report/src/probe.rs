//! Results of probes between the hosts of a live run.

use std::collections::BTreeSet;

use narrows_core::Duration;
use serde::{Deserialize, Serialize};

use crate::figures::{Quantiles, Spread, quantiles};

/// The probe packets of a run: the fields by which a classifier can match them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePacket {
    /// Their destination UDP port.
    pub port: u16,
    /// DSCP (the upper six bits) and ECN.
    pub traffic_class: u8,
    /// Bytes from the IP header on.
    pub length: u16,
}

/// Measures the probes that arrive at one host from another.
#[derive(Debug)]
pub struct ProbeMeter {
    arrived: u64,
    duplicates: u64,
    reordered: u64,
    marked: u64,
    /// All numbers below this have been seen or given up.
    next: u64,
    /// Numbers below `next` that have not been seen: they distinguish a late probe from a duplicate.
    missing: BTreeSet<u64>,
    delay: Spread,
}

/// The maximum number of missing probes remembered; a probe that is late by more counts as a duplicate.
const MOST_MISSING: usize = 1 << 16;

impl ProbeMeter {
    /// A meter without measurements.
    #[expect(clippy::new_without_default, reason = "a meter is made on purpose")]
    pub fn new() -> Self {
        Self {
            arrived: 0,
            duplicates: 0,
            reordered: 0,
            marked: 0,
            next: 0,
            missing: BTreeSet::new(),
            delay: Spread::new(),
        }
    }

    /// The probe with this number arrived with this delay, marked "congestion experienced" or not.
    pub fn record(&mut self, number: u64, delay: Duration, marked: bool) {
        if number >= self.next {
            let skipped = self.next..number;
            self.missing.extend(skipped.rev().take(MOST_MISSING - self.missing.len().min(MOST_MISSING)));
            self.next = number + 1;
        } else if self.missing.remove(&number) {
            self.reordered += 1;
        } else {
            self.duplicates += 1;
            return;
        }
        self.arrived += 1;
        self.marked += u64::from(marked);
        self.delay.record(delay);
    }

    /// The results of `sent` probes from one host to another, between which this mean delay is configured.
    pub fn report(
        &self,
        from: String,
        to: String,
        packet: ProbePacket,
        sent: u64,
        configured: Option<Duration>,
    ) -> ProbeReport {
        let lost = sent.saturating_sub(self.arrived);
        ProbeReport {
            from,
            to,
            port: packet.port,
            dscp: packet.traffic_class >> 2,
            ecn: packet.traffic_class & 3,
            length_bytes: packet.length,
            sent_packets: sent,
            lost_packets: lost,
            lost_share: if sent == 0 { 0.0 } else { lost as f64 / sent as f64 },
            duplicate_packets: self.duplicates,
            reordered_packets: self.reordered,
            marked_packets: self.marked,
            overhead_ns: configured
                .filter(|_| self.arrived > 0)
                .map(|mean| self.delay.quantile(0.5).nanos() as i64 - mean.nanos() as i64),
            delay: quantiles(&self.delay),
        }
    }
}

/// The results of probes in one direction, as seen by the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Their destination UDP port.
    pub port: u16,
    /// Their DSCP as sent, 0 to 63.
    pub dscp: u8,
    /// Their ECN field as sent, 0 to 3 (RFC 3168).
    pub ecn: u8,
    /// The length of each from the IP header on.
    pub length_bytes: u16,
    /// Probes sent.
    pub sent_packets: u64,
    /// Probes that never arrived.
    pub lost_packets: u64,
    /// Lost probes as a share of those sent.
    pub lost_share: f64,
    /// Arrivals of probes that had already arrived.
    pub duplicate_packets: u64,
    /// Probes that arrived after one sent later.
    pub reordered_packets: u64,
    /// Probes that arrived with "congestion experienced".
    pub marked_packets: u64,
    /// The p50 delay minus the configured mean. With a constant delay this is what transmission, queueing and the
    /// host add. `None` if the mean is unknown.
    pub overhead_ns: Option<i64>,
    /// The delay from the sender's socket to the receiver's, of each probe's first arrival.
    pub delay: Quantiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_late_and_repeated_probes_are_told_apart() {
        let mut meter = ProbeMeter::new();
        for number in [0, 1, 4, 2, 4, 2, 5] {
            meter.record(number, Duration::from_micros(number), number == 4);
        }
        let packet = ProbePacket { port: 9, traffic_class: 46 << 2 | 2, length: 200 };
        let report = meter.report("a".into(), "b".into(), packet, 8, Some(Duration::from_nanos(500)));
        assert_eq!((report.port, report.dscp, report.ecn, report.length_bytes), (9, 46, 2, 200));
        assert_eq!(report.marked_packets, 1);
        assert_eq!(report.overhead_ns, Some(1_500));
        assert_eq!((report.lost_packets, report.reordered_packets, report.duplicate_packets), (3, 1, 2));
        assert_eq!(report.lost_share, 0.375);
        assert_eq!(report.delay.max_ns, 5_000);
    }
}
