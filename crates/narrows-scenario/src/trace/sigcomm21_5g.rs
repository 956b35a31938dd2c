//! Throughput logs of the SIGCOMM 2021 study of 5G (Narayanan et al., "A variegated look at 5G in the wild:
//! performance, power, and QoE implications"; `SIGCOMM21-5G/artifact` on GitHub): iPerf's rows, alone
//! (`iperf-logs`) or merged with those of the phone (`merged-logs`).
//!
//! ```text
//! …,_start,_end,_seconds,…,bits_per_second,…,Throughput,run_number,…
//! …,0.0,1.0,1.0,…,1210000000.0,…,1210.0,151,…
//! ```
//! `_start` is the second of iPerf's run at which a row begins. Where rows are missing, the one before them
//! goes on. The study's traces of video streaming are [`Format::PENSIEVE`] files.

use super::columns::{Clock, Columns, Place, RateUnit, TimeUnit};
use super::table;
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, Trace};

/// Files have a header with `_start` and `bits_per_second`.
impl Format {
    /// Throughput logs of the SIGCOMM 2021 study of 5G. Read only.
    pub const SIGCOMM21_5G: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "sigcomm21-5g",
    begins: |beginning| beginning.has_columns(&["_start", "bits_per_second", "run_number"]),
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it is a log of iPerf and a phone";
        Err(CannotWrite::ReadOnly { format: Format::SIGCOMM21_5G, why })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let columns = Columns {
        clock: Clock::Time(Place::named("_start"), Some(TimeUnit::Number(9))),
        rate: Some((Place::named("bits_per_second"), RateUnit::BIT)),
        delay: None,
        loss: None,
        run: Some(Place::named("run_number")),
        filter: None,
    };
    table::read(source, &columns, Format::SIGCOMM21_5G)
}
