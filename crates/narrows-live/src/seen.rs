//! Packets with a verdict, as packet threads note them: raw values, copied.

use narrows_core::{Duration, Event, FlowKey, PacketId, Time, Verdict};

use crate::load::Load;

/// A packet that got its verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Time,
    pub(crate) arrival: Time,
    pub(crate) queued: Duration,
    pub(crate) id: PacketId,
    pub(crate) verdict: Verdict,
    pub(crate) length: u32,
    pub(crate) key: FlowKey,
    pub(crate) copy: u16,
    pub(crate) is_fragment: bool,
    pub(crate) is_corrupted: bool,
    /// The scenario's traffic that sent it, by index; `None` for a program's packet.
    pub(crate) traffic: Option<u32>,
    /// The end of the links that it passed, in a list beside these packets; they begin at the previous packet's end.
    pub(crate) passed_end: usize,
}

impl Seen {
    pub(crate) fn of(event: &Event<'_, Load>, traffic: Option<u32>, passed_end: usize) -> Self {
        Self {
            at: event.at,
            arrival: event.arrival,
            queued: event.queued,
            id: event.id,
            verdict: event.verdict,
            length: event.length,
            key: event.key,
            copy: event.copy,
            is_fragment: event.fragment.is_some(),
            is_corrupted: !event.flips.is_empty(),
            traffic,
            passed_end,
        }
    }
}
