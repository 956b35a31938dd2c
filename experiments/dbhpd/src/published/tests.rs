use narrows_core::sched::{
    BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, Hpd, HpdClass, HpdConfig, Per1024, Served,
    Server, Waits,
};
use narrows_core::{PacketRef, Seed, Stream};

use super::*;

const MICROSECOND: u64 = 1000;

fn class(ddp: u32, gamma: u32, g: u32) -> PublishedClass {
    PublishedClass { ddp, gamma, g, limit: Duration::ZERO, estimator: PublishedEstimator::Ewma }
}

fn server(classes: &[PublishedClass], faults: Faults) -> Server<Published> {
    let mut server = Server::new(Published::new(classes.to_vec(), faults, Clock::Microseconds));
    for _ in classes {
        server.join(FlowConfig::default()).unwrap();
    }
    server
}

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * MICROSECOND)
}

/// Serves one packet of class 0 after each of these waits, and says what average is kept.
fn kept_after(server: &mut Server<Published>, waits: &[u64]) -> u64 {
    for (number, &wait) in waits.iter().enumerate() {
        let begin = 1_000_000 * (number as u64 + 1);
        server.enqueue(at(begin), FlowId::new(0), PacketRef::from_number(number as u32), 100);
        assert!(matches!(server.dequeue(at(begin + wait)), Served::Packet(..)));
    }
    server.scheduler().kept().next().unwrap()
}

#[test]
fn an_average_that_is_never_divided_grows_and_wraps() {
    let mut server = server(&[class(1, 512, 512)], Faults::PRINTED);
    assert_eq!(kept_after(&mut server, &[100]), 51_200);
    assert_eq!(kept_after(&mut server, &[100]), 512 * 100 + 512 * 51_200);
    // 512⁸ is 2⁷²: of what was eight departures ago nothing is left.
    let one = kept_after(&mut server, &[3, 1, 4, 1, 5, 9, 2, 6]);
    let mut other =
        Server::new(Published::new(vec![class(1, 512, 512)], Faults::PRINTED, Clock::Microseconds));
    other.join(FlowConfig::default()).unwrap();
    assert_eq!(kept_after(&mut other, &[77_777, 3, 1, 4, 1, 5, 9, 2, 6]), one);
    assert_eq!(one % 512, 0);
}

#[test]
fn the_sound_average_is_that_of_the_equation() {
    let mut server = server(&[class(1, 256, 512)], Faults::default());
    let waits = [100, 900, 40, 40, 7000, 0];
    let kept = kept_after(&mut server, &waits) as f64 / f64::from(1 << 20);
    let expected = waits.iter().fold(0.0, |average, &wait| 0.25 * wait as f64 + 0.75 * average);
    assert!((kept - expected).abs() < 1e-4, "{kept}, and {expected} by the equation");
    // Kept times 1024 it differs by roundings only: a part of each departure's, less than 1 a time.
    let faults = Faults { average: Average::Kept1024, ..Faults::default() };
    let mut times_1024 = Server::new(Published::new(vec![class(1, 256, 512)], faults, Clock::Microseconds));
    times_1024.join(FlowConfig::default()).unwrap();
    let kept = kept_after(&mut times_1024, &waits) as f64 / 1024.0;
    assert!(kept <= expected && kept > expected - 6.0 / 1024.0, "{kept}, and {expected} by the equation");
}

/// Five delays of 10, 11, 12, 13, 14 µs: the sound mean is that; the remainder is next to nothing, and the sum has gone.
#[test]
fn the_remainder_is_taken_for_the_quotient() {
    let restart = PublishedEstimator::Restart { threshold: 25, cycle: Duration::from_secs(5) };
    let of = |faults| {
        let class = PublishedClass { estimator: restart, ..class(1, 512, 512) };
        kept_after(&mut server(&[class], faults), &[10, 11, 12, 13, 14])
    };
    assert_eq!(of(Faults::default()), 12 << 20);
    let faults = Faults { average: Average::NeverDivided, remainder: true, ..Faults::default() };
    // Sums 10, 10+11, 10+12, 7+13, 5+14 by 1 to 5: quotients 10, 10, 7, 5, 3, remainders 0, 1, 1, 0, 4.
    assert_eq!(of(faults), 4);
}

/// A class gets empty while another has packets, and is idle for long: by the listing it has never been.
#[test]
fn a_class_is_idle_only_when_all_are() {
    let restart = PublishedEstimator::Restart { threshold: 2, cycle: Duration::from_millis(2) };
    let classes = [PublishedClass { estimator: restart, ..class(1, 512, 512) }, class(1, 512, 512)];
    let average = |idle_of_whole| {
        let mut server = server(&classes, Faults { idle_of_whole, ..Faults::default() });
        let mut number = 0..;
        let mut put = |server: &mut Server<Published>, micros, class| {
            let packet = PacketRef::from_number(number.next().unwrap());
            server.enqueue(at(micros), FlowId::new(class), packet, 100);
        };
        // Empty at 50 ms with the whole: from then on it counts as idle in both readings.
        put(&mut server, 49_000, 0);
        server.dequeue(at(50_000));
        // Class 0 gets empty at 51 ms, by its longest wait, while class 1 waits on. It comes again at 51.5 ms, which is
        // within the cycle by the equations, though not since the whole was empty.
        put(&mut server, 50_100, 0);
        put(&mut server, 50_900, 1);
        assert!(matches!(server.dequeue(at(51_000)), Served::Packet(flow, _) if flow.number() == 0));
        put(&mut server, 52_500, 0);
        server.scheduler().kept().next().unwrap() >> 20
    };
    assert_eq!(average(false), 950, "the mean of 1000 and 900 is kept within the cycle");
    assert_eq!(average(true), 0, "2.5 ms since the whole was empty: it began anew");
}

#[test]
fn a_departure_for_the_limit_is_forgotten() {
    let restart = PublishedEstimator::Restart { threshold: 25, cycle: Duration::from_secs(5) };
    let limit = Duration::from_millis(2);
    let bounded = PublishedClass { estimator: restart, limit, ..class(1, 512, 512) };
    let of = |bound_forgets| {
        let faults = Faults { bound_forgets, ..Faults::default() };
        kept_after(&mut server(&[bounded], faults), &[1000, 3000]) >> 20
    };
    assert_eq!(of(false), 2000);
    assert_eq!(of(true), 500, "the sum is still 1000, over two departures");
}

/// Two classes, the second of which has waited longer, beside an average a thousand times a millisecond. On 32 bits the
/// greater value has no upper half.
#[test]
fn a_division_of_32_bits_turns_the_order_round() {
    let first = |word| {
        let faults = Faults { average: Average::Kept1024, word, ..Faults::default() };
        let mut server = server(&[class(1, 1024, 1024), class(1, 1024, 1024)], faults);
        let mut number = 0..;
        let mut put = |server: &mut Server<Published>, micros, class| {
            let packet = PacketRef::from_number(number.next().unwrap());
            server.enqueue(at(micros), FlowId::new(class), packet, 100);
        };
        // Averages of 4 and 5 ms, times 1024 twice: 4194304000 and 5242880000, which is beyond 2³² by 947912704.
        put(&mut server, 1000, 1);
        server.dequeue(at(6000));
        put(&mut server, 6000, 0);
        server.dequeue(at(10_000));
        put(&mut server, 20_000, 0);
        put(&mut server, 20_000, 1);
        match server.dequeue(at(21_000)) {
            Served::Packet(flow, _) => flow.number(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(first(Word::Bits64), 1);
    assert_eq!(first(Word::Bits32), 0);
}

/// Whatever the faults, what comes goes, in order within its class; and asking more than once changes nothing.
#[test]
fn nothing_is_lost_and_asking_does_not_matter() {
    let restart = PublishedEstimator::Restart { threshold: 25, cycle: Duration::from_millis(2) };
    let error = PublishedEstimator::ProportionalError { steps: 8 };
    let limit = Duration::from_millis(2);
    let classes = [
        PublishedClass { estimator: restart, limit, ..class(1, 896, 128) },
        PublishedClass { estimator: error, ..class(2, 768, 256) },
        class(4, 256, 768),
    ];
    let times_1024 = Faults { average: Average::Kept1024, steps: Steps::Text, ..Faults::PRINTED_32 };
    for faults in [Faults::default(), Faults::PRINTED, Faults::PRINTED_32, times_1024] {
        let (mut once, mut flows) = (server(&classes, faults), Flows::default());
        let mut asked = Published::new(classes.to_vec(), faults, Clock::Microseconds);
        for _ in &classes {
            asked.join(FlowConfig::default()).unwrap();
            flows.add(());
        }
        let draws = Stream::new(Seed(7), "published", "order");
        let (mut now, mut came, mut gone) = (0, [0_u32; 3], [0_u32; 3]);
        for step in 0..20_000 {
            let mut draw = draws.nth(step);
            now += draw.below(400);
            if draw.below(2) == 0 {
                let class = draw.below(3) as usize;
                let flow = FlowId::new(class as u32);
                let waits = Waits { packet: PacketRef::from_number(came[class]), length: 100 };
                once.enqueue(at(now), flow, waits.packet, waits.length);
                flows.push(flow, waits);
                asked.enqueue(at(now), flow, &mut flows);
                came[class] += 1;
                continue;
            }
            let answers = [0; 3].map(|_| asked.select(at(now), &mut flows));
            assert_eq!(answers, [answers[0]; 3]);
            let Served::Packet(flow, waits) = once.dequeue(at(now)) else {
                assert_eq!(answers[0], Selection::Empty);
                continue;
            };
            assert_eq!(answers[0], Selection::Flow(flow));
            assert_eq!(flows.pop(flow), Some(waits));
            asked.sent(at(now), flow, waits.length, &mut flows);
            let class = flow.number() as usize;
            assert_eq!(waits.packet.number(), gone[class]);
            gone[class] += 1;
        }
        while let Served::Packet(flow, _) = once.dequeue(at(now)) {
            gone[flow.number() as usize] += 1;
        }
        assert_eq!(came, gone);
        assert!(came.iter().all(|&count| count > 2000));
    }
}

/// The product's class of the same parameters.
fn product(class: &PublishedClass) -> HpdClass {
    let part = |value: u32| Per1024::new(value as u16).unwrap();
    HpdClass {
        ddp: class.ddp.try_into().unwrap(),
        gamma: Gamma::Fixed(part(class.gamma)),
        g: part(class.g),
        limit: (class.limit > Duration::ZERO).then_some(class.limit),
        estimator: match class.estimator {
            PublishedEstimator::Ewma => Estimator::Ewma,
            PublishedEstimator::Restart { threshold, cycle } => Estimator::EwmaR { threshold, cycle },
            PublishedEstimator::ProportionalError { steps } => {
                Estimator::EwmaPe { steps: steps as u8, width: ErrorWidth::Eighth }
            }
        },
    }
}

/// Without faults it is the product's scheduler: the same order of service, whatever comes.
#[test]
fn without_faults_it_is_the_product() {
    let restart = PublishedEstimator::Restart { threshold: 25, cycle: Duration::from_millis(2) };
    let error = PublishedEstimator::ProportionalError { steps: 8 };
    let limit = Duration::from_millis(2);
    let classes = [
        PublishedClass { estimator: restart, limit, ..class(1, 896, 128) },
        PublishedClass { estimator: error, ..class(2, 100, 256) },
        class(4, 256, 768),
        PublishedClass { estimator: restart, limit: Duration::from_millis(9), ..class(16, 128, 896) },
    ];
    let config = HpdConfig {
        classes: classes.iter().map(product).collect(),
        bound_order: BoundOrder::Reference,
        bound_reading: BoundReading::HasViolated,
    };
    let mut product = Server::new(Hpd::new(config));
    let sound = Published::new(classes.to_vec(), Faults::default(), Clock::Nanoseconds);
    let mut sound = Server::new(sound);
    let faulty =
        Published::new(classes.to_vec(), Faults { tentative: true, ..Faults::default() }, Clock::Nanoseconds);
    let mut faulty = Server::new(faulty);
    for _ in &classes {
        product.join(FlowConfig::default()).unwrap();
        sound.join(FlowConfig::default()).unwrap();
        faulty.join(FlowConfig::default()).unwrap();
    }
    let draws = Stream::new(Seed(3), "published", "product");
    let (mut now, mut differs, mut served) = (Time::ZERO, 0, 0);
    for step in 0..60_000 {
        let mut draw = draws.nth(step);
        now = now + Duration::from_nanos(draw.below(400_000));
        // Busy for a while, then idle for a while.
        let busy = if step / 500 % 4 == 3 { 3 } else { 5 };
        if draw.below(9) < busy {
            let (flow, packet) = (FlowId::new(draw.below(4) as u32), PacketRef::from_number(step as u32));
            product.enqueue(now, flow, packet, 100);
            sound.enqueue(now, flow, packet, 100);
            faulty.enqueue(now, flow, packet, 100);
        } else {
            let expected = product.dequeue(now);
            assert_eq!(sound.dequeue(now), expected, "at step {step}");
            differs += u32::from(faulty.dequeue(now) != expected);
            served += u32::from(matches!(expected, Served::Packet(..)));
        }
    }
    assert!(served > 20_000 && differs > 1000, "{served} served, {differs} otherwise with a fault");
}
