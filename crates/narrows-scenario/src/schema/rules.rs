//! Links with rules: their tables, pipes, queues and masks.

#![expect(dead_code, reason = "the types are there for their schema alone")]

use schemars::JsonSchema;

use super::from_rows::{DirectionKeys, Loss, Mask, Queue, Size, Time};

/// A link to which rules send packets: all that one direction of a link does, and what makes links on first use.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Pipe {
    /// Makes a link of its own for each flow that this tells apart.
    mask: Option<Mask>,
    /// The most links that the mask makes at a time; 4096 if it is not given.
    #[schemars(range(min = 1, max = 1_048_576))]
    most: Option<u32>,
    /// Links and flows that masks have made are given up when nothing has been in them for so long; 1s if it is not given.
    idle: Option<Time>,
    #[schemars(flatten)]
    direction: DirectionKeys,
}

/// A queue that shares the transmitter of a pipe with others, or with a mask one for each flow.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PipeQueue {
    /// The number of the pipe.
    #[schemars(range(min = 1, max = 65_534))]
    pipe: u32,
    /// Its share relative to the other queues, or that of each flow; 1 if it is not given.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    weight: Option<u32>,
    /// With `prio`: lower ones go first; 0 if it is not given.
    #[schemars(range(min = 0, max = 65_535))]
    priority: Option<u32>,
    /// With `qfq` and `gfq`: the longest packet that is expected; 1500 bytes if it is not given.
    longest: Option<Size>,
    /// Makes a queue of its own for each flow that this tells apart.
    mask: Option<Mask>,
    /// How much may wait in it, or in each flow, and what manages that; as in the pipe if it is not given.
    queue: Option<Queue>,
    /// Packets that are lost by chance before they get there.
    loss: Option<Loss>,
    /// The most flows that the mask makes at a time; 65536 if it is not given.
    #[schemars(range(min = 1, max = 1_048_576))]
    most: Option<u32>,
}
