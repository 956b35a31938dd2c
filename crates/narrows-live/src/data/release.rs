//! Outputs: deliveries through the ports, and frames that the network itself sends.

use std::ops::Range;

use narrows_core::{Body, Element, Event, LinkId, PortId, Time, Verdict};
use narrows_frame::capture::verdicts::{Fate, Passage};
use narrows_frame::edit::Edits;
use narrows_frame::translate::write_ends;
use narrows_io::cable_end::CableEnd;
use narrows_io::frame::{Frame, FramePool};
use narrows_io::packet_socket::SendStop;
use narrows_report::Meter;

use super::answer::Told;
use super::gateway::Leaving;
use super::{DataLoop, LoopError, Outgoing, lines};
use crate::load::Load;

/// The maximum number of frames sent by one call. They count as released when it begins, so it should be short.
const SENT_AT_ONCE: usize = 16;
/// The maximum number of frames waiting for each interface whose queue is full; further ones count as send failures.
const MOST_UNSENT: usize = 4096;

impl DataLoop {
    /// Processes the engine's events up to the watermark.
    pub(super) fn release(&mut self, watermark: Time) -> Result<(), LoopError> {
        // No further than the last due event: a packet may still be on its way from the interface to the socket, with
        // a timestamp before the watermark.
        while let Some(at) = self.engine.next_event().filter(|&at| at <= watermark) {
            let Some(mut event) = self.engine.poll(at) else { continue };
            if let Some(agreement) = &self.in_kernel {
                let port = &mut self.ports[usize::from(event.id.port().index())];
                let end = port.plugged.as_ref().map(|plugged| &mut self.lines[plugged.line].end);
                if let Some(end) = end.and_then(CableEnd::kernel_end_mut) {
                    agreement.compare(&mut event, end, &mut port.ahead_of_kernel, &self.clock);
                }
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.decided(&event);
            }
            if self.inspection.is_some() || self.packets.is_some() {
                let traffic = self.traffic.as_ref().and_then(|traffic| traffic.sender(event.body.get()));
                self.inspection.iter_mut().for_each(|inspection| inspection.note(&event, traffic));
                self.packets.iter_mut().for_each(|packets| packets.note(&event, traffic));
            }
            if let (Load::Generated(_), Some(traffic)) = (event.body.get(), &mut self.traffic) {
                self.meter.verdict_of_generated(&event);
                traffic.decided(event);
                continue;
            }
            self.meter.verdict(&event);
            self.frames_inside -= u64::from(matches!(event.body, Body::Last(_)));
            let ports = &self.ports;
            if let Some(capture) = &mut self.capture {
                match event.verdict {
                    Verdict::Dropped { at, reason } => {
                        capture.decided(&event, event.id.port(), Fate::Dropped { at, reason });
                    }
                    Verdict::Delivered(port) if ports[usize::from(port.index())].plugged.is_none() => {
                        capture.decided(&event, port, Fate::Delivered);
                    }
                    // Captured when it is sent.
                    Verdict::Delivered(_) => {}
                }
            }
            if let Some(told) = Told::of(&event, |port| ports[usize::from(port.index())].plugged.is_none()) {
                let (at, from) = (event.at, event.id.port());
                // Rules translate at the router that sends into their link, which knows a packet as it came.
                let keeps_ends = matches!(told, Told::Rejected(..) | Told::TooLong(_));
                let edit = event.header_edit.as_deref().filter(|edit| edit.has_new_ends && keeps_ends);
                let ends = edit.map(|edit| (usize::from(edit.link_header), event.key, edit.quoted));
                let leaving = Leaving { keeps_ends, ..Leaving::default() };
                let mut frame = render(event, leaving, &mut self.frames, &mut self.made);
                frame.finish();
                if let (Some((network, key, quoted)), Told::TooLong(link)) = (ends, told)
                    && !self.is_pipe(link)
                    && let Some(packet) = frame.get_mut(network..)
                {
                    write_ends(packet, &key, quoted);
                }
                self.tell(at, from, told, frame)?;
                continue;
            }
            match event.verdict {
                Verdict::Delivered(port) => {
                    let passage =
                        Passage { scheduled: event.at, arrival: event.arrival, from: event.id.port() };
                    let port = &ports[usize::from(port.index())];
                    let leaving = match &mut self.gateway {
                        None => {
                            let stations = port.plugged.as_ref().and_then(|plugged| plugged.plug.stations);
                            Some(Leaving { stations, ..Leaving::default() })
                        }
                        Some(gateway) => Leaving::routed(gateway, port.id, &event, &mut self.frames),
                    };
                    let Some(leaving) = leaving else {
                        self.meter.send_failed(port.id, 1);
                        continue;
                    };
                    let frame = render(event, leaving, &mut self.frames, &mut self.made);
                    self.lines.let_out(port, Outgoing { port: port.id, passage: Some(passage), frame });
                }
                Verdict::Dropped { .. } => {
                    if let Body::Last(Load::Frame(frame)) = event.body {
                        self.frames.recycle(frame);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self) -> Result<(), LoopError> {
        let sending = std::mem::take(&mut self.lines.sending);
        for &at in &sending {
            let line = &mut self.lines[at];
            let is_shared = line.is_shared();
            let (mut sent, mut end) = (0, line.outgoing.len());
            while sent < end {
                let unsent = &mut line.outgoing[sent..end];
                let count = line.end.join(unsent).unwrap_or(SENT_AT_ONCE).min(unsent.len());
                let batch = &mut unsent[..count];
                if let Some(capture) = &mut self.capture {
                    // Before sending: a sent frame may be gone.
                    capture.stage(self.engine.now(), batch.iter().map(Outgoing::captured));
                }
                let before = self.clock.now();
                let step = match is_shared {
                    true => lines::send(&mut line.end, batch, &self.ports),
                    false => line.end.send(batch),
                };
                let after = self.clock.now();
                if let Some(capture) = &mut self.capture {
                    let refused = matches!(&step.stopped, Some(stop) if !matches!(stop, SendStop::Full));
                    capture.sent(before, step.count, refused);
                }
                // The kernel has its own records of when packets left.
                if self.in_kernel.is_none() {
                    left(&mut self.meter, &batch[..step.count], before..after);
                }
                line.trains.left(&batch[..step.count]);
                sent += step.count;
                match step.stopped {
                    None => {}
                    // The others need not wait for this one's interface.
                    Some(SendStop::Full) if is_shared => end = line.set_aside(sent, end),
                    Some(SendStop::Full) => break,
                    // This frame can never be sent; the next one may.
                    Some(_) => {
                        self.meter.send_failed(line.outgoing[sent].port, 1);
                        sent += 1;
                    }
                }
            }
            for outgoing in line.outgoing.drain(..sent) {
                self.frames.recycle(outgoing.frame);
            }
            let too_many = line.give_up(MOST_UNSENT);
            too_many.iter().for_each(|outgoing| self.meter.send_failed(outgoing.port, 1));
            if let Some(capture) = &mut self.capture {
                capture.refused(self.clock.now(), too_many.iter().map(Outgoing::captured));
            }
            too_many.into_iter().for_each(|outgoing| self.frames.recycle(outgoing.frame));
        }
        self.lines.go_on_with(sending);
        self.is_stuck = !self.lines.sending.is_empty();
        Ok(())
    }
}

/// Counts frames that an interface accepted between two instants.
pub(super) fn left(meter: &mut Meter, frames: &[Outgoing], taken: Range<Time>) {
    let passed = frames.iter().filter_map(|outgoing| Some((outgoing.port, outgoing.passage?)));
    for (port, Passage { scheduled, .. }) in passed {
        meter.released(port, scheduled, taken.start.since(scheduled));
        meter.sent(taken.end.since(scheduled));
    }
}

impl Outgoing {
    /// As recorded in a capture, if it is sent.
    pub(super) fn captured(&self) -> (PortId, Fate, &[u8]) {
        (self.port, self.passage.map_or(Fate::Answered, Fate::Released), &self.frame)
    }
}

impl DataLoop {
    /// Whether rules send packets to a link.
    fn is_pipe(&self, link: LinkId) -> bool {
        let name = self.engine.element_name(Element::Link(link));
        name.rsplit_once('.').is_some_and(|(rules, _)| self.engine.rules_of(rules).is_some())
    }
}

/// The outgoing frame: the one that arrived, or a copy if others still need that, with the engine's edits applied.
fn render(event: Event<'_, Load>, leaving: Leaving, frames: &mut FramePool, made: &mut Vec<u8>) -> Frame {
    let Leaving { stations, routed, translated, keeps_ends } = leaving;
    let edits = Edits::of(&event);
    let hops = edits.hops.saturating_add(routed);
    // A router's link addresses are the last word.
    let stations = if routed > 0 { stations } else { edits.stations.or(stations) };
    // A translated frame has what filters wrote.
    let ends = edits.ends.filter(|_| translated.is_none() && !keeps_ends);
    let edits = Edits { stations, hops, ends, ..edits };
    // Generated packets are not sent.
    let Load::Frame(body) = event.body.get() else { return Frame::default() };
    let body = translated.as_ref().unwrap_or(body);
    if edits.needed(body) {
        // Edits outside the transport checksum's coverage leave an incomplete one as it is.
        // A tag moves the place that an incomplete one refers to.
        let frame = if edits.affect_checksum() && body.is_open() {
            let mut finished = frames.instead_of(body, body);
            finished.finish();
            edits.render(&finished, made);
            frames.recycle(finished);
            frames.frame(made)
        } else {
            edits.render(body, made);
            frames.instead_of(body, made)
        };
        translated.into_iter().for_each(|frame| frames.recycle(frame));
        if let Body::Last(Load::Frame(original)) = event.body {
            frames.recycle(original);
        }
        return frame;
    }
    match event.body {
        // A routed packet has one hop less, so a translated frame was rendered above.
        Body::Last(Load::Frame(frame)) => frame,
        Body::Last(Load::Generated(_)) | Body::Shared(Load::Generated(_)) => Frame::default(),
        Body::Shared(Load::Frame(frame)) => frames.instead_of(frame, frame),
    }
}
