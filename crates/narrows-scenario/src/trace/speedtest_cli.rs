//! Tables of speedtest-cli (`sivel/speedtest-cli`, `speedtest-cli --csv`, with `--csv-header`), and logs of what it prints
//! ([`simple`]).
//!
//! ```text
//! Server ID,Sponsor,Server Name,Timestamp,Distance,Ping,Download,Upload
//! 4068,Hosting,York,2018-04-01T20:42:03.728437,68.5,44.386,5042935.9,5660478.9
//! ```
//! A test per row: a round trip in milliseconds, measured before the load, and rates in bits per second. Half of `Ping`
//! is the one-way delay, and `Download` the rate; a test holds until the next.

mod simple;

use narrows_core::Duration;

use super::columns::{Clock, Columns, Delay, Place, RateUnit, TimeUnit};
use super::table;
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, Trace};

/// Files have a header with `Sponsor`, `Ping`, `Download` and `Upload`, or lines such as `Download: 31.36 Mbit/s`.
impl Format {
    /// Tables and logs of speedtest-cli. Read only.
    pub const SPEEDTEST_CLI: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "speedtest-cli",
    begins: |beginning| {
        beginning.has_columns(&["Sponsor", "Timestamp", "Ping", "Download", "Upload"])
            || simple::is_in(beginning.lines())
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it is a log of tests, with their servers";
        Err(CannotWrite::ReadOnly { format: Format::SPEEDTEST_CLI, why })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Half of the `Ping` of 1,800,000 ms that a test without an answer has.
const FAILED: Duration = Duration::from_secs(900);

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    match simple::is_in(source.lines()) {
        true => simple::read(source),
        false => read_table(source),
    }
}

fn read_table(source: &Source<'_>) -> Result<Trace, Problem> {
    let columns = Columns {
        clock: Clock::Time(Place::named("Timestamp"), Some(TimeUnit::Date)),
        rate: Some((Place::named("Download"), RateUnit::BIT)),
        delay: Some(Delay {
            place: Place::named("Ping"),
            unit: Some(TimeUnit::Number(6)),
            is_round_trip: true,
        }),
        loss: None,
        run: None,
        filter: None,
    };
    let mut trace = table::read(source, &columns, Format::SPEEDTEST_CLI)?;
    trace.remarks.push(
        "the rate is Download, and a test holds until the next; for the uplink: \
         `time=Timestamp,rate=Upload,unit=bit,rtt=Ping,delay-unit=ms` as columns"
            .into(),
    );
    let failed =
        trace.delay.iter().flat_map(|delays| delays.iter()).filter(|point| point.1 >= FAILED).count();
    if failed > 0 {
        trace.remarks.push(format!("{failed} delays of 900 s or more are those of pings without an answer"));
    }
    Ok(trace)
}
