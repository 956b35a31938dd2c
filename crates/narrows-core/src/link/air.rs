//! Extra air time and burst credit: what happens before a packet's bits are sent.
//!
//! Extra air time ([`AirTime`]) comes first: work on the bits begins when it is over, so a rate change in the
//! meantime applies to all of them. A transmitter with a burst of σ earns credit while it idles: C(t) − C(s)
//! for an idle time from s to t (`rate·d` at a constant rate), up to σ in total. Work paid for by credit
//! takes no time; the rest is sent at the rate. Unused credit stays, and grows when the link idles again.
//!
//! Source: `burst` of ipfw, which for an idle time d grants `min(burst, bw·d)` (its manual says the greater
//! of the two; `ip_dn_io.c` takes the lesser). Departures: unused credit survives until the next idle time;
//! credit pays for bits and not for extra air time; a reconfiguration grants none; on a wire that is down
//! nothing passes, whatever its credit.

use alloc::boxed::Box;

use super::{AirTime, Link};
use crate::pool::{PacketRef, Pool};
use crate::random::Stream;
use crate::service::Work;
use crate::time::Time;
use crate::units::Bytes;

/// State for extra air time and burst, which few links have.
#[derive(Debug)]
pub(super) struct Air {
    pub(super) profile: Option<AirTime>,
    stream: Stream,
    /// The maximum credit, and the current credit.
    burst: Work,
    credit: Work,
    /// The time up to which idle time has been credited.
    credited: Time,
    /// Whether the packet on the wire is lost when its transmission ends.
    pub(super) loses: bool,
}

impl Link {
    /// Sets the profile; a packet on the wire keeps its air time.
    pub(super) fn set_air_time(&mut self, profile: Option<AirTime>) {
        if profile.is_some() || self.air.is_some() {
            self.air().profile = profile;
        }
    }

    /// Sets the burst from `now` on. Existing credit is kept, up to the new burst.
    pub(super) fn set_burst(&mut self, now: Time, burst: Bytes) {
        if burst.get() == 0 && self.air.is_none() {
            return;
        }
        self.credit_idle_time(now);
        let air = self.air();
        air.burst = Work::bits(burst.get().saturating_mul(8));
        air.credit = air.credit.min(air.burst);
        air.credited = now;
    }

    fn air(&mut self) -> &mut Air {
        let new = || {
            Box::new(Air {
                profile: None,
                stream: Stream::new(self.seed, &self.name, "air time"),
                burst: Work::default(),
                credit: Work::default(),
                credited: Time::ZERO,
                loses: false,
            })
        };
        self.air.get_or_insert_with(new)
    }

    /// Grants credit for idle time of the transmitter, at the current service curve.
    pub(super) fn credit_idle_time(&mut self, now: Time) {
        let Some(air) = &mut self.air else { return };
        let since = air.credited.max(self.freed.0);
        if self.transmission.is_none() && since < now && air.credit < air.burst {
            let earned = self.service.served(since, now);
            air.credit = Work(air.credit.0.saturating_add(earned.0)).min(air.burst);
        }
        air.credited = now;
    }

    /// For a packet that goes on the wire at `now`: when its bits begin, and how much of their work takes no
    /// time.
    pub(super) fn take_air(&mut self, now: Time, packet: PacketRef, work: Work, pool: &Pool) -> (Time, Work) {
        self.credit_idle_time(now);
        let visit = super::visit(self.draws.cyclic, pool, packet);
        let Some(air) = &mut self.air else { return (now, Work::default()) };
        let paid = air.credit.min(work);
        air.credit.0 -= paid.0;
        let (extra, loses) = match &air.profile {
            Some(profile) => profile.draw(&mut pool.draw(&air.stream, packet, visit)),
            None => Default::default(),
        };
        air.loses = loses;
        (now + extra, paid)
    }
}
