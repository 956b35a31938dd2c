//! Frames that the network itself sends: by routers, and, where there are none, by the far host on behalf of one.

use narrows_core::rules::Answer;
use narrows_core::{Bytes, DropReason, Duration, Element, Event, LinkId, PortId, RulesId, Time, Verdict};
use narrows_frame::LinkLayer;
use narrows_frame::answer::{IcmpError, Notice};
use narrows_frame::parse::parse;
use narrows_frame::translate::tell_quoted;
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
    /// What these rules say, to the sender of a packet that they reject.
    Rejected(RulesId, Answer),
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
            Verdict::Dropped { at: Some(Element::Rules(rules)), .. } => {
                event.answer.map(|answer| Self::Rejected(rules, answer))
            }
            Verdict::Dropped { .. } => None,
        }
    }
}

impl DataLoop {
    /// Sends what is required about a frame that arrived at the port `from` and got its verdict at `at`.
    pub(super) fn tell(&mut self, at: Time, from: PortId, told: Told, frame: Frame) -> Result<(), LoopError> {
        let is_told = match told {
            Told::Own(port) => self.answer_by(at, port, Occasion::Own, &frame)?,
            Told::Router(router, error) => match self.routers.port(self.engine.element_name(router)) {
                Some(port) => self.answer_by(at, port, Occasion::Dropped(Notice::Error(error)), &frame)?,
                None => false,
            },
            Told::TooLong(link) => {
                let mtu = self.engine.view(link).mtu().map_or(0, |mtu| mtu.bytes.into());
                let notice = Notice::Error(IcmpError::TooBig(Bytes::new(mtu)));
                self.tell_sender(at, from, Element::Link(link), notice, &frame)?
            }
            Told::Rejected(rules, answer) => {
                self.tell_sender(at, from, Element::Rules(rules), answer.into(), &frame)?
            }
        };
        self.rejections += u64::from(is_told && matches!(told, Told::Rejected(..)));
        self.frames.recycle(frame);
        Ok(())
    }

    /// The router that sends into a link or its rules tells the sender of a packet; without one, the router of this host,
    /// or the host behind the link. Returns whether there is an answer.
    fn tell_sender(
        &mut self,
        at: Time,
        from: PortId,
        into: Element,
        notice: Notice,
        frame: &[u8],
    ) -> Result<bool, LoopError> {
        let destination = parse(LinkLayer::Ethernet, frame).key.destination;
        let router = self.routers.sender_into(self.engine.element_name(into), destination);
        match router {
            Some(port) => self.answer_by(at, port, Occasion::Dropped(notice), frame),
            None => match self.gateway_tells(from, at, frame, notice) {
                Some(told) => Ok(told),
                None => Ok(self.answer_at(from, notice, frame)),
            },
        }
    }

    /// A router replies, without processing time: into the network, at its own port. Returns whether there is a reply.
    fn answer_by(
        &mut self,
        at: Time,
        port: PortId,
        occasion: Occasion,
        frame: &[u8],
    ) -> Result<bool, LoopError> {
        // Later only if an input preceded it that the engine learned of too late.
        let at = at.max(self.engine.now());
        if !self.routers.answer(at, port, occasion, frame, &mut self.made) {
            return Ok(false);
        }
        let packet = parse(LinkLayer::Ethernet, &self.made);
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(at, Duration::ZERO, port, &self.made, packet.examined);
        }
        self.frames_inside += 1;
        tell_quoted(&mut self.engine, LinkLayer::Ethernet, &self.made, 0);
        self.engine.hand_in(at, port, packet.with(Load::Frame(self.frames.frame(&self.made))));
        Ok(true)
    }

    /// The host behind the link tells the sender, at once: there is no router on the path that could.
    fn answer_at(&mut self, port: PortId, notice: Notice, frame: &[u8]) -> bool {
        let port = &self.ports[usize::from(port.index())];
        let plugged = port.plugged.as_ref();
        let is_told =
            plugged.is_some_and(|plugged| plugged.plug.neighbours.tell(frame, notice, &mut self.made));
        if is_told {
            let frame = self.frames.frame(&self.made);
            self.lines.let_out(port, Outgoing { port: port.id, passage: None, frame });
        }
        is_told
    }
}
