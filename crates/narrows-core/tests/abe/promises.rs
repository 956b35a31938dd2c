//! Green waits no longer than it may; blue fares no worse than in a single queue.

use narrows_core::queue::Bound;
use narrows_core::sched::{Abe, AbeConfig, Fifo};
use narrows_core::{Bytes, DropReason, Duration, Probability, Seed, Stream, Time};

use crate::drive::{Arrival, Fate, Link, Room, after, run};

/// Draws for one run.
struct Draw {
    stream: Stream,
    number: u64,
}

impl Draw {
    fn new(run: u64) -> Self {
        Self { stream: Stream::new(Seed(run), "abe", "test"), number: 0 }
    }

    /// Below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.number += 1;
        self.stream.nth(self.number).below(end)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Bursts and gaps for a load of so many percent of the link.
fn arrivals(draw: &mut Draw, count: usize, load: u64, green_percent: u64, per_byte: u64) -> Vec<Arrival> {
    let mut at = Time::from_nanos(1);
    let mut burst = 0;
    (0..count)
        .map(|_| {
            let length = draw.of(&[40, 100, 576, 1500, 1500]) + draw.below(9) as u32;
            if burst == 0 {
                burst = 1 + draw.below(20);
                // 743 bytes are a packet's mean length.
                let mean = burst * 743 * per_byte * 100 / load;
                at = after(at, draw.below(2 * mean));
            }
            burst -= 1;
            Arrival { at, green: draw.below(100) < green_percent, length }
        })
        .collect()
}

struct Case {
    link: Link,
    bound: Bound,
    config: AbeConfig,
    arrivals: Vec<Arrival>,
    /// By how much rounding to whole nanoseconds may make a blue packet late.
    rounding: u64,
}

impl Case {
    fn draw(run: u64, count: usize) -> Self {
        let mut draw = Draw::new(run);
        let (link, rounding) =
            if run.is_multiple_of(3) { (vec![8, 2, 40, 5], 2 * count as u64) } else { (vec![8], 0) };
        let bound = match draw.below(3) {
            0 => Bound::Packets(1 + draw.below(200)),
            1 => Bound::Bytes(Bytes::new(2_000 + draw.below(100_000))),
            _ => Bound::Packets(u64::MAX),
        };
        let max_delay = Duration::from_nanos(draw.of(&[0, 5_000, 100_000, 1_000_000, 10_000_000]));
        let bias = Probability::from_ratio(draw.of(&[0, 1, 2, 3, 4]), 4).expect("at most 1");
        let (load, green) = (draw.of(&[60, 95, 120, 250]), draw.of(&[0, 5, 50, 90, 100]));
        let arrivals = arrivals(&mut draw, count, load, green, 8);
        Self { link: Link(link), bound, config: AbeConfig { max_delay, bias }, arrivals, rounding }
    }
}

/// How many of each there were, so that a test is seen to have tried something.
#[derive(Default, Debug)]
struct Seen {
    late: u64,
    full: u64,
    greens: u64,
    green_sooner: u64,
    blue_sooner: u64,
}

fn check(case: &Case, seen: &mut Seen) {
    let Case { link, bound, config, arrivals, rounding } = case;
    let abe = run(Abe::new(*config), Room::OfScheduler(*bound), link, arrivals);
    let fifo = run(Fifo::default(), Room::OfDriver(*bound), link, arrivals);
    let mut last = [Time::ZERO; 2];
    let (mut sent, mut of_fifo) = ([0; 2], [0; 2]);
    for ((arrival, abe), fifo) in arrivals.iter().zip(&abe).zip(&fifo) {
        let colour = usize::from(arrival.green);
        if let Fate::Sent { begins, .. } = *abe {
            assert!(begins >= last[colour], "in order within a colour");
            last[colour] = begins;
            sent[colour] += 1;
        }
        of_fifo[colour] += u64::from(matches!(fifo, Fate::Sent { .. }));
        match (*abe, *fifo) {
            (Fate::Sent { begins, .. }, _) if arrival.green => {
                seen.greens += 1;
                assert!(begins.since(arrival.at) <= config.max_delay, "green waits no longer: {arrival:?}");
                if let Fate::Sent { begins: flat, .. } = *fifo {
                    seen.green_sooner += u64::from(begins < flat);
                }
            }
            (Fate::Dropped { reason, at }, _) if arrival.green => match reason {
                DropReason::QueueFull => {
                    seen.full += 1;
                    assert_eq!(at, arrival.at);
                }
                reason => {
                    seen.late += 1;
                    assert_eq!(reason, DropReason::TooLate);
                    assert!(at.since(arrival.at) > config.max_delay, "not before it is late");
                }
            },
            (Fate::Sent { ends, .. }, Fate::Sent { ends: flat, .. }) => {
                assert!(
                    ends <= after(flat, *rounding),
                    "{arrival:?}: blue at {ends:?}, single queue {flat:?}"
                );
                seen.blue_sooner += u64::from(ends < flat);
            }
            // Where a rate is rounded one of the two queues may have room a nanosecond before the other.
            (abe, fifo) if *rounding == 0 => assert_eq!(abe, fifo, "blue is dropped where it was before"),
            _ => {}
        }
    }
    if *rounding == 0 {
        assert_eq!(sent[0], of_fifo[0], "as many blue packets");
        assert!(sent[1] <= of_fifo[1], "no more green packets");
    }
}

#[test]
fn green_is_in_time_and_blue_is_not_hurt() {
    let mut seen = Seen::default();
    for number in 0..500 {
        check(&Case::draw(number, 4_000), &mut seen);
    }
    let Seen { late, full, greens, green_sooner, blue_sooner } = seen;
    assert!([late, full, greens, green_sooner, blue_sooner].iter().all(|&count| count > 20_000), "{seen:?}");
}

/// Green goes first at the share that `bias` says, where both could wait: here always, as green may wait long and half of
/// the virtual queue is of green packets that are gone.
#[test]
fn open_decisions_are_shared_as_configured() {
    for (quarters, expected) in [(0, 0), (1, 25), (2, 50), (3, 75), (4, 100)] {
        let config = AbeConfig {
            max_delay: Duration::from_millis(1_000),
            bias: Probability::from_ratio(quarters, 4).expect("at most 1"),
        };
        // Green first: each blue packet has the slack of all of them.
        let arrival = |green| Arrival { at: Time::from_nanos(1), green, length: 1000 };
        let arrivals: Vec<Arrival> =
            [vec![arrival(true); 201], vec![arrival(false); 200]].into_iter().flatten().collect();
        let fates =
            run(Abe::new(config), Room::OfScheduler(Bound::Packets(u64::MAX)), &Link(vec![8]), &arrivals);
        // The first goes at once, as there is no other. Of the next hundred decisions each is open.
        let end = Time::from_nanos(1 + 101 * 8_000);
        let began = |fate: &&Fate| matches!(fate, Fate::Sent { begins, .. } if *begins < end);
        let greens = fates[1..201].iter().filter(began).count();
        assert_eq!(greens, expected, "{quarters} quarters");
    }
}

#[test]
fn by_hand() {
    let at = |micros: u64| Time::from_nanos(micros * 1000);
    let packet = |micros, green, length| Arrival { at: at(micros), green, length };
    // 1000 bytes are 8 µs. Blue 0 is on the wire till 8; green 1 can wait for 10 µs, green 2 and blue 3 come behind it.
    let arrivals = [
        packet(0, false, 1000),
        packet(0, true, 1000),
        packet(0, true, 1000),
        packet(0, false, 1000),
        packet(1, true, 500),
    ];
    let config = AbeConfig { max_delay: Duration::from_micros(10), bias: Probability::ONE };
    let fates = run(Abe::new(config), Room::OfScheduler(Bound::Packets(9)), &Link(vec![8]), &arrivals);
    let sent = |begins, ends| Fate::Sent { begins: at(begins), ends: at(ends) };
    let late = Fate::Dropped { at: at(16), reason: DropReason::TooLate };
    // A single queue sends blue 3 from 24 to 32. At 16 green 2 and 4 are late, so it goes then.
    assert_eq!(fates, [sent(0, 8), sent(8, 16), late, sent(16, 24), late]);
}
