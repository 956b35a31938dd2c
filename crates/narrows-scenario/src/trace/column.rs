//! Columns of a trace: built while reading, iterated while writing.

use narrows_core::Time;

use super::{Column, Points, Trace};

/// Adds a value. It replaces an earlier one at the same instant.
pub(super) fn put<T>(column: &mut Column<T>, time: Time, value: T) {
    match column.last_mut() {
        Some(last) if last.0 == time => last.1 = value,
        _ => column.push((time, value)),
    }
}

/// The complete column; `None` if empty.
pub(super) fn filled<T>(column: Column<T>) -> Option<Points<T>> {
    (!column.is_empty()).then(|| points(column))
}

/// A column that has a value.
pub(super) fn points<T>(column: Column<T>) -> Points<T> {
    Points::new(column).expect("the instants of a column increase from zero")
}

impl Trace {
    /// All instants at which a column has a point, in order.
    pub(super) fn instants(&self) -> Vec<Time> {
        fn add<T>(instants: &mut Vec<Time>, column: &Option<Points<T>>) {
            instants.extend(column.iter().flat_map(|points| points.iter()).map(|point| point.0));
        }
        let mut instants = Vec::new();
        add(&mut instants, &self.rate);
        add(&mut instants, &self.delay);
        add(&mut instants, &self.loss);
        add(&mut instants, &self.duplicate);
        add(&mut instants, &self.bound);
        instants.sort_unstable();
        instants.dedup();
        instants
    }

    /// Adds a remark for each column among delay, loss, duplicates and bound that the file does not have.
    pub(super) fn left_out(&self, remarks: &mut Vec<String>, there: &[bool; 4]) {
        let names = ["delay", "loss", "duplicates", "queue bound"];
        let left: Vec<&str> =
            names.into_iter().zip(there).filter(|(_, there)| **there).map(|(name, _)| name).collect();
        if !left.is_empty() {
            remarks.push(format!("the format cannot express {}: left out", left.join(", ")));
        }
    }
}

/// Iterates over a column in order of time.
pub(super) struct Cells<'a, T> {
    column: Option<&'a Points<T>>,
    next: usize,
}

impl<'a, T: Copy> Cells<'a, T> {
    pub(super) const fn new(column: &'a Option<Points<T>>) -> Self {
        Self { column: column.as_ref(), next: 0 }
    }

    /// Writes the value that takes effect at `time`, or an empty cell; writes nothing if there is no such
    /// column.
    pub(super) fn cell(&mut self, text: &mut String, time: Time, value: impl Fn(T) -> String) {
        let Some(column) = self.column else { return };
        text.push(',');
        if let Some(point) = column.get(self.next).filter(|point| point.0 == time) {
            text.push_str(&value(point.1));
            self.next += 1;
        }
    }

    /// The current value at `time`.
    pub(super) fn held(&mut self, time: Time) -> Option<T> {
        let column = self.column?;
        while column.get(self.next).is_some_and(|point| point.0 <= time) {
            self.next += 1;
        }
        self.next.checked_sub(1).map(|index| column[index].1)
    }
}
