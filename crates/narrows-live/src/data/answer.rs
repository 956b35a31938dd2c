//! Frames that the network itself sends: by routers, and, where there are none, by the far host on behalf of one.

use narrows_core::{Bytes, DropReason, Duration, Element, Event, LinkId, PortId, Time, Verdict};
use narrows_frame::LinkLayer;
use narrows_frame::answer::IcmpError;
use narrows_frame::parse::parse;
use narrows_io::frame::Frame;

use super::{DataLoop, LoopError, Outgoing};
use crate::load::Load;
use crate::router::Occasion;

/// What a packet's event requires to be sent, and by whom.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// An error from the router with this number.
    Router(Element, IcmpError),
    /// A reply from the router with this port.
    Own(PortId),
    /// "Packet too big", to the sender into this link.
    TooLong(LinkId),
}

impl Told {
    /// What an event requires; most require nothing.
    pub(super) fn of(event: &Event<'_, Load>, is_router: impl Fn(PortId) -> bool) -> Option<Self> {
        match event.verdict {
            Verdict::Delivered(port) => is_router(port).then_some(Self::Own(port)),
            Verdict::Dropped { at: Some(router @ Element::Router(_)), reason } => match reason {
                DropReason::HopLimit => Some(Self::Router(router, IcmpError::HopLimit)),
                DropReason::NoRoute => Some(Self::Router(router, IcmpError::NoRoute)),
                _ => None,
            },
            Verdict::Dropped { at: Some(Element::Link(link)), reason: DropReason::TooLong } => {
                Some(Self::TooLong(link))
            }
            Verdict::Dropped { .. } => None,
        }
    }
}

impl DataLoop {
    /// Sends what is required about a frame that arrived at the port `from` and got its verdict at `at`.
    pub(super) fn tell(&mut self, at: Time, from: PortId, told: Told, frame: Frame) -> Result<(), LoopError> {
        match told {
            Told::Own(port) => self.answer_by(at, port, Occasion::Own, &frame)?,
            Told::Router(router, error) => {
                let port = self.routers.port(self.engine.element_name(router));
                if let Some(port) = port {
                    self.answer_by(at, port, Occasion::Dropped(error), &frame)?;
                }
            }
            Told::TooLong(link) => {
                let view = self.engine.view(link);
                let mtu = Bytes::new(view.mtu().map_or(0, |mtu| mtu.bytes.into()));
                let destination = parse(LinkLayer::Ethernet, &frame).key.destination;
                match self.routers.sender_into(view.name(), destination) {
                    Some(port) => {
                        self.answer_by(at, port, Occasion::Dropped(IcmpError::TooBig(mtu)), &frame)?;
                    }
                    None if self.gateway_tells(from, at, &frame, mtu) => {}
                    None => self.answer_at(from, mtu, &frame),
                }
            }
        }
        self.frames.recycle(frame);
        Ok(())
    }

    /// A router replies, without processing time: into the network, at its own port.
    fn answer_by(
        &mut self,
        at: Time,
        port: PortId,
        occasion: Occasion,
        frame: &[u8],
    ) -> Result<(), LoopError> {
        // Later only if an input preceded it that the engine learned of too late.
        let at = at.max(self.engine.now());
        if !self.routers.answer(at, port, occasion, frame, &mut self.made) {
            return Ok(());
        }
        let packet = parse(LinkLayer::Ethernet, &self.made);
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(at, Duration::ZERO, port, &self.made, packet.examined)?;
        }
        self.frames_inside += 1;
        self.engine.hand_in(at, port, packet.with(Load::Frame(self.frames.frame(&self.made))));
        Ok(())
    }

    /// The host behind the link tells the sender, at once: there is no router on the path that could.
    fn answer_at(&mut self, port: PortId, mtu: Bytes, frame: &[u8]) {
        let port = &mut self.ports[usize::from(port.index())];
        let Some(cable) = &port.cable else { return };
        if cable.neighbours.too_big(frame, mtu, &mut self.made) {
            if port.outgoing.is_empty() {
                self.sending.push(port.id.index());
            }
            port.outgoing.push(Outgoing { passage: None, frame: self.frames.frame(&self.made) });
        }
    }
}
