//! Cases worked by hand: ties, restarts, steps, the edges of the numbers.

use narrows_core::sched::{
    ErrorWidth, Estimator, FlowConfig, FlowId, Gamma, Hpd, HpdClass, HpdConfig, Per1024, Refused, Served,
    Server,
};
use narrows_core::{Duration, PacketRef, Time};

use crate::drive::{classes, server, states};

const PACKET: PacketRef = PacketRef::from_number(0);

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn class(ddp: u32, g: u16) -> HpdClass {
    HpdClass {
        ddp: ddp.try_into().expect("not 0"),
        g: Per1024::new(g).expect("at most 1024"),
        ..HpdClass::default()
    }
}

fn gamma(parts: u16) -> Gamma {
    Gamma::Fixed(Per1024::new(parts).expect("at most 1024"))
}

fn serve(server: &mut Server<Hpd>, now: Time) -> u32 {
    match server.dequeue(now) {
        Served::Packet(flow, _) => flow.number(),
        other => panic!("{other:?}"),
    }
}

/// The delays of a single class one after another, each packet alone there, and its average after each.
fn averages(settings: HpdClass, delays: &[u64]) -> Vec<u64> {
    let mut server = server(classes(vec![settings]));
    let mut now = 0;
    let one = |&delay: &u64| {
        server.enqueue(at(now), FlowId::new(0), PACKET, 100);
        now += delay;
        serve(&mut server, at(now));
        states(&server, at(now))[0].average.nanos()
    };
    delays.iter().map(one).collect()
}

/// The waits of two classes in proportion to their parameters: the lower number goes; a nanosecond less of its wait, and the
/// other does.
#[test]
fn ties_are_ties_whatever_the_parameters() {
    for (one, other, unit) in
        [(1u32, 3u32, 1u64), (7, 3, 11), (4_294_967_291, 4_294_967_279, 1), (65_521, 65_519, 3)]
    {
        for g in [0, 512, 1023] {
            for (earlier, expected) in [(0, 0), (1, 1)] {
                let mut server = server(classes(vec![class(one, g), class(other, g)]));
                let now = 1 << 40;
                let waits = [u64::from(one) * unit - earlier, u64::from(other) * unit];
                for (number, wait) in (0..).zip(waits) {
                    server.enqueue(at(now - wait), FlowId::new(number), PACKET, 100);
                }
                assert_eq!(serve(&mut server, at(now)), expected, "{one}, {other}, g {g}");
            }
        }
    }
}

#[test]
fn the_moving_average_begins_at_nothing() {
    let settings = HpdClass { gamma: gamma(512), ..class(1, 0) };
    assert_eq!(averages(settings, &[800, 800, 800, 0]), [400, 600, 700, 350]);
    assert_eq!(averages(HpdClass { gamma: gamma(0), ..settings }, &[800, 800]), [0, 0]);
    assert_eq!(averages(HpdClass { gamma: gamma(1024), ..settings }, &[800, 5]), [800, 5]);
    // The only packet of a class: its delay replaces the average.
    assert_eq!(averages(HpdClass { gamma: Gamma::OfBacklog, ..settings }, &[800, 5]), [800, 5]);
}

#[test]
fn the_restart_is_exact_up_to_the_threshold_and_after_just_the_cycle() {
    let settings = HpdClass {
        gamma: gamma(256),
        estimator: Estimator::EwmaR { threshold: 3, cycle: Duration::from_nanos(50) },
        ..class(1, 0)
    };
    // Each comes the moment that the one before it goes.
    assert_eq!(
        averages(settings, &[100, 200, 600, 700]),
        [100, 150, 300, 400],
        "means of 1, 2, 3; then ¼ of 700 and ¾ of 300"
    );
    for (idle, expected) in [(49, 325), (50, 400), (51, 400)] {
        let mut server = server(classes(vec![settings]));
        let mut now = 0;
        for (delay, idle) in [(100, 0), (200, 0), (600, idle), (400, 0)] {
            server.enqueue(at(now), FlowId::new(0), PACKET, 100);
            now += delay;
            serve(&mut server, at(now));
            now += idle;
        }
        assert_eq!(states(&server, at(now))[0].average.nanos(), expected, "idle for {idle}");
    }
}

/// The idle time is that of the class, not of all of them; and a class emptied by drops is idle, too.
#[test]
fn the_idle_time_is_that_of_the_class() {
    let restarts = HpdClass {
        estimator: Estimator::EwmaR { threshold: 10, cycle: Duration::from_nanos(50) },
        ..class(1, 0)
    };
    let mut server = server(classes(vec![restarts, class(1000, 0)]));
    let (ours, others) = (FlowId::new(0), FlowId::new(1));
    // The other class has packets all the time.
    (0..9).for_each(|_| server.enqueue(at(0), others, PACKET, 100));
    server.enqueue(at(0), ours, PACKET, 100);
    assert_eq!(serve(&mut server, at(1000)), 0);
    server.enqueue(at(1010), ours, PACKET, 100);
    assert!(server.drop_first(at(1020), ours).is_some());
    server.enqueue(at(1069), ours, PACKET, 100);
    assert_eq!(states(&server, at(1069))[0].average.nanos(), 1000, "49 ns since the drop");
    assert!(server.drop_first(at(1070), ours).is_some());
    server.enqueue(at(1120), ours, PACKET, 100);
    assert_eq!(states(&server, at(1120))[0].average.nanos(), 0, "50 ns since the drop");
}

/// Table 3.7, at its edges: with γ = 1/1024 and an average of 1024·1024 the average moves by 1024 times the error in shares
/// of n.
#[test]
fn n_is_that_of_the_table() {
    let n = |width: ErrorWidth, steps: u8, delay: u64| {
        let estimator = Estimator::EwmaPe { steps, width };
        let first = HpdClass { gamma: gamma(1024), estimator, ..class(1, 0) };
        let mut server = server(classes(vec![first]));
        let (flow, average) = (FlowId::new(0), 10_240_000);
        server.enqueue(at(0), flow, PACKET, 100);
        serve(&mut server, at(average));
        let settings = HpdClass { gamma: gamma(1), ..first };
        server
            .set_class(at(average), flow, narrows_core::sched::ClassSettings::Delay(settings))
            .expect("its own");
        server.enqueue(at(average), flow, PACKET, 100);
        serve(&mut server, at(average + delay));
        let moved = states(&server, at(0))[0].average.nanos().abs_diff(average);
        let error = delay.abs_diff(average);
        if error == 0 {
            return 1;
        }
        // n·error/1024, told to the nanosecond.
        (moved as f64 * 1024.0 / error as f64).round() as u64
    };
    let percent = |percent: u64| 102_400 * percent;
    for (edge, inside) in [(10, 1), (20, 2), (30, 3), (40, 4), (50, 5), (60, 6)] {
        for (delay, beyond) in
            [(percent(100 + edge), percent(100 + edge) + 1), (percent(100 - edge), percent(100 - edge) - 1)]
        {
            assert_eq!(n(ErrorWidth::Tenth, 7, delay), inside, "at {edge} %");
            assert_eq!(n(ErrorWidth::Tenth, 7, beyond), inside + 1, "beyond {edge} %");
        }
    }
    assert_eq!([0, percent(30), percent(400)].map(|delay| n(ErrorWidth::Tenth, 7, delay)), [7, 7, 7]);
    assert_eq!(n(ErrorWidth::Tenth, 7, percent(100)), 1);
    // Steps of 12.5 %.
    let eighth = |eighths: u64| 1_280_000 * eighths;
    for eighths in 1..8 {
        assert_eq!(n(ErrorWidth::Eighth, 8, eighth(8 + eighths)), eighths);
        assert_eq!(n(ErrorWidth::Eighth, 8, eighth(8 - eighths)), eighths);
        assert_eq!(n(ErrorWidth::Eighth, 4, eighth(8 + eighths) + 1), (eighths + 1).min(4));
    }
    // n·γ is at most 1: the average becomes the delay, and does not go beyond it.
    let wild = HpdClass {
        gamma: gamma(512),
        estimator: Estimator::EwmaPe { steps: 7, width: ErrorWidth::Tenth },
        ..class(1, 0)
    };
    assert_eq!(averages(wild, &[1000, 5000]), [1000, 5000]);
}

/// Waits of 584 years and parameters of 32 bits: nothing overflows, and the order is right.
#[test]
fn the_edges_of_the_numbers() {
    let estimators = [
        Estimator::Ewma,
        Estimator::EwmaR { threshold: u32::MAX, cycle: Duration::MAX },
        Estimator::EwmaPe { steps: u8::MAX, width: ErrorWidth::Eighth },
    ];
    for ddps in [[1, u32::MAX], [u32::MAX, u32::MAX - 1], [1, 1]] {
        for estimator in estimators {
            for g in [0, 512, 1024] {
                let settings = ddps.map(|ddp| HpdClass { estimator, gamma: gamma(1024), ..class(ddp, g) });
                let mut server = server(classes(settings.to_vec()));
                for _ in 0..3 {
                    for number in 0..2 {
                        server.enqueue(Time::ZERO, FlowId::new(number), PACKET, u32::MAX);
                    }
                }
                // The least δ first; where averages alone count, of which there are none yet, the lowest number.
                let first = u32::from(ddps[1] < ddps[0] && g < 1024);
                for expected in [[first; 3], [1 - first; 3]].concat() {
                    assert_eq!(serve(&mut server, Time::NEVER), expected, "{ddps:?}, g {g}");
                }
                for state in states(&server, Time::NEVER) {
                    // As long as counts: 2⁴⁷ ns but for the last.
                    assert_eq!(state.average, Duration::from_nanos((1 << 47) - 1));
                }
            }
        }
    }
}

#[test]
fn a_33rd_class_is_refused_and_one_that_left_makes_room() {
    let mut server = Server::new(Hpd::new(HpdConfig::default()));
    for _ in 0..Hpd::CLASSES {
        server.join(FlowConfig::default()).expect("one of 32");
    }
    assert_eq!(server.join(FlowConfig::default()), Err(Refused::Flows { most: 32 }));
    for number in 0..32 {
        server.enqueue(at(number), FlowId::new(number as u32), PACKET, 100);
    }
    assert_eq!(serve(&mut server, at(100)), 0, "the oldest");
    assert!(server.leave(FlowId::new(0)));
    assert_eq!(states(&server, at(100)).len(), 31);
    let again = server.join(FlowConfig::default()).expect("one has left");
    server.enqueue(at(100), again, PACKET, 100);
    assert_eq!(states(&server, at(100)).len(), 32);
    let order: Vec<u32> = (0..32).map(|_| serve(&mut server, at(200))).collect();
    assert_eq!(order[..31], (1..32).collect::<Vec<u32>>()[..]);
}

#[test]
fn weights_are_not_its_own() {
    let mut server = server(classes(vec![class(1, 0)]));
    let refused = server.set_weight(at(0), FlowId::new(0), narrows_core::sched::Weight::ONE);
    assert_eq!(refused, Err(Refused::NoWeights));
}
