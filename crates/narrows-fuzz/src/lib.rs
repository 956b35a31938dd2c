//! What no bytes may break: every reader of bytes that come from outside, as a function that takes any bytes and panics
//! where something does not hold.
//!
//! A fuzzer calls them from `fuzz/` at the root of the repository (`make fuzz`); the tests of this crate call them with
//! seeds that were mutated by a keyed generator, the same ones at each run. The frames of [`odd`] are also what tests on
//! real packets send.
#![forbid(unsafe_code)]

pub mod containers;
pub mod files;
pub mod frames;
pub mod http;
pub mod imports;
pub mod mutate;
pub mod odd;
pub mod plugins;
pub mod protocols;
pub mod rules;
pub mod runs;
pub mod texts;

use mutate::Mutations;

/// A reader of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As `make fuzz` calls it.
    pub name: &'static str,
    /// What it reads, and what is checked beside that nothing fails.
    pub reads: &'static str,
    /// Takes any bytes, and panics where something does not hold.
    pub check: fn(&[u8]),
    /// What to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of its language, which a mutation puts in.
    pub words: &'static [&'static str],
}

/// A row of [`TARGETS`].
const fn target(
    name: &'static str,
    reads: &'static str,
    check: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
    words: &'static [&'static str],
) -> Target {
    Target { name, reads, check, seeds, words }
}

/// All of them.
pub const TARGETS: [Target; 27] = [
    target(
        "frame",
        "a frame, as each link layer: headers, edits, answers, address translation",
        frames::frame,
        odd::all,
        &[],
    ),
    target(
        "network",
        "frames through six networks: every packet accounted for, everywhere",
        frames::network,
        frames::seeds,
        &[],
    ),
    target("capture", "pcap and pcapng", files::capture, files::captures, &[]),
    target("log", "input logs", files::log, files::logs, &[]),
    target(
        "scenario",
        "scenario files: what is accepted can be built, explained and changed",
        texts::scenario,
        texts::scenarios,
        texts::OF_SCENARIOS,
    ),
    target(
        "ipfw",
        "scripts and commands of ipfw: what is listed reads as the same rule",
        texts::ipfw,
        texts::ipfw_scripts,
        texts::OF_IPFW,
    ),
    target(
        "tc",
        "scripts of tc: a scenario, which shows as commands that make it again",
        texts::tc,
        texts::tc_scripts,
        texts::OF_TC,
    ),
    target(
        "netem",
        "NetEm's options: what is listed reads as the same",
        texts::netem,
        texts::netem_words,
        texts::OF_TC,
    ),
    target(
        "table",
        "traces, patterns, profiles, samples, distributions, series",
        texts::table,
        texts::tables,
        texts::OF_TABLES,
    ),
    target(
        "control",
        "requests to a run, records of runs, names",
        protocols::control,
        protocols::requests,
        protocols::OF_JSON,
    ),
    target("toxic", "bodies of Toxiproxy's API", protocols::toxic, protocols::toxics, protocols::OF_TOXICS),
    target("compose", "compose files", containers::compose, containers::compose_files, containers::WORDS),
    target(
        "engine",
        "answers and events of container engines",
        containers::engine,
        containers::answers,
        containers::WORDS,
    ),
    target(
        "cni",
        "a CNI plugin's standard input, chains of plugins",
        containers::cni,
        containers::configurations,
        containers::WORDS,
    ),
    target(
        "guest",
        "messages between a guest kernel and its supervisor: in pieces, the same ones",
        protocols::guest,
        protocols::guest_messages,
        &[],
    ),
    target("feed", "messages of feeds", protocols::feed, protocols::messages, &[]),
    target(
        "rings",
        "rings shared with the kernel, which may misbehave, and the memory of frames",
        protocols::rings,
        protocols::steps,
        &[],
    ),
    target(
        "trains",
        "trains of segments from the kernel: split, joined and split again, the same bytes",
        protocols::trains,
        protocols::offloads,
        &[],
    ),
    target(
        "rules",
        "compiled and indexed rules against an interpreter that tries one after the other",
        rules::rules,
        rules::seeds,
        &[],
    ),
    target(
        "replay",
        "a recorded run and its replay: the same verdicts; any log at all",
        runs::replay,
        runs::replays,
        &[],
    ),
    target(
        "report",
        "reports: text and summary, nothing that steers a terminal",
        runs::report,
        runs::reports,
        protocols::OF_JSON,
    ),
    target(
        "replies",
        "replies of runs, orders and answers between machines",
        runs::replies,
        runs::lines,
        protocols::OF_JSON,
    ),
    target(
        "topology",
        "lists of links, GraphML, containerlab, MiniEdit",
        imports::topology,
        imports::topologies,
        imports::WORDS,
    ),
    target("lab", "files and events of containerlab", imports::lab, imports::labs, imports::WORDS),
    target("web", "HTTP to the page of runs", http::web, http::pages, http::WORDS),
    target("toxi", "HTTP to Toxiproxy's API", http::toxi, http::calls, http::WORDS),
    target("module", "schedulers as WebAssembly modules", plugins::module, plugins::modules, &[]),
];

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// Checks the seeds, and then so many mutations of them, by this seed.
    pub fn run(&self, seed: u64, mutations: u32) {
        let seeds = (self.seeds)();
        seeds.iter().for_each(|bytes| (self.check)(bytes));
        let mut drawn = Mutations::new(seed);
        for _ in 0..mutations {
            (self.check)(&drawn.mutated(&seeds, self.words));
        }
    }
}
