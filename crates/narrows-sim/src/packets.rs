//! One record for each packet, as CSV.
//!
//! | column | |
//! |---|---|
//! | `port`, `number` | the port where the packet arrived, and its number among the arrivals there, from 0 |
//! | `copy` | 0 for the packet that arrived; duplicates and fragments have other numbers |
//! | `feed` | the traffic source or capture that sent it |
//! | `protocol`, `source`, `source_port`, `destination`, `destination_port`, `traffic_class` | its flow key |
//! | `arrival_ns` | when it arrived |
//! | `length_bytes` | from the network header on; for a fragment, the fragment's |
//! | `verdict` | `delivered` or `dropped` |
//! | `where` | the port of delivery, or the link that dropped it; empty when the network refused it |
//! | `reason` | why it was dropped |
//! | `queueing_ns` | its total queueing delay |
//! | `departure_ns` | when it was delivered or dropped |
//!
//! Records are in the order of verdicts.

use std::io::Write;

use narrows_core::Event;

use crate::error::SimError;
use narrows_frame::{Address, transport};
use narrows_report::csv_field;

use crate::names::Names;
use crate::observe::Observed;
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
        let packet = Observed::of(names, event);
        let key = &packet.key;
        self.line.clear();
        let written = writeln!(
            self.line,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            csv_field(packet.port),
            packet.number,
            packet.copy,
            csv_field(packet.feed),
            transport(key),
            Address::source(key),
            key.source_port,
            Address::destination(key),
            key.destination_port,
            key.traffic_class,
            packet.arrival.nanos(),
            packet.length,
            if packet.delivered { "delivered" } else { "dropped" },
            csv_field(packet.place),
            packet.reason,
            packet.queued.nanos(),
            packet.at.nanos(),
        );
        written.map_err(|error| self.output.error(error))?;
        self.output.put(&self.line)
    }

    pub(crate) fn finish(self) -> Result<(), SimError> {
        self.output.finish()
    }
}
