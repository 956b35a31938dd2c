//! Measures the bottleneck rate of a round trip with trains of packets.
//!
//! Packets sent back to back leave the bottleneck one transmission time apart, and keep that spacing
//! (Dovrolis, Ramanathan and Moore 2001, "What do packet dispersion techniques measure?", INFOCOM). Echo
//! replies are as long as the requests, so the result is the smaller rate of both directions. The first
//! quarter of a train is ignored, because a link that saves up tokens passes a burst. The result is the
//! median of several trains: cross traffic makes a train longer, and batching on the path makes it shorter.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use narrows_core::Duration;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::icmp::{Echo, HEADER};
use narrows_io::wait::{EndSignals, Waiting, wait};
use serde::Serialize;

/// Packets per train.
pub(super) const PACKETS: u16 = 32;
/// Ethernet's maximum IP packet length.
const LENGTH: u64 = 1500;
/// Pause between trains, so that queues filled by the previous one drain.
const PAUSE: Duration = Duration::from_millis(100);
/// Minimum wait for another answer after an answer.
const LINGER: Duration = Duration::from_millis(100);
/// With fewer answers, the first quarter is not ignored: only the start of a train passes a short queue.
const SHORT: usize = 8;

/// Result of the trains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Measured {
    /// In bits per second, of IP packets.
    pub(super) p10_bps: u64,
    pub(super) p50_bps: u64,
    pub(super) p90_bps: u64,
    /// Number of trains with enough answers.
    pub(super) trains: usize,
    /// Whether the rate is a lower bound: answers arrived as fast as this host sent.
    pub(super) is_lower_bound: bool,
}

/// Sends this many trains. `None` if no train gives a result; a signal ends it early.
pub(super) fn measure(
    echo: &Echo,
    is_v6: bool,
    trains: u16,
    timeout: Duration,
) -> io::Result<Option<Measured>> {
    let mut signals = EndSignals::catch()?;
    let mut rates = Vec::new();
    for train in 0..trains {
        let Some(answers) = one(echo, is_v6, train, timeout, &mut signals)? else { break };
        rates.extend(rate_of(answers));
    }
    Ok(summary(rates))
}

/// An answered packet of a train.
#[derive(Clone, Copy, Debug)]
struct Answered {
    sent: MonotonicTime,
    at: MonotonicTime,
}

/// Sends a train, and returns the arrival times of its answers; `None` if a signal asks for the end.
fn one(
    echo: &Echo,
    is_v6: bool,
    train: u16,
    timeout: Duration,
    signals: &mut EndSignals,
) -> io::Result<Option<Vec<Answered>>> {
    let headers = HEADER as u64 + if is_v6 { 40 } else { 20 };
    // Distinct from the numbers of earlier trains, whose answers may still arrive.
    let first = train.wrapping_mul(PACKETS);
    let mut open: BTreeMap<u16, MonotonicTime> = BTreeMap::new();
    for number in 0..PACKETS {
        let sequence = first.wrapping_add(number);
        // A packet that the host rejects counts as lost.
        if let Ok(sent) = echo.ask(sequence, (LENGTH - headers) as usize) {
            open.insert(sequence, sent);
        }
    }
    let mut arrivals: Vec<Answered> = Vec::new();
    let mut end = after(clock_monotonic(), timeout);
    while !open.is_empty() {
        let before = arrivals.len();
        while let Some(answer) = echo.answer()? {
            if let Some(sent) = open.remove(&answer.sequence) {
                arrivals.push(Answered { sent, at: answer.at });
            }
        }
        let now = clock_monotonic();
        if let (Some(first), true) = (arrivals.first(), arrivals.len() > before) {
            // The next answer is one transmission time later, which the first round trip includes.
            let first = Duration::from_nanos(first.at.as_nanos().saturating_sub(first.sent.as_nanos()));
            end = after(now, timeout.min(LINGER.max(first + first)));
        } else if now >= end {
            break;
        }
        let mut descriptors = [Waiting::readable(echo), Waiting::readable(&*signals)];
        wait(&mut descriptors, Some(end))?;
        if signals.take()?.is_some() {
            return Ok(None);
        }
    }
    let mut descriptors = [Waiting::readable(&*signals)];
    wait(&mut descriptors, Some(after(clock_monotonic(), PAUSE)))?;
    arrivals.sort_unstable_by_key(|answered| answered.at);
    Ok(if signals.take()?.is_some() { None } else { Some(arrivals) })
}

/// The rate of a train in bits per second, and whether its answers arrived as closely as its packets were
/// sent.
fn rate_of(answers: Vec<Answered>) -> Option<(u64, bool)> {
    let start = if answers.len() < SHORT { 0 } else { answers.len() / 4 };
    let (first, last) = (answers.get(start)?, answers.last()?);
    let packets = (answers.len() - 1 - start) as u64;
    let between = |from: MonotonicTime, to: MonotonicTime| to.as_nanos().saturating_sub(from.as_nanos());
    let (came, sent) = (between(first.at, last.at), between(first.sent, last.sent));
    if packets == 0 || came == 0 {
        return None;
    }
    let rate = u128::from(packets * LENGTH * 8) * 1_000_000_000 / u128::from(came);
    Some((rate as u64, came < sent + sent / 2))
}

fn summary(mut trains: Vec<(u64, bool)>) -> Option<Measured> {
    trains.sort_unstable();
    let quantile = |percent: usize| Some(trains.get((trains.len() * percent).div_ceil(100).max(1) - 1)?.0);
    let fast = trains.iter().filter(|(_, as_sent)| *as_sent).count();
    Some(Measured {
        p10_bps: quantile(10)?,
        p50_bps: quantile(50)?,
        p90_bps: quantile(90)?,
        trains: trains.len(),
        is_lower_bound: fast * 2 > trains.len(),
    })
}

fn after(at: MonotonicTime, span: Duration) -> MonotonicTime {
    MonotonicTime::from_nanos(at.as_nanos().saturating_add(span.nanos()))
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_lower_bound {
            return write!(
                f,
                "rate: at least {}: answers arrived as fast as this host sent",
                shown(self.p50_bps)
            );
        }
        write!(
            f,
            "rate: p50 {}, p10 {}, p90 {} ({} trains; bottleneck of both ways, IP bytes)",
            shown(self.p50_bps),
            shown(self.p10_bps),
            shown(self.p90_bps),
            self.trains
        )
    }
}

/// A rate with four significant digits.
pub(super) fn shown(bits_per_second: u64) -> String {
    let (unit, name) = match bits_per_second {
        1_000_000_000.. => (1e9, "Gbit/s"),
        1_000_000.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    let value = bits_per_second as f64 / unit;
    let digits = if value < 10.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        1
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers at these instants to what was sent at once.
    fn at(nanos: impl IntoIterator<Item = u64>) -> Vec<Answered> {
        let answered =
            |nanos| Answered { sent: MonotonicTime::from_nanos(0), at: MonotonicTime::from_nanos(nanos) };
        nanos.into_iter().map(answered).collect()
    }

    #[test]
    fn the_gaps_behind_the_first_quarter_say_the_rate() {
        // 1500 bytes at 10 Mbit/s take 1.2 ms.
        let exactly = Some((10_000_000, false));
        assert_eq!(rate_of(at((0..32).map(|n| n * 1_200_000))), exactly);
        // The first eight in a burst.
        let burst = (0..8).map(|n| n * 10_000).chain((0..24).map(|n| 1_200_000 * (n + 1)));
        assert_eq!(rate_of(at(burst)), exactly);
        // What a short queue leaves of a train.
        assert_eq!(rate_of(at([5, 1_200_005])), exactly);
        assert_eq!(rate_of(at([5])), None);
        assert_eq!(rate_of(at([5; 32])), None);
        // Sent one each millisecond, and answered so.
        let slow = (1..32).map(|n| Answered {
            sent: MonotonicTime::from_nanos(n * 1_000_000),
            at: MonotonicTime::from_nanos(n * 1_200_000),
        });
        assert_eq!(rate_of(slow.collect()), Some((10_000_000, true)));
    }

    #[test]
    fn the_median_of_trains_counts() {
        let trains = [5_000_000, 10_000_000, 10_000_000, 9_900_000, 40_000_000];
        let all = summary(trains.map(|rate| (rate, rate == 40_000_000)).to_vec()).unwrap();
        assert_eq!((all.p10_bps, all.p50_bps, all.p90_bps), (5_000_000, 10_000_000, 40_000_000));
        assert_eq!(
            all.to_string(),
            "rate: p50 10.00 Mbit/s, p10 5.000 Mbit/s, p90 40.00 Mbit/s (5 trains; bottleneck of both ways, IP bytes)"
        );
        let fast = summary(vec![(400_000_000, true), (300_000_000, true), (200_000_000, false)]).unwrap();
        assert_eq!(
            fast.to_string(),
            "rate: at least 300.0 Mbit/s: answers arrived as fast as this host sent"
        );
        assert_eq!(summary(Vec::new()), None);
    }
}
