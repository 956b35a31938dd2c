//! Queues: `"13 packets"`, `"64kB"`, `"default"`, `{ bound = "13 packets", drop = "head" }`, and with queue management
//! `"codel"` or `{ type = "codel", target = "5ms", bound = "1000 packets" }`.

mod codel;
mod dualpi2;
mod pie;
mod red;

pub use codel::Codel;
pub use dualpi2::DualPi2;
pub use pie::Pie;
pub use red::Red;

pub(crate) use codel::KEYS as CODEL_KEYS;
pub(crate) use pie::KEYS as PIE_KEYS;

use narrows_core::aqm::Aqm;
use narrows_core::queue::{self, Bound, DropAt, Fifo};
use narrows_core::sched::{PolicyPerFlow, Store};

use crate::node::{Node, Table, Value, suggest};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// Where packets wait for the transmitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// How much may wait; nothing for the default.
    pub bound: Option<Bound>,
    /// Which packet goes when it is full.
    pub drop: DropAt,
    /// What drops or marks packets earlier.
    pub policy: Policy,
}

/// Queue management: what drops or marks packets before a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Nothing: first in, first out.
    #[default]
    Fifo,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// Proportional integral controller, enhanced.
    Pie(Pie),
    /// Two coupled queues, one of them for packets with ECT(1): a queue of its own, first in, first out in each half.
    DualPi2(DualPi2),
}

/// Makes policies that are alike and share their parameters.
type Maker = Box<dyn Fn() -> Box<dyn Aqm> + Send>;

/// The words for the types of queues.
pub(crate) const TYPES: &[&str] = &["fifo", "red", "gred", "codel", "pie", "dualpi2"];

const DROPS: &[(&str, DropAt)] = &[("tail", DropAt::Tail), ("head", DropAt::Head)];
const BOUND_HELP: &str = "or a bound, like \"13 packets\" or \"64kB\"";

/// The keys of a queue of this type.
pub(crate) fn keys(name: &str) -> Vec<&'static str> {
    let own = match name {
        "red" => red::KEYS,
        // Gentle by its name.
        "gred" => &red::KEYS[..red::KEYS.len() - 1],
        "codel" => codel::KEYS,
        "pie" => pie::KEYS,
        "dualpi2" => dualpi2::KEYS,
        _ => &[],
    };
    let common: &[&str] = if name == "dualpi2" { &["type", "bound"] } else { &["type", "bound", "drop"] };
    [common, own].concat()
}

/// Every key that some type of queue has.
pub(crate) fn all_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = TYPES.iter().flat_map(|name| keys(name)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Queue {
    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        match &node.value {
            Value::Table(table) => Self::read_table(node, table),
            Value::String(text) if text.trim().starts_with(|c: char| c.is_ascii_alphabetic()) => {
                match text.trim() {
                    "default" => Ok(Self::default()),
                    name => {
                        Ok(Self { policy: Policy::read(name, node, &Table::default())?, ..Self::default() })
                    }
                }
            }
            _ => Ok(Self { bound: Self::read_bound(node)?, ..Self::default() }),
        }
    }

    fn read_table(node: &Node, table: &Table) -> Result<Self, Problem> {
        let name = table.optional("type", |node| {
            let name = node.text("a type of queue")?.trim();
            type_of(name, node).map(|()| name)
        })?;
        let name = name.unwrap_or("fifo");
        only(table, name)?;
        Ok(Self {
            bound: table.optional("bound", Self::read_bound)?.flatten(),
            drop: table.optional("drop", Self::read_drop)?.unwrap_or_default(),
            policy: Policy::read(name, node, table)?,
        })
    }

    pub(crate) fn read_bound(node: &Node) -> Result<Option<Bound>, Problem> {
        match &node.value {
            Value::String(text) if text.trim() == "default" => Ok(None),
            _ => units::bound(node).map(Some),
        }
    }

    pub(crate) fn read_drop(node: &Node) -> Result<DropAt, Problem> {
        node.choice("place to drop", DROPS)
    }

    /// The engine's queue. `default` is the bound where none is given.
    pub(crate) fn build(self, default: Bound) -> Box<dyn queue::Queue> {
        let bound = self.bound.unwrap_or(default);
        match self.policy {
            Policy::DualPi2(dualpi2) => dualpi2.build(bound),
            policy => match policy.maker() {
                Some(make) => Box::new(Fifo::managed(bound, self.drop, make())),
                None => Box::new(Fifo::new(bound, self.drop)),
            },
        }
    }

    /// Makes stores alike: how packets wait in a class or flow of a scheduler, which keeps the bound itself.
    pub(crate) fn stores(self, default: Bound) -> Box<dyn Fn() -> Store> {
        match (self.policy, self.policy.maker()) {
            (Policy::DualPi2(_), _) => Box::new(move || Store::Queue(self.build(default))),
            (_, Some(make)) => Box::new(move || Store::Managed(make())),
            (_, None) => Box::new(|| Store::Plain),
        }
    }

    /// What manages each flow of a set, if anything does.
    pub(crate) fn per_flow(self) -> Option<PolicyPerFlow> {
        self.policy.maker().map(PolicyPerFlow::new)
    }

    pub(crate) fn text(self) -> String {
        match (self.drop, self.policy, self.bound) {
            (DropAt::Tail, Policy::Fifo, None) => "\"default\"".into(),
            (DropAt::Tail, Policy::Fifo, Some(bound)) => format!("\"{bound}\""),
            _ => self.table_text(),
        }
    }

    /// As a table, even where it could be shorter.
    pub(crate) fn table_text(self) -> String {
        let mut table = Inline::default();
        table.quoted("type", Some(self.policy.name()));
        table.quoted("bound", self.bound);
        table.quoted("drop", (self.drop == DropAt::Head).then_some("head"));
        self.policy.write(&mut table);
        table.finish()
    }

    /// Whether `drop` means something.
    pub(crate) fn has_place_to_drop(self) -> bool {
        !matches!(self.policy, Policy::DualPi2(_))
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// That a word is a type of queue.
fn type_of(name: &str, node: &Node) -> Result<(), Problem> {
    if TYPES.contains(&name) {
        return Ok(());
    }
    let problem = Problem::new(format!("{} is no type of queue", node.found())).at(&node.span);
    Err(suggest(problem, name, TYPES).help(BOUND_HELP))
}

/// That a table has only keys of this type; says which type has the one that it should not have.
fn only(table: &Table, name: &str) -> Result<(), Problem> {
    table.only(&keys(name)).map_err(|problem| {
        let unknown = table.iter().find(|(key, _)| !keys(name).contains(&key.name.as_str()));
        let of =
            |key: &str| TYPES.iter().copied().filter(|name| keys(name).contains(&key)).collect::<Vec<_>>();
        match unknown.map(|(key, _)| (key, of(&key.name))) {
            Some((key, types)) if !types.is_empty() => {
                let types: Vec<String> = types.iter().map(|name| format!("`{name}`")).collect();
                problem.help(format!("`{}` goes with the type {}", key.name, types.join(", ")))
            }
            _ => problem,
        }
    })
}

impl Policy {
    /// Reads what a table says of the queue management of this type.
    fn read(name: &str, node: &Node, table: &Table) -> Result<Self, Problem> {
        type_of(name, node)?;
        Ok(match name {
            "red" => Self::Red(Red::read(node, table, false)?),
            "gred" => Self::Red(Red::read(node, table, true)?),
            "codel" => Self::Codel(Codel::read(node, table)?),
            "pie" => Self::Pie(Pie::read(table)?),
            "dualpi2" => Self::DualPi2(DualPi2::read(table)?),
            _ => Self::Fifo,
        })
    }

    /// Makes the engine's, each for one FIFO; nothing where there is none, or where it is more than that.
    fn maker(self) -> Option<Maker> {
        match self {
            Self::Fifo | Self::DualPi2(_) => None,
            Self::Red(red) => Some(red.maker()),
            Self::Codel(codel) => Some(codel.maker()),
            Self::Pie(pie) => Some(pie.maker()),
        }
    }

    /// Its type, as it stands in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    /// Adds what differs from the defaults to a table.
    pub(crate) fn write(self, table: &mut Inline) {
        match self {
            Self::Fifo => {}
            Self::Red(red) => red.write(table),
            Self::Codel(codel) => codel.write(table),
            Self::Pie(pie) => pie.write(table),
            Self::DualPi2(dualpi2) => dualpi2.write(table),
        }
    }

    /// With all values in force, for people; nothing where there is none.
    pub(crate) fn words(self) -> Option<String> {
        match self {
            Self::Fifo => None,
            Self::Red(red) => Some(red.words()),
            Self::Codel(codel) => Some(codel.words()),
            Self::Pie(pie) => Some(pie.words()),
            Self::DualPi2(dualpi2) => Some(dualpi2.words()),
        }
    }
}
