//! Packets noted for the packet inspector, as raw values. The director provides the room, and takes it back filled:
//! a packet thread only copies what an event says, and counts what there is no room for.

use narrows_core::{Event, Passed, Verdict};

use super::DataLoop;
use crate::load::Load;
use crate::seen::Seen;

/// Room for dropped and for delivered packets between two collections. Drops have a room of their own, so that many
/// deliveries do not hide them.
const DROPPED: usize = 256;
const DELIVERED: usize = 128;
/// For each of them, room for so many links passed, of all together.
const LINKS: usize = 4;

/// Packets of one verdict.
#[derive(Debug)]
pub(crate) struct Noted {
    /// The first ones since the last collection.
    pub(crate) packets: Vec<Seen>,
    /// The links that they passed.
    pub(crate) passed: Vec<Passed>,
    /// How many more there were.
    pub(crate) left_out: u64,
}

/// The packets since the last collection.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub(crate) dropped: Noted,
    pub(crate) delivered: Noted,
}

/// The names of links after the first `after`, in order of their numbers.
#[derive(Debug)]
pub(crate) struct FurtherLinks {
    pub(crate) after: usize,
    pub(crate) names: Vec<String>,
}

impl Inspection {
    /// With all the memory that it will need.
    pub(crate) fn new() -> Self {
        let room = |count| Noted {
            packets: Vec::with_capacity(count),
            passed: Vec::with_capacity(LINKS * count),
            left_out: 0,
        };
        Self { dropped: room(DROPPED), delivered: room(DELIVERED) }
    }

    pub(super) fn note(&mut self, event: &Event<'_, Load>, traffic: Option<u32>) {
        let is_drop = matches!(event.verdict, Verdict::Dropped { .. });
        let noted = if is_drop { &mut self.dropped } else { &mut self.delivered };
        let passed_end = noted.passed.len() + event.passed.len();
        if noted.packets.len() == noted.packets.capacity() || passed_end > noted.passed.capacity() {
            noted.left_out += 1;
            return;
        }
        noted.passed.extend_from_slice(event.passed);
        noted.packets.push(Seen::of(event, traffic, passed_end));
    }
}

impl Noted {
    /// Each packet with the links that it passed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Seen, &[Passed])> {
        let mut start = 0;
        self.packets.iter().map(move |seen| {
            let passed = &self.passed[start..seen.passed_end];
            start = seen.passed_end;
            (seen, passed)
        })
    }
}

impl DataLoop {
    /// Continues with this room, or without any, and returns the filled one, with the names of the links after the
    /// first `known_links`.
    pub(super) fn inspect(
        &mut self,
        room: Option<Box<Inspection>>,
        known_links: usize,
    ) -> (Option<Box<Inspection>>, FurtherLinks) {
        self.engine.keep_passed(room.is_some() || self.packets.is_some());
        let inspection = std::mem::replace(&mut self.inspection, room);
        let further = self.engine.links().skip(known_links);
        let names = further.map(|link| self.engine.view(link).name().to_owned()).collect();
        (inspection, FurtherLinks { after: known_links, names })
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::{
        Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, Rate, Seed, Target, Time, service,
    };
    use narrows_io::frame::Frame;

    use super::*;

    #[test]
    fn drops_have_a_room_of_their_own_and_what_does_not_fit_is_counted() {
        let mut link = LinkConfig::new("wire", Target::Port("b".into()));
        link.service = Box::new(service::ConstantRate(Rate::from_bits_per_second(1_000_000_000)));
        let mut config = NetworkConfig::new(Seed(1));
        config.links.push(link);
        let entry = Target::Link { name: "wire".into(), lane: 0 };
        config.ports.push(PortConfig { name: "a".into(), entry });
        config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
        let mut engine: Engine<Load> = Engine::new(config).unwrap();
        engine.keep_passed(true);
        let a = engine.port("a").unwrap();
        // 1000 wait at most, and one is being sent: of 1300 packets at one instant, 299 are dropped.
        for _ in 0..1300 {
            let (key, headers) = (FlowKey::default(), Default::default());
            let body = Load::Frame(Frame::default());
            let packet = Packet { length: 100, link_header: 14, network_header: 20, key, headers, body };
            engine.hand_in(Time::ZERO, a, packet);
        }
        let mut inspection = Inspection::new();
        while let Some(at) = engine.next_event() {
            if let Some(event) = engine.poll(at) {
                inspection.note(&event, None);
            }
        }
        let of = |noted: &Noted| (noted.packets.len(), noted.left_out);
        assert_eq!(of(&inspection.dropped), (DROPPED, 299 - DROPPED as u64));
        assert_eq!(of(&inspection.delivered), (DELIVERED, 1001 - DELIVERED as u64));
        let (last, passed) = inspection.delivered.iter().nth(1).unwrap();
        assert_eq!(passed.len(), 1);
        assert_eq!((passed[0].queued, passed[0].left), (last.queued, last.at));
        // The second one waits for the first: 800 bits at 1 Gbit/s.
        assert_eq!((last.queued.nanos(), last.at.nanos()), (800, 1600));
    }
}
