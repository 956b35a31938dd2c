//! Our ends of cables: what arrives there, and what waits to leave.

use std::ops::{Index, IndexMut};

use narrows_core::PortId;
use narrows_io::cable_end::CableEnd;

use super::arrivals::Arrivals;
use super::trains::Trains;
use super::{Outgoing, Port};
use crate::cabling::FarEnd;
use crate::testbed::{Cable, Plug};

/// Our end of one cable.
pub(super) struct Line {
    pub(super) end: CableEnd,
    /// The port at it.
    pub(super) port: PortId,
    /// Frames to be sent.
    pub(super) outgoing: Vec<Outgoing>,
    /// Arrival times of its frames.
    pub(super) arrivals: Arrivals,
    pub(super) trains: Trains,
    pub(super) far: Option<FarEnd>,
    /// Frames that were lost before they could be read.
    pub(super) lost: u64,
    /// Frames that the interface dropped after accepting them.
    pub(super) refused: u64,
}

/// Where a port is plugged in.
pub(super) struct Plugged {
    /// The index of the line.
    pub(super) line: usize,
    pub(super) plug: Plug,
}

/// All of them.
#[derive(Default)]
pub(super) struct Lines {
    all: Vec<Line>,
    /// Those with frames to send, by index: the one with the earliest due frame first.
    pub(super) sending: Vec<usize>,
}

impl Lines {
    /// Plugs cables into ports. Lines are in the order of their ports.
    pub(super) fn plug(
        mut cables: Vec<Cable>,
        ports: &mut [Port],
        find: impl Fn(&str) -> Option<PortId>,
    ) -> Self {
        let mut all = Vec::with_capacity(cables.len());
        cables.sort_by_key(|cable| cable.plugs.first().and_then(|plug| find(&plug.port)));
        for Cable { end, laid, far, plugs } in cables {
            let line = all.len();
            let mut at_it = None;
            for plug in plugs {
                let Some(port) = find(&plug.port) else { continue };
                ports[usize::from(port.index())].plugged = Some(Plugged { line, plug });
                at_it.get_or_insert(port);
            }
            all.extend(at_it.map(|port| Line {
                end,
                port,
                outgoing: Vec::new(),
                arrivals: Arrivals::since(laid),
                trains: Trains::default(),
                far,
                lost: 0,
                refused: 0,
            }));
        }
        Self { all, sending: Vec::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Line> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        self.all.iter_mut()
    }

    /// A frame is to leave at a port; nothing happens if there is no cable.
    pub(super) fn let_out(&mut self, port: &Port, outgoing: Outgoing) {
        let Some(plugged) = &port.plugged else { return };
        let line = &mut self.all[plugged.line];
        if line.outgoing.is_empty() {
            self.sending.push(plugged.line);
        }
        line.outgoing.push(outgoing);
    }

    /// Forgets those that have nothing to send any more.
    pub(super) fn forget_sent(&mut self) {
        let all = &self.all;
        self.sending.retain(|&at| !all[at].outgoing.is_empty());
    }

    /// What could not be sent from these is left to send, in the order of the lines.
    pub(super) fn go_on_with(&mut self, mut sending: Vec<usize>) {
        sending.retain(|&at| {
            let line = &mut self.all[at];
            !line.outgoing.is_empty() || line.end.has_unsent()
        });
        sending.sort_unstable();
        sending.dedup();
        self.sending = sending;
    }

    /// Takes the ends of all cables.
    pub(super) fn take_ends(&mut self) -> Vec<CableEnd> {
        self.all.drain(..).map(|line| line.end).collect()
    }
}

impl Index<usize> for Lines {
    type Output = Line;

    fn index(&self, at: usize) -> &Line {
        &self.all[at]
    }
}

impl IndexMut<usize> for Lines {
    fn index_mut(&mut self, at: usize) -> &mut Line {
        &mut self.all[at]
    }
}
