//! Rows of series: the activity of links and flows in each interval.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use narrows_report::SeriesRow;

use crate::column::{Columns, Take, Words, schema, signed, words};

/// The numeric columns, in order; those in the second list may be empty.
const ALWAYS: [&str; 5] = ["start_ns", "end_ns", "delivered_packets", "dropped_packets", "marked_packets"];
const SOMETIMES: [&str; 6] = [
    "backlog_packets",
    "backlog_bytes",
    "in_flight_packets",
    "sojourn_mean_ns",
    "throughput_bps",
    "offered_packets",
];
/// The text columns.
const TEXT: [&str; 4] = ["kind", "name", "flow", "drops"];

/// The order of the columns of the CSV file.
const ORDER: [&str; 15] = [
    "start_ns",
    "end_ns",
    "kind",
    "name",
    "flow",
    "backlog_packets",
    "backlog_bytes",
    "in_flight_packets",
    "sojourn_mean_ns",
    "throughput_bps",
    "delivered_packets",
    "dropped_packets",
    "marked_packets",
    "offered_packets",
    "drops",
];

/// Rows of a series.
#[derive(Debug, Default)]
pub struct SeriesColumns {
    always: [Vec<i64>; ALWAYS.len()],
    sometimes: [Vec<Option<i64>>; SOMETIMES.len()],
    text: [Words<Arc<str>>; TEXT.len()],
}

impl SeriesColumns {
    /// Appends a row.
    pub fn push(&mut self, row: &SeriesRow<'_>) {
        let always = [
            row.start.nanos(),
            row.end.nanos(),
            row.delivered_packets,
            row.dropped_packets,
            row.marked_packets,
        ];
        let sometimes = [
            row.backlog_packets,
            row.backlog_bytes,
            row.in_flight_packets,
            row.sojourn_mean_ns,
            row.throughput_bps,
            row.offered_packets,
        ];
        let text = [row.kind, row.name, &row.flow, &row.drops];
        self.always.iter_mut().zip(always).for_each(|(column, value)| column.push(signed(value)));
        self.sometimes.iter_mut().zip(sometimes).for_each(|(column, value)| column.push(value.map(signed)));
        self.text.iter_mut().zip(text).for_each(|(column, value)| column.push_text(value));
    }
}

impl Columns for SeriesColumns {
    fn schema() -> SchemaRef {
        let field = |name: &&str| match TEXT.contains(name) {
            true => words(name),
            false => Field::new(*name, DataType::Int64, SOMETIMES.contains(name)),
        };
        schema("series", ORDER.iter().map(field).collect())
    }

    fn rows(&self) -> usize {
        self.always[0].len()
    }

    fn take(&mut self) -> RecordBatch {
        let place = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
        let mut column = |name: &&str| -> ArrayRef {
            if let Some(at) = place(&ALWAYS, name) {
                Arc::new(Int64Array::from(std::mem::take(&mut self.always[at])))
            } else if let Some(at) = place(&SOMETIMES, name) {
                Arc::new(Int64Array::from(std::mem::take(&mut self.sometimes[at])))
            } else {
                self.text[place(&TEXT, name).unwrap_or_default()].take()
            }
        };
        let columns = ORDER.iter().map(&mut column).collect();
        RecordBatch::try_new(Self::schema(), columns).expect("each row has been appended to each column")
    }
}

#[cfg(test)]
mod tests {
    use narrows_report::SERIES_HEAD;

    use super::*;

    #[test]
    fn the_columns_are_those_of_the_csv_file() {
        let schema = SeriesColumns::schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names.join(","), SERIES_HEAD.trim_end());
    }
}
