//! Sends and receives while the loop waits, if the kernel can do it all in one call ([`Exchange`]): frames due to
//! leave stay with their port until then. Time does not advance in between.

use narrows_io::exchange::{Exchange, Exchanged};
use narrows_io::packet_socket::PacketSocket;

use super::poll_set::PollSet;
use super::release::left;
use super::{DataLoop, LoopError, Outgoing, Port};

/// For all ports, if each is polled individually and is a packet socket without trains.
pub(super) fn of(ports: &[Port], poll_set: &PollSet) -> Option<Exchange> {
    let cabled = poll_set.waited_for();
    let fit = sockets(ports, poll_set).iter().filter(|(socket, _)| !socket.carries_trains()).count();
    if cabled.is_empty() || fit < cabled.len() {
        return None;
    }
    Exchange::new(fit)
}

/// The sockets polled, with the frames to send, in order of the ports.
pub(super) fn sockets<'a>(ports: &'a [Port], poll_set: &PollSet) -> Vec<(&'a PacketSocket, &'a [Outgoing])> {
    let ports = poll_set.waited_for().iter().map(|&at| &ports[at]);
    ports
        .filter_map(|port| Some((port.cable.as_ref()?.end.packet_socket()?, port.outgoing.as_slice())))
        .collect()
}

impl DataLoop {
    /// Whether frames are sent while the loop waits.
    pub(super) fn sends_in_waiting(&self) -> bool {
        let few = |&at: &u16| self.ports[usize::from(at)].outgoing.len() <= Exchange::FRAMES;
        // Frames that an interface refused are sent separately.
        self.exchange.is_some() && !self.is_stuck && self.sending.iter().all(few)
    }

    /// Processes the result of an exchange: counts what was sent, and sends the rest separately.
    pub(super) fn exchanged(&mut self, exchanged: Exchanged) -> Result<(), LoopError> {
        let now = self.clock.now();
        for (&at, count) in self.poll_set.waited_for().iter().zip(exchanged.sent) {
            let port = &mut self.ports[at];
            if let Some(capture) = self.capture.as_mut().filter(|_| count > 0) {
                let sent = port.outgoing[..count].iter().map(Outgoing::captured);
                capture.stage(self.engine.now(), port.id, sent);
                capture.sent(now, count, false);
            }
            left(&mut self.meter, port.id, &port.outgoing[..count], now..now);
            for outgoing in port.outgoing.drain(..count) {
                self.frames.recycle(outgoing.frame);
            }
        }
        let ports = &self.ports;
        self.sending.retain(|&at| !ports[usize::from(at)].outgoing.is_empty());
        // What was not sent, and the capture, if there is one.
        self.let_leave()?;
        match exchanged.waited {
            Some((_, now)) => self.clock.go_on_from(now),
            None => self.clock.go_on(),
        }
        Ok(())
    }

    /// Takes what an exchange received at a port, if not taken yet; returns the number of frames.
    pub(super) fn take_exchanged(&mut self, at: usize) -> Option<usize> {
        let exchange = self.exchange.as_mut()?;
        let place = self.poll_set.waited_for().iter().position(|&other| other == at)?;
        let socket = self.ports[at].cable.as_mut()?.end.packet_socket_mut()?;
        let steady = self.batch.steady_offset()?;
        exchange.take(place, socket, steady, &mut self.frames, &mut self.received)
    }
}
