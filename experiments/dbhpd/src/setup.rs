//! The schedulers of the thesis's traffic simulations, with the parameters of its table 7.1.
//!
//! The table's rate of 1.5 kbit/s for FTP in CBQ must be 1.5 Mbit/s: only so do the children of "Other" come to its 9 Mbit/s
//! (7.3 + 1.5 + 0.2). What the table leaves out is taken from the thesis's figure 4.10, which has queues of 50 packets, a
//! restart after 25 and a cycle of 2000 µs; CBQ's classes have a burst of 20 packets, as tc's examples do; FIFO, with "no additional settings", has 100 packets, which Linux 2.4 gives an
//! Ethernet port.

use narrows_core::sched::{
    BoundOrder, BoundReading, Cbq, CbqClass, Estimator, Fifo, FlowConfig, Gamma, Hpd, HpdClass, HpdConfig,
    Per1024, Priority,
};
use narrows_core::{Bytes, Duration, Rate, Seed, Time};

use super::delays::Delays;
use super::open_loop::{ClassOutcome, Link, Offered, drive};
use super::published::{Clock, Faults, Published, PublishedClass, PublishedEstimator};

/// The classes of traffic, in the order of all that is listed by class here.
pub const CLASSES: [&str; 4] = ["VoIP", "WWW", "FTP", "noise"];

/// The link.
pub const RATE: Rate = Rate::from_bits_per_second(10_000_000);
/// Packets that may wait in a class.
pub const QUEUE: u32 = 50;
/// Packets that may wait in the FIFO.
pub const FIFO_QUEUE: u32 = 100;

/// What serves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// One queue.
    Fifo,
    /// VoIP, then WWW and FTP in one queue, then noise.
    Priq,
    /// Shares of the rate.
    Cbq,
    /// Hybrid proportional delay, as narrows has it.
    Hpd,
    /// The published arithmetic.
    Published(Faults, Clock),
}

/// δ, γ and g of each class, the last two in 1024ths.
const HPD: [(u32, u16, u16); 4] = [(1, 896, 128), (2, 768, 256), (4, 256, 768), (16, 128, 896)];
/// The limit of VoIP.
const LIMIT: Duration = Duration::from_millis(2);
const RESTART: u32 = 25;
const CYCLE: Duration = Duration::from_micros(2000);

/// HPD's classes, VoIP with restart and a limit.
pub fn hpd() -> HpdConfig {
    let class = |(number, (ddp, gamma, g)): (usize, (u32, u16, u16))| HpdClass {
        ddp: ddp.try_into().expect("no δ is 0"),
        gamma: Gamma::Fixed(Per1024::new(gamma).expect("γ is below 1024")),
        g: Per1024::new(g).expect("g is below 1024"),
        limit: (number == 0).then_some(LIMIT),
        estimator: match number {
            0 => Estimator::EwmaR { threshold: RESTART, cycle: CYCLE },
            _ => Estimator::Ewma,
        },
    };
    HpdConfig {
        classes: HPD.into_iter().enumerate().map(class).collect(),
        bound_order: BoundOrder::Reference,
        bound_reading: BoundReading::AboutToViolate,
    }
}

/// The same for the published arithmetic; `others` is how the classes besides VoIP make their averages.
pub fn published(others: PublishedEstimator) -> Vec<PublishedClass> {
    let class = |(number, (ddp, gamma, g)): (usize, (u32, u16, u16))| PublishedClass {
        ddp,
        gamma: gamma.into(),
        g: g.into(),
        limit: if number == 0 { LIMIT } else { Duration::ZERO },
        estimator: match number {
            0 => PublishedEstimator::Restart { threshold: RESTART, cycle: CYCLE },
            _ => others,
        },
    };
    HPD.into_iter().enumerate().map(class).collect()
}

/// CBQ's tree: VoIP isolated, the others under one class.
pub fn cbq() -> Cbq {
    let class = |parent, kilobits: u64, priority, isolated| CbqClass {
        parent,
        rate: Rate::from_bits_per_second(kilobits * 1000),
        priority,
        allot: Bytes::new(256),
        average_packet: Bytes::new(200),
        maxburst: 20,
        isolated,
        ..CbqClass::default()
    };
    let classes = vec![
        class(None, 1000, 1, true),
        class(None, 9000, 2, false),
        class(Some(1), 7300, 3, false),
        class(Some(1), 1500, 4, false),
        class(Some(1), 200, 5, false),
    ];
    Cbq::new(RATE, Bytes::new(256), classes).expect("the table's tree is one")
}

impl Contender {
    /// The thesis's four.
    pub const FOUR: [Self; 4] = [Self::Fifo, Self::Priq, Self::Cbq, Self::Hpd];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::Priq => "PRIQ",
            Self::Cbq => "CBQ",
            Self::Hpd => "HPD",
            Self::Published(..) => "HPD as published",
        }
    }

    /// Sends open-loop traffic of the four classes through it.
    pub fn drive(self, offered: &[Offered], seed: Seed, settled: Time) -> Vec<Delays> {
        let four = Link::plain(RATE, CLASSES.len(), QUEUE);
        let when = (seed, settled);
        let outcome: Vec<ClassOutcome> = match self {
            Self::Fifo => {
                let one = Link { flow_of: vec![0; CLASSES.len()], ..Link::plain(RATE, 1, FIFO_QUEUE) };
                drive(Fifo::default(), offered, &one, when, |_, _| {})
            }
            Self::Priq => {
                let flows =
                    (0..3).map(|band| (FlowConfig { band, ..FlowConfig::default() }, QUEUE)).collect();
                let bands = Link { rate: RATE, flows, flow_of: vec![0, 1, 1, 2] };
                drive(Priority::default(), offered, &bands, when, |_, _| {})
            }
            Self::Cbq => drive(cbq(), offered, &four, when, |_, _| {}),
            Self::Hpd => drive(Hpd::new(hpd()), offered, &four, when, |_, _| {}),
            Self::Published(faults, clock) => {
                let classes = published(PublishedEstimator::Ewma);
                drive(Published::new(classes, faults, clock), offered, &four, when, |_, _| {})
            }
        };
        outcome.into_iter().map(|class| Delays::new(class.delays, class.dropped)).collect()
    }
}
