//! What stands in a class in place of its queue: `scheduler = { … }`, or NetEm's single queue with `netem = "delay 10ms"`.

use crate::node::Table;
use crate::problem::Problem;
use crate::value::condition::Surroundings;
use crate::value::exact_netem::ExactNetem;
use crate::value::inline::Inline;
use crate::value::scheduler::Scheduler;

/// What takes the packets of a class.
#[derive(Clone, Debug, PartialEq)]
pub enum Child {
    /// Another scheduler.
    Scheduler(Box<Scheduler>),
    /// NetEm's single queue, exactly.
    Netem(ExactNetem),
}

pub(super) const KEYS: &[&str] = &["scheduler", "netem"];

impl Child {
    pub(super) fn read(table: &Table, surroundings: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        let stand: Vec<_> = ["queue", "scheduler", "netem"].iter().filter_map(|key| table.key(key)).collect();
        if let [first, second, ..] = stand[..] {
            return Err(Problem::new(format!("both `{}` and `{}` in one class", first.name, second.name))
                .at(&second.span)
                .also(&first.span, "the other")
                .help(
                    "packets of a class wait in a queue, in another scheduler or in netem: keep one of them",
                ));
        }
        if let Some(inner) =
            table.optional("scheduler", |node| Scheduler::read(node, surroundings))?.flatten()
        {
            return Ok(Some(Self::Scheduler(Box::new(inner))));
        }
        let netem = table.optional("netem", |node| ExactNetem::read(node, surroundings))?.flatten();
        Ok(netem.map(Self::Netem))
    }

    pub(super) fn write(&self, table: &mut Inline) {
        match self {
            Self::Scheduler(inner) => table.plain("scheduler", Some(inner.text())),
            Self::Netem(netem) => table.plain("netem", Some(netem.text())),
        }
    }

    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Scheduler(inner) => format!("in `{}`", inner.kind.name()),
            Self::Netem(netem) => format!("in netem: {netem}"),
        }
    }
}
