//! What counts as the length of a packet, by hand.

use narrows_core::sched::{CakeConfig, Cells, Framing};
use narrows_core::{Rate, Time};

use crate::link::{Arrival, flow, run};

/// How many bytes of time a packet of so many bytes takes, at a byte per microsecond. The link header has none here.
fn taken(framing: Framing, length: u32) -> u64 {
    let bandwidth = Rate::from_bits_per_second(8_000_000);
    let config = CakeConfig { bandwidth, framing, ..CakeConfig::default() };
    let outcome = run(config, Rate::UNLIMITED, &[Arrival { at: Time::ZERO, key: flow(1, 2, 3), length }; 2]);
    (outcome.sent[1].at.nanos() - outcome.sent[0].at.nanos()) / 1_000
}

#[test]
fn lengths_are_those_of_the_link_layer() {
    let framing = |overhead, mpu, cells| Framing { overhead: Some(overhead), mpu, cells };
    for (framing, length, expected) in [
        (Framing::default(), 1000, 1000),
        (framing(18, 64, Cells::None), 1000, 1018),
        (framing(18, 64, Cells::None), 40, 64),
        (framing(-20, 0, Cells::None), 1000, 980),
        // 1040 bytes are 21.67 cells, 22 of 53 bytes; 48 bytes are one, 49 are two.
        (framing(40, 0, Cells::Atm), 1000, 1166),
        (framing(8, 0, Cells::Atm), 40, 53),
        (framing(8, 0, Cells::Atm), 41, 106),
        // 1030 bytes are 17 blocks of 64 or part of them, with a byte each.
        (framing(30, 0, Cells::Ptm), 1000, 1047),
        (framing(0, 0, Cells::Ptm), 64, 65),
        // The minimum comes before cells.
        (framing(0, 84, Cells::Atm), 40, 106),
    ] {
        assert_eq!(taken(framing, length), expected, "{framing:?} {length}");
    }
}
