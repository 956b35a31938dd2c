//! A router of this host at the ports ([`Gateway`]): what it takes in, how packets leave, and what it sends itself.

use narrows_core::{Event, PortId, Time};
use narrows_frame::MacAddress;
use narrows_frame::answer::Notice;
use narrows_frame::edit::Edits;
use narrows_io::frame::{Frame, FramePool};
use narrows_io::packet_socket::Received;

use super::{DataLoop, Input, Outgoing};
use crate::gateway::{Arrival, Gateway, Waiting};
use crate::load::Load;

/// How a packet leaves by a port, apart from what the engine decided.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// The link addresses, source and destination, on the last link, if a router is at its near end.
    pub(super) stations: Option<(MacAddress, MacAddress)>,
    /// How many routers it passed outside the engine.
    pub(super) routed: u8,
    /// Whether it keeps the addresses and ports with which it came.
    pub(super) keeps_ends: bool,
    /// The frame, if its addresses are translated: it takes the place of the one that arrived.
    pub(super) translated: Option<Frame>,
}

impl Leaving {
    /// By way of a router; `None` if that does not know the next hop any more, or cannot translate the packet.
    pub(super) fn routed(
        gateway: &mut Gateway,
        port: PortId,
        event: &Event<'_, Load>,
        frames: &mut FramePool,
    ) -> Option<Self> {
        let port = port.index().into();
        let Load::Frame(frame) = event.body.get() else { return Some(Self::default()) };
        let stations = Some(gateway.stations(port, frame)?);
        let mut translated = None;
        if gateway.translates(port) {
            let mut copy = frames.instead_of(frame, frame);
            copy.finish();
            // Translation comes last: it replaces what a filter of a link may have written.
            Edits::of(event).write_ends(&mut copy);
            if !gateway.translate(event.at, &mut copy) {
                return None;
            }
            translated = Some(copy);
        }
        Some(Self { stations, routed: 1, translated, keeps_ends: false })
    }
}

impl DataLoop {
    /// Decides about the frames received at a line. Returns the instant of the last one.
    pub(super) fn route_in(&mut self, line: usize) -> Time {
        let now = self.clock.now();
        let at = usize::from(self.lines[line].port.index());
        let Some(mut gateway) = self.gateway.take() else { return now };
        let mut all = std::mem::take(&mut self.received);
        let mut last = now;
        for mut received in all.drain(..) {
            if gateway.translates(at) {
                // Translation changes what an incomplete checksum covers.
                received.frame.finish();
            }
            last = self.arrival(line, &received, now);
            match gateway.arrived(at, last, &mut received.frame) {
                Arrival::Crosses => self.take_in(last, at, received),
                Arrival::Waits(next) => {
                    if let Some(displaced) = gateway.wait(next, Waiting { from: at, received }) {
                        self.frames.recycle(displaced.frame);
                    }
                }
                Arrival::Stays => self.frames.recycle(received.frame),
            }
            for Waiting { from, received } in gateway.ready() {
                self.take_in(last, from, received);
            }
        }
        self.received = all;
        self.send_out(&mut gateway);
        self.gateway = Some(gateway);
        last
    }

    /// Does what is due at the router.
    pub(super) fn attend_gateway(&mut self, now: Time) {
        let Some(mut gateway) = self.gateway.take_if(|gateway| gateway.next().is_some_and(|at| at <= now))
        else {
            return;
        };
        gateway.attend(now);
        self.send_out(&mut gateway);
        self.gateway = Some(gateway);
    }

    /// The router tells a sender at this port about its packet, if possible; `None` if there is no router.
    pub(super) fn gateway_tells(
        &mut self,
        port: PortId,
        at: Time,
        frame: &[u8],
        notice: Notice,
    ) -> Option<bool> {
        let mut gateway = self.gateway.take()?;
        let told = gateway.tell(port.index().into(), at, frame, notice);
        self.send_out(&mut gateway);
        self.gateway = Some(gateway);
        Some(told)
    }

    /// The instant of a frame's arrival at a line.
    fn arrival(&mut self, line: usize, received: &Received, now: Time) -> Time {
        let arrival = self.lines[line].arrivals.of(received.stamp, now, &self.clock);
        if arrival.is_implausible {
            self.meter.implausibly_stamped();
        }
        self.last_input = arrival.at;
        arrival.at
    }

    fn take_in(&mut self, at: Time, from: usize, received: Received) {
        let (port, sequence) = (self.ports[from].id, self.sequence);
        self.inputs.push(Input { at, port, sequence, received });
        self.sequence += 1;
    }

    fn send_out(&mut self, gateway: &mut Gateway) {
        for (port, frame) in gateway.outbox() {
            let (port, frame) = (&self.ports[port], self.frames.frame(&frame));
            self.lines.let_out(port, Outgoing { port: port.id, passage: None, frame });
        }
    }
}
