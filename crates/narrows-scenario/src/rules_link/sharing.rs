//! Schedulers that share a pipe among queues.

use narrows_core::Bytes;

use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::value::{Scheduler, SchedulerKind};

/// The scheduler that shares the transmitter of a pipe among its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The algorithm: one of [`Sharing::KINDS`].
    pub kind: SchedulerKind,
    /// Quantum of weight 1, if the algorithm has one; `None` for the default.
    pub quantum: Option<Bytes>,
}

impl Default for Sharing {
    /// ipfw's default.
    fn default() -> Self {
        Self { kind: SchedulerKind::Wf2q, quantum: None }
    }
}

impl Sharing {
    /// The schedulers that can share a pipe among queues.
    pub const KINDS: [SchedulerKind; 7] = [
        SchedulerKind::Fifo,
        SchedulerKind::Prio,
        SchedulerKind::Drr,
        SchedulerKind::Wf2q,
        SchedulerKind::Qfq,
        SchedulerKind::Gfq,
        SchedulerKind::Kps,
    ];

    /// Reads a scheduler with only an algorithm and a quantum; `None` for one with other settings or
    /// another algorithm.
    pub(super) fn read(node: &Node, around: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        let kind_of = |node: &Node| match &node.value {
            Value::String(text) => {
                SchedulerKind::from_name(text.trim()).filter(|kind| Self::KINDS.contains(kind))
            }
            _ => None,
        };
        match &node.value {
            Value::Table(table)
                if table.iter().all(|(key, _)| ["type", "quantum"].contains(&key.name.as_str())) =>
            {
                let Some(kind) = table.get("type").and_then(kind_of) else { return Ok(None) };
                if let (Some(key), None) = (table.key("quantum"), kind.about().quantum) {
                    return Err(Problem::new(format!("`{}` has no quantum", kind.name())).at(&key.span));
                }
                let quantum = table.optional("quantum", |node| Scheduler::read_quantum(node, around))?;
                Ok(Some(Self { kind, quantum }))
            }
            _ => Ok(kind_of(node).map(|kind| Self { kind, quantum: None })),
        }
    }

    /// The effective quantum, if there is one.
    pub fn quantum(self) -> Option<Bytes> {
        self.quantum.or(self.kind.about().quantum)
    }

    /// Whether queues have weights.
    pub(crate) fn has_weights(self) -> bool {
        self.kind.about().weights
    }

    /// As written in a file.
    pub(crate) fn value(self) -> Value {
        let name = text(self.kind.name());
        let Some(quantum) = self.quantum else { return name };
        let mut table = Table::default();
        table.put("type", name);
        table.put("quantum", text(quantum));
        Value::Table(table)
    }
}
