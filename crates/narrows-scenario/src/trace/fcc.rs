//! Raw data of the FCC's Measuring Broadband America: `curr_webget.csv`, `curr_httpgetmt.csv`,
//! `curr_httppostmt.csv` (download and upload tests of homes).
//!
//! ```text
//! unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec,…
//! 386,2016-06-01 00:04:11,http://www.example.com,203.0.113.5,1290000,1204523,933738,…
//! ```
//! `bytes_sec` is the rate of a test at `dtime`. Files may lack the header. A file has the tests of many homes
//! and servers; a trace is those of one home and one server. Tests are minutes or hours apart, so simulators
//! play each for a few seconds (Pensieve: five); here a test holds until the next, as the file says.

use std::net::IpAddr;

use super::columns::{Clock, Columns, Place, RateUnit, TimeUnit};
use super::{date, table};
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Format, Trace};

/// Files have a header with `unit_id` and `bytes_sec`, or rows with a number, a date, a name and an address.
impl Format {
    /// Raw data of the FCC's Measuring Broadband America. Read only.
    pub const FCC: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "fcc",
    begins: |beginning| {
        let cells: Vec<&str> = beginning.line.split(',').take(7).map(unquoted).collect();
        let is_row = match cells[..] {
            [unit, time, _, address, _, _, _] => {
                unit.bytes().all(|byte| byte.is_ascii_digit())
                    && date::nanos(time).is_some()
                    && address.parse::<IpAddr>().is_ok()
            }
            _ => false,
        };
        is_row || beginning.has_columns(&["unit_id", "dtime", "bytes_sec"])
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it is a table of measurements at homes";
        Err(CannotWrite::ReadOnly { format: Format::FCC, why })
    },
    has_opportunities: false,
    says_loop: false,
};

fn unquoted(cell: &str) -> &str {
    cell.trim().trim_matches('"')
}

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut first: Option<[&str; 2]> = None;
    for line in table::lines(source) {
        let mut cells = line.split(',');
        let (Some(unit), Some(target)) = (cells.next(), cells.nth(1)) else { continue };
        if unquoted(unit) == "unit_id" {
            continue;
        }
        let [home, server] = *first.get_or_insert([unit, target]);
        let other = if unit != home { unit } else { target };
        if other != home && other != server {
            let problem = Problem::new(format!(
                "the tests of several homes or servers: {} and {}",
                Found(if unit != home { home } else { server }),
                Found(other)
            ));
            return Err(problem.at(&source.span(other)).help(format!(
                "keep those of one, for example with `grep '^{home},' FILE | grep '{server}'`"
            )));
        }
    }
    let columns = Columns {
        clock: Clock::Time(Place::named("2"), Some(TimeUnit::Date)),
        rate: Some((Place::named("7"), RateUnit::BYTE)),
        delay: None,
        loss: None,
        run: None,
        filter: None,
    };
    let mut trace = table::read(source, &columns, Format::FCC)?;
    trace.remarks.push(
        "a test holds until the next; to play each for 5 s instead: `interval=5s,rate=7,unit=byte` as columns"
            .into(),
    );
    Ok(trace)
}
