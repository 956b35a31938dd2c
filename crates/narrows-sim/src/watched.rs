//! The engine with all receivers of its events.

use std::ops::{Deref, DerefMut};

use narrows_columns::Packets;
use narrows_core::{Engine, Event, LinkId, Packet, PortId, TcpOptions, Time};
use narrows_scenario::EngineChange;
use narrows_traffic::Body;

use crate::capture_out::CaptureOut;
use crate::compare::Comparison;
use crate::error::SimError;
use crate::metered::Metered;
use crate::names::Names;
use crate::observe::{Observing, packet_row};
use crate::output::Rows;
use crate::series::Series;

/// An engine, its meter, and the outputs. Inputs must be handed in in order of time.
pub(crate) struct Watched {
    metered: Metered,
    names: Names,
    pub(crate) watchers: Watchers,
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
        engine.keep_passed(watchers.follow_paths());
        let sources = feeds.len();
        let names = Names::new(&engine, feeds);
        Self { names, metered: Metered::new(engine, sources), watchers }
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
        self.metered.hand_in(at, port, packet, options);
        Ok(())
    }

    /// Makes changes, which may add links to the network.
    pub(crate) fn make(&mut self, at: Time, changes: Vec<EngineChange>) -> Result<(), SimError> {
        self.close_intervals_before(at)?;
        changes.into_iter().try_for_each(|change| change.make(&mut self.metered.engine, at).map(drop))?;
        self.names.update(&self.metered.engine);
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
        let mut watchers = std::mem::take(&mut self.watchers);
        let series = watchers.series.take();
        series.map_or(Ok(()), |series| series.finish(end, &self.names, &self.metered.engine))?;
        watchers.finish()
    }

    /// Closes the intervals of the series that end before `at`: all events up to their ends have been handled, and
    /// none later.
    fn close_intervals_before(&mut self, at: Time) -> Result<(), SimError> {
        while let Some(end) = self.watchers.series.as_ref().map(Series::next_end).filter(|&end| end < at) {
            self.drain(end)?;
            if let Some(series) = &mut self.watchers.series {
                series.close(end, &self.names, &self.metered.engine)?;
            }
        }
        Ok(())
    }

    fn drain(&mut self, now: Time) -> Result<(), SimError> {
        let Self { metered, names, watchers } = self;
        while metered.event(now, |event| watchers.event(names, event))? {}
        Ok(())
    }
}

impl Deref for Watched {
    type Target = Metered;

    fn deref(&self) -> &Metered {
        &self.metered
    }
}

impl DerefMut for Watched {
    fn deref_mut(&mut self) -> &mut Metered {
        &mut self.metered
    }
}

impl Watchers {
    /// Whether any of them looks at the links that packets have passed.
    pub(crate) fn follow_paths(&self) -> bool {
        self.packets.is_some() || self.observing.0.is_some()
    }

    /// Whether any of them looks at packets.
    pub(crate) fn look_at_packets(&self) -> bool {
        self.follow_paths() || self.capture.is_some()
    }

    /// Completes the files of packets.
    pub(crate) fn finish(self) -> Result<(), SimError> {
        self.packets.map_or(Ok(()), Rows::finish)?;
        self.capture.map_or(Ok(()), CaptureOut::finish)
    }

    pub(crate) fn event(&mut self, names: &Names, event: &Event<'_, Body>) -> Result<(), SimError> {
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
