//! A flow, and when it may send.

use crate::pool::PacketList;
use crate::time::{Duration, Time};
use crate::units::Rate;

/// The longest span from one packet of a flow to the next.
const LONGEST_SPAN: Duration = Duration::from_secs(1);

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) packets: PacketList,
    /// Bytes that it may still send in this turn. It may overdraw by less than one packet.
    pub(super) credit: i64,
    /// When it left the lists without packets; `None` if it never had any.
    pub(super) emptied: Option<Time>,
    /// The instant before which it may not send its next packet, if it has had a maximum rate.
    pub(super) next: Option<Time>,
    /// The flow after this one on its list.
    pub(super) behind: u32,
    /// The band of its last packet.
    pub(super) band: u8,
    pub(super) place: Place,
}

/// Where a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On no list, without packets.
    Nowhere,
    /// On a list of a band.
    Listed,
    /// It waits for an instant.
    Delayed,
}

impl Flow {
    pub(super) fn new(credit: i64) -> Self {
        Self {
            packets: PacketList::default(),
            credit,
            emptied: None,
            next: None,
            behind: 0,
            band: 0,
            place: Place::Nowhere,
        }
    }

    /// When a packet that arrived at this instant may be sent.
    pub(super) fn allowed(&self, entered: Time) -> Time {
        self.next.map_or(entered, |next| next.max(entered))
    }

    /// It has sent a packet of so many bytes: sets when it may send the next one.
    pub(super) fn pace(&mut self, now: Time, bytes: i64, quantum: i64, rate: Rate, low_rate: Rate) {
        let mut bytes = bytes;
        if rate <= low_rate {
            self.credit = 0;
        } else if self.credit > 0 {
            return;
        } else {
            bytes = bytes.max(quantum);
        }
        let bits = bytes.max(0) as u128 * 8; // below 2³⁶
        let nanos = bits * 1_000_000_000 / u128::from(rate.bits_per_second().max(1));
        let span = Duration::from_nanos(nanos.min(LONGEST_SPAN.nanos().into()) as u64);
        let late = self.next.map_or(Duration::ZERO, |next| now.since(next));
        self.next = Some(now + (span - late.min(Duration::from_nanos(span.nanos() / 2))));
    }
}
