//! Parameters of the time-aware shaper (TAPRIO): `{ type = "taprio", classes = [{ name = "control" }, { name = "rest" }], schedule
//! = [{ lasts = "300us", open = ["control"] }, { lasts = "700us", open = ["rest"] }] }`.

use narrows_core::Duration;
use narrows_core::Time as Instant;
use narrows_core::sched::{Taprio as Gates, TaprioEntry};

use super::Scheduler;
use super::own::OwnParameters;
use super::plan::{Refusal, Why};
use crate::keys::compound::{Group, Items, List};
use crate::keys::kind::{Given, Text};
use crate::keys::quantity::Time;
use crate::keys::{Keyed, Row, row};
use crate::problem::Problem;

/// Parameters of the time-aware shaper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taprio {
    /// The entries of the schedule.
    pub(super) schedule: Vec<Entry>,
    /// When it starts.
    pub(super) start: Duration,
    /// Its cycle, if it is not the sum of the entries.
    pub(super) cycle: Option<Duration>,
}

/// An entry of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// How long it lasts.
    pub(super) lasts: Duration,
    /// The classes whose gates are open.
    pub(super) open: Vec<String>,
}

const ENTRY: Group<Entry> = Group::new(
    "TaprioEntry",
    "A time of a schedule, and the classes whose gates are open in it.",
    "{ lasts = \"300us\", open = [\"control\"] }",
);
const SCHEDULE: List<Group<Entry>> = List {
    what: "a list of times, such as [{ lasts = \"300us\", open = [\"control\"] }]",
    most: 1024,
    one: ENTRY,
};
const OPEN: Items<Text> = Items {
    words: "list of names of classes",
    expected: "a list of classes, such as [\"control\"]",
    of: Text("a class"),
};

impl Keyed for Entry {
    const ROWS: &'static [Row<Self>] = &[
        row!("lasts", lasts, Time::POSITIVE, "How long it lasts.")
            .required_with("as in: { lasts = \"300us\", open = [\"control\"] }"),
        row!("open", open, OPEN, "The classes whose gates are open; those of all others are closed.")
            .default("none"),
    ];
}

impl Keyed for Taprio {
    const ROWS: &'static [Row<Self>] = &[
        row!("schedule", schedule, SCHEDULE, "Times, which follow each other without end, and the classes that may send in each.")
            .required_with("as in: schedule = [{ lasts = \"300us\", open = [\"control\"] }, { lasts = \"700us\", open = [\"rest\"] }]"),
        row!("start", start, Time::ANY, "When the schedule starts; before that, all gates are open."),
        row!("cycle", cycle, Given(Time::POSITIVE), "When the schedule begins anew. A shorter cycle than the sum cuts it off; in a longer one, the last entry lasts longer.")
            .default("the sum of its entries"),
    ];
}

impl Taprio {
    /// The engine's scheduler, for these classes in the order of their bands.
    pub(super) fn gates(&self, classes: &[&str]) -> Result<Gates, Refusal> {
        let refused = |why: String| Refusal { class: None, why: Why::Schedule(why) };
        if classes.len() > Gates::BANDS as usize {
            return Err(refused(format!("{} classes: at most {}", classes.len(), Gates::BANDS)));
        }
        let mut entries = Vec::new();
        for Entry { lasts, open } in &self.schedule {
            let mut mask = 0;
            for name in open {
                let Some(band) = classes.iter().position(|class| class == name) else {
                    return Err(refused(format!("its schedule opens `{name}`, which is no class of it")));
                };
                mask |= 1 << band;
            }
            entries.push(TaprioEntry { lasts: *lasts, open: mask });
        }
        Gates::new(Instant::ZERO + self.start, &entries, self.cycle)
            .ok_or_else(|| refused("its schedule has no entry".into()))
    }
}

impl Scheduler {
    /// Whether its schedule, if it has one, starts with the link.
    pub(crate) fn starts_at_once(&self) -> bool {
        self.own.get::<Taprio>().is_none_or(|taprio| taprio.start == Duration::ZERO)
    }

    /// The entries of its schedule, each with the open classes by their numbers, and its cycle if that is given.
    pub(crate) fn schedule(&self) -> (Vec<(Duration, Vec<usize>)>, Option<Duration>) {
        let Some(taprio) = self.own.get::<Taprio>() else { return (Vec::new(), None) };
        let number = |name: &String| self.named().iter().position(|class| class.name == *name);
        let entry = |entry: &Entry| (entry.lasts, entry.open.iter().filter_map(number).collect());
        (taprio.schedule.iter().map(entry).collect(), taprio.cycle)
    }
}

impl OwnParameters for Taprio {
    fn effective(&self) -> String {
        let entry = |entry: &Entry| match &entry.open[..] {
            [] => format!("{} none", entry.lasts),
            open => format!("{} {}", entry.lasts, open.join(" and ")),
        };
        let entries: Vec<String> = self.schedule.iter().map(entry).collect();
        let sum = self.schedule.iter().fold(Duration::ZERO, |sum, entry| sum + entry.lasts);
        let cycle = self.cycle.unwrap_or(sum);
        let start = match self.start {
            Duration::ZERO => String::new(),
            start => format!(", from {start} on"),
        };
        format!("; open every {cycle}{start}: {}", entries.join(", "))
    }

    fn missing(&self) -> Option<Problem> {
        self.schedule.is_empty().then(|| {
            Problem::new("`taprio` has no schedule")
                .help("as in: schedule = [{ lasts = \"300us\", open = [\"control\"] }, { lasts = \"700us\", open = [\"rest\"] }]")
        })
    }
}
