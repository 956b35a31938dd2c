//! Callbacks that receive the fate of each packet as it happens.

use std::fmt;

use narrows_core::{Duration, Event, FlowKey, Verdict};
use narrows_report::{PacketRow, Path, SeriesRow};

use crate::names::Names;
use narrows_traffic::Body;

/// The row of a packet whose fate is decided.
pub(crate) fn packet_row<'a>(names: &'a Names, event: &Event<'a, Body>) -> PacketRow<'a> {
    let (delivered, place, reason) = match event.verdict {
        Verdict::Delivered(port) => (true, names.port(port), ""),
        Verdict::Dropped { at, reason } => (false, at.map_or("", |at| names.element(at)), reason.name()),
    };
    PacketRow {
        feed: &names.feeds[event.body.get().source as usize],
        port: names.port(event.id.port()),
        number: event.id.number(),
        copy: event.copy,
        key: event.key,
        arrival: event.arrival,
        at: event.at,
        length: event.length,
        queued: event.queued,
        delivered,
        place,
        reason,
        marked: event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED,
        links: Path { passed: event.passed, names },
    }
}

/// Called for each packet, in order of verdicts.
pub type Observer = Box<dyn FnMut(&PacketRow<'_>)>;

/// Called for each row of a series.
pub type SeriesObserver = Box<dyn FnMut(&SeriesRow<'_>)>;

/// The callbacks of a run.
#[derive(Default)]
pub struct Observers {
    /// Called for each packet.
    pub packets: Option<Observer>,
    /// Called for links and flows in each interval of this length, which is not zero.
    pub series: Option<(Duration, SeriesObserver)>,
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers")
            .field("packets", &self.packets.is_some())
            .field("series", &self.series.as_ref().map(|(interval, _)| interval))
            .finish()
    }
}

/// An observer, if there is one.
#[derive(Default)]
pub(crate) struct Observing(pub(crate) Option<Observer>);

impl Observing {
    pub(crate) fn event(&mut self, names: &Names, event: &Event<'_, Body>) {
        if let Some(observer) = &mut self.0 {
            observer(&packet_row(names, event));
        }
    }
}

impl fmt::Debug for Observing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observing({})", self.0.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
    use narrows_scenario::Scenario;

    use super::*;
    use crate::simulate::{SimOptions, observe, observe_with, simulate};

    #[test]
    fn the_observer_is_told_of_every_packet_and_changes_nothing() {
        let text = r#"
            duration = "2s"
            [hosts.client]
            [hosts.server]
            [links.access]
            between = ["client", "server"]
            rate = "1mbit"
            delay = "3ms"
            queue = "10 packets"
            [[traffic]]
            name = "flood"
            from = "client"
            to = "server"
            constant = "2mbit"
            length = "1250 bytes"
        "#;
        let scenario = Scenario::parse(text, "flood.toml").unwrap();
        let seen: Rc<RefCell<Vec<(bool, u64, u64)>>> = Rc::default();
        let theirs = Rc::clone(&seen);
        let observer = move |packet: &PacketRow<'_>| {
            assert_eq!((packet.feed, packet.length), ("flood", 1250));
            let delay = packet.at.since(packet.arrival).nanos();
            theirs.borrow_mut().push((packet.delivered, delay, packet.queued.nanos()));
        };
        let options = SimOptions::default();
        let report = observe(&scenario, &options, Box::new(observer)).unwrap().report;
        assert_eq!(report, simulate(&scenario, &options).unwrap().report);
        let seen = seen.take();
        // One packet every 10 ms leaves, from 10 ms on, and gets there 3 ms later: the last one of 2 s by 1.993 s.
        assert_eq!(seen.iter().filter(|packet| packet.0).count(), 199);
        // Of 400 packets, 5 ms apart, 11 are inside at 2 s: one behind the wire, one that just begins, and 9 in the queue,
        // for the next one comes too late.
        assert_eq!(seen.len(), 400 - 11);
        let delivered = |&&(delivered, ..): &&(bool, u64, u64)| delivered;
        // What is no waiting is 10 ms of transmission and 3 ms of delay.
        assert!(seen.iter().filter(delivered).all(|&(_, delay, queued)| delay == queued + 13_000_000));
    }

    /// With room for one packet in place of ten, each waits for one at most.
    #[test]
    fn another_queue_takes_the_place_of_the_scenarios() {
        let text = r#"
            duration = "2s"
            [hosts.client]
            [hosts.server]
            [links.access]
            between = ["client", "server"]
            rate = "1mbit"
            queue = "10 packets"
            [[traffic]]
            from = "client"
            to = "server"
            constant = "2mbit"
            length = "1250 bytes"
        "#;
        let scenario = Scenario::parse(text, "flood.toml").unwrap();
        let longest = |packets: Option<u64>| {
            let most: Rc<RefCell<u64>> = Rc::default();
            let theirs = Rc::clone(&most);
            let observer = move |packet: &PacketRow<'_>| {
                let mut most = theirs.borrow_mut();
                *most = most.max(packet.queued.nanos());
            };
            let mut queue = |link: &str| {
                let bound = Bound::Packets(packets.filter(|_| link == "access.up")?);
                Some(Box::new(Fifo::new(bound, DropAt::Tail)) as Box<dyn Queue>)
            };
            observe_with(&scenario, &SimOptions::default(), &mut queue, Box::new(observer)).unwrap();
            most.take()
        };
        assert!(longest(None) > 90_000_000);
        assert!((1..=10_000_000).contains(&longest(Some(1))));
    }
}
