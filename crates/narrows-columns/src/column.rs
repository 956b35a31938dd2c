//! Column builders.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Rows in a batch: about five megabytes of packets.
pub const BATCH: usize = 1 << 16;

/// The version of the columns.
const VERSION: &str = "1";

/// Collects rows into batches.
pub trait Columns: Default + Send {
    /// The schema of the columns.
    fn schema() -> SchemaRef;

    /// Rows since the last [`take`](Self::take).
    fn rows(&self) -> usize;

    /// The rows since the last call. Dictionaries grow from batch to batch: an entry keeps its number.
    fn take(&mut self) -> RecordBatch;
}

/// Repeated strings, each stored once and looked up by a key that it is formatted from.
#[derive(Debug)]
pub(crate) struct Words<K> {
    numbers: HashMap<K, i32>,
    words: Vec<String>,
    /// The two most recent entries, which are the most likely next ones.
    last: [Option<(K, i32)>; 2],
    column: Vec<i32>,
}

impl<K> Default for Words<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), words: Vec::new(), last: [None, None], column: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash> Words<K> {
    /// Appends the string for `key`; `word` formats it on first use.
    pub(crate) fn push(&mut self, key: &K, word: impl FnOnce() -> String) {
        let number = match &self.last {
            [Some((known, number)), _] if known == key => *number,
            [_, Some((known, number))] if known == key => {
                let number = *number;
                self.last.swap(0, 1);
                number
            }
            _ => {
                let number = self.number(key, word);
                self.last.swap(0, 1);
                self.last[0] = Some((key.clone(), number));
                number
            }
        };
        self.column.push(number);
    }

    fn number(&mut self, key: &K, word: impl FnOnce() -> String) -> i32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        // 2³¹ different strings do not fit in memory.
        let number = i32::try_from(self.words.len()).unwrap_or(i32::MAX);
        self.words.push(word());
        self.numbers.insert(key.clone(), number);
        number
    }
}

impl Words<Arc<str>> {
    /// Appends a string.
    pub(crate) fn push_text(&mut self, word: &str) {
        let found = self.last.iter().flatten().find(|(known, _)| **known == *word).map(|(_, number)| *number);
        match found.or_else(|| self.numbers.get(word).copied()) {
            Some(number) => self.column.push(number),
            None => self.push(&word.into(), || word.into()),
        }
    }
}

/// Virtual time ends after 292 years, and packet counts are smaller than that.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column builder that returns what has been appended to it.
pub(crate) trait Take {
    fn take(&mut self) -> ArrayRef;
}

impl<K> Take for Words<K> {
    fn take(&mut self) -> ArrayRef {
        let keys = Int32Array::from(std::mem::take(&mut self.column));
        let words = StringArray::from_iter_values(&self.words);
        // Each key is the index of a string.
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(words)))
    }
}

/// A dictionary-encoded text column.
pub(crate) fn words(name: &str) -> Field {
    Field::new(name, DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), false)
}

/// The schema of a table of this name.
pub(crate) fn schema(table: &str, fields: Vec<Field>) -> SchemaRef {
    let about = [("narrows.table", table), ("narrows.columns", VERSION)];
    let about = about.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Arc::new(Schema::new_with_metadata(fields, HashMap::from(about)))
}

/// Gives all batches the dictionaries of the last one, which extend those of the earlier ones: `batches` are the
/// batches from one `Columns` value, in order.
pub fn with_one_dictionary(batches: &mut [RecordBatch]) {
    let Some((last, before)) = batches.split_last_mut() else { return };
    for batch in before {
        let columns = batch.columns().iter().zip(last.columns());
        let shared = columns.map(|(own, last)| -> ArrayRef {
            match (own.as_dictionary_opt::<Int32Type>(), last.as_dictionary_opt::<Int32Type>()) {
                (Some(own), Some(last)) => Arc::new(own.with_values(Arc::clone(last.values()))),
                _ => Arc::clone(own),
            }
        });
        if let Ok(shared) = RecordBatch::try_new(batch.schema(), shared.collect()) {
            *batch = shared;
        }
    }
}
