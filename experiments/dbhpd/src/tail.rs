//! Which fault of the published listing makes the long tail of the thesis's delays, or that none does.
//!
//! Traffic of the thesis's mixes that does not respond goes through the thesis's schedulers, narrows' HPD, and the published
//! arithmetic with no fault, with each fault alone, and with all of them. The load is set so that FIFO loses 5 % and 35 % of
//! the packets, as the thesis's runs did.

mod figure;
mod report;

use narrows_core::source::{Arrivals, Lengths, Pace, Period, SourceConfig};
use narrows_core::{Duration, Rate, Seed, Time};

use super::delays::Delays;
use super::open_loop::Offered;
use super::published::{Average, Clock, Faults, Word};
use super::setup::{CLASSES, Contender};

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailOptions {
    /// The seed of all draws.
    pub seed: Seed,
    /// How long each run lasts; its first sixtieth does not count.
    pub span: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TailStudy {
    /// What was run.
    pub seed: u64,
    /// For how long.
    pub span: Duration,
    /// Mix by mix, load by load.
    pub parts: Vec<Part>,
}

/// One mix at one load.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// 1 or 2. Mix 3 is mix 2 with some of VoIP over TCP, which is the same to traffic that does not respond.
    pub mix: u8,
    /// Which part of the packets FIFO was to lose.
    pub loss: f64,
    /// The load at which it does, in bits a second on the wire.
    pub offered: u64,
    /// In the order of [`SUBJECTS`].
    pub runs: Vec<Vec<Delays>>,
}

/// A scheduler, or an arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What it is called.
    pub name: &'static str,
    /// What serves the link.
    pub contender: Contender,
}

const NONE: Faults = Faults {
    average: Average::Sound,
    remainder: false,
    idle_of_whole: false,
    tentative: false,
    steps: super::published::Steps::Equations,
    bound_forgets: false,
    word: Word::Bits64,
};
const TIMES_1024: Faults = Faults { average: Average::Kept1024, ..Faults::PRINTED };

const fn published(name: &'static str, faults: Faults) -> Subject {
    Subject { name, contender: Contender::Published(faults, Clock::Microseconds) }
}

const fn by_jiffies(name: &'static str, faults: Faults) -> Subject {
    Subject { name, contender: Contender::Published(faults, Clock::Jiffies) }
}

const fn scheduler(contender: Contender) -> Subject {
    Subject { name: contender.name(), contender }
}

/// The one that the faults are held against.
pub const SOUND: usize = 4;

/// All that is compared. EWMA-pe's faults are not among them: no class of the thesis's traffic simulations uses it.
pub const SUBJECTS: [Subject; 19] = [
    scheduler(Contender::Fifo),
    scheduler(Contender::Priq),
    scheduler(Contender::Cbq),
    scheduler(Contender::Hpd),
    published("published, no fault", NONE),
    published("average never divided", Faults { average: Average::NeverDivided, ..NONE }),
    published("remainder for quotient", Faults { remainder: true, ..NONE }),
    published("idle when all are", Faults { idle_of_whole: true, ..NONE }),
    published("tentative average", Faults { tentative: true, ..NONE }),
    published("limit forgets its wait", Faults { bound_forgets: true, ..NONE }),
    published("32 bits", Faults { word: Word::Bits32, ..NONE }),
    published("as printed", Faults::PRINTED),
    published("as printed, 32 bits", Faults::PRINTED_32),
    published("×1024, else no fault", Faults { average: Average::Kept1024, ..NONE }),
    published("×1024, else as printed", TIMES_1024),
    published("×1024, printed, 32 bits", Faults { word: Word::Bits32, ..TIMES_1024 }),
    by_jiffies("no fault, jiffies", NONE),
    by_jiffies("as printed, jiffies", Faults::PRINTED),
    by_jiffies("as printed, 32 bits, jiffies", Faults::PRINTED_32),
];

/// The part of the packets that is to be lost.
const LOSSES: [f64; 2] = [0.05, 0.35];

/// Runs all of it.
pub fn study(options: &TailOptions) -> TailStudy {
    let parts = [1, 2].into_iter().flat_map(|mix| LOSSES.map(|loss| part(mix, loss, options))).collect();
    TailStudy { seed: options.seed.0, span: options.span, parts }
}

fn part(mix: u8, loss: f64, options: &TailOptions) -> Part {
    let settled = Time::ZERO + Duration::from_nanos(options.span.nanos() / 60);
    let offered = load_for(mix, loss, options, settled);
    let traffic = traffic(mix, offered, options.span);
    let run = |subject: &Subject| subject.contender.drive(&traffic, options.seed, settled);
    Part { mix, loss, offered, runs: SUBJECTS.iter().map(run).collect() }
}

/// The load at which FIFO loses so much, by halving.
fn load_for(mix: u8, loss: f64, options: &TailOptions, settled: Time) -> u64 {
    let (mut low, mut high) = (1_000_000, 40_000_000);
    for _ in 0..12 {
        let middle = (low + high) / 2;
        let delays = Contender::Fifo.drive(&traffic(mix, middle, options.span), options.seed, settled);
        if lost(&delays) < loss { low = middle } else { high = middle }
    }
    low
}

/// Which part of all packets was lost.
fn lost(delays: &[Delays]) -> f64 {
    let dropped: u64 = delays.iter().map(Delays::dropped).sum();
    let all: u64 = delays.iter().map(Delays::packets).sum::<u64>() + dropped;
    dropped as f64 / all.max(1) as f64
}

/// Shares of the bits, in hundredths, of the classes: table 5.1, TCP and UDP together.
const fn shares(mix: u8) -> [u64; CLASSES.len()] {
    if mix == 1 { [8, 70, 10, 12] } else { [4, 22, 5, 69] }
}

/// Bytes of a frame beside its IP packet: headers, checksum, preamble, gap.
const FRAME: u32 = 38;

/// Open-loop traffic in the shape of a mix: calls of a packet every 20 ms; pages in heavy-tailed bursts, with the
/// acknowledgements of the other way; files as long packets at random; and noise in small ones.
fn traffic(mix: u8, bits: u64, span: Duration) -> Vec<Offered> {
    let rate = |class: usize| bits * shares(mix)[class] / 100;
    let framed = |lengths: &[(u32, u64)]| {
        Lengths::Mix(lengths.iter().map(|&(length, weight)| (length + FRAME, weight)).collect())
    };
    let offered = |class: usize, number: u64, arrivals, lengths, start: u64| Offered {
        class,
        name: format!("{} {number}", CLASSES[class]),
        source: SourceConfig {
            arrivals,
            lengths,
            start: Time::from_nanos(start),
            stop: Time::ZERO + span,
            packets: None,
        },
    };
    let at_rate = |bits: u64| Pace::Bits(Rate::from_bits_per_second(bits.max(1)));
    let mut all = Vec::new();
    // 200 bytes of IP, 238 on the wire: 95.2 kbit/s.
    let calls = (rate(0) / 95_200).max(1);
    for call in 0..calls {
        let pace = Pace::Packets { count: 50, per: Duration::from_secs(1) };
        all.push(offered(0, call, Arrivals::Constant(pace), framed(&[(200, 1)]), call * 1_234_567));
    }
    const PAGES: u64 = 30;
    for page in 0..PAGES {
        let (burst, on) = (4_000_000, Duration::from_millis(30));
        let off = on.nanos() as f64 * (burst as f64 * PAGES as f64 / rate(1) as f64 - 1.0);
        let arrivals = Arrivals::OnOff {
            pace: at_rate(burst),
            on: Period::Pareto { mean: on, shape: 1.5 },
            off: Period::Exponential(Duration::from_nanos(off.max(1.0) as u64)),
        };
        all.push(offered(1, page, arrivals, framed(&[(1500, 6), (40, 4)]), page * 7_000_001));
    }
    all.push(offered(2, 0, Arrivals::Poisson(at_rate(rate(2))), framed(&[(1500, 9), (40, 2)]), 0));
    all.push(offered(3, 0, Arrivals::Poisson(at_rate(rate(3))), framed(&[(46, 6), (112, 3), (262, 1)]), 0));
    all
}

#[cfg(test)]
mod tests;
