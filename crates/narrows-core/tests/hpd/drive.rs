//! A transmitter of constant rate behind the scheduler, and packets that come at given instants.

use narrows_core::queue::Wire;
use narrows_core::sched::{
    ClassState, DelayState, FlowConfig, FlowId, Hpd, HpdClass, HpdConfig, Served, Server,
};
use narrows_core::service::Overhead;
use narrows_core::{Duration, PacketRef, Rate, Time};

/// A packet that comes: after the one before it, to a class, of a length.
pub(crate) type Arrival = (u64, u32, u32);

/// A packet that went: its number, its class, when it came and when it began to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) packet: u32,
    pub(crate) class: u32,
    pub(crate) length: u32,
    pub(crate) came: Time,
    pub(crate) at: Time,
}

/// Nanoseconds for each byte on the wire.
pub(crate) const PER_BYTE: u64 = 8;

pub(crate) fn server(config: HpdConfig) -> Server<Hpd> {
    let classes = config.classes.len();
    let mut server = Server::new(Hpd::new(config));
    let rate = Rate::from_bits_per_second(8_000_000_000 / PER_BYTE);
    server.set_wire(Time::ZERO, Wire { rate, overhead: Overhead::IP });
    for number in 0..classes {
        assert_eq!(server.join(FlowConfig::default()), Ok(FlowId::new(number as u32)));
    }
    server
}

pub(crate) fn classes(classes: Vec<HpdClass>) -> HpdConfig {
    HpdConfig { classes, ..HpdConfig::default() }
}

/// What each class tells of itself.
pub(crate) fn states(server: &Server<Hpd>, now: Time) -> Vec<DelayState> {
    let delay = |state: ClassState| match state {
        ClassState::Delay(delay) => delay,
        other => panic!("{other:?} is of another scheduler"),
    };
    server.states(now).into_iter().map(delay).collect()
}

/// Sends all of these, one after another, and tells `see` of each when it begins, with what came before that instant or at
/// it already there.
pub(crate) fn run(config: HpdConfig, arrivals: &[Arrival], mut see: impl FnMut(&Server<Hpd>, Sent)) {
    let mut server = server(config);
    let mut now = Time::ZERO;
    let mut at = Time::ZERO;
    let mut coming = Vec::new();
    for &(gap, class, length) in arrivals {
        at = at + Duration::from_nanos(gap);
        coming.push((at, class, length));
    }
    let mut next = 0;
    loop {
        while let Some(&(at, class, length)) = coming.get(next).filter(|(at, ..)| *at <= now) {
            server.enqueue(at, FlowId::new(class), PacketRef::from_number(next as u32), length);
            next += 1;
        }
        match server.dequeue(now) {
            Served::Packet(flow, waits) => {
                let packet = waits.packet.number();
                let (came, ..) = coming[packet as usize];
                see(&server, Sent { packet, class: flow.number(), length: waits.length, came, at: now });
                now = now + Duration::from_nanos(u64::from(waits.length) * PER_BYTE);
            }
            Served::Empty => match coming.get(next) {
                Some(&(at, ..)) => now = at,
                None => return,
            },
            other => panic!("{other:?}"),
        }
    }
}
