//! What stays when parameters change, and when another queue takes over.

use narrows_core::classify::Classifier;
use narrows_core::queue::{Bound, Dequeue, DropAt, Queue, Stand};
use narrows_core::sched::{
    Class, ClassSettings, ClassState, Drr, Estimator, FlowConfig, FlowId, Gamma, Hpd, HpdClass, HpdConfig,
    Overload, Per1024, Refused, Scheduled, Scheduler, Served, Store,
};
use narrows_core::{Bytes, Duration, FlowKey, PacketRef, Seed, Time};

use crate::drive::{classes, server, states};

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

fn waits_only(ddp: u32) -> HpdClass {
    HpdClass { ddp: ddp.try_into().expect("not 0"), g: Per1024::ZERO, ..HpdClass::default() }
}

#[test]
fn other_parameters_count_at_once_and_keep_the_average_and_what_waits() {
    let mut server = server(classes(vec![waits_only(1), waits_only(2)]));
    let [one, two] = [0, 1].map(FlowId::new);
    let packet = PacketRef::from_number(0);
    server.enqueue(at(0), two, packet, 100);
    assert!(matches!(server.dequeue(at(50)), Served::Packet(flow, _) if flow == two));
    server.enqueue(at(60), two, packet, 100);
    server.enqueue(at(70), one, packet, 100);
    assert_eq!(states(&server, at(80)).map_averages(), [0, 50_000]);
    // 10 / 1 against 20 / 2.
    let changed = HpdClass { gamma: Gamma::Fixed(Per1024::HALF), ..waits_only(1) };
    server.set_class(at(80), two, ClassSettings::Delay(changed)).expect("its own");
    assert_eq!(states(&server, at(80)).map_averages(), [0, 50_000]);
    assert!(matches!(server.dequeue(at(80)), Served::Packet(flow, _) if flow == two), "20 / 1 now");
    assert_eq!(states(&server, at(80)).map_averages(), [0, 35_000], "half of 50 and half of 20");

    // Another estimator goes on from there, and does not begin with an exact mean.
    let restarts = Estimator::EwmaR { threshold: 100, cycle: Duration::from_secs(1) };
    let changed = HpdClass { estimator: restarts, ..changed };
    server.set_class(at(80), two, ClassSettings::Delay(changed)).expect("its own");
    server.enqueue(at(80), two, packet, 100);
    server.drop_first(at(80), one);
    server.dequeue(at(85));
    assert_eq!(states(&server, at(85)).map_averages(), [0, 20_000]);
}

trait Averages {
    fn map_averages(&self) -> Vec<u64>;
}

impl Averages for Vec<narrows_core::sched::DelayState> {
    fn map_averages(&self) -> Vec<u64> {
        self.iter().map(|state| state.average.nanos()).collect()
    }
}

fn queue<S: Scheduler + 'static>(scheduler: S) -> Box<dyn Queue> {
    let enough = Bound::Packets(1000);
    let mut queue = Scheduled::new(scheduler, Classifier::Mark(2), enough, Overload::Arriving);
    for _ in 0..2 {
        let class =
            Class { flow: FlowConfig::default(), bound: enough, drop_at: DropAt::Tail, store: Store::Plain };
        queue.add_class(class).expect("it takes two");
    }
    Box::new(queue)
}

/// What another queue takes over goes on waiting: a limit holds from when a packet came, not from when the queue did.
#[test]
fn packets_that_are_taken_over_have_waited_since_they_came() {
    let mut stand = Stand::new(Seed(1));
    let mut old = queue(Drr::new(Bytes::new(1500)));
    for (micros, class) in [(0, 1), (10, 0), (20, 1)] {
        let packet = stand.insert(at(micros), FlowKey { mark: class, ..FlowKey::default() }, 100);
        old.enqueue(at(micros), packet, &mut stand.context());
    }
    let config = HpdConfig { classes: vec![waits_only(1), waits_only(1)], ..HpdConfig::default() };
    let mut new = queue(Hpd::new(config));
    let waiting = old.take_all(stand.context().pool);
    new.adopt(at(100), waiting, &mut stand.context());
    let hold = |state: ClassState| match state {
        ClassState::Delay(delay) => delay.hold,
        other => panic!("{other:?}"),
    };
    let holds: Vec<Duration> = new.class_states(at(100)).into_iter().map(hold).collect();
    assert_eq!(holds, [90, 100].map(Duration::from_micros));
    let order: Vec<u32> = std::iter::from_fn(|| match new.dequeue(at(100), &mut stand.context()) {
        Dequeue::Packet(packet) => Some(packet.number()),
        _ => None,
    })
    .collect();
    assert_eq!(order, [0, 1, 2], "as they came");
    assert_eq!(
        queue(Drr::new(Bytes::new(1500))).set_class(at(0), 0, ClassSettings::Delay(waits_only(1))),
        Err(Refused::NoSettings)
    );
    assert_eq!(new.set_class(at(0), 2, ClassSettings::Delay(waits_only(1))), Err(Refused::NoClass));
}
