//! The thesis's traffic simulations (chapter 7), with TCP hosts in virtual time.

mod figure;
mod report;

pub(crate) use report::milliseconds;
pub use report::{Row, ThesisTable, text};

use std::cell::RefCell;
use std::rc::Rc;

use narrows_core::Duration;
use narrows_core::classify::Classifier;
use narrows_core::queue::{Bound, DropAt, Queue};
use narrows_core::sched::{Class, FlowConfig, Overload, Scheduled, Store};
use narrows_report::{PacketRow, Report};
use narrows_scenario::{Scenario, ScenarioError};
use narrows_sim::{SimError, SimOptions, observe_with};

use super::delays::Delays;
use super::parallel::each;
use super::published::{Average, Clock, Faults, Published, PublishedEstimator};
use super::scenarios::{self, Medium, SOURCES};
use super::setup::{CLASSES, Contender, QUEUE, published};

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixOptions {
    /// The seed of all draws.
    pub seed: u64,
    /// How long each run lasts.
    pub span: Duration,
    /// Only the thesis's loads, only half duplex, and not the published arithmetic.
    pub quick: bool,
}

/// How much is offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// So many bits a second on the wire, both ways together.
    Bits(f64),
    /// As much as makes FIFO lose this part of the packets.
    Loss(f64),
}

/// One of the thesis's simulations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// What it is called.
    pub name: &'static str,
    /// 1 to 3.
    pub mix: usize,
    /// How much is offered.
    pub load: Load,
    /// How the directions share the link.
    pub medium: Medium,
}

/// What came of a setting.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Section {
    /// What ran.
    pub setting: Setting,
    /// The load, in bits a second on the wire.
    pub bits: f64,
    /// FIFO, PRIQ, CBQ, HPD, and on half duplex the published arithmetic.
    pub runs: Vec<MixRun>,
}

/// What came of one scheduler.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MixRun {
    /// What it is called.
    pub name: &'static str,
    /// The scenario, but for the published arithmetic, which has HPD's.
    pub scenario: String,
    /// By class: one-way delays of both directions.
    pub classes: Vec<Delays>,
    /// The part of the packets that was lost: from the client, from the server.
    pub lost: [Option<f64>; 2],
    /// By class: the part of the transactions that were answered, of those that ended.
    pub succeeded: Vec<Option<f64>>,
    /// VoIP's calls that ended: all of VoIP's figures are of so many.
    pub calls: u64,
    /// The loss of each tenth of the run, where packets came.
    pub tenths: Vec<f64>,
    /// Bits a second that the hosts sent, on the wire, retransmissions included.
    pub sent: f64,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MixError {
    /// A scenario is none.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// The simulations: those with the thesis's loads first.
pub fn settings(quick: bool) -> Vec<Setting> {
    let mixes = [
        ("low noise", 1, Load::Bits(7e6)),
        ("high noise", 2, Load::Bits(4e6)),
        ("high noise, VoIP mostly over TCP", 3, Load::Bits(4e6)),
        ("overload with high noise", 2, Load::Bits(7e6)),
        ("low noise, load set to 5 % loss", 1, Load::Loss(0.05)),
        ("high noise, load set to 5 % loss", 2, Load::Loss(0.05)),
        ("high noise, VoIP mostly over TCP, load set to 5 % loss", 3, Load::Loss(0.05)),
        ("overload with high noise, load set to 35 % loss", 2, Load::Loss(0.35)),
    ];
    let (count, media) = if quick { (4, &Medium::ALL[..1]) } else { (mixes.len(), &Medium::ALL[..]) };
    let of = |medium: &Medium| {
        let medium = *medium;
        mixes[..count].iter().map(move |&(name, mix, load)| Setting { name, mix, load, medium })
    };
    media.iter().flat_map(of).collect()
}

/// The arithmetics that run beside the four schedulers.
const ARITHMETICS: [(&str, Faults, Clock); 4] = [
    ("as printed", Faults::PRINTED, Clock::Microseconds),
    ("as printed, 32 bits", Faults::PRINTED_32, Clock::Microseconds),
    ("×1024, else no fault", TIMES_1024, Clock::Microseconds),
    ("as printed, 32 bits, jiffies", Faults::PRINTED_32, Clock::Jiffies),
];
const TIMES_1024: Faults = Faults {
    average: Average::Kept1024,
    remainder: false,
    idle_of_whole: false,
    tentative: false,
    steps: super::published::Steps::Equations,
    bound_forgets: false,
    word: super::published::Word::Bits64,
};

/// Runs all of them.
///
/// # Errors
/// When a run fails.
pub fn run(options: &MixOptions) -> Result<Vec<Section>, MixError> {
    let settings = settings(options.quick);
    let bits = each(&settings, |setting| match setting.load {
        Load::Bits(bits) => Ok(bits),
        Load::Loss(loss) => load_for(setting, loss, options),
    });
    let mut sections = Vec::new();
    for (setting, bits) in settings.into_iter().zip(bits) {
        sections.push(Section { setting, bits: bits?, runs: Vec::new() });
    }
    let mut jobs = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let arithmetics = !options.quick && section.setting.medium == Medium::Half;
        let published = ARITHMETICS
            .iter()
            .filter(|_| arithmetics)
            .map(|&(name, faults, clock)| (number, name, Contender::Published(faults, clock)));
        jobs.extend(Contender::FOUR.map(|contender| (number, contender.name(), contender)));
        jobs.extend(published);
    }
    let runs = each(&jobs, |&(number, name, contender)| {
        let section = &sections[number];
        one(&section.setting, section.bits, (name, contender), options.seed, options.span)
    });
    for (&(number, ..), run) in jobs.iter().zip(runs) {
        sections[number].runs.push(run?);
    }
    Ok(sections)
}

/// The greatest load that is tried, in bits a second.
const MOST: f64 = 80e6;

/// The load at which FIFO loses so much, by halving; nearly the greatest that is tried where that loses less.
fn load_for(setting: &Setting, loss: f64, options: &MixOptions) -> Result<f64, MixError> {
    let (mut low, mut high) = (2e6, MOST);
    for _ in 0..9 {
        // In equal ratios, as the range is wide.
        let middle = libm::sqrt(low * high);
        let run = one(setting, middle, ("FIFO", Contender::Fifo), options.seed, options.span)?;
        if run.loss() < loss { low = middle } else { high = middle }
    }
    Ok(low)
}

fn one(
    setting: &Setting,
    bits: f64,
    (name, contender): (&'static str, Contender),
    seed: u64,
    span: Duration,
) -> Result<MixRun, MixError> {
    let text = scenarios::mix(setting.mix, bits, setting.medium, contender, seed, span);
    let scenario = Scenario::parse(&text, "mix.toml")?;
    let seen =
        Rc::new(RefCell::new(Seen { tenth: Duration::from_nanos(span.nanos() / 10), ..Seen::default() }));
    let theirs = Rc::clone(&seen);
    let observer = move |packet: &PacketRow<'_>| theirs.borrow_mut().take(packet);
    let mut queue = |link: &str| match contender {
        Contender::Published(faults, clock) if link.starts_with("bottleneck") => {
            Some(Box::new(with_published(faults, clock)) as Box<dyn Queue>)
        }
        _ => None,
    };
    let result = observe_with(&scenario, &SimOptions::default(), &mut queue, Box::new(observer))?;
    let Seen { delays, dropped, ways, bytes, tenths, .. } = seen.take();
    let classes: Vec<Delays> =
        delays.into_iter().zip(dropped).map(|(delays, dropped)| Delays::new(delays, dropped)).collect();
    let part = |[lost, all]: [u64; 2]| (all > 0).then(|| lost as f64 / all as f64);
    Ok(MixRun {
        name,
        scenario: text,
        classes,
        lost: ways.map(part),
        succeeded: SOURCES.iter().map(|sources| succeeded(&result.report, sources)).collect(),
        calls: ended(&result.report, SOURCES[0]).iter().sum(),
        tenths: tenths.into_iter().filter_map(part).collect(),
        sent: bytes as f64 * 8.0 / span.seconds(),
    })
}

/// HPD's queue with the published arithmetic in it.
fn with_published(faults: Faults, clock: Clock) -> Scheduled<Published> {
    let mut table = Box::new([3_u8; 256]);
    for (dscp, class) in [(46, 0), (18, 1), (10, 2)] {
        for ecn in 0..4 {
            table[dscp * 4 + ecn] = class;
        }
    }
    let scheduler = Published::new(published(PublishedEstimator::Ewma), faults, clock);
    let bound = Bound::Packets(QUEUE.into());
    let all = Bound::Packets(u64::from(QUEUE) * CLASSES.len() as u64);
    let mut queue = Scheduled::new(scheduler, Classifier::TrafficClass(table), all, Overload::Arriving);
    for _ in CLASSES {
        let class = Class { flow: FlowConfig::default(), bound, drop_at: DropAt::Tail, store: Store::Plain };
        queue.add_class(class).expect("it has that many classes");
    }
    queue
}

/// Which part of the transactions of these sources were answered, of those that ended.
fn succeeded(report: &Report, sources: &[&str]) -> Option<f64> {
    let [good, bad] = ended(report, sources);
    (good + bad > 0).then(|| good as f64 / (good + bad) as f64)
}

/// How many transactions of these sources were answered, and how many were not.
fn ended(report: &Report, sources: &[&str]) -> [u64; 2] {
    let of = report.applications.iter().filter(|application| sources.contains(&application.name.as_str()));
    of.fold([0, 0], |[good, bad], application| {
        let failed = application.failed_reset + application.failed_timeout + application.refused;
        [good + application.succeeded, bad + failed]
    })
}

/// What an observer has seen.
#[derive(Debug, Default)]
struct Seen {
    /// By class, in nanoseconds.
    delays: [Vec<u64>; CLASSES.len()],
    dropped: [u64; CLASSES.len()],
    /// Lost, and all, from the client and from the server.
    ways: [[u64; 2]; 2],
    /// On the wire.
    bytes: u64,
    /// Lost, and all, by tenth of the run.
    tenths: [[u64; 2]; 10],
    /// How long a tenth is.
    tenth: Duration,
}

/// Bytes of a frame beside its IP packet, with preamble and gap.
const FRAME: u64 = 38;

impl Seen {
    fn take(&mut self, packet: &PacketRow<'_>) {
        let Some(class) = SOURCES.iter().position(|sources| sources.contains(&packet.feed)) else { return };
        let way = usize::from(!packet.port.starts_with("client"));
        self.ways[way][1] += 1;
        let tenth = packet.arrival.nanos() / self.tenth.nanos().max(1);
        let tenth = &mut self.tenths[tenth.min(9) as usize];
        tenth[1] += 1;
        tenth[0] += u64::from(!packet.delivered);
        self.bytes += u64::from(packet.length) + FRAME;
        if packet.delivered {
            self.delays[class].push(packet.at.since(packet.arrival).nanos());
        } else {
            self.ways[way][0] += 1;
            self.dropped[class] += 1;
        }
    }
}

impl MixRun {
    /// Which part of all packets was lost.
    pub fn loss(&self) -> f64 {
        let dropped: u64 = self.classes.iter().map(Delays::dropped).sum();
        let all: u64 = self.classes.iter().map(Delays::packets).sum::<u64>() + dropped;
        dropped as f64 / all.max(1) as f64
    }
}

impl Section {
    /// What a scheduler made of it.
    pub fn of(&self, name: &str) -> Option<&MixRun> {
        self.runs.iter().find(|run| run.name == name)
    }

    /// The name that its files begin with.
    pub fn file(&self) -> String {
        let medium = match self.setting.medium {
            Medium::Half => "half",
            Medium::Collisions => "collisions",
            Medium::Full => "full",
        };
        let load = match self.setting.load {
            Load::Bits(bits) => format!("{:.0}-mbit", bits / 1e6),
            Load::Loss(loss) => format!("{:.0}-percent", loss * 100.0),
        };
        format!("mix-{}-{load}-{medium}", self.setting.mix)
    }
}
