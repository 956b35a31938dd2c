//! Filters `flow`: a class by a hash of header fields, `flow hash keys src divisor 1024`, or by one field, `flow map key dst`.
//!
//! Sources: `cls_flow.c` of Linux and `f_flow.c` of iproute2. At a discipline of flows the class is the number of a queue, so
//! that such a filter takes the place of the discipline's own hash. Where there are no classes, it lets its packets pass.

use super::managed::Managed;
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::{Table, Value};
use crate::problem::{Found, Problem, one_of};

/// How a filter computes classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    /// Whether it hashes fields; else it takes the class from one.
    hashes: bool,
    keys: Vec<String>,
    divisor: Option<u32>,
    /// Whether classes are counted from another one than the first.
    has_base: bool,
}

const KEYS: &[&str] = &[
    "src",
    "dst",
    "proto",
    "proto-src",
    "proto-dst",
    "iif",
    "priority",
    "mark",
    "nfct",
    "nfct-src",
    "nfct-dst",
    "nfct-proto-src",
    "nfct-proto-dst",
    "rt-classid",
    "sk-uid",
    "sk-gid",
    "vlan-tag",
    "rxhash",
];
const OPERATIONS: &[&str] = &["and", "or", "xor", "rshift", "addend"];

impl Flow {
    /// Parses an option of the filter; returns whether it is one.
    pub(super) fn option(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<bool, Problem> {
        match word.text {
            "hash" | "map" => self.hashes = word.text == "hash",
            "key" | "keys" => {
                let keys = words.expect(word, "a field")?;
                let all: Vec<&str> = keys.text.split(',').collect();
                if let Some(unknown) = all.iter().find(|key| !KEYS.contains(*key)) {
                    return Err(keys
                        .part(unknown)
                        .problem(format!("{} is not a key of `flow`", Found(unknown)))
                        .help(format!("tc knows: {}", one_of(KEYS))));
                }
                self.keys = all.into_iter().map(str::to_owned).collect();
            }
            "perturb" => {
                words.expect(word, "a number of seconds")?;
            }
            "divisor" => {
                let number = words.expect(word, "a number of classes")?;
                self.divisor = Some(units::integer(number, "a number of classes", 1, 65_535)? as u32);
            }
            "baseclass" => {
                words.expect(word, "a class")?;
                self.has_base = true;
            }
            text if OPERATIONS.contains(&text) => {
                words.expect(word, "a number")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The value of `by` of a scheduler that tells flows apart by the same fields.
    fn identity(&self) -> Option<&'static str> {
        // No address is translated on the way to a queue.
        let mut keys: Vec<&str> = self.keys.iter().map(|key| key.trim_start_matches("nfct-")).collect();
        keys.sort_unstable();
        keys.dedup();
        match keys[..] {
            ["src"] => Some("source"),
            ["dst"] => Some("destination"),
            ["dst", "src"] => Some("addresses"),
            ["dst", "proto", "proto-dst", "proto-src", "src"] => Some("5-tuple"),
            _ => None,
        }
    }

    /// Sets what takes the place of a discipline's own hash.
    pub(super) fn put(&self, managed: &Managed, scheduler: &mut Table) -> Result<(), Problem> {
        let wrong = |title: &str| Problem::new(format!("`flow` of `{}` {title}", managed.of.name));
        let by = self.identity().filter(|_| self.hashes && !self.has_base).ok_or_else(|| {
            wrong("by other fields than a scheduler here has")
                .help("understood: flow hash keys src, dst, src,dst, or src,dst,proto,proto-src,proto-dst")
        })?;
        let queues = managed.flows();
        let divisor = self.divisor.filter(|divisor| *divisor <= queues).ok_or_else(|| {
            wrong("without a `divisor` of at most its number of queues: the kernel drops packets of the classes beyond")
                .help(format!("as in: flow hash keys src divisor {queues}"))
        })?;
        for (key, value) in [("by", Value::String(by.into())), ("flows", Value::Integer(divisor.to_string()))]
        {
            scheduler.remove(key);
            scheduler.put(key, value);
        }
        Ok(())
    }

    /// For display.
    pub(super) fn words(&self) -> String {
        match self.hashes {
            true => format!("a hash of {}", self.keys.join(", ")),
            false => "a field".into(),
        }
    }
}
