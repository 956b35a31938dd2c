//! The engine with all receivers of its events.

use narrows_columns::Packets;
use narrows_core::{Body as Kept, Engine, Event, LinkId, Packet, PortId, TcpOptions, Time};
use narrows_report::{Meter, SourceMeter};
use narrows_scenario::EngineChange;

use crate::capture_out::CaptureOut;
use crate::compare::Comparison;
use crate::error::SimError;
use crate::names::Names;
use crate::observe::{Observing, packet_row};
use crate::output::Rows;
use crate::series::Series;
use narrows_traffic::{Arrived, Body};

/// An engine, its meter, and the outputs. Inputs must be handed in in order of time.
pub(crate) struct Watched {
    pub(crate) engine: Engine<Body>,
    pub(crate) meter: Meter,
    names: Names,
    pub(crate) watchers: Watchers,
    /// Results per traffic source, by source number.
    pub(crate) traffic: Vec<SourceMeter>,
    /// Complete packets that were delivered, if needed.
    pub(crate) arrived: Option<Vec<Arrived>>,
}

/// The receivers of each event, beside the meter.
#[derive(Default)]
pub(crate) struct Watchers {
    pub(crate) packets: Option<Rows<Packets>>,
    pub(crate) series: Option<Series>,
    pub(crate) capture: Option<CaptureOut>,
    pub(crate) comparison: Option<Comparison>,
    pub(crate) observing: Observing,
}

impl Watched {
    /// `feeds` are the names for the numbers in [`Body::feed`].
    pub(crate) fn new(mut engine: Engine<Body>, feeds: Vec<String>, watchers: Watchers) -> Self {
        engine.keep_passed(watchers.packets.is_some() || watchers.observing.0.is_some());
        let meter = Meter::new(engine.ports().len());
        let traffic = feeds.iter().map(|_| SourceMeter::default()).collect();
        Self { names: Names::new(&engine, feeds), engine, meter, watchers, traffic, arrived: None }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Of a TCP segment, `options` are those that its body does not have.
    pub(crate) fn hand_in(
        &mut self,
        at: Time,
        port: PortId,
        packet: Packet<Body>,
        options: Option<TcpOptions>,
    ) -> Result<(), SimError> {
        self.close_intervals_before(at)?;
        self.traffic[packet.body.source as usize].offered(packet.length);
        if self.engine.looks_at_tcp_options() {
            self.engine.set_tcp_options(options.unwrap_or_else(|| Body::tcp_options(&packet)));
        }
        self.engine.hand_in(at, port, packet);
        Ok(())
    }

    /// Makes changes, which may add links to the network.
    pub(crate) fn make(&mut self, at: Time, changes: Vec<EngineChange>) -> Result<(), SimError> {
        self.close_intervals_before(at)?;
        changes.into_iter().try_for_each(|change| change.make(&mut self.engine, at).map(drop))?;
        self.names.update(&self.engine);
        Ok(())
    }

    /// Passes values to a feed; returns how many were accepted.
    pub(crate) fn feed(
        &mut self,
        at: Time,
        link: LinkId,
        feed: &str,
        values: &[i64],
    ) -> Result<usize, SimError> {
        self.close_intervals_before(at)?;
        Ok(self.engine.feed(at, link, feed, values))
    }

    /// Polls until nothing is due at `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Result<(), SimError> {
        self.close_intervals_before(now)?;
        self.drain(now)
    }

    /// Completes the output files of a run that ends at `end`.
    pub(crate) fn finish(&mut self, end: Time) -> Result<(), SimError> {
        self.poll(end)?;
        let Watchers { packets, series, capture, .. } = std::mem::take(&mut self.watchers);
        packets.map_or(Ok(()), Rows::finish)?;
        series.map_or(Ok(()), |series| series.finish(end, &self.names, &self.engine))?;
        capture.map_or(Ok(()), CaptureOut::finish)
    }

    /// Closes the intervals of the series that end before `at`: all events up to their ends have been handled, and
    /// none later.
    fn close_intervals_before(&mut self, at: Time) -> Result<(), SimError> {
        while let Some(end) = self.watchers.series.as_ref().map(Series::next_end).filter(|&end| end < at) {
            self.drain(end)?;
            if let Some(series) = &mut self.watchers.series {
                series.close(end, &self.names, &self.engine)?;
            }
        }
        Ok(())
    }

    fn drain(&mut self, now: Time) -> Result<(), SimError> {
        while let Some(event) = self.engine.poll(now) {
            self.meter.verdict(&event);
            let is_last = matches!(event.body, Kept::Last(_));
            self.traffic[event.body.get().source as usize].verdict(&event, is_last);
            self.watchers.event(&self.names, &event)?;
            if let Some(all) = &mut self.arrived
                && let Some(arrived) = Arrived::of(event)
            {
                all.push(arrived);
            }
        }
        Ok(())
    }
}

impl Watchers {
    fn event(&mut self, names: &Names, event: &Event<'_, Body>) -> Result<(), SimError> {
        if let Some(packets) = &mut self.packets {
            packets.put(&packet_row(names, event))?;
        }
        if let Some(series) = &mut self.series {
            series.event(event);
        }
        if let Some(capture) = &mut self.capture {
            capture.event(names, event)?;
        }
        if let Some(comparison) = &mut self.comparison {
            comparison.replayed(event);
        }
        self.observing.event(names, event);
        Ok(())
    }
}
