//! The tables that are written.

use std::fmt;

use narrows_report::{PACKETS_HEAD, PacketRow, SERIES_HEAD, SeriesRow};

#[cfg(feature = "parquet")]
use crate::{column::Columns, packets::PacketColumns, series::SeriesColumns};

/// A table: the kind of its rows, as CSV and, with the feature `parquet`, as columns.
pub trait Table {
    /// A row; `Display` writes it as a line of CSV without the line end.
    type Row<'a>: fmt::Display;

    /// The first line of the CSV form.
    const HEAD: &'static str;

    /// The rows as columns.
    #[cfg(feature = "parquet")]
    type Columns: Columns;

    /// Appends a row to columns.
    #[cfg(feature = "parquet")]
    fn append(columns: &mut Self::Columns, row: &Self::Row<'_>);
}

/// Packet records: a row for each packet.
#[derive(Debug)]
pub enum Packets {}

impl Table for Packets {
    type Row<'a> = PacketRow<'a>;
    const HEAD: &'static str = PACKETS_HEAD;

    #[cfg(feature = "parquet")]
    type Columns = PacketColumns;

    #[cfg(feature = "parquet")]
    fn append(columns: &mut PacketColumns, row: &PacketRow<'_>) {
        columns.push(row);
    }
}

/// A time series: a row for each link or flow in each interval.
#[derive(Debug)]
pub enum Series {}

impl Table for Series {
    type Row<'a> = SeriesRow<'a>;
    const HEAD: &'static str = SERIES_HEAD;

    #[cfg(feature = "parquet")]
    type Columns = SeriesColumns;

    #[cfg(feature = "parquet")]
    fn append(columns: &mut SeriesColumns, row: &SeriesRow<'_>) {
        columns.push(row);
    }
}
