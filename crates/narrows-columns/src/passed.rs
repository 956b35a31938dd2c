//! The links that each packet passed: a list of records.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use narrows_report::Path;

use crate::column::{Take, signed};

/// The times in a record, in order, after the name of the link.
const TIMES: [&str; 3] = ["entered_ns", "queueing_ns", "left_ns"];

/// A list for each packet.
#[derive(Debug, Default)]
pub(crate) struct PassedLinks {
    /// The number of links of each packet.
    lengths: Vec<usize>,
    /// The names of all links one after another, and the length of each.
    names: String,
    name_lengths: Vec<usize>,
    times: [Vec<i64>; TIMES.len()],
}

impl PassedLinks {
    pub(crate) fn field(name: &str) -> Field {
        Field::new(name, DataType::List(Arc::new(item())), false)
    }

    pub(crate) fn push(&mut self, path: Path<'_>) {
        self.lengths.push(path.passed.len());
        for (name, passed) in path.named() {
            self.names.push_str(name);
            self.name_lengths.push(name.len());
            let times = [passed.entered.nanos(), passed.queued.nanos(), passed.left.nanos()];
            self.times.iter_mut().zip(times).for_each(|(column, time)| column.push(signed(time)));
        }
    }
}

impl Take for PassedLinks {
    fn take(&mut self) -> ArrayRef {
        let Self { lengths, names, name_lengths, times } = std::mem::take(self);
        let names =
            StringArray::new(OffsetBuffer::from_lengths(name_lengths), names.into_bytes().into(), None);
        let times = times.map(|column| -> ArrayRef { Arc::new(Int64Array::from(column)) });
        let columns = std::iter::once(Arc::new(names) as ArrayRef).chain(times);
        let records = StructArray::new(fields(), columns.collect(), None);
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(ListArray::new(Arc::new(item()), offsets, Arc::new(records), None))
    }
}

fn item() -> Field {
    Field::new("item", DataType::Struct(fields()), false)
}

fn fields() -> Fields {
    let times = TIMES.map(|name| Field::new(name, DataType::Int64, false));
    std::iter::once(Field::new("link", DataType::Utf8, false)).chain(times).collect()
}
