//! One record for each packet, as CSV.
//!
//! | column | |
//! |---|---|
//! | `port`, `number` | where the packet came in, and its number among the arrivals there, from 0 |
//! | `copy` | 0 for the packet that came in; duplicates and pieces have other numbers |
//! | `feed` | the traffic source or capture that it came from |
//! | `protocol`, `source`, `source_port`, `destination`, `destination_port`, `traffic_class` | its flow |
//! | `arrival_ns` | when it came in |
//! | `length_bytes` | from the network header on; of a piece, its own |
//! | `verdict` | `delivered` or `dropped` |
//! | `where` | the port of delivery, or the link that dropped it; empty when the network refused it |
//! | `reason` | why it was dropped |
//! | `queueing_ns` | how long it waited in queues |
//! | `departure_ns` | when it was delivered or dropped |
//!
//! Records are in the order of verdicts.

use std::io::Write;

use narrows_core::{Event, Verdict};

use crate::error::SimError;
use narrows_report::csv_field;

use crate::names::{Address, Names, transport};
use crate::output::Output;
use narrows_traffic::Body;

const HEAD: &str = "port,number,copy,feed,protocol,source,source_port,destination,destination_port,traffic_class,\
                    arrival_ns,length_bytes,verdict,where,reason,queueing_ns,departure_ns\n";

pub(crate) struct PacketRecords {
    output: Output,
    line: Vec<u8>,
}

impl PacketRecords {
    pub(crate) fn new(mut output: Output) -> Result<Self, SimError> {
        output.put(HEAD.as_bytes())?;
        Ok(Self { output, line: Vec::with_capacity(256) })
    }

    pub(crate) fn event(&mut self, names: &Names, event: &Event<'_, Body>) -> Result<(), SimError> {
        let (verdict, place, reason) = match event.verdict {
            Verdict::Delivered(port) => ("delivered", names.port(port), ""),
            Verdict::Dropped { at, reason } => {
                ("dropped", at.map_or("", |at| names.element(at)), reason.name())
            }
        };
        let (key, feed) = (&event.key, &names.feeds[event.body.get().source as usize]);
        self.line.clear();
        let written = writeln!(
            self.line,
            "{},{},{},{},{},{},{},{},{},{},{},{},{verdict},{},{reason},{},{}",
            csv_field(names.port(event.id.port())),
            event.id.number(),
            event.copy,
            csv_field(feed),
            transport(key),
            Address(key.network, key.source),
            key.source_port,
            Address(key.network, key.destination),
            key.destination_port,
            key.traffic_class,
            event.arrival.nanos(),
            event.length,
            csv_field(place),
            event.queued.nanos(),
            event.at.nanos(),
        );
        written.map_err(|error| self.output.error(error))?;
        self.output.put(&self.line)
    }

    pub(crate) fn finish(self) -> Result<(), SimError> {
        self.output.finish()
    }
}
