//! The rate of the narrowest link of a round trip, by trains of packets.
//!
//! Packets that are sent back to back leave the narrowest link one transmission time apart, and stay so (Dovrolis,
//! Ramanathan and Moore 2001, "What do packet dispersion techniques measure?", INFOCOM). Echoes come back as long as they
//! went out, so it is the narrower of both ways that is measured. The first quarter of a train is left out: a link that
//! saves up tokens lets a burst through. Of several trains the median counts: other traffic makes a train longer, and
//! batches on the way make it shorter.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use narrows_core::Duration;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::icmp::{Echo, HEADER};
use narrows_io::wait::{EndSignals, Waiting, wait};
use serde::Serialize;

/// Packets in a train.
pub(super) const PACKETS: u16 = 32;
/// As long as Ethernet carries, from the IP header on.
const LENGTH: u64 = 1500;
/// Between two trains: what the first has put into queues is gone.
const PAUSE: Duration = Duration::from_millis(100);
/// At least this long after an answer another one is waited for.
const LINGER: Duration = Duration::from_millis(100);
/// Of fewer answers no quarter is left out: what comes of a train through a short queue.
const SHORT: usize = 8;

/// What the trains say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Measured {
    /// In bits per second, of IP packets.
    pub(super) p10_bps: u64,
    pub(super) p50_bps: u64,
    pub(super) p90_bps: u64,
    /// Trains with enough answers to tell.
    pub(super) trains: usize,
    /// The rate is this or more: answers came as fast as this host had sent.
    pub(super) is_lower_bound: bool,
}

/// Sends so many trains. Nothing where no train says anything; a signal ends it early.
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

/// A packet of a train.
#[derive(Clone, Copy, Debug)]
struct Answered {
    sent: MonotonicTime,
    at: MonotonicTime,
}

/// Sends a train, and gives when its answers came; nothing where a signal asks for the end.
fn one(
    echo: &Echo,
    is_v6: bool,
    train: u16,
    timeout: Duration,
    signals: &mut EndSignals,
) -> io::Result<Option<Vec<Answered>>> {
    let headers = HEADER as u64 + if is_v6 { 40 } else { 20 };
    // Apart from the numbers of trains before it, whose answers may come yet.
    let first = train.wrapping_mul(PACKETS);
    let mut open: BTreeMap<u16, MonotonicTime> = BTreeMap::new();
    for number in 0..PACKETS {
        let sequence = first.wrapping_add(number);
        // One that the host does not take is lost, like those that the network does not.
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
            // The next is a transmission time behind, which the first round trip has in it.
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

/// Bits a second of a train, and whether its answers came as close together as its packets had been sent.
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
                "rate: {} or more: answers came as fast as this host had sent",
                shown(self.p50_bps)
            );
        }
        write!(
            f,
            "rate: p50 {}, p10 {}, p90 {} of {} trains; of the narrowest link both ways, IP packets",
            shown(self.p50_bps),
            shown(self.p10_bps),
            shown(self.p90_bps),
            self.trains
        )
    }
}

/// A rate to four figures.
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
            "rate: p50 10.00 Mbit/s, p10 5.000 Mbit/s, p90 40.00 Mbit/s of 5 trains; of the narrowest link both ways, IP packets"
        );
        let fast = summary(vec![(400_000_000, true), (300_000_000, true), (200_000_000, false)]).unwrap();
        assert_eq!(
            fast.to_string(),
            "rate: 300.0 Mbit/s or more: answers came as fast as this host had sent"
        );
        assert_eq!(summary(Vec::new()), None);
    }
}
