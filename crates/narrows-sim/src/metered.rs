//! The engine with its meters.

use narrows_core::{Body as Kept, Engine, Event, Packet, PortId, TcpOptions, Time};
use narrows_report::{Meter, SourceMeter};
use narrows_traffic::{Arrived, Body};

use crate::error::SimError;

/// An engine and what is counted of its events. Inputs must be handed in in order of time.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) engine: Engine<Body>,
    pub(crate) meter: Meter,
    /// Results per traffic source, by source number.
    pub(crate) traffic: Vec<SourceMeter>,
    /// Whether the first source is the packets of programs, as in a log: delays are then theirs alone, as in a live run.
    pub(crate) has_programs: bool,
    /// Complete packets that were delivered, if needed.
    pub(crate) arrived: Option<Vec<Arrived>>,
    /// The memory taken by packets that were handed in, whether they are still inside or not.
    pub(crate) memory_taken: u64,
}

impl Metered {
    /// For so many sources.
    pub(crate) fn new(engine: Engine<Body>, sources: usize) -> Self {
        let meter = Meter::new(engine.ports().len());
        let traffic = (0..sources).map(|_| SourceMeter::default()).collect();
        Self { engine, meter, traffic, has_programs: false, arrived: None, memory_taken: 0 }
    }

    /// Of a TCP segment, `options` are those that its body does not have.
    pub(crate) fn hand_in(
        &mut self,
        at: Time,
        port: PortId,
        packet: Packet<Body>,
        options: Option<TcpOptions>,
    ) {
        self.traffic[packet.body.source as usize].offered(packet.length);
        self.memory_taken += Engine::memory_of(&packet);
        if self.engine.looks_at_tcp_options() {
            self.engine.set_tcp_options(options.unwrap_or_else(|| Body::tcp_options(&packet)));
        }
        self.engine.hand_in(at, port, packet);
    }

    /// Handles the next event that is due, after `see` has seen it. Returns false if there was none.
    pub(crate) fn event(
        &mut self,
        now: Time,
        see: impl FnOnce(&Event<'_, Body>) -> Result<(), SimError>,
    ) -> Result<bool, SimError> {
        let Some(event) = self.engine.poll(now) else { return Ok(false) };
        let source = event.body.get().source as usize;
        match self.has_programs && source > 0 {
            true => self.meter.verdict_of_generated(&event),
            false => self.meter.verdict(&event),
        }
        let is_last = matches!(event.body, Kept::Last(_));
        self.traffic[source].verdict(&event, is_last);
        see(&event)?;
        if let Some(all) = &mut self.arrived
            && let Some(arrived) = Arrived::of(event)
        {
            all.push(arrived);
        }
        Ok(true)
    }
}
