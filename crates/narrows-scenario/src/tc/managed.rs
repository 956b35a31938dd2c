//! Disciplines that are one value of a link or class: queues with and without management, and flows by a hash.
//!
//! A new one is a line in [`DISCIPLINES`] and its table of options.

mod dualpi2;

use narrows_core::Bytes;
use narrows_core::queue::Bound;

use super::unit::{
    BFIFO_LIMIT, LIMIT, PER_CENT, PFIFO_LIMIT, PROBABILITY, SIZE, TIME, missing, sixteenths, size_of, whole,
};
use crate::dialect::{Follows, Opt, Options, Word, Words, number_of, text_of};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;

/// A discipline of a script.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Managed {
    pub(super) of: &'static Discipline,
    /// Its keys.
    document: Table,
}

/// What is to be known of one.
pub(super) struct Discipline {
    pub(super) name: &'static str,
    becomes: Becomes,
    options: Options,
    /// What the kernel has where nothing is said, and narrows has not.
    usual: &'static [(&'static str, &'static str)],
    /// Settles what several options say together. The word is the name of the discipline.
    settle: fn(Word<'_>, &mut Table) -> Result<(), Problem>,
}

/// Which key it is a value of.
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
    Discipline { name, becomes, options, usual: &[], settle: |_, _| Ok(()) }
}

/// All of them.
pub(super) static DISCIPLINES: &[Discipline] = &[
    discipline("pfifo", Becomes::Fifo, Options(&[&[Opt::value(&["limit"], "bound", PFIFO_LIMIT)]])),
    discipline("bfifo", Becomes::Fifo, Options(&[&[Opt::value(&["limit"], "bound", BFIFO_LIMIT)]])),
    Discipline {
        usual: &[("bound", "1000 packets"), ("drop", "head")],
        ..discipline(
            "pfifo_head_drop",
            Becomes::Fifo,
            Options(&[&[Opt::value(&["limit"], "bound", PFIFO_LIMIT)]]),
        )
    },
    discipline("pfifo_fast", Becomes::Scheduler, PFIFO_FAST),
    Discipline {
        usual: &[("probability", "0.02"), ("ecn", "false")],
        settle: red,
        ..discipline("red", Becomes::Queue, RED)
    },
    discipline("fq_codel", Becomes::Scheduler, FQ_CODEL),
    Discipline { usual: PIE_USUAL, ..discipline("fq_pie", Becomes::Scheduler, Options(&[FQ_PIE, PIE])) },
    Discipline { usual: &[("ecn", "false")], ..discipline("codel", Becomes::Queue, Options(&[CODEL])) },
    Discipline { usual: PIE_USUAL, ..discipline("pie", Becomes::Queue, Options(&[PIE])) },
    Discipline {
        usual: dualpi2::USUAL,
        settle: dualpi2::settle,
        ..discipline("dualpi2", Becomes::Queue, dualpi2::OPTIONS)
    },
    discipline("sfq", Becomes::Scheduler, SFQ),
];

/// As tc prints it.
const PFIFO_FAST: Options = Options(&[&[Opt::nothing(&["bands", "priomap"], Follows::Numbers)]]);

const RED: Options = Options(&[&[
    Opt::value(&["limit"], "bound", SIZE),
    Opt::value(&["min"], "min", SIZE),
    Opt::value(&["max"], "max", SIZE),
    Opt::value(&["probability"], "probability", PROBABILITY),
    Opt::value(&["avpkt"], "avpkt", SIZE),
    Opt::value(&["burst"], "burst", whole::<1, { 1 << 20 }>()),
    // By which the kernel lets the average of an empty queue fall; here it is the link's rate.
    Opt::nothing(&["bandwidth"], Follows::One("a value")),
    Opt::switch(&["ecn"], &[], "ecn"),
    Opt::nothing(&["harddrop", "nodrop", "adaptive"], Follows::Nothing),
]]);

const CODEL: &[Opt] = &[
    Opt::value(&["limit"], "bound", LIMIT),
    Opt::value(&["target"], "target", TIME),
    Opt::value(&["interval"], "interval", TIME),
    Opt::switch(&["ecn"], &["noecn"], "ecn"),
];

const FLOWS: Opt = Opt::value(&["flows"], "flows", whole::<1, 65536>());
const QUANTUM: Opt = Opt::value(&["quantum"], "quantum", SIZE);

const FQ_CODEL: Options = Options(&[
    CODEL,
    &[FLOWS, QUANTUM, Opt::nothing(&["memory_limit", "drop_batch"], Follows::One("a number"))],
]);

const PIE: &[Opt] = &[
    Opt::value(&["limit"], "bound", LIMIT),
    Opt::value(&["target"], "target", TIME),
    Opt::value(&["tupdate"], "update", TIME),
    Opt::value(&["alpha"], "alpha", sixteenths::<1>()),
    Opt::value(&["beta"], "beta", sixteenths::<0>()),
    Opt::switch(&["ecn"], &["noecn"], "ecn"),
];

/// What the kernel's PIE always has, beyond the RFC's base.
const PIE_USUAL: &[(&str, &str)] = &[
    ("ecn", "false"),
    ("mean-packet", "1500 bytes"),
    ("derandomize", "true"),
    ("cap-drop", "true"),
    ("steep-above", "250ms"),
];

const FQ_PIE: &[Opt] = &[
    FLOWS,
    QUANTUM,
    Opt::value(&["ecn_prob"], "mark-below", PER_CENT),
    Opt::nothing(&["memory_limit"], Follows::One("a number")),
];

const SFQ: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT),
    QUANTUM,
    Opt::value(&["flows", "divisor"], "flows", whole::<1, 65536>()),
    // Hashes are perturbed to part flows that met by chance; here 1024 flows meet seldom enough.
    Opt::nothing(&["perturb", "depth"], Follows::One("a number")),
    Opt::refused(
        &["headdrop"],
        "of `sfq` has no place in a script",
        "in a scenario it is `queue = { drop = \"head\" }` beside the scheduler",
    ),
]]);

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
    /// Reads the options of a discipline, whose name was read; nothing for another one.
    pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Option<Self>, Problem> {
        let Some(of) = DISCIPLINES.iter().find(|of| of.name == name.text) else { return Ok(None) };
        let mut document = of.options.read_all(of.name, words)?;
        for (key, value) in of.usual {
            document = document.and(key, Node::typed(value, 0).value);
        }
        (of.settle)(name, &mut document)?;
        Ok(Some(Self { of, document }))
    }

    /// The key of a link or class that it becomes a value of.
    pub(super) fn key(&self) -> &'static str {
        if self.of.becomes == Becomes::Scheduler { "scheduler" } else { "queue" }
    }

    /// The value; nothing for a queue that says nothing.
    pub(super) fn value(&self) -> Option<Value> {
        let typed = (self.of.becomes != Becomes::Fifo).then(|| text(self.of.name));
        let mut entries = self.document.iter();
        match (typed, entries.next(), entries.next()) {
            (None, None, _) => None,
            (Some(name), None, _) => Some(name),
            (None, Some((key, node)), None) if key.name == "bound" => Some(node.value.clone()),
            (typed, ..) => {
                let mut table = Table::default();
                typed.into_iter().for_each(|name| table.put("type", name));
                self.document.iter().for_each(|(key, node)| table.set(&key.name, node.clone()));
                Some(Value::Table(table))
            }
        }
    }

    /// What it does, for people.
    pub(super) fn words(&self) -> String {
        if let (Some(value), true) = (self.value(), self.of.becomes != Becomes::Fifo) {
            let value = Node::new(value);
            return format!("The same as `{} = {}`.", self.key(), value.toml());
        }
        let drop = match self.document.get("drop") {
            Some(_) => "the oldest",
            None => "one that finds no room",
        };
        let limit = match self.document.get("bound") {
            Some(_) => text_of(&self.document, "bound"),
            None => "as many packets as the device says".into(),
        };
        format!("In the order of arrival; {limit} may wait, and {drop} is dropped.")
    }
}

/// The limit of a discipline without management, as tc prints it.
pub(super) fn fifo_limit(name: &str, bound: Bound) -> String {
    let mut keys = Table::default();
    keys.put("bound", text(bound));
    let of = DISCIPLINES.iter().find(|of| of.name == name);
    of.and_then(|of| of.options.show(&keys)).unwrap_or_default()
}

const EXAMPLE: &str = "red limit 60000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.02";

/// The packets of `avpkt` and the `burst` of them say how much an arrival counts in the average.
fn red(name: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let place = |keys: &Table, key: &str| keys.key(key).map(|key| key.span.clone()).unwrap_or_default();
    let min = size_of(keys, "min").ok_or_else(|| missing(name, "min", EXAMPLE))?;
    let max = size_of(keys, "max").ok_or_else(|| missing(name, "max", EXAMPLE))?;
    if min >= max {
        return Err(Problem::new(format!("`min` is {min}, which is not below `max`, which is {max}"))
            .at(&place(keys, "min")));
    }
    let packet = size_of(keys, "avpkt");
    let given = number_of::<u64>(keys, "burst");
    let at = place(keys, if given.is_some() { "burst" } else { "min" });
    keys.remove("avpkt");
    keys.remove("burst");
    let Some(packet) = packet else { return Ok(()) };
    keys.put("typical-packet", text(packet));
    // The kernel's probability is the same for packets of any length; here it is for this one.
    keys.put("longest-packet", text(packet));
    let burst = given.unwrap_or((2 * min.get() + max.get()) / (3 * packet.get().max(1)));
    let weight = red_weight(min, burst, packet).ok_or_else(|| {
        Problem::new(format!("a burst of {burst} packets is too short for `min`, which is {min}"))
            .at(&at)
            .help(format!("it takes at least {} packets of `avpkt`", min.get() / packet.get().max(1)))
    })?;
    keys.put("weight", Value::Float(weight.to_string()));
    Ok(())
}

/// How much an arrival counts in the average, as tc has it (`tc_red_eval_ewma`): the greatest power of two with which `burst`
/// packets can come at once into an empty queue before the average is at `min`. Nothing where they never could.
fn red_weight(min: Bytes, burst: u64, packet: Bytes) -> Option<f64> {
    let above = burst as f64 + 1.0 - min.get() as f64 / packet.get() as f64;
    let weight = |log: i32| 1.0 / f64::from(1u32 << log);
    let holds = |weight: f64| above <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight;
    if above < 1.0 { None } else { (1..30).map(weight).find(|weight| holds(*weight)) }
}
