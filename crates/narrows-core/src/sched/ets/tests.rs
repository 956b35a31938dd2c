use super::*;
use crate::pool::PacketRef;
use crate::sched::{HpdClass, Served, Server};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::collection::vec;
use proptest::prelude::*;

/// Linux's `ets_qdisc_enqueue` and `ets_qdisc_dequeue`, over plain lists of band numbers.
#[derive(Default)]
struct Model {
    strict: usize,
    /// Quantum, deficit and lengths of each band.
    bands: Vec<(i64, i64, VecDeque<u32>)>,
    active: VecDeque<usize>,
}

impl Model {
    fn enqueue(&mut self, band: usize, length: u32) {
        let (quantum, deficit, lengths) = &mut self.bands[band];
        if lengths.is_empty() && band >= self.strict {
            self.active.push_back(band);
            *deficit = *quantum;
        }
        lengths.push_back(length);
    }

    fn dequeue(&mut self) -> Option<usize> {
        if let Some(band) = (0..self.strict).find(|band| !self.bands[*band].2.is_empty()) {
            self.bands[band].2.pop_front();
            return Some(band);
        }
        loop {
            let band = *self.active.front()?;
            let (quantum, deficit, lengths) = &mut self.bands[band];
            let length = i64::from(*lengths.front()?);
            if length <= *deficit {
                *deficit -= length;
                lengths.pop_front();
                if lengths.is_empty() {
                    self.active.pop_front();
                }
                return Some(band);
            }
            *deficit += *quantum;
            self.active.rotate_left(1);
        }
    }
}

fn served(server: &mut Server<Ets>) -> Option<usize> {
    match server.dequeue(Time::ZERO) {
        Served::Packet(flow, _) => Some(flow.number() as usize),
        _ => None,
    }
}

proptest! {
    #[test]
    fn the_order_is_linuxs(
        quanta in vec(100u64..4_000, 1..8),
        strict in 0usize..5,
        steps in vec((0usize..8, any::<bool>(), 1u32..=1_500), 1..300),
    ) {
        let strict = strict.min(quanta.len());
        let mut server = Server::new(Ets::new(Bytes::new(1514), strict as u32));
        let mut model = Model { strict, ..Model::default() };
        for (band, &quantum) in (0..).zip(&quanta) {
            let quantum = Some(Bytes::new(quantum));
            server.join(FlowConfig { band, quantum, ..FlowConfig::default() }).expect("any band");
            model.bands.push((quantum.map_or(0, |quantum| quantum.get() as i64), 0, VecDeque::new()));
        }
        for (band, arrives, length) in steps {
            if arrives {
                let band = band % quanta.len();
                server.enqueue(Time::ZERO, FlowId::new(band as u32), PacketRef::from_number(0), length);
                model.enqueue(band, length);
            } else {
                prop_assert_eq!(served(&mut server), model.dequeue());
            }
        }
    }
}

/// By hand: 1 and 2 share by 1 to 2, and the packet of the strict band in between takes nothing from their turns.
#[test]
fn a_strict_packet_interrupts_a_turn() {
    let mut server = Server::new(Ets::new(Bytes::new(1000), 1));
    for band in 0..3 {
        let quantum = (band == 2).then_some(Bytes::new(2000));
        server.join(FlowConfig { band, quantum, ..FlowConfig::default() }).expect("any band");
    }
    let enqueue = |server: &mut Server<Ets>, band| {
        server.enqueue(Time::ZERO, FlowId::new(band), PacketRef::from_number(0), 1000);
    };
    for band in [1, 1, 1, 2, 2, 2, 2] {
        enqueue(&mut server, band);
    }
    let first: Vec<_> = (0..2).map_while(|_| served(&mut server)).collect();
    enqueue(&mut server, 0);
    let rest: Vec<_> = core::iter::from_fn(|| served(&mut server)).collect();
    assert_eq!((first, rest), (alloc::vec![1, 2], alloc::vec![0, 2, 1, 2, 2, 1]));
}

#[test]
fn only_bands_that_share_have_quanta() {
    let mut server = Server::new(Ets::new(Bytes::new(1000), 1));
    let [strict, shared] =
        [0, 1].map(|band| server.join(FlowConfig { band, ..FlowConfig::default() }).expect("any band"));
    let quantum = ClassSettings::Quantum(Bytes::new(3000));
    assert_eq!(server.set_class(Time::ZERO, strict, quantum), Err(Refused::NoSettings));
    assert_eq!(server.set_class(Time::ZERO, shared, quantum), Ok(()));
    let delay = ClassSettings::Delay(HpdClass::default());
    assert_eq!(server.set_class(Time::ZERO, shared, delay), Err(Refused::NoSettings));
}
