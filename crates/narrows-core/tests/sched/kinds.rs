//! All schedulers, each in one line. A new one belongs here.

use narrows_core::queue::Wire;
use narrows_core::sched::{
    Abe, AbeConfig, Cbq, CbqClass, ClassSettings, ClassState, CsmaCd, CsmaCdConfig, Dcf, DcfConfig, Drr, Ets,
    Fair, Fifo, FlowConfig, FlowId, Flows, Gfq, Hfsc, HfscClass, HfscCurve, Hpd, Htb, HtbClass, Kps,
    Priority, Qfq, Refused, Scheduler, Selection, Served, Server, Taprio, TaprioEntry, Waits, Weight, Wf2q,
};
use narrows_core::{Bytes, Duration, PacketRef, Rate, Seed, Stream, Time};

/// A scheduler as the tests see it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Box<dyn Subject>,
    /// How many flows it takes, where that is few.
    pub(crate) most: Option<u32>,
    /// Whether it may decline to send while packets wait.
    pub(crate) declines: bool,
    /// Whether weights can be changed.
    pub(crate) weighted: bool,
    /// For those that promise shares by weight: by how many bytes a flow may fall behind its share of what is served,
    /// from any instant to any other between which all flows wait.
    pub(crate) lag: Option<fn(&Case) -> f64>,
}

/// One flow among others that all wait.
pub(crate) struct Case {
    /// The flow's share: its weight, divided by the sum of all weights.
    pub(crate) share: f64,
    pub(crate) weight: f64,
    /// How many flows there are.
    pub(crate) flows: f64,
}

/// The longest packet in the tests, and the quantum of those that take turns.
pub(crate) const LONGEST: u32 = 1500;
const L: f64 = LONGEST as f64;
const QUANTUM: Bytes = Bytes::new(LONGEST as u64);

/// Leaves of trees.
const LEAVES: u32 = 40;

pub(crate) const ALL: [Kind; 18] = [
    Kind {
        most: Some(LEAVES),
        declines: true,
        weighted: false,
        lag: None,
        name: "hfsc",
        make: || subject(hfsc()),
    },
    Kind {
        most: Some(LEAVES),
        declines: true,
        weighted: false,
        lag: None,
        name: "htb",
        make: || subject(htb()),
    },
    Kind {
        most: Some(LEAVES),
        declines: true,
        weighted: false,
        lag: None,
        name: "cbq",
        make: || subject(cbq()),
    },
    Kind {
        most: None,
        declines: false,
        weighted: false,
        lag: None,
        name: "fifo",
        make: || subject(Fifo::default()),
    },
    Kind {
        most: None,
        declines: false,
        weighted: false,
        lag: None,
        name: "prio",
        make: || subject(Priority::default()),
    },
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(turns),
        name: "drr",
        make: || subject(Drr::new(QUANTUM)),
    },
    // Two strict bands; the others share.
    Kind {
        most: None,
        declines: false,
        weighted: false,
        lag: None,
        name: "ets",
        make: || subject(Ets::new(QUANTUM, 2)),
    },
    // Gates of a millisecond; the third and fourth band are open half of the time.
    Kind {
        most: None,
        declines: true,
        weighted: false,
        lag: None,
        name: "taprio",
        make: || subject(taprio()),
    },
    // Up to the end of one of its packets one packet, up to any other instant one more.
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(|_| 2.0 * L),
        name: "wf2q+",
        make: || subject(Wf2q::default()),
    },
    // 2·L_k + 2·w·δ + 2·φ·L, where w·δ is below L_k/8.
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(|case| (2.25 + 2.0 * case.share) * L),
        name: "gfq",
        make: || subject(Gfq::default()),
    },
    // L_k + 6·w·δ + 2·φ·L, where w·δ is below L_k/2.
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(|case| (4.0 + 2.0 * case.share) * L),
        name: "kps",
        make: || subject(Kps::default()),
    },
    // 3·φ·σ + 2·φ·L, where σ is below 2·longest / φ.
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(qfq),
        name: "qfq",
        make: || subject(Qfq::default()),
    },
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(turns),
        name: "fair",
        make: || subject(Fair::new(QUANTUM)),
    },
    Kind {
        most: None,
        declines: false,
        weighted: true,
        lag: Some(turns),
        name: "sfq",
        make: || subject(Fair::round_robin(QUANTUM)),
    },
    Kind { most: None, declines: true, weighted: false, lag: None, name: "dcf", make: || subject(dcf()) },
    Kind {
        most: None,
        declines: true,
        weighted: false,
        lag: None,
        name: "csma-cd",
        make: || subject(csma_cd()),
    },
    Kind {
        most: Some(Hpd::CLASSES),
        declines: false,
        weighted: false,
        lag: None,
        name: "hpd",
        make: || subject(Hpd::default()),
    },
    Kind {
        most: Some(Abe::FLOWS),
        declines: false,
        weighted: false,
        lag: None,
        name: "abe",
        make: || subject(Abe::new(AbeConfig::default())),
    },
];

/// From `|s_i / w_i − s_j / w_j| ≤ base + L / w_i + L / w_j`, summed over all j by weight.
fn turns(case: &Case) -> f64 {
    case.weight * L + L + case.share * case.flows * L
}

fn qfq(case: &Case) -> f64 {
    6.0 * L + 2.0 * case.share * L
}

/// Those whose flows are alike (those of `abe` are of two colours) where their configurations are, and trees whose leaves are.
pub(crate) fn alike() -> impl Iterator<Item = Kind> {
    let tree = |name, make| Kind { most: Some(8), declines: true, weighted: false, lag: None, name, make };
    let trees = [
        tree("htb", || subject(Htb::new(vec![HtbClass::default(); 8]).expect("in range"))),
        tree("hfsc", || {
            let ls = Some(HfscCurve::linear(Rate::from_bits_per_second(1_000_000)));
            subject(Hfsc::new(vec![HfscClass { ls, ul: ls, ..HfscClass::default() }; 8]).expect("in range"))
        }),
        tree("cbq", || {
            let classes = vec![CbqClass::default(); 8];
            subject(Cbq::new(Rate::UNLIMITED, Bytes::new(1_000), classes).expect("in range"))
        }),
    ];
    ALL.into_iter().filter(|kind| !["hfsc", "htb", "cbq", "abe"].contains(&kind.name)).chain(trees)
}

fn taprio() -> Taprio {
    let entry = |open| TaprioEntry { lasts: Duration::from_millis(1), open };
    Taprio::new(Time::ZERO, &[entry(!0b0100), entry(!0b1000), entry(!0)], None).expect("entries that last")
}

/// A tree of three levels with curves of every shape, some of them limited, some with a guarantee only.
fn hfsc() -> Hfsc {
    let rate = |mbit: u32| Rate::from_bits_per_second(u64::from(mbit) * 1_000_000);
    let curve =
        |m1, millis, m2| Some(HfscCurve { m1: rate(m1), d: Duration::from_millis(millis), m2: rate(m2) });
    let root = HfscClass { ls: curve(0, 0, 50), ul: curve(0, 0, 60), ..HfscClass::default() };
    let inner = HfscClass { parent: Some(0), ls: curve(20, 5, 30), ..HfscClass::default() };
    let leaf = |n: u32| {
        let parent = Some(n as usize % 3);
        match n % 4 {
            0 => HfscClass { parent, rt: curve(1 + n % 7, 3, 1), ..HfscClass::default() },
            1 => HfscClass { parent, rt: curve(0, 4, 1), ls: curve(1, 10, 1 + n % 5), ul: None },
            2 => HfscClass { parent, rt: None, ls: curve(3, 10, 1 + n % 5), ul: curve(4, 2, 2) },
            _ => HfscClass { parent, rt: None, ls: curve(0, 0, 1 + n % 7), ul: curve(0, 1, 3) },
        }
    };
    Hfsc::new([root, inner, inner].into_iter().chain((0..LEAVES).map(leaf)).collect()).expect("in range")
}

/// A tree of three levels, with every priority and rates that differ.
fn htb() -> Htb {
    let rate = |mbit: u32| Rate::from_bits_per_second(u64::from(mbit) * 1_000_000);
    let root = HtbClass { rate: rate(50), ceil: rate(60), ..HtbClass::default() };
    let inner = HtbClass { parent: Some(0), ..root };
    let leaf = |n: u32| HtbClass {
        parent: Some(n as usize % 3),
        rate: rate(1 + n % 7),
        ceil: rate(1 + n % 7 + n % 5),
        priority: (n % 8) as u8,
        burst: Bytes::new((n % 4 * 1_000).into()),
        ..root
    };
    Htb::new([root, inner, inner].into_iter().chain((0..LEAVES).map(leaf)).collect()).expect("in range")
}

/// The same with classes of each kind.
fn cbq() -> Cbq {
    let rate = |mbit: u32| Rate::from_bits_per_second(u64::from(mbit) * 1_000_000);
    let inner = CbqClass { rate: rate(30), ..CbqClass::default() };
    let leaf = |n: u32| CbqClass {
        parent: Some(n as usize % 2),
        rate: rate(1 + n % 7),
        priority: (1 + n % 8) as u8,
        bounded: n.is_multiple_of(5),
        exempt: n % 5 == 1,
        isolated: n % 11 == 2,
        maxburst: n % 13,
        minburst: n % 4,
        ..inner
    };
    let classes = [inner, inner].into_iter().chain((0..LEAVES).map(leaf)).collect();
    Cbq::new(rate(60), Bytes::new(700), classes).expect("in range")
}

fn csma_cd() -> CsmaCd {
    let mut scheduler = CsmaCd::new(CsmaCdConfig::default(), Stream::new(Seed(1), "test", "backoff"));
    // Without a rate, slots take no time, and who collides once does so to the end.
    scheduler.set_wire(
        Time::ZERO,
        Wire { rate: Rate::from_bits_per_second(10_000_000), overhead: CsmaCd::OVERHEAD },
    );
    scheduler
}

fn dcf() -> Dcf {
    Dcf::new(DcfConfig::default(), Stream::new(Seed(1), "test", "backoff"))
}

/// A server without its scheduler's type.
pub(crate) trait Subject {
    fn join(&mut self, flow: FlowConfig) -> Result<FlowId, Refused>;
    fn leave(&mut self, flow: FlowId) -> bool;
    fn set_weight(&mut self, now: Time, flow: FlowId, weight: Weight) -> Result<(), Refused>;
    fn enqueue(&mut self, now: Time, flow: FlowId, packet: u32, length: u32);
    fn dequeue(&mut self, now: Time) -> Served;
    fn drop_first(&mut self, now: Time, flow: FlowId) -> Option<Waits>;
    fn backlog(&self) -> (u64, u64);
    fn waiting(&self, flow: FlowId) -> (u32, u64, Option<Waits>);
}

fn subject<S: Scheduler + 'static>(scheduler: S) -> Box<dyn Subject> {
    Box::new(Server::new(Twice(scheduler)))
}

impl<S: Scheduler> Subject for Server<S> {
    fn join(&mut self, flow: FlowConfig) -> Result<FlowId, Refused> {
        Self::join(self, flow)
    }

    fn leave(&mut self, flow: FlowId) -> bool {
        Self::leave(self, flow)
    }

    fn set_weight(&mut self, now: Time, flow: FlowId, weight: Weight) -> Result<(), Refused> {
        Self::set_weight(self, now, flow, weight)
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, packet: u32, length: u32) {
        Self::enqueue(self, now, flow, PacketRef::from_number(packet), length);
    }

    fn dequeue(&mut self, now: Time) -> Served {
        Self::dequeue(self, now)
    }

    fn drop_first(&mut self, now: Time, flow: FlowId) -> Option<Waits> {
        Self::drop_first(self, now, flow)
    }

    fn backlog(&self) -> (u64, u64) {
        let flows = self.flows();
        (flows.waiting(), flows.ids().map(|flow| flows.bytes(flow)).sum())
    }

    fn waiting(&self, flow: FlowId) -> (u32, u64, Option<Waits>) {
        (self.flows().packets(flow), self.flows().bytes(flow), self.flows().first(flow))
    }
}

/// Asks a scheduler each time twice: the answer must not depend on how often it is asked.
#[derive(Debug)]
struct Twice<S>(S);

impl<S: Scheduler> Scheduler for Twice<S> {
    type Flow = S::Flow;

    fn join(&mut self, flow: FlowConfig) -> Result<S::Flow, Refused> {
        self.0.join(flow)
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<S::Flow>) {
        self.0.leave(flow, flows);
    }

    fn set_weight(
        &mut self,
        now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<S::Flow>,
    ) -> Result<(), Refused> {
        self.0.set_weight(now, flow, weight, flows)
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<S::Flow>) {
        self.0.enqueue(now, flow, flows);
    }

    fn select(&mut self, now: Time, flows: &mut Flows<S::Flow>) -> Selection {
        let answer = self.0.select(now, flows);
        assert_eq!(self.0.select(now, flows), answer);
        answer
    }

    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<S::Flow>) {
        self.0.sent(now, flow, length, flows);
    }

    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<S::Flow>) {
        self.0.head_dropped(now, flow, flows);
    }

    fn set_class(
        &mut self,
        now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<S::Flow>,
    ) -> Result<(), Refused> {
        self.0.set_class(now, flow, settings, flows)
    }

    fn take_over(&mut self, now: Time, flow: FlowId, since: Time, flows: &mut Flows<S::Flow>) {
        self.0.take_over(now, flow, since, flows);
    }

    fn states(&self, now: Time, flows: &Flows<S::Flow>) -> Vec<ClassState> {
        self.0.states(now, flows)
    }

    fn set_wire(&mut self, now: Time, wire: narrows_core::queue::Wire) {
        self.0.set_wire(now, wire);
    }
}
