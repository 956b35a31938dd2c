//! What comes in: frames from the ports, handed in in order of their instants, and what the timeline says.

use narrows_core::Time;
use narrows_frame::LinkLayer;
use narrows_frame::parse::parse_cut;
use narrows_io::packet_socket::ReceiveBatch;

use super::{DataLoop, Input, LoopError, Outgoing};
use crate::local::Fate;

/// Batches received from one port before the others have their turn.
const BATCHES_A_TURN: usize = 4;

impl DataLoop {
    /// Takes what the ports have, up to a budget. Gives the instant up to which everything has been taken: the engine
    /// may go no further, or what is left in a socket would come too late for its instant.
    pub(super) fn receive(&mut self) -> Result<Time, LoopError> {
        let mut complete = Time::NEVER;
        self.poll_set.find_due(&self.sending).map_err(LoopError::Wait)?;
        for look in 0..self.poll_set.due.len() {
            let at = self.poll_set.due[look];
            let mut more_from = Time::NEVER;
            for _ in 0..BATCHES_A_TURN {
                let count = match self.take_exchanged(at) {
                    Some(count) => count,
                    None => {
                        let Some(cable) = &mut self.ports[at].cable else { break };
                        cable.end.receive(&mut self.batch, &mut self.frames, &mut self.received)?
                    }
                };
                let last = self.sort_out(at);
                more_from = if count < ReceiveBatch::FRAMES { Time::NEVER } else { last };
                if count < ReceiveBatch::FRAMES {
                    break;
                }
            }
            complete = complete.min(more_from);
        }
        self.inputs.sort_by_key(|input| (input.at, input.port, input.sequence));
        Ok(complete)
    }

    /// Tells frames that stay at the port from those that cross the network. Gives the instant of the last one.
    fn sort_out(&mut self, at: usize) -> Time {
        let now = self.clock.now();
        let port = &mut self.ports[at];
        let Some(cable) = &port.cable else { return now };
        let mut last = now;
        for received in self.received.drain(..) {
            // Packets of one port come in order, however the wall clock was sampled.
            last = received.stamp.map_or(now, |stamp| self.clock.instant(stamp)).max(port.last);
            port.last = last;
            self.last_input = last;
            let fate = cable.neighbours.judge(&received.frame, &mut self.made);
            if fate == Fate::Crosses {
                let (port, sequence) = (port.id, self.sequence);
                self.inputs.push(Input { at: last, port, sequence, received });
                self.sequence += 1;
                continue;
            }
            port.answered += 1;
            self.frames.recycle(received.frame);
            if fate == Fate::Answered {
                if port.outgoing.is_empty() {
                    self.sending.push(port.id.index());
                }
                port.outgoing.push(Outgoing { passage: None, frame: self.frames.frame(&self.made) });
            }
        }
        last
    }

    /// Hands in what had arrived by the watermark, and what the timeline says, in order of their instants. Something
    /// that comes from before what the engine has done already counts as arriving now.
    pub(super) fn hand_in(&mut self, watermark: Time) -> Result<(), LoopError> {
        let count = self.inputs.partition_point(|input| input.at <= watermark);
        let mut inputs = std::mem::take(&mut self.inputs);
        for Input { at, port, received, .. } in inputs.drain(..count) {
            self.first_packet(at);
            self.apply_changes(at)?;
            self.hand_in_values(at)?;
            self.catch_up(at)?;
            let mut frame = received.frame;
            if self.capture.is_some() {
                // What is captured has its checksum; so it leaves by itself.
                frame.finish();
            }
            let length = received.original_length as u32; // a frame has at most some 64 KiB
            let packet = parse_cut(LinkLayer::Ethernet, &frame, length);
            if let Some(recorder) = &mut self.recorder {
                let taken = at.max(self.engine.now());
                let bytes = if recorder.keeps_whole() { frame.on_the_wire(&mut self.made) } else { &frame };
                recorder.arrived(taken, taken.since(at), port, bytes, packet.examined)?;
            }
            self.meter.input_lateness(port, self.clock.now().since(at));
            if at < self.engine.now() {
                self.meter.straggled(self.engine.now().since(at));
            }
            self.engine.hand_in(at, port, packet.with(frame));
        }
        self.inputs = inputs;
        self.apply_changes(watermark)?;
        self.hand_in_values(watermark)
    }

    /// Lets routers answer what happened up to an instant, before what comes in then.
    pub(super) fn catch_up(&mut self, at: Time) -> Result<(), LoopError> {
        if self.routers.is_empty() { Ok(()) } else { self.release(at) }
    }
}
