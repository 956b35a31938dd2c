//! Lumos5G (Narayanan et al., "Lumos5G: mapping and predicting commercial mmWave 5G throughput", IMC 2020).
//!
//! ```text
//! run_num,seq_num,abstractSignalStr,latitude,…,nrStatus,…,Throughput,mobility_mode,…
//! 1,1,2,44.97,…,NOT_RESTRICTED,…,125,driving,…
//! ```
//! `Throughput` is in Mbit/s, `seq_num` counts the seconds of a run. Runs follow one another.

use super::columns::{Clock, Columns, Place, RateUnit, TimeUnit};
use super::table;
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, Trace};

/// Files have a header with `run_num` and `seq_num`.
impl Format {
    /// The Lumos5G data set. Read only.
    pub const LUMOS5G: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "lumos5g",
    begins: |beginning| beginning.has_columns(&["run_num", "seq_num", "Throughput"]),
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it is a log of a phone, with places and signal strengths";
        Err(CannotWrite::ReadOnly { format: Format::LUMOS5G, why })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let columns = Columns {
        clock: Clock::Time(Place::named("seq_num"), Some(TimeUnit::Number(9))),
        rate: Some((Place::named("Throughput"), RateUnit::MBIT)),
        delay: None,
        loss: None,
        run: Some(Place::named("run_num")),
        filter: None,
    };
    table::read(source, &columns, Format::LUMOS5G)
}
