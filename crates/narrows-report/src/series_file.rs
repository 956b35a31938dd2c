//! A file of `--series`, read back: what each link did in each interval.

use std::collections::BTreeMap;

/// A row of a link. What the file leaves empty, or has no column for, is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInterval {
    /// The start of the interval, from the start of the run.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// Waiting at its end.
    pub backlog_packets: u64,
    /// Mean time in the queue.
    pub sojourn_mean_ns: Option<u64>,
    /// Bits sent by the interval.
    pub throughput_bps: Option<u64>,
    /// Dropped by the link.
    pub dropped_packets: u64,
    /// Marked with "congestion experienced" by the link.
    pub marked_packets: u64,
    /// Arrived at the link; no column of files of older versions.
    pub offered_packets: Option<u64>,
}

impl LinkInterval {
    /// The length of the interval in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }
}

/// Why a text is no series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct SeriesFileError {
    line: usize,
    what: String,
}

/// The rows of each link, in the order of the file.
///
/// # Errors
/// With the line, when a column is missing, a row is torn or has no number where there should be one, or no link has a row.
pub fn read_series(text: &str) -> Result<BTreeMap<String, Vec<LinkInterval>>, SeriesFileError> {
    let wrong = |line: usize, what: String| SeriesFileError { line, what };
    let mut lines = text.lines().enumerate();
    let head: Vec<&str> = lines.next().map(|(_, head)| head.split(',').collect()).unwrap_or_default();
    let find = |wanted: &str| head.iter().position(|column| *column == wanted);
    let column = |wanted: &str| {
        find(wanted).ok_or_else(|| wrong(1, format!("no column {wanted}: expected a file of --series")))
    };
    let (kind, link) = (column("kind")?, column("name")?);
    let (start, end) = (column("start_ns")?, column("end_ns")?);
    let (backlog, sojourn) = (column("backlog_packets")?, column("sojourn_mean_ns")?);
    let throughput = column("throughput_bps")?;
    let (dropped, marked) = (column("dropped_packets")?, column("marked_packets")?);
    let offered = find("offered_packets");
    let mut all: BTreeMap<String, Vec<LinkInterval>> = BTreeMap::new();
    for (number, line) in lines {
        let number = number + 1;
        let cells = cells(line);
        if cells.len() != head.len() {
            return Err(wrong(number, format!("{} cells, expected {}", cells.len(), head.len())));
        }
        if cells[kind] != "link" {
            continue;
        }
        let value = |at: usize| match cells[at].as_str() {
            "" => Ok(None),
            text => text.parse::<u64>().map(Some).map_err(|_| {
                wrong(number, format!("`{}` is not a number ({})", text.escape_debug(), head[at]))
            }),
        };
        let count = |at| value(at).map(Option::unwrap_or_default);
        let row = LinkInterval {
            start_ns: count(start)?,
            end_ns: count(end)?,
            backlog_packets: count(backlog)?,
            sojourn_mean_ns: value(sojourn)?,
            throughput_bps: value(throughput)?,
            dropped_packets: count(dropped)?,
            marked_packets: count(marked)?,
            offered_packets: offered.map(value).transpose()?.flatten(),
        };
        if row.end_ns < row.start_ns {
            return Err(wrong(number, "an interval that ends before it starts".into()));
        }
        all.entry(cells[link].clone()).or_default().push(row);
    }
    if all.is_empty() {
        return Err(wrong(1, "no rows of links".into()));
    }
    Ok(all)
}

/// The cells of a line of CSV, quotes taken off (RFC 4180).
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    all.push(cell);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SERIES_HEAD;

    fn read(rows: &str) -> Result<BTreeMap<String, Vec<LinkInterval>>, String> {
        read_series(&format!("{SERIES_HEAD}{rows}")).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_of_links_are_read() {
        let links = read(
            "0,100000000,flow,web,tcp a > b,,,,,,1,0,0,,\n\
             0,100000000,link,\"a,\"\"b\",,3,900,1,2000000,1000,5,2,0,7,queue full=2\n\
             100000000,200000000,link,\"a,\"\"b\",,0,0,0,,0,0,0,0,0,\n",
        )
        .unwrap();
        let rows = &links["a,\"b"];
        assert_eq!((links.len(), rows.len()), (1, 2));
        let expected = LinkInterval {
            start_ns: 0,
            end_ns: 100_000_000,
            backlog_packets: 3,
            sojourn_mean_ns: Some(2_000_000),
            throughput_bps: Some(1000),
            dropped_packets: 2,
            marked_packets: 0,
            offered_packets: Some(7),
        };
        assert_eq!(rows[0], expected);
        assert_eq!((rows[1].sojourn_mean_ns, rows[1].seconds()), (None, 0.1));
        // A file of a version that did not count what was offered.
        let old = format!("{SERIES_HEAD}0,1,link,l,,0,0,0,,0,0,0,0\n").replace(",offered_packets,drops", "");
        assert_eq!(read_series(&old).unwrap()["l"][0].offered_packets, None);
    }

    #[test]
    fn what_is_no_series_is_told_with_its_line() {
        let of_head = read_series("a,b\n").unwrap_err().to_string();
        assert_eq!(of_head, "1: no column kind: expected a file of --series");
        assert_eq!(read_series("").unwrap_err().to_string(), of_head);
        assert_eq!(read("").unwrap_err(), "1: no rows of links");
        assert_eq!(read("0,1,link,l\n").unwrap_err(), "2: 4 cells, expected 15");
        for (row, expected) in [
            ("0,1,link,l,,x,0,0,,,0,0,0,0,\n", "2: `x` is not a number (backlog_packets)"),
            ("2,1,link,l,,0,0,0,,,0,0,0,0,\n", "2: an interval that ends before it starts"),
        ] {
            assert_eq!(read(row).unwrap_err(), expected);
        }
    }
}
