//! Sends and receives while the loop waits, if the kernel can do it all in one call ([`Exchange`]): frames due to
//! leave stay with their line until then. Time does not advance in between.

use narrows_core::{Duration, Time};
use narrows_io::exchange::{Exchange, Exchanged};
use narrows_io::packet_socket::PacketSocket;

use super::lines::Lines;
use super::poll_set::PollSet;
use super::release::left;
use super::{DataLoop, LoopError, Outgoing};

/// For how long frames are gathered, at most: they must fit into the sockets.
const MOST_GATHERED: Duration = Duration::from_millis(1);

/// For all lines, if each is polled individually and is a packet socket without trains.
pub(super) fn of(lines: &Lines, poll_set: &PollSet) -> Option<Exchange> {
    let all = poll_set.waited_for();
    let fit = sockets(lines, poll_set).iter().filter(|(socket, _)| !socket.carries_trains()).count();
    if all.is_empty() || fit < all.len() {
        return None;
    }
    Exchange::new(fit)
}

/// The sockets polled, with the frames to send, in order of the lines.
pub(super) fn sockets<'a>(lines: &'a Lines, poll_set: &PollSet) -> Vec<(&'a PacketSocket, &'a [Outgoing])> {
    let lines = poll_set.waited_for().iter().map(|&at| &lines[at]);
    lines.filter_map(|line| Some((line.end.packet_socket()?, line.outgoing.as_slice()))).collect()
}

impl DataLoop {
    /// Whether frames that come before `until` can be read then: until then none of them is due to leave, and no other is
    /// to be made because of them.
    pub(super) fn may_gather(&self, now: Time, until: Time) -> bool {
        let has_feeds = self.feeds.as_ref().is_some_and(|feeds| !feeds.is_empty());
        let only_carries = self.gateway.is_none() && self.traffic.is_none() && !has_feeds;
        // Steps may be counted from the first packet.
        let has_begun = self.last_input > Time::ZERO;
        self.sends_in_waiting()
            && only_carries
            && has_begun
            && until.since(now) <= MOST_GATHERED.min(self.engine.least_transit())
    }

    /// Whether frames are sent while the loop waits.
    pub(super) fn sends_in_waiting(&self) -> bool {
        let few = |&at: &usize| self.lines[at].outgoing.len() <= Exchange::FRAMES;
        // Frames that an interface refused are sent separately.
        self.exchange.is_some() && !self.is_stuck && self.lines.sending.iter().all(few)
    }

    /// Processes the result of an exchange: counts what was sent, and sends the rest separately.
    pub(super) fn exchanged(&mut self, exchanged: Exchanged) -> Result<(), LoopError> {
        let now = self.clock.now();
        for (&at, count) in self.poll_set.waited_for().iter().zip(exchanged.sent) {
            let line = &mut self.lines[at];
            if let Some(capture) = self.capture.as_mut().filter(|_| count > 0) {
                let sent = line.outgoing[..count].iter().map(Outgoing::captured);
                capture.stage(self.engine.now(), sent);
                capture.sent(now, count, false);
            }
            left(&mut self.meter, &line.outgoing[..count], now..now);
            for outgoing in line.outgoing.drain(..count) {
                self.frames.recycle(outgoing.frame);
            }
        }
        self.lines.forget_sent();
        // What was not sent, and the capture, if there is one.
        self.let_leave()?;
        match exchanged.waited {
            Some((_, now)) => self.clock.go_on_from(now),
            None => self.clock.go_on(),
        }
        Ok(())
    }

    /// Takes what an exchange received at a line, if not taken yet; returns the number of frames.
    pub(super) fn take_exchanged(&mut self, at: usize) -> Option<usize> {
        let exchange = self.exchange.as_mut()?;
        let place = self.poll_set.waited_for().iter().position(|&other| other == at)?;
        let socket = self.lines[at].end.packet_socket_mut()?;
        let steady = self.batch.steady_offset()?;
        exchange.take(place, socket, steady, &mut self.frames, &mut self.received)
    }
}
