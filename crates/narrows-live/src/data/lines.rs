//! Our ends of cables: what arrives there, and what waits to leave.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use narrows_core::{PortId, Time};
use narrows_io::cable_end::CableEnd;
use narrows_io::link::InterfaceIndex;
use narrows_io::packet_socket::{Received, Sent};

use super::arrivals::Arrivals;
use super::trains::Trains;
use super::{Outgoing, Port};
use crate::cabling::FarEnd;
use crate::testbed::{Cable, Plug};

/// Our end of one cable.
pub(super) struct Line {
    pub(super) end: CableEnd,
    /// The port at it, or the first of several.
    pub(super) port: PortId,
    lanes: Lanes,
    /// Frames to be sent.
    pub(super) outgoing: Vec<Outgoing>,
    /// Arrival times of its frames.
    pub(super) arrivals: Arrivals,
    pub(super) trains: Trains,
    pub(super) far: Option<FarEnd>,
    /// Frames that were lost before they could be read.
    pub(super) lost: u64,
    /// Those of a shared line that are not split among its ports yet.
    pub(super) unsplit: u64,
    /// Frames that the interface dropped after accepting them.
    pub(super) refused: u64,
}

impl Line {
    /// Whether several ports share it.
    pub(super) fn is_shared(&self) -> bool {
        !self.lanes.by_place.is_empty()
    }

    /// Puts the frames of one port, whose interface accepts none now, behind those of others; they stay in order. Returns
    /// where they begin.
    pub(super) fn set_aside(&mut self, first: usize, end: usize) -> usize {
        let frames = &mut self.outgoing[first..end];
        let port = frames.first().map(|outgoing| outgoing.port);
        frames.sort_by_key(|outgoing| Some(outgoing.port) == port);
        end - frames.iter().rev().take_while(|outgoing| Some(outgoing.port) == port).count()
    }

    /// Takes out the oldest frames of each port that has more than this many waiting.
    pub(super) fn give_up(&mut self, most: usize) -> Vec<Outgoing> {
        if self.outgoing.len() <= most {
            return Vec::new();
        }
        let mut waiting: BTreeMap<PortId, usize> = BTreeMap::new();
        self.outgoing.iter().for_each(|outgoing| *waiting.entry(outgoing.port).or_default() += 1);
        let is_one_too_many = |outgoing: &mut Outgoing| {
            let left = waiting.entry(outgoing.port).or_default();
            let is = *left > most;
            *left -= usize::from(is);
            is
        };
        self.outgoing.extract_if(.., is_one_too_many).collect()
    }

    /// The port that a frame came to; `None` for one of no port.
    pub(super) fn port_of(&self, received: &Received) -> Option<PortId> {
        match received.interface {
            None => Some(self.port),
            Some(interface) => self.lanes.get(interface),
        }
    }
}

/// The ports at a line with several, by the interfaces of their cables, whose numbers are close to each other.
#[derive(Default)]
struct Lanes {
    /// The interface of the first place.
    first: u32,
    by_place: Vec<Option<PortId>>,
}

impl Lanes {
    /// Interfaces come in the order of their numbers.
    fn add(&mut self, interface: InterfaceIndex, port: PortId) {
        if self.by_place.is_empty() {
            self.first = interface.0;
        }
        let place = interface.0.saturating_sub(self.first) as usize;
        self.by_place.resize(self.by_place.len().max(place + 1), None);
        self.by_place[place] = Some(port);
    }

    fn get(&self, interface: InterfaceIndex) -> Option<PortId> {
        let place = interface.0.checked_sub(self.first)?;
        *self.by_place.get(place as usize)?
    }
}

/// Where a port is plugged in.
pub(super) struct Plugged {
    /// The index of the line.
    pub(super) line: usize,
    pub(super) plug: Plug,
}

/// Splits lost frames among ports by how many each misses, the one that misses most first; what none misses is counted at
/// `otherwise`.
fn split(lost: u64, mut missing: Vec<(u64, PortId)>, otherwise: PortId) -> Vec<(PortId, u64)> {
    missing.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = lost;
    let mut losers = Vec::new();
    for (count, port) in missing {
        let count = count.min(left);
        left -= count;
        losers.extend((count > 0).then_some((port, count)));
    }
    losers.extend((left > 0).then_some((otherwise, left)));
    losers
}

/// Sends frames of a line, each to its port.
pub(super) fn send(end: &mut CableEnd, frames: &mut [Outgoing], ports: &[Port]) -> Sent {
    end.send_each(frames, |outgoing| {
        let plugged = ports[usize::from(outgoing.port.index())].plugged.as_ref();
        let lane = plugged.and_then(|plugged| plugged.plug.lane.as_ref());
        // The kernel knows no interface 0: the frame counts as refused.
        lane.map_or(InterfaceIndex(0), |lane| lane.interface)
    })
}

/// All of them.
#[derive(Default)]
pub(super) struct Lines {
    all: Vec<Line>,
    /// Those with frames to send, by index: the one with the earliest due frame first.
    pub(super) sending: Vec<usize>,
    /// When losses were last split.
    pub(super) split_at: Time,
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
            let (mut at_it, mut lanes) = (None, Lanes::default());
            for plug in plugs {
                let Some(port) = find(&plug.port) else { continue };
                if let Some(lane) = &plug.lane {
                    lanes.add(lane.interface, port);
                }
                ports[usize::from(port.index())].plugged = Some(Plugged { line, plug });
                at_it.get_or_insert(port);
            }
            all.extend(at_it.map(|port| Line {
                end,
                port,
                lanes,
                outgoing: Vec::new(),
                arrivals: Arrivals::since(laid),
                trains: Trains::default(),
                far,
                lost: 0,
                unsplit: 0,
                refused: 0,
            }));
        }
        Self { all, sending: Vec::new(), split_at: Time::ZERO }
    }

    /// Splits what a line has lost among its ports, by what their hosts have sent.
    pub(super) fn losers(&self, line: usize, lost: u64, ports: &mut [Port]) -> Vec<(PortId, u64)> {
        let line = &self.all[line];
        if !line.is_shared() || lost == 0 {
            return vec![(line.port, lost)];
        }
        let mut missing = Vec::new();
        for port in line.lanes.by_place.iter().flatten() {
            let Port { came, plugged, .. } = &mut ports[usize::from(port.index())];
            if let Some(lane) = plugged.as_mut().and_then(|plugged| plugged.plug.lane.as_mut()) {
                missing.push((lane.far.sent().saturating_sub(*came), *port));
            }
        }
        let losers = split(lost, missing, line.port);
        losers.iter().for_each(|&(port, count)| ports[usize::from(port.index())].came += count);
        losers
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

#[cfg(test)]
mod tests {
    use narrows_core::{Engine, NetworkConfig, PortConfig, Seed, Target};

    use super::*;

    #[test]
    fn what_is_lost_is_counted_where_it_is_missing() {
        let mut config = NetworkConfig::new(Seed(1));
        for name in ["a", "b", "c"] {
            config.ports.push(PortConfig { name: name.into(), entry: Target::Port("a".into()) });
        }
        let engine: Engine<()> = Engine::new(config).unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| engine.port(name).unwrap());
        let missing = || vec![(3, a), (0, b), (10, c)];
        assert_eq!(split(0, missing(), a), []);
        assert_eq!(split(13, missing(), a), [(c, 10), (a, 3)]);
        // Others are on their way.
        assert_eq!(split(4, missing(), a), [(c, 4)]);
        // A counter that is not there any more.
        assert_eq!(split(15, missing(), b), [(c, 10), (a, 3), (b, 2)]);
    }
}
