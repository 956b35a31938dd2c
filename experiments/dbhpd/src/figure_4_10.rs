//! What the thesis's figure 4.10 shows, and which arithmetic can have shown it.
//!
//! The figure prints statistics of three classes with parameters that the text has elsewhere (table 6.1): γ of 512, 256 and
//! 768, averages of 234435, 680045 and 1303871, waits of 120, 13 and 68, no packet dropped, queues of 50 packets.
//!
//! By the listing an average is `γ·w + (1024 − γ)·d̄` with whole numbers, modulo 2⁶⁴ or, cut where it is printed, modulo 2³²
//! at the least. Whatever the waits, it is a multiple of the greatest common divisor of γ and 1024, which is 512, 256 and 256
//! here; with EWMA-pe of n·γ and 1024, which is no less. All three averages are odd. So that is not what ran.

use std::fmt::{self, Write};

use narrows_core::source::{Arrivals, Lengths, Pace, SourceConfig};
use narrows_core::{Duration, Rate, Seed, Time};

use super::open_loop::{Link, Offered, drive};
use super::published::{Average, Clock, Faults, Published, PublishedClass, PublishedEstimator};

/// One class of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedClass {
    /// Its delay differentiation parameter.
    pub ddp: u32,
    /// γ, in 1024ths.
    pub gamma: u32,
    /// The weight g, in 1024ths.
    pub g: u32,
    /// The head's wait.
    pub wait: u64,
    /// The average.
    pub average: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
}

/// The figure.
pub const FIGURE: [PrintedClass; 3] = [
    PrintedClass {
        ddp: 1,
        gamma: 512,
        g: 512,
        wait: 120,
        average: 234_435,
        packets: 3_636_691,
        bytes: 787_720_036,
    },
    PrintedClass {
        ddp: 4,
        gamma: 256,
        g: 768,
        wait: 13,
        average: 680_045,
        packets: 519_528,
        bytes: 112_533_088,
    },
    PrintedClass {
        ddp: 16,
        gamma: 768,
        g: 256,
        wait: 68,
        average: 1_303_871,
        packets: 519_521,
        bytes: 112_525_482,
    },
];

/// How many packets may wait in each of its classes.
pub const QUEUE: u32 = 50;

/// What every average that the listing keeps is a multiple of.
pub const fn divisor(gamma: u32) -> u32 {
    let zeros = gamma.trailing_zeros();
    if zeros >= 10 { 1024 } else { 1 << zeros }
}

/// What one arithmetic keeps under such traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What it is called.
    pub name: &'static str,
    /// The load, as a part of the link.
    pub load: f64,
    /// Of each class, what a twentieth of the averages were below, half of them, and all but a twentieth.
    pub classes: Vec<[u64; 3]>,
    /// Whether all averages were multiples of [`divisor`].
    pub divisible: bool,
    /// At which part of the departures every class's average was within a factor of two of the figure's.
    pub near: f64,
}

/// The arithmetics that are asked.
pub const ARITHMETICS: [(&str, Faults); 4] = [
    ("as printed", Faults::PRINTED),
    ("as printed, 32 bits", Faults::PRINTED_32),
    ("average kept times 1024, all else as printed", TIMES_1024),
    ("average kept times 1024, no other fault", Faults { average: Average::Kept1024, ..SOUND }),
];

const SOUND: Faults = Faults {
    average: Average::Sound,
    remainder: false,
    idle_of_whole: false,
    tentative: false,
    steps: super::published::Steps::Equations,
    bound_forgets: false,
    word: super::published::Word::Bits64,
};

const TIMES_1024: Faults = Faults { average: Average::Kept1024, ..Faults::PRINTED };

/// Runs the figure's classes under Poisson traffic in its proportions of packets, in the lengths of the thesis's throughput
/// tests, on a link of 10 Mbit/s.
pub fn simulate(faults: (&'static str, Faults), load: f64, seed: Seed, span: Duration) -> Kept {
    let class = |printed: &PrintedClass| PublishedClass {
        ddp: printed.ddp,
        gamma: printed.gamma,
        g: printed.g,
        limit: Duration::ZERO,
        estimator: PublishedEstimator::Ewma,
    };
    let classes: Vec<PublishedClass> = FIGURE.iter().map(class).collect();
    let rate = 10_000_000_u32;
    let packets: u64 = FIGURE.iter().map(|class| class.packets).sum();
    let offered = |(number, printed): (usize, &PrintedClass)| {
        let bits = f64::from(rate) * load * printed.packets as f64 / packets as f64;
        Offered {
            class: number,
            name: format!("class {}", number + 1),
            source: SourceConfig {
                arrivals: Arrivals::Poisson(Pace::Bits(Rate::from_bits_per_second(bits as u64))),
                // 217 bytes in the mean, as the figure's bytes over its packets.
                lengths: Lengths::Mix(vec![(80, 9), (160, 9), (240, 9), (320, 15)]),
                start: Time::ZERO,
                stop: Time::ZERO + span,
                packets: None,
            },
        }
    };
    let offered: Vec<Offered> = FIGURE.iter().enumerate().map(offered).collect();
    let link = Link::plain(Rate::from_bits_per_second(rate.into()), FIGURE.len(), QUEUE);
    let (mut kept, mut near, mut all) = (vec![Vec::new(); FIGURE.len()], 0_u64, 0_u64);
    let scheduler = Published::new(classes, faults.1, Clock::Microseconds);
    drive(scheduler, &offered, &link, (seed, Time::ZERO), |scheduler, class| {
        let averages: Vec<u64> = scheduler.kept().collect();
        kept[class].push(averages[class]);
        let close = |(average, printed): (&u64, &PrintedClass)| {
            *average <= 2 * printed.average && 2 * *average >= printed.average
        };
        near += u64::from(averages.iter().zip(&FIGURE).all(close));
        all += 1;
    });
    let divisible = |(kept, printed): (&Vec<u64>, &PrintedClass)| {
        kept.iter().all(|average| average.is_multiple_of(divisor(printed.gamma).into()))
    };
    Kept {
        name: faults.0,
        load,
        divisible: kept.iter().zip(&FIGURE).all(divisible),
        near: near as f64 / all.max(1) as f64,
        classes: kept.into_iter().map(quantiles).collect(),
    }
}

/// The figure beside what each arithmetic keeps, as Markdown.
pub fn report(seed: Seed, span: Duration) -> String {
    let mut text = String::from("# Figure 4.10, and what each arithmetic keeps\n\n");
    let mut line = |arguments: fmt::Arguments<'_>| {
        text.write_fmt(arguments).expect("a string takes everything");
        text.push('\n');
    };
    line(format_args!("| class | δ | γ | g | average printed | by the listing a multiple of | remainder |"));
    line(format_args!("|---|---:|---:|---:|---:|---:|---:|"));
    for (number, class) in FIGURE.iter().enumerate() {
        let (ddp, gamma, g) = (class.ddp, class.gamma, class.g);
        let (average, divisor) = (class.average, divisor(class.gamma));
        let rest = average % u64::from(divisor);
        line(format_args!("| {} | {ddp} | {gamma} | {g} | {average} | {divisor} | {rest} |", number + 1));
    }
    line(format_args!(
        "\nPoisson traffic in the figure's proportions on 10 Mbit/s, {} s, seed {}: what is kept (5 %, 50 %, 95 % of the \
         departures), and how often all three averages are within a factor of two of the figure's.\n",
        span.seconds(),
        seed.0
    ));
    line(format_args!(
        "| arithmetic | load | class 1 | class 2 | class 3 | multiples only | near the figure |"
    ));
    line(format_args!("|---|---:|---|---|---|---|---:|"));
    for arithmetic in ARITHMETICS {
        for load in [0.7, 0.8, 0.9] {
            let kept = simulate(arithmetic, load, seed, span);
            let [one, two, three] = [0, 1, 2].map(|class| kept.classes[class].map(short).join(", "));
            let multiples = if kept.divisible { "yes" } else { "no" };
            let near = kept.near * 100.0;
            line(format_args!(
                "| {} | {:.0} % | {one} | {two} | {three} | {multiples} | {near:.1} % |",
                kept.name,
                load * 100.0
            ));
        }
    }
    text
}

/// A number as it is, or as a power of ten where it is long.
fn short(value: u64) -> String {
    if value < 100_000_000 { value.to_string() } else { format!("{:.1e}", value as f64) }
}

fn quantiles(mut values: Vec<u64>) -> [u64; 3] {
    values.sort_unstable();
    [0.05, 0.5, 0.95].map(|part| {
        let place = (values.len().max(1) - 1) as f64 * part;
        values.get(place as usize).copied().unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_average_of_the_figure_is_one_of_the_listing() {
        assert_eq!(FIGURE.map(|class| divisor(class.gamma)), [512, 256, 256]);
        for class in FIGURE {
            assert_eq!(class.average % 2, 1);
        }
        assert_eq!([1, 1024, 768 * 4, 896].map(divisor), [1, 1024, 1024, 128]);
    }

    /// By the listing every average is a multiple; times 1024 it is not, and is of the figure's size.
    #[test]
    fn only_an_average_times_1024_comes_near_the_figure() {
        let of = |number: usize| simulate(ARITHMETICS[number], 0.8, Seed(1), Duration::from_secs(5));
        for number in [0, 1] {
            let listing = of(number);
            assert!(listing.divisible && listing.near == 0.0, "{listing:?}");
        }
        for number in [2, 3] {
            let times_1024 = of(number);
            assert!(!times_1024.divisible && times_1024.near > 0.01, "{times_1024:?}");
        }
    }
}
