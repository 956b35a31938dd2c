//! How much memory flows take beside their packets, as the allocator sees it.

use narrows_core::sched::{FlowConfig, FlowId, Flows, Served, Waits};
use narrows_core::{Duration, PacketRef, Time};

use crate::counting::live;
use crate::kinds::ALL;

/// Live bytes after `work`, whose result is kept until they are counted.
fn bytes<T>(work: impl FnOnce() -> T) -> f64 {
    let before = live();
    let result = work();
    let bytes = live() - before;
    drop(result);
    bytes as f64
}

/// Every flow has had packets, in an order and of lengths that scatter them over the scheduler's structures.
#[test]
fn a_flow_takes_at_most_128_bytes_beside_its_packets() {
    for flows in [1_000u32, 10_000, 70_000] {
        let count = f64::from(flows);
        // The packets take as much whatever the scheduler.
        let plain = |packets: u32| {
            bytes(|| {
                let mut plain = Flows::default();
                for _ in 0..flows {
                    let flow = plain.add(());
                    let waits = Waits { packet: PacketRef::from_number(0), length: 100 };
                    (0..packets).for_each(|_| plain.push(flow, waits));
                }
                plain
            })
        };
        let packets = plain(2) - plain(0);
        // `taprio` has 64 bands, and looks at each backlogged flow.
        for kind in ALL.into_iter().filter(|kind| kind.most.is_none() && kind.name != "taprio") {
            let all = bytes(|| {
                let mut subject = (kind.make)();
                for band in 0..flows {
                    subject.join(FlowConfig { band, ..FlowConfig::default() }).expect("in range");
                }
                for round in 0..2u32 {
                    for flow in 0..flows {
                        let length = (flow + round).wrapping_mul(2_654_435_761) % 1_400 + 100;
                        subject.enqueue(Time::ZERO, FlowId::new(flow), 0, length);
                    }
                }
                // Half of them.
                let (mut now, mut served) = (Time::ZERO, 0);
                while served < flows {
                    match subject.dequeue(now) {
                        Served::Packet(..) => {
                            served += 1;
                            now = now + Duration::from_micros(1);
                        }
                        Served::NotBefore(at) => now = at,
                        Served::GivenUp(..) => served += 1,
                        Served::Empty => break,
                    }
                }
                subject
            });
            let each = (all - packets) / count;
            println!("{flows:>6} flows, {:>6}: {each:.1} bytes each beside packets", kind.name);
            assert!(each <= 128.0, "{}: {each}", kind.name);
        }
    }
}
