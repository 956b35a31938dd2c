//! CoDel in the kernel's arithmetic (include/net/codel_impl.h), behind HTB of 10 Mbit/s: what its Newton steps make of the
//! control law, and what the very same would do with the root.
//!
//! Times are in units of 1024 ns. 1/√count is a 16-bit fraction, of which each drop takes one step of Newton's:
//!
//! ```text
//! x ← x·(3 − count·x²)/2,   x = 1 − 2⁻¹⁶ at the first drop
//! ```

use std::collections::VecDeque;

use crate::trace::{Came, Trace};
use crate::traffic::Datagram;

/// Nanoseconds of a byte at the rate of the bottleneck.
const BYTE: i64 = 800;
/// What its bucket holds, in nanoseconds.
const BURST: i64 = 2_000 * BYTE;
/// A backlog of no more than this, in bytes of frames, is none.
const LONGEST: u64 = 1_514;

/// The parameters of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// In microseconds.
    pub target: u64,
    /// In microseconds.
    pub interval: u64,
    /// Whether packets are marked that can be.
    pub ecn: bool,
}

/// How 1/√count comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// By one Newton step at each drop, as in the kernel.
    Newton,
    /// As in RFC 8289, and time is in nanoseconds.
    Root,
}

struct Waiting {
    number: u32,
    length: u32,
    traffic_class: u8,
    entered: u64,
}

struct Codel {
    parameters: Parameters,
    law: Law,
    first_above: u64,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// 1/√count in 65536ths.
    inverse_root: u16,
    queue: VecDeque<Waiting>,
    backlog: u64,
}

/// What becomes of datagrams that are sent at these instants, in nanoseconds of the wall clock.
pub fn run(datagrams: &[Datagram], sent: &[u64], parameters: Parameters, law: Law) -> Trace {
    let mut codel = Codel {
        parameters,
        law,
        first_above: 0,
        drop_next: 0,
        count: 0,
        last_count: 0,
        dropping: false,
        inverse_root: 0,
        queue: VecDeque::new(),
        backlog: 0,
    };
    let (mut tokens, mut since) = (BURST, sent.first().map_or(0, |first| *first as i64));
    let mut came = Vec::new();
    let mut depart = |codel: &mut Codel, until: i64| {
        while let Some(first) = codel.queue.front() {
            // The bucket may send when it owes nothing, and not before the packet has come.
            let at = (since + (-tokens).max(0)).max(first.entered as i64);
            if at > until {
                break;
            }
            tokens = BURST.min(tokens + at - since);
            since = at;
            if let Some(goes) = codel.dequeue(at as u64) {
                tokens -= i64::from(goes.length) * BYTE;
                came.push(Came { number: goes.number, at: at as u64, traffic_class: goes.traffic_class });
            }
        }
    };
    for (number, (datagram, at)) in (0..).zip(datagrams.iter().zip(sent)) {
        depart(&mut codel, *at as i64);
        let &Datagram { length, traffic_class, .. } = datagram;
        codel.queue.push_back(Waiting { number, length, traffic_class, entered: *at });
        codel.backlog += u64::from(length);
    }
    depart(&mut codel, i64::MAX / 2);
    Trace { sent: sent.to_vec(), came }
}

impl Codel {
    fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.queue.pop_front()?;
        self.backlog -= u64::from(waiting.length);
        Some(waiting)
    }

    /// `codel_get_time`: in units of 1024 ns, or with the root in nanoseconds.
    const fn units(&self, nanoseconds: u64) -> u64 {
        match self.law {
            Law::Newton => nanoseconds >> 10,
            Law::Root => nanoseconds,
        }
    }

    fn interval(&self) -> u64 {
        self.units(self.parameters.interval * 1000)
    }

    /// `codel_dequeue`.
    fn dequeue(&mut self, instant: u64) -> Option<Waiting> {
        let now = self.units(instant);
        let Some(mut first) = self.pop() else {
            (self.first_above, self.dropping) = (0, false);
            return None;
        };
        let drop = self.should_drop(Some(&first), now);
        if self.dropping {
            if !drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                self.step();
                if self.mark(&mut first) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(first);
                }
                let next = self.pop();
                if self.should_drop(next.as_ref(), now) {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
                first = next?;
            }
        } else if drop {
            if !self.mark(&mut first) {
                let next = self.pop();
                // It goes on in any case, but may end the standing queue.
                self.should_drop(next.as_ref(), now);
                self.begin(now);
                return next;
            }
            self.begin(now);
        }
        Some(first)
    }

    fn begin(&mut self, now: u64) {
        self.dropping = true;
        let drops = self.count.wrapping_sub(self.last_count);
        if drops > 1 && now.wrapping_sub(self.drop_next) < 16 * self.interval() {
            self.count = drops;
            self.step();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }

    /// `codel_should_drop`. The packet is out of the backlog.
    fn should_drop(&mut self, packet: Option<&Waiting>, now: u64) -> bool {
        let target = self.units(self.parameters.target * 1000);
        let above =
            packet.is_some_and(|packet| now - self.units(packet.entered) >= target && self.backlog > LONGEST);
        if !above {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now + self.interval();
            return false;
        }
        now > self.first_above
    }

    fn mark(&self, packet: &mut Waiting) -> bool {
        let marks = self.parameters.ecn && packet.traffic_class & 3 != 0;
        if marks {
            packet.traffic_class |= 3;
        }
        marks
    }

    /// `codel_Newton_step`.
    fn step(&mut self) {
        let inverse = u64::from(self.inverse_root) << 16;
        let square = (inverse * inverse) >> 32;
        let value = (3 << 32) - u64::from(self.count) * square;
        self.inverse_root = (((value >> 2) * inverse) >> 31 >> 16) as u16;
    }

    fn control_law(&self, last: u64) -> u64 {
        let interval = self.interval();
        last + match self.law {
            // `reciprocal_scale`.
            Law::Newton => (interval * (u64::from(self.inverse_root) << 16)) >> 32,
            Law::Root => (interval as f64 / libm::sqrt(f64::from(self.count))) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cases, model};

    /// With the root, and time in nanoseconds, it is what the engine does: so these are all that tells the kernel's CoDel from
    /// ours.
    #[test]
    fn with_the_root_it_is_the_engines() {
        let of = [("codel", 5_000, 97_000, false), ("codel-ecn", 10_000, 50_000, true)];
        for (name, target, interval, ecn) in of {
            let case = cases::all().into_iter().find(|case| case.name == name).expect("it is there");
            let sent: Vec<u64> = case.traffic.iter().map(|datagram| 10_000_000_000 + datagram.at).collect();
            let ours = model::run(&case, &sent).expect("it is understood");
            let apart = |law| {
                let theirs = run(&case.traffic, &sent, Parameters { target, interval, ecn }, law);
                crate::compare::apart(&theirs, &ours)
            };
            assert!(apart(Law::Root) <= 12, "{name}: {} packets", apart(Law::Root));
            assert!(apart(Law::Newton) > 200, "{name}: {} packets", apart(Law::Newton));
        }
    }

    #[test]
    fn newtons_steps_come_near_the_root_from_below() {
        let mut codel = Codel {
            parameters: Parameters { target: 5_000, interval: 100_000, ecn: false },
            law: Law::Newton,
            first_above: 0,
            drop_next: 0,
            count: 1,
            last_count: 0,
            dropping: true,
            inverse_root: u16::MAX,
            queue: VecDeque::new(),
            backlog: 0,
        };
        let roots: Vec<u16> = (2..6)
            .map(|count| {
                codel.count = count;
                codel.step();
                codel.inverse_root
            })
            .collect();
        // 0.5, 0.5625, 0.4878, 0.4415 of 65536.
        assert!(
            roots.iter().zip([32768, 36864, 31968, 28934]).all(|(one, other)| one.abs_diff(other) < 8),
            "{roots:?}"
        );
    }
}
