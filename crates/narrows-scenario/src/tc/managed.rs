//! Qdiscs that are a single value of a link or class: queues with and without AQM, and flow schedulers.
//!
//! To add one, add a line in [`DISCIPLINES`] and its table of options.

mod cake;
mod choke;
mod dualpi2;
mod fq;
mod hhf;
mod red;
mod sfb;
mod sfq;

use narrows_core::Rate;
use narrows_core::queue::Bound;

use super::unit::{
    BFIFO_LIMIT, FRAME, LIMIT, PER_CENT, PFIFO_LIMIT, SELECTOR, SIZE, TIME, rate_of, sixteenths, whole,
};
use crate::dialect::{Follows, Opt, Options, Word, Words, number_of, text_of};
use crate::keys::kind::text;
use crate::node::{Key, Node, Table, Value};
use crate::problem::Problem;

/// A qdisc of a script.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Managed {
    pub(super) of: &'static Discipline,
    /// Its keys.
    document: Table,
    /// The keys that options gave explicitly, rather than derived ones.
    said: Table,
    /// Remarks about the options, for people.
    pub(super) remarks: Vec<String>,
}

/// Properties of a qdisc.
pub(super) struct Discipline {
    pub(super) name: &'static str,
    becomes: Becomes,
    options: Options,
    /// What a change keeps of the options that it does not name.
    keeps: Keeps,
    /// The kernel's defaults, where narrows has others.
    usual: &'static [(&'static str, &'static str)],
    /// Combines options that interact. The word is the name of the qdisc.
    settle: fn(Word<'_>, &mut Table) -> Result<(), Problem>,
}

/// What the qdisc's `change` function in the kernel keeps of the options that it does not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    Everything,
    /// Nothing: it gets all options.
    Nothing,
    /// The kernel has no `change` function for it.
    NoChange,
}

/// The key that gets it as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// `queue`, without a type.
    Fifo,
    /// `queue`.
    Queue,
    /// `scheduler`.
    Scheduler,
}

const fn discipline(name: &'static str, becomes: Becomes, options: Options) -> Discipline {
    // A queue without AQM has one option.
    let keeps = match becomes {
        Becomes::Fifo => Keeps::Nothing,
        _ => Keeps::Everything,
    };
    Discipline { name, becomes, options, keeps, usual: &[], settle: |_, _| Ok(()) }
}

impl Discipline {
    /// All keys that result from the options, with the kernel's defaults for the others.
    fn settled(&self, name: Word<'_>, mut document: Table) -> Result<Table, Problem> {
        for (key, value) in self.usual {
            document = document.and(key, Node::typed(value, 0).value);
        }
        (self.settle)(name, &mut document)?;
        Ok(document)
    }
}

/// All of them.
pub(super) static DISCIPLINES: &[Discipline] = &[
    Discipline {
        usual: &[PACKETS_OF_DEVICE],
        ..discipline("pfifo", Becomes::Fifo, Options(&[&[Opt::value(&["limit"], "bound", PFIFO_LIMIT)]]))
    },
    Discipline {
        // The device's queue length in frames of the default MTU.
        usual: &[("bound", "1514000 bytes")],
        ..discipline("bfifo", Becomes::Fifo, Options(&[&[Opt::value(&["limit"], "bound", BFIFO_LIMIT)]]))
    },
    Discipline {
        usual: &[PACKETS_OF_DEVICE, ("drop", "head")],
        ..discipline(
            "pfifo_head_drop",
            Becomes::Fifo,
            Options(&[&[Opt::value(&["limit"], "bound", PFIFO_LIMIT)]]),
        )
    },
    Discipline {
        usual: &[("bound", "10000 packets")],
        settle: fq::settle,
        ..discipline("fq", Becomes::Scheduler, fq::OPTIONS)
    },
    discipline("cake", Becomes::Scheduler, cake::OPTIONS),
    Discipline {
        usual: &[("bound", "1000 packets")],
        settle: hhf::settle,
        ..discipline("hhf", Becomes::Scheduler, hhf::OPTIONS)
    },
    discipline("pfifo_fast", Becomes::Scheduler, PFIFO_FAST),
    Discipline {
        keeps: Keeps::Nothing,
        usual: &[("probability", "0.02"), ("ecn", "false")],
        settle: red::settle,
        ..discipline("red", Becomes::Queue, red::OPTIONS)
    },
    Discipline {
        keeps: Keeps::Nothing,
        usual: &[("probability", "0.02"), ("ecn", "false")],
        settle: choke::settle,
        ..discipline("choke", Becomes::Queue, choke::OPTIONS)
    },
    Discipline {
        usual: &[("bound", "10240 packets")],
        ..discipline("fq_codel", Becomes::Scheduler, FQ_CODEL)
    },
    Discipline { usual: FQ_PIE_USUAL, ..discipline("fq_pie", Becomes::Scheduler, Options(&[FQ_PIE, PIE])) },
    Discipline {
        usual: &[("bound", "1000 packets"), ("ecn", "false")],
        ..discipline("codel", Becomes::Queue, Options(&[CODEL]))
    },
    Discipline { usual: PIE_USUAL, ..discipline("pie", Becomes::Queue, Options(&[PIE])) },
    Discipline {
        usual: dualpi2::USUAL,
        settle: dualpi2::settle,
        ..discipline("dualpi2", Becomes::Queue, dualpi2::OPTIONS)
    },
    Discipline {
        keeps: Keeps::Nothing,
        usual: &[PACKETS_OF_DEVICE],
        settle: sfb::settle,
        ..discipline("sfb", Becomes::Queue, sfb::OPTIONS)
    },
    Discipline {
        keeps: Keeps::NoChange,
        usual: &[("bound", "127 packets")],
        settle: sfq::settle,
        ..discipline("sfq", Becomes::Scheduler, sfq::OPTIONS)
    },
];

/// The default `txqueuelen` of a device, which the kernel uses if no limit is given.
const PACKETS_OF_DEVICE: (&str, &str) = ("bound", "1000 packets");

/// As in tc's output.
const PFIFO_FAST: Options = Options(&[&[Opt::nothing(&["bands", "priomap"], Follows::Numbers)]]);

const CODEL: &[Opt] = &[
    Opt::value(&["limit"], "bound", LIMIT),
    Opt::value(&["target"], "target", TIME),
    Opt::value(&["interval"], "interval", TIME),
    Opt::switch(&["ecn"], &["noecn"], "ecn"),
    Opt::value(&["ce_threshold"], "ce-threshold", TIME),
];

const FLOWS: Opt = Opt::value(&["flows"], "flows", whole::<1, 65536>());
const QUANTUM: Opt = Opt::value(&["quantum"], "quantum", SIZE);

const FQ_CODEL: Options = Options(&[
    CODEL,
    &[
        FLOWS,
        QUANTUM,
        Opt::value(&["ce_threshold_selector"], "ce-match", SELECTOR),
        Opt::nothing(&["memory_limit"], Follows::One("a size")).remark(NO_MEMORY_LIMIT),
        Opt::nothing(&["drop_batch"], Follows::One("a number"))
            .remark("`drop_batch` has no effect: up to 64 packets of the longest flow are dropped at once, the kernel's default."),
    ],
]);

const NO_MEMORY_LIMIT: &str = "`memory_limit` has no effect: the backlog is bounded by `limit` only.";

const PIE: &[Opt] = &[
    Opt::value(&["limit"], "bound", LIMIT),
    Opt::value(&["target"], "target", TIME),
    Opt::value(&["tupdate"], "update", TIME),
    Opt::value(&["alpha"], "alpha", sixteenths::<1>()),
    Opt::value(&["beta"], "beta", sixteenths::<0>()),
    Opt::switch(&["ecn"], &["noecn"], "ecn"),
    Opt::switch(&["bytemode"], &["nobytemode"], "byte-mode"),
    Opt::switch(&["dq_rate_estimator"], &["no_dq_rate_estimator"], "departure-rate"),
];

/// Extensions to the RFC's base that the kernel's PIE always has.
const PIE_USUAL: &[(&str, &str)] =
    &[("bound", "1000 packets"), PIE_BASE[0], PIE_BASE[1], PIE_BASE[2], PIE_BASE[3], PIE_BASE[4]];

/// Same, for each flow.
const FQ_PIE_USUAL: &[(&str, &str)] =
    &[("bound", "10240 packets"), PIE_BASE[0], PIE_BASE[1], PIE_BASE[2], PIE_BASE[3], PIE_BASE[4]];

const PIE_BASE: [(&str, &str); 5] = [
    ("ecn", "false"),
    ("mean-packet", "1500 bytes"),
    ("derandomize", "true"),
    ("cap-drop", "true"),
    ("high-delay-boost", "250ms"),
];

const FQ_PIE: &[Opt] = &[
    FLOWS,
    QUANTUM,
    Opt::value(&["ecn_prob"], "max-ecn-threshold", PER_CENT),
    Opt::nothing(&["memory_limit"], Follows::One("a size")).remark(NO_MEMORY_LIMIT),
];

impl std::fmt::Debug for Discipline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Discipline {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Managed {
    /// Parses the options of a qdisc after its name; `None` for other qdiscs.
    pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Option<Self>, Problem> {
        let Some(of) = DISCIPLINES.iter().find(|of| of.name == name.text) else { return Ok(None) };
        let mut remarks = Vec::new();
        let said = of.options.read_all_remarking(of.name, words, &mut remarks)?;
        let document = of.settled(name, said.clone())?;
        Ok(Some(Self { of, document, said, remarks }))
    }

    /// The settings after a change to this: for most qdiscs, the kernel keeps options that are not given.
    /// RED and the queues without AQM get all options each time.
    ///
    /// # Errors
    /// Changes that the kernel rejects.
    pub(super) fn changed_from(mut self, before: &Self) -> Result<Self, Problem> {
        if let (Some(flows), "fq_codel" | "fq_pie") = (self.said.key("flows"), self.of.name) {
            return Err(Problem::new("the number of flows cannot be changed, nor can it in the kernel")
                .at(&flows.span)
                .help("use `del`, then `add`"));
        }
        if self.of.keeps == Keeps::Everything || self.said.is_empty() {
            let mut said = before.said.clone();
            self.said.iter().for_each(|(key, node)| said.set(&key.name, node.clone()));
            // Each of the two was valid alone, so they are valid together unless they exclude each other;
            // then the new options apply.
            if let Ok(document) = self.of.settled(Word::new(self.of.name, &(0..0)), said.clone()) {
                (self.document, self.said) = (document, said);
            }
        }
        Ok(self)
    }

    /// The same on a device with this queue length: the limit of a queue that does not say one.
    pub(super) fn at_queue_length(&mut self, packets: u32) {
        if self.has_queue_of_device() {
            let bound = match self.of.name {
                "bfifo" => format!("{} bytes", FRAME.get() * u64::from(packets)),
                _ => format!("{packets} packets"),
            };
            self.document.remove("bound");
            self.document.put("bound", text(bound));
        }
    }

    /// As if it said this limit, where it says none: its device had this queue length when it was made.
    pub(super) fn made_at_queue_length(&mut self, packets: u32) {
        if self.has_queue_of_device() {
            self.at_queue_length(packets);
            self.document.get("bound").into_iter().for_each(|bound| self.said.set("bound", bound.clone()));
        }
    }

    /// Whether its limit is the queue length of the device, as it says none.
    fn has_queue_of_device(&self) -> bool {
        (self.of.becomes == Becomes::Fifo || self.of.name == "sfb") && self.said.key("bound").is_none()
    }

    /// With a switch that is on.
    pub(super) fn with_switch(mut self, key: &str) -> Self {
        self.document.set(key, Node::new(Value::Boolean(true)));
        self
    }

    /// Whether it has a queue for each band, each with the device's queue length.
    pub(super) fn has_bands(&self) -> bool {
        self.of.name == "pfifo_fast"
    }

    /// Whether its lengths are those of frames by the link's overhead: the quanta of `fq` measure time at a rate.
    pub(super) fn counts_frames(&self) -> bool {
        self.of.name == "fq"
    }

    /// Whether it has a rate of its own: packets wait in it on a link without a rate.
    pub(super) fn has_a_rate(&self) -> bool {
        let rate = |key| rate_of(&self.document, key).is_some_and(|rate| rate != Rate::UNLIMITED);
        rate("max-rate") || rate("bandwidth")
    }

    /// Whether it is CAKE, the filters of which choose tins, hosts and flows.
    pub(super) fn is_cake(&self) -> bool {
        self.of.name == "cake"
    }

    /// Whether a filter `flow` can take the place of its hash.
    pub(super) fn hashes_flows(&self) -> bool {
        matches!(self.of.name, "sfq" | "fq_codel")
    }

    /// How many queues it tells apart.
    pub(super) fn flows(&self) -> u32 {
        number_of(&self.document, "flows").unwrap_or(1024)
    }

    /// Its keys.
    pub(super) fn keys(&self) -> &Table {
        &self.document
    }

    /// The bits of firewall marks that choose a tin of CAKE; 0 for none.
    pub(super) fn marks(&self) -> u32 {
        number_of(&self.said, cake::MARKS).unwrap_or(0)
    }

    /// Whether the kernel can change it.
    pub(super) fn changes(&self) -> bool {
        self.of.keeps != Keeps::NoChange
    }

    /// The key of a link or class that gets it as a value.
    pub(super) fn key(&self) -> &'static str {
        if self.of.becomes == Becomes::Scheduler { "scheduler" } else { "queue" }
    }

    /// The value; `None` for a queue without options.
    pub(super) fn value(&self) -> Option<Value> {
        let typed = (self.of.becomes != Becomes::Fifo).then(|| text(self.of.name));
        let mut document = self.document.clone();
        document.remove(cake::MARKS);
        let mut entries = document.iter();
        match (typed, entries.next(), entries.next()) {
            (None, None, _) => None,
            (Some(name), None, _) => Some(name),
            (None, Some((key, node)), None) if key.name == "bound" => Some(node.value.clone()),
            (typed, ..) => {
                let mut table = Table::default();
                typed.into_iter().for_each(|name| table.put("type", name));
                document.iter().for_each(|(key, node)| table.set(&key.name, node.clone()));
                Some(Value::Table(table))
            }
        }
    }

    /// What a change to this does, for display; `None` if it sets everything anew.
    pub(super) fn change_words(&self) -> Option<String> {
        if self.of.keeps != Keeps::Everything && !self.said.is_empty() {
            return None;
        }
        let all: Vec<String> =
            self.said.iter().map(|(key, node)| format!("`{} = {}`", key.name, node.toml())).collect();
        Some(match &all[..] {
            [] => "No option is given: nothing changes.".into(),
            all => format!("Sets {}; all else stays.", all.join(", ")),
        })
    }

    /// What it does, for display.
    pub(super) fn words(&self) -> String {
        if let (Some(value), true) = (self.value(), self.of.becomes != Becomes::Fifo) {
            let value = Node::new(value);
            return format!("The same as `{} = {}`.", self.key(), value.toml());
        }
        let drop = match self.document.get("drop") {
            Some(_) => "the oldest",
            None => "the arriving one",
        };
        let limit = text_of(&self.document, "bound");
        format!("First in, first out; {limit} may wait, {drop} is dropped.")
    }
}

/// The name of the qdisc that a value of `queue` or `scheduler` stands for.
pub(super) fn name_of(value: &Value) -> Option<&'static str> {
    let name = match value {
        Value::String(name) => name.clone(),
        Value::Table(table) => text_of(table, "type"),
        _ => return None,
    };
    DISCIPLINES.iter().find(|of| of.name == name).map(|of| of.name)
}

/// The options of a value of `queue` or `scheduler` as tc prints them; `None` if tc cannot express all of
/// it.
pub(super) fn shown(value: &Value) -> Option<String> {
    let name = name_of(value)?;
    let of = DISCIPLINES.iter().find(|of| of.name == name)?;
    let mut keys = match value {
        Value::Table(table) => table.clone(),
        _ => Table::default(),
    };
    keys.remove("type");
    for (key, usual) in of.usual {
        let usual = Node::typed(usual, 0);
        match keys.get(key) {
            Some(node) if *node == usual => keys.remove(key),
            Some(_) => {}
            // The published default of the algorithm is also the kernel's.
            None if *key == "bound" && of.becomes == Becomes::Scheduler => {}
            None => return None,
        }
    }
    let said = |key: &Key| of.options.sets(&key.name);
    if keys.iter().all(|(key, _)| said(key)) { of.options.show(&keys) } else { None }
}

/// The limit of a queue without AQM, as tc prints it.
pub(super) fn fifo_limit(name: &str, bound: Bound) -> String {
    let mut keys = Table::default();
    keys.put("bound", text(bound));
    let of = DISCIPLINES.iter().find(|of| of.name == name);
    of.and_then(|of| of.options.show(&keys)).unwrap_or_default()
}
