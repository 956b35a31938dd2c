//! The program's memory in the kernel: arrays, most of which user space maps, too.

use narrows_io::bpf::{BpfError, Btf, Map, MapValue, MappedMap};
use narrows_io::kernel_end::{DrawDelay, KernelEnd, KernelMaps, Layout};

use crate::parameters::{Delay, Loss, Parameters, Room, Rule, VALUES};
use crate::types::{Field, OwnTypes};

const BYPASS_SLOTS: u32 = 256;
/// The sizes of `struct held`, `struct narrows_overtaking`, `struct narrows_range`, `struct narrows_rule`, of a weight, of a
/// pointer alone, and of a message.
const HELD: u32 = 56;
const OVERTAKING: u32 = 16;
const RANGE: u32 = 16;
const RULE: u32 = 112;
const WEIGHT: u32 = 8;
const BYPASS: u32 = 8;
const MESSAGE: u32 = 8;
/// Where `struct held` has its pointer.
const HELD_POINTER: u32 = 48;

/// The maps of the program, by their names, and the lengths of rings for one direction.
pub(super) struct Maps {
    maps: Vec<(&'static str, Map)>,
    rooms: [(&'static str, u32); 8],
    room: Room,
    weights: Vec<Vec<u64>>,
}

impl Maps {
    /// Maps for these directions, empty.
    pub(super) fn new(directions: &[Parameters], own: &MapTypes) -> Result<Self, BpfError> {
        let room = Room::of(directions.len());
        let count = directions.len() as u32; // at most 64
        let weights: Vec<_> = directions.iter().map(|direction| direction.weights(room.slots)).collect();
        let most = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0).max(1) as u32;
        let ranges = most(&mut directions.iter().flat_map(|way| &way.losses).map(|loss| loss.ranges().len()));
        let rules = most(&mut directions.iter().map(|way| way.queue.rules.len()));
        let changes = directions.iter().any(Parameters::changes_packets);
        let messages = if changes { room.records } else { 1 };
        let values = if directions.iter().any(Parameters::is_fed) { VALUES } else { 1 };
        let of_weights = most(&mut weights.iter().map(Vec::len));
        let rooms = [
            ("slots", room.slots),
            ("records", room.records),
            ("decisions", room.decisions),
            ("weights", of_weights),
            ("ranges", ranges),
            ("values", values),
            ("rules", rules),
            ("messages", messages),
        ];
        let held = MapValue::Typed(&own.btf, own.key, own.held);
        let in_bypass = MapValue::Typed(&own.btf, own.key, own.bypass);
        let kinds = [
            ("control", Layout::DIRECTION as u32, 1, MapValue::Mapped),
            ("records", Layout::RECORD as u32, room.records, MapValue::Mapped),
            ("decisions", Layout::DECISION as u32, room.decisions, MapValue::Mapped),
            ("departures", Layout::DEPARTURE as u32, room.records, MapValue::Mapped),
            ("delays", Layout::DELAY as u32, room.records, MapValue::Mapped),
            ("weights", WEIGHT, of_weights, MapValue::Mapped),
            ("ranges", RANGE, 2 * ranges, MapValue::Mapped),
            ("values", Layout::VALUE as u32, values, MapValue::Mapped),
            ("rules", RULE, rules, MapValue::Mapped),
            ("messages", MESSAGE, messages, MapValue::Bytes),
            ("heap", OVERTAKING, room.slots, MapValue::Bytes),
            ("packets", HELD, room.slots, held),
            ("bypass", BYPASS, BYPASS_SLOTS, in_bypass),
        ];
        let maps = kinds
            .into_iter()
            .map(|(name, size, entries, value)| Ok((name, Map::array(name, size, entries * count, value)?)));
        Ok(Self { maps: maps.collect::<Result<_, BpfError>>()?, rooms, room, weights })
    }

    pub(super) fn find(&self, name: &str) -> Option<&Map> {
        self.maps.iter().find(|(map, _)| *map == name).map(|(_, map)| map)
    }

    pub(super) fn of(&self, name: &str) -> &Map {
        self.find(name).expect("it is in the list above")
    }

    /// The length of a ring for one direction.
    pub(super) fn room(&self, name: &str) -> Option<u32> {
        self.rooms.iter().find(|(room, _)| *room == name).map(|(_, length)| *length)
    }

    fn length(&self, name: &str) -> u32 {
        self.room(name).unwrap_or_default()
    }

    /// Writes what the program only reads.
    pub(super) fn fill(&self, directions: &[Parameters]) -> Result<(), BpfError> {
        let longs = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let fill = |name: &str, each: u32, values: Vec<Vec<u8>>| -> Result<(), BpfError> {
            let memory = MappedMap::new(self.of(name), each as usize * values.len())?;
            let places = (0..).step_by(each as usize);
            values.iter().zip(places).for_each(|(value, place)| memory.write(place, value));
            Ok(())
        };
        let control = directions.iter().map(|way| way.bytes(self.room));
        fill("control", Layout::DIRECTION as u32, control.collect())?;
        let weights = self.weights.iter().map(|weights| longs(weights));
        fill("weights", WEIGHT * self.length("weights"), weights.collect())?;
        let rules = directions.iter().map(|way| way.queue.rules.iter().flat_map(Rule::bytes).collect());
        fill("rules", RULE * self.length("rules"), rules.collect())?;
        let places = |loss: &Loss| {
            longs(&loss.ranges().iter().flat_map(|range| [range.start, range.end]).collect::<Vec<_>>())
        };
        let losses = directions.iter().flat_map(|way| &way.losses).map(places);
        fill("ranges", RANGE * self.length("ranges"), losses.collect())
    }

    /// The ends of the directions.
    pub(super) fn ends(&self, directions: Vec<Parameters>) -> Result<Vec<KernelEnd>, BpfError> {
        let maps = KernelMaps {
            control: self.of("control"),
            records: self.of("records"),
            decisions: self.of("decisions"),
            departures: self.of("departures"),
            delays: self.of("delays"),
            values: self.of("values"),
            value_count: self.length("values"),
            record_count: self.room.records,
            decision_count: self.room.decisions,
            directions: directions.len(),
        };
        let end = |(number, direction): (usize, Parameters)| {
            let marks = direction.queue.marks();
            let draw: Option<DrawDelay> = match direction.delay {
                Delay::Constant(_) | Delay::Fed { .. } => None,
                Delay::Drawn(drawn) => Some(Box::new(move |number| drawn.of(number))),
                Delay::Correlated(correlated) => Some(Box::new(move |number| correlated.of(number))),
            };
            KernelEnd::new(maps, number, draw, marks)
        };
        directions.into_iter().enumerate().map(end).collect()
    }
}

/// The types of maps with pointers to packets.
pub(super) struct MapTypes {
    pub(super) btf: Btf,
    key: u32,
    held: u32,
    bypass: u32,
}

impl MapTypes {
    pub(super) fn load() -> Result<Self, BpfError> {
        let mut types = OwnTypes::new();
        let key = types.unsigned("unsigned int", 4);
        let packet = types.owned_pointer("sk_buff");
        let held = types.structure("held", HELD, &[Field { name: "skb", of: packet, place: HELD_POINTER }]);
        let bypass = types.structure("in_bypass", BYPASS, &[Field { name: "skb", of: packet, place: 0 }]);
        Ok(Self { btf: Btf::load(&types.encoded())?, key, held, bypass })
    }
}
