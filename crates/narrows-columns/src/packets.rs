//! One row per packet: the columns of `narrows sim --packets`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt16Array, UInt32Array};
use arrow_schema::{DataType, Field, SchemaRef};
use narrows_core::Protocol;
use narrows_frame::{Address, transport};
use narrows_report::PacketRow;

use crate::column::{Columns, Take, Words, schema, signed, words};
use crate::passed::PassedLinks;

/// Packet records.
#[derive(Debug, Default)]
pub struct PacketColumns {
    port: Words<Arc<str>>,
    number: Vec<i64>,
    copy: Vec<u16>,
    feed: Words<Arc<str>>,
    protocol: Words<(Protocol, u8)>,
    source: Words<(Protocol, [u8; 16])>,
    source_port: Vec<u16>,
    destination: Words<(Protocol, [u8; 16])>,
    destination_port: Vec<u16>,
    traffic_class: Vec<u8>,
    arrival_ns: Vec<i64>,
    length_bytes: Vec<u32>,
    verdict: Words<bool>,
    place: Words<Arc<str>>,
    reason: Words<Arc<str>>,
    queueing_ns: Vec<i64>,
    departure_ns: Vec<i64>,
    links: PassedLinks,
}

impl PacketColumns {
    /// Appends a packet.
    pub fn push(&mut self, packet: &PacketRow<'_>) {
        let key = &packet.key;
        self.port.push_text(packet.port);
        self.number.push(signed(packet.number));
        self.copy.push(packet.copy);
        self.feed.push_text(packet.feed);
        self.protocol.push(&(key.network, key.transport), || transport(key).into_owned());
        self.source.push(&(key.network, key.source), || Address::source(key).to_string());
        self.source_port.push(key.source_port);
        self.destination.push(&(key.network, key.destination), || Address::destination(key).to_string());
        self.destination_port.push(key.destination_port);
        self.traffic_class.push(key.traffic_class);
        self.arrival_ns.push(signed(packet.arrival.nanos()));
        self.length_bytes.push(packet.length);
        self.verdict.push(&packet.delivered, || packet.verdict().into());
        self.place.push_text(packet.place);
        self.reason.push_text(packet.reason);
        self.queueing_ns.push(signed(packet.queued.nanos()));
        self.departure_ns.push(signed(packet.at.nanos()));
        self.links.push(packet.links);
    }
}

impl Columns for PacketColumns {
    fn schema() -> SchemaRef {
        let number = |name: &str, kind| Field::new(name, kind, false);
        schema(
            "packets",
            vec![
                words("port"),
                number("number", DataType::Int64),
                number("copy", DataType::UInt16),
                words("feed"),
                words("protocol"),
                words("source"),
                number("source_port", DataType::UInt16),
                words("destination"),
                number("destination_port", DataType::UInt16),
                number("traffic_class", DataType::UInt8),
                number("arrival_ns", DataType::Int64),
                number("length_bytes", DataType::UInt32),
                words("verdict"),
                words("where"),
                words("reason"),
                number("queueing_ns", DataType::Int64),
                number("departure_ns", DataType::Int64),
                PassedLinks::field("links"),
            ],
        )
    }

    fn rows(&self) -> usize {
        self.number.len()
    }

    fn take(&mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            self.port.take(),
            long(&mut self.number),
            Arc::new(UInt16Array::from(std::mem::take(&mut self.copy))),
            self.feed.take(),
            self.protocol.take(),
            self.source.take(),
            Arc::new(UInt16Array::from(std::mem::take(&mut self.source_port))),
            self.destination.take(),
            Arc::new(UInt16Array::from(std::mem::take(&mut self.destination_port))),
            Arc::new(UInt8Array::from(std::mem::take(&mut self.traffic_class))),
            long(&mut self.arrival_ns),
            Arc::new(UInt32Array::from(std::mem::take(&mut self.length_bytes))),
            self.verdict.take(),
            self.place.take(),
            self.reason.take(),
            long(&mut self.queueing_ns),
            long(&mut self.departure_ns),
            self.links.take(),
        ];
        RecordBatch::try_new(Self::schema(), columns).expect("each row has been appended to each column")
    }
}

fn long(values: &mut Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(std::mem::take(values)))
}

#[cfg(test)]
mod tests {
    use narrows_report::PACKETS_HEAD;

    use super::*;

    #[test]
    fn the_columns_are_those_of_the_csv_file() {
        let schema = PacketColumns::schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names.join(","), PACKETS_HEAD.trim_end());
    }
}
