//! Inputs: frames from the lines, handed in in order of their instants, and timeline steps.

use narrows_core::{Duration, Time};
use narrows_frame::LinkLayer;
use narrows_frame::parse::{parse_cut, tcp_options};
use narrows_frame::translate::tell_quoted;
use narrows_io::packet_socket::ReceiveBatch;

use super::lines::Plugged;
use super::{DataLoop, Input, LoopError, Outgoing};
use crate::load::Load;
use crate::neighbor_proxy::Fate;

/// The maximum number of batches received from one line before the others are served.
const BATCHES_A_TURN: usize = 4;
/// How long a turn reads frames before it checks for orders: many busy lines would take too long.
const SLICE: Duration = Duration::from_millis(2);

/// An unfinished pass over the lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intake {
    /// The place of the next among those due.
    next: usize,
    /// Everything up to this instant has been read from those before it, if this is no later than the start of
    /// the pass.
    complete: Time,
}

impl DataLoop {
    /// Reads the lines, up to a budget. Returns the instant up to which everything has been read: the engine must not
    /// go further, or frames left in a socket would be late. Returns `None` if this takes longer than a
    /// [slice](SLICE): the remaining ones are read in the next turn. What arrived before `now` is in the sockets by
    /// now.
    pub(super) fn receive(&mut self, now: Time) -> Result<Option<Time>, LoopError> {
        let mut look = match self.intake.take() {
            Some(intake) => intake,
            None => {
                self.poll_set.find_due(&self.lines.sending).map_err(LoopError::Wait)?;
                Intake { next: 0, complete: now }
            }
        };
        while look.next < self.poll_set.due.len() {
            let at = self.poll_set.due[look.next];
            let mut more_from = Time::NEVER;
            let mut is_busy = false;
            for _ in 0..BATCHES_A_TURN {
                let count = match self.take_exchanged(at) {
                    Some(count) => count,
                    None => {
                        let end = &mut self.lines[at].end;
                        end.receive(&mut self.batch, &mut self.frames, &mut self.received)?
                    }
                };
                self.meter_departures(at);
                let last = self.sort_out(at);
                is_busy = count >= ReceiveBatch::FRAMES;
                more_from = if is_busy { last } else { Time::NEVER };
                if !is_busy {
                    self.lines[at].arrivals.read_until(now, &self.clock);
                    break;
                }
            }
            look.complete = look.complete.min(more_from);
            look.next += 1;
            if is_busy && self.clock.now().since(now) > SLICE && look.next < self.poll_set.due.len() {
                self.intake = Some(look);
                return Ok(None);
            }
        }
        self.put_in_order();
        Ok(Some(look.complete))
    }

    /// Records how late the kernel let packets leave that had entered its link at a line.
    fn meter_departures(&mut self, at: usize) {
        let Some(agreement) = &self.in_kernel else { return };
        let (clock, meter) = (self.clock, &mut self.meter);
        let line = &mut self.lines[at];
        let port = usize::from(line.port.index());
        let leaves_at = self.ports[agreement.opposite(port)].id;
        let port = &mut self.ports[port];
        if let Some(end) = line.end.kernel_end_mut() {
            agreement.catch_up(end, &mut port.ahead_of_kernel, &self.clock);
            end.departures(|departure| {
                let due = clock.instant(departure.due);
                meter.released(leaves_at, due, clock.instant(departure.left).since(due));
            });
        }
    }

    pub(super) fn put_in_order(&mut self) {
        self.inputs.sort_by_key(|input| (input.at, input.port, input.sequence));
    }

    /// Separates frames of a line that stay at their port from those that cross the network. Returns the instant of the last one.
    fn sort_out(&mut self, at: usize) -> Time {
        if self.gateway.is_some() {
            return self.route_in(at);
        }
        let now = self.clock.now();
        let mut last = now;
        for received in self.received.drain(..) {
            let line = &mut self.lines[at];
            let Some(port) = line.port_of(&received) else {
                self.frames.recycle(received.frame);
                continue;
            };
            let arrival = line.arrivals.of(received.stamp, now, &self.clock);
            if arrival.is_implausible {
                self.meter.implausibly_stamped();
            }
            last = arrival.at;
            self.last_input = last;
            let port = &mut self.ports[usize::from(port.index())];
            port.came += 1;
            let Some(Plugged { plug, .. }) = &port.plugged else { continue };
            let fate = plug.neighbours.judge(&received.frame, &mut self.made);
            if fate == Fate::Crosses {
                let (port, sequence) = (port.id, self.sequence);
                self.inputs.push(Input { at: last, port, sequence, received });
                self.sequence += 1;
                continue;
            }
            port.answered += 1;
            self.frames.recycle(received.frame);
            if fate == Fate::Answered {
                let frame = self.frames.frame(&self.made);
                self.lines.let_out(port, Outgoing { port: port.id, passage: None, frame });
            }
        }
        last
    }

    /// Hands in arrivals up to the watermark, and timeline steps, in order of their instants. An input from before
    /// the engine's present instant counts as arriving now.
    ///
    /// Returns the instant reached: before the watermark if the scenario's own traffic takes more than a turn.
    pub(super) fn hand_in(&mut self, watermark: Time) -> Result<Time, LoopError> {
        let count = self.inputs.partition_point(|input| input.at <= watermark);
        let mut inputs = std::mem::take(&mut self.inputs);
        let mut done = 0;
        for Input { at, port, received, .. } in &mut inputs[..count] {
            let (at, port) = (*at, *port);
            self.first_packet(at);
            if !self.apply_changes(at)? || !self.generate_before(at)? {
                break;
            }
            done += 1;
            // Inside the kernel a value counts for packets after its instant.
            let earlier = u64::from(self.in_kernel.is_some());
            self.hand_in_values(Time::from_nanos(at.nanos().saturating_sub(earlier)))?;
            self.catch_up(at)?;
            let mut frame = std::mem::take(&mut received.frame);
            if self.capture.is_some() {
                // A captured frame needs its checksum, so it leaves singly.
                frame.finish();
            }
            let length = received.original_length as u32; // a frame has at most some 64 KiB
            let packet = parse_cut(LinkLayer::Ethernet, &frame, length);
            if let Some(recorder) = &mut self.recorder {
                let taken = at.max(self.engine.now());
                let bytes = if recorder.keeps_whole() { frame.on_the_wire(&mut self.made) } else { &frame };
                recorder.arrived(taken, taken.since(at), port, bytes, packet.examined);
            }
            // What the kernel moves does not wait for this.
            if self.in_kernel.is_none() {
                self.meter.input_lateness(port, self.clock.now().since(at.max(self.gathered_until)));
            }
            if at < self.engine.now() {
                self.meter.straggled(self.engine.now().since(at));
            }
            self.frames_inside += 1;
            if self.engine.looks_at_tcp_options() {
                let options = tcp_options(LinkLayer::Ethernet, &frame, length);
                self.engine.set_tcp_options(options.unwrap_or_default());
            }
            tell_quoted(&mut self.engine, LinkLayer::Ethernet, &frame, length);
            self.engine.hand_in(at, port, packet.with(Load::Frame(frame)));
        }
        inputs.drain(..done);
        self.inputs = inputs;
        let mut is_complete = done == count && self.apply_changes(watermark)?;
        if is_complete {
            self.hand_in_values(watermark)?;
            is_complete = self.generate(watermark)?;
        }
        let reached = if is_complete { watermark } else { self.engine.now() };
        if let Some(traffic) = &mut self.traffic {
            traffic.completed(reached);
        }
        Ok(reached)
    }

    /// Lets routers respond to everything up to an instant, before the inputs of that instant.
    pub(super) fn catch_up(&mut self, at: Time) -> Result<(), LoopError> {
        if self.routers.is_empty() { Ok(()) } else { self.release(at) }
    }
}
