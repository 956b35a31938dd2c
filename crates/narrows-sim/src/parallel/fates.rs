//! What became of packets, in the order in which a single thread would have seen it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_core::rules::Answer;
use narrows_core::{
    Body as Kept, Duration, Event, FlowKey, Fragment, HeaderEdit, PacketId, Passed, Time, Verdict,
};
use narrows_traffic::Body;

/// The place of an event in the order of a single thread.
///
/// At one instant that thread handles first what follows from earlier instants, by the numbers of elements; then one change of
/// the timeline after the other; then one input after the other, by the numbers of sources. With each comes all that follows
/// from it at that instant. What a thread handles later than something with a greater number comes behind that: the numbers are
/// the greatest so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    at: Time,
    /// Changes made at this instant.
    changes: u32,
    /// 0 before the first input, else the source's number and 1.
    input: u32,
    /// See [`Engine::turn`](narrows_core::Engine::turn).
    turn: u32,
}

/// An event that owns all it has.
#[derive(Debug)]
pub(super) struct Fate {
    order: Order,
    at: Time,
    arrival: Time,
    queued: Duration,
    id: PacketId,
    verdict: Verdict,
    length: u32,
    key: FlowKey,
    copy: u16,
    hops: u8,
    link_header: u8,
    answer: Option<Answer>,
    header_edit: Option<Box<HeaderEdit>>,
    fragment: Option<Fragment>,
    flips: Vec<u32>,
    passed: Vec<Passed>,
    body: Body,
}

impl Fate {
    fn of(event: &Event<'_, Body>) -> Self {
        let Body { source, length, number, ref frame } = *event.body.get();
        Self {
            order: Order::default(),
            at: event.at,
            arrival: event.arrival,
            queued: event.queued,
            id: event.id,
            verdict: event.verdict,
            length: event.length,
            key: event.key,
            copy: event.copy,
            hops: event.hops,
            link_header: event.link_header,
            answer: event.answer,
            header_edit: event.header_edit.clone(),
            fragment: event.fragment,
            flips: event.flips.clone(),
            passed: event.passed.to_vec(),
            body: Body { source, length, number, frame: frame.clone() },
        }
    }

    /// The event.
    pub(super) fn into_event<R>(self, then: impl FnOnce(&Event<'_, Body>) -> R) -> R {
        then(&Event {
            at: self.at,
            arrival: self.arrival,
            queued: self.queued,
            id: self.id,
            verdict: self.verdict,
            length: self.length,
            key: self.key,
            copy: self.copy,
            hops: self.hops,
            link_header: self.link_header,
            answer: self.answer,
            header_edit: self.header_edit,
            fragment: self.fragment,
            flips: self.flips,
            passed: &self.passed,
            body: Kept::Shared(&self.body),
        })
    }
}

/// The events of one thread.
#[derive(Debug, Default)]
pub(super) struct Fates {
    all: Vec<Fate>,
    /// The latest change or input.
    latest: Order,
}

impl Fates {
    pub(super) fn note(&mut self, event: &Event<'_, Body>) {
        self.all.push(Fate::of(event));
    }

    /// The event noted last was handled at this turn.
    pub(super) fn at_turn(&mut self, turn: u32) {
        if let Some(fate) = self.all.last_mut() {
            let latest = if fate.at == self.latest.at { self.latest } else { Order::default() };
            fate.order = Order { at: fate.at, turn, ..latest };
        }
    }

    /// What comes next follows from a change.
    pub(super) fn change(&mut self, at: Time) {
        self.come_to(at);
        self.latest.changes += 1;
    }

    /// What comes next follows from an input of this source.
    pub(super) fn input(&mut self, at: Time, source: u32) {
        self.come_to(at);
        self.latest.input = self.latest.input.max(source + 1);
    }

    fn come_to(&mut self, at: Time) {
        if self.latest.at != at {
            self.latest = Order { at, ..Order::default() };
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes the events before an instant.
    pub(super) fn take_before(&mut self, at: Time) -> Vec<Fate> {
        let rest = self.all.split_off(self.all.partition_point(|fate| fate.at < at));
        std::mem::replace(&mut self.all, rest)
    }
}

/// Merges the events of several threads; those of each are in order.
pub(super) fn merged(threads: Vec<Vec<Fate>>) -> impl Iterator<Item = Fate> {
    let mut threads: Vec<_> = threads.into_iter().map(|fates| fates.into_iter().peekable()).collect();
    let order =
        |fates: &mut std::iter::Peekable<std::vec::IntoIter<Fate>>| fates.peek().map(|fate| fate.order);
    let heads = threads.iter_mut().enumerate();
    let mut heads: BinaryHeap<_> =
        heads.filter_map(|(thread, fates)| Some(Reverse((order(fates)?, thread)))).collect();
    std::iter::from_fn(move || {
        let mut head = heads.peek_mut()?;
        let thread = head.0.1;
        let fate = threads[thread].next();
        match order(&mut threads[thread]) {
            Some(next) => head.0.0 = next,
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        fate
    })
}
