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
pub mod mutate;
pub mod odd;
pub mod protocols;
pub mod texts;

use mutate::Mutations;

/// A reader of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As `make fuzz` calls it.
    pub name: &'static str,
    /// Takes any bytes, and panics where something does not hold.
    pub check: fn(&[u8]),
    /// What to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of its language, which a mutation puts in.
    pub words: &'static [&'static str],
}

/// All of them.
pub const TARGETS: [Target; 16] = [
    Target { name: "frame", check: frames::frame, seeds: odd::all, words: &[] },
    Target { name: "network", check: frames::network, seeds: frames::seeds, words: &[] },
    Target { name: "capture", check: files::capture, seeds: files::captures, words: &[] },
    Target { name: "log", check: files::log, seeds: files::logs, words: &[] },
    Target { name: "scenario", check: texts::scenario, seeds: texts::scenarios, words: texts::OF_SCENARIOS },
    Target { name: "ipfw", check: texts::ipfw, seeds: texts::ipfw_scripts, words: texts::OF_IPFW },
    Target { name: "tc", check: texts::tc, seeds: texts::tc_scripts, words: texts::OF_TC },
    Target { name: "netem", check: texts::netem, seeds: texts::netem_words, words: texts::OF_TC },
    Target { name: "table", check: texts::table, seeds: texts::tables, words: texts::OF_TABLES },
    Target {
        name: "control",
        check: protocols::control,
        seeds: protocols::requests,
        words: protocols::OF_JSON,
    },
    Target { name: "toxic", check: protocols::toxic, seeds: protocols::toxics, words: protocols::OF_TOXICS },
    Target {
        name: "compose",
        check: containers::compose,
        seeds: containers::compose_files,
        words: containers::WORDS,
    },
    Target {
        name: "engine",
        check: containers::engine,
        seeds: containers::answers,
        words: containers::WORDS,
    },
    Target {
        name: "cni",
        check: containers::cni,
        seeds: containers::configurations,
        words: containers::WORDS,
    },
    Target { name: "feed", check: protocols::feed, seeds: protocols::messages, words: &[] },
    Target { name: "rings", check: protocols::rings, seeds: protocols::steps, words: &[] },
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
