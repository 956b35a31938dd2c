//! Logs of G-NetTrack, as in the 4G and 5G data sets of University College Cork (Raca et al., "Beyond
//! throughput: a 4G LTE dataset with channel and context metrics", MMSys 2018; "Beyond throughput, the next
//! generation: a 5G dataset with channel and context metrics", MMSys 2020).
//!
//! ```text
//! Timestamp,Longitude,…,DL_bitrate,UL_bitrate,State,PINGAVG,…
//! 2019.12.16_13.40.04,-8.39,…,1045,12,D,-,…
//! ```
//! Rates are in kbit/s, times have whole seconds. `DL_bitrate` is the rate here. The round trips of
//! `PINGAVG` are measured below that load and contain its queues: they are not a delay of the link.

use super::columns::{Clock, Columns, Place, RateUnit, TimeUnit};
use super::table;
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, Trace};

/// Files have a header with `DL_bitrate`.
impl Format {
    /// Logs of G-NetTrack: the 4G and 5G data sets of University College Cork. Read only.
    pub const UCC: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "ucc",
    begins: |beginning| beginning.has_columns(&["Timestamp", "DL_bitrate"]),
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        Err(CannotWrite::ReadOnly {
            format: Format::UCC,
            why: "it is a log of a phone, with places and cells",
        })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let columns = Columns {
        clock: Clock::Time(Place::named("Timestamp"), Some(TimeUnit::Date)),
        rate: Some((Place::named("DL_bitrate"), RateUnit::KBIT)),
        delay: None,
        loss: None,
        run: None,
        filter: None,
    };
    let mut trace = table::read(source, &columns, Format::UCC)?;
    trace.remarks.push(
        "the rate is DL_bitrate; for the uplink: `time=Timestamp,rate=UL_bitrate,unit=kbit` as columns"
            .into(),
    );
    Ok(trace)
}
