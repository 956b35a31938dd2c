//! `narrows plot`: plots a time series, with a panel for each quantity and a line for each link.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use narrows_lab::plot::{Axis, COLOURS, Figure, Line, Panel};

use crate::output::{Failure, probe_plot, put};
use crate::trace::read;

/// Maximum number of links plotted unless links are named.
const MOST_LINKS: usize = COLOURS;

#[derive(Debug, Args)]
#[command(after_help = "\
Draws throughput, backlog, sojourn time, drops and marks of each link over time. Without --link, the
links with the most traffic. See docs/series.md.

Examples:
  narrows plot series.csv --plot run.svg
  narrows plot series.csv --link access.down --plot run.png")]
pub(crate) struct Plot {
    /// Series file of `run`, `up`, `bridge`, `attach` or `sim` (--series); - is stdin
    #[arg(value_name = "SERIES.csv", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Output file for the figure, SVG or PNG; - is stdout
    #[arg(long, alias = "output", short_alias = 'o', value_name = "FILE.svg|.png")]
    plot: PathBuf,
    /// Draw this link, such as access.down; repeatable
    #[arg(long, value_name = "LINK")]
    link: Vec<String>,
}

/// A row for one link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Row {
    start: f64,
    end: f64,
    backlog: f64,
    sojourn: Option<f64>,
    throughput: Option<f64>,
    dropped: f64,
    marked: f64,
}

/// Plots the time series.
pub(crate) fn plot(args: &Plot) -> Result<u8, Failure> {
    probe_plot(Some(&args.plot))?;
    let (name, bytes) = read(&args.file)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&name, 1, "not UTF-8 text"))?;
    let links = links(&name, &text)?;
    let chosen = choose(&links, &args.link)?;
    put(&args.plot, &figure(&name, &chosen, links.len()).svg())?;
    Ok(0)
}

fn wrong(name: &str, line: usize, what: &str) -> Failure {
    Failure::Other(format!("{name}:{line}: {what}"))
}

/// The rows of each link.
fn links(name: &str, text: &str) -> Result<BTreeMap<String, Vec<Row>>, Failure> {
    let mut lines = text.lines().enumerate();
    let head: Vec<&str> = lines.next().map(|(_, head)| head.split(',').collect()).unwrap_or_default();
    let column = |wanted: &str| {
        let found = head.iter().position(|column| *column == wanted);
        found.ok_or_else(|| wrong(name, 1, &format!("no column {wanted}: expected a file of --series")))
    };
    let (kind, link) = (column("kind")?, column("name")?);
    let columns = [
        column("start_ns")?,
        column("end_ns")?,
        column("backlog_packets")?,
        column("sojourn_mean_ns")?,
        column("throughput_bps")?,
        column("dropped_packets")?,
        column("marked_packets")?,
    ];
    let mut all: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for (number, line) in lines {
        let cells = cells(line);
        if cells.len() != head.len() {
            let what = format!("{} cells, expected {}", cells.len(), head.len());
            return Err(wrong(name, number + 1, &what));
        }
        if cells[kind] != "link" {
            continue;
        }
        let value = |at: usize| match cells[at].as_str() {
            "" => Ok(None),
            text => text.parse::<f64>().map(Some).map_err(|_| {
                wrong(name, number + 1, &format!("`{}` is not a number ({})", text.escape_debug(), head[at]))
            }),
        };
        let [start, end, backlog, sojourn, throughput, dropped, marked] = columns;
        let number = |at| Ok::<f64, Failure>(value(at)?.unwrap_or_default());
        all.entry(cells[link].clone()).or_default().push(Row {
            start: number(start)? / 1e9,
            end: number(end)? / 1e9,
            backlog: number(backlog)?,
            sojourn: value(sojourn)?.map(|nanos| nanos / 1e9),
            throughput: value(throughput)?,
            dropped: number(dropped)?,
            marked: number(marked)?,
        });
    }
    if all.is_empty() {
        return Err(wrong(name, 1, "no rows of links"));
    }
    Ok(all)
}

/// The cells of a CSV line, without quotes (RFC 4180).
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

/// The named links, or those with the most traffic.
fn choose<'a>(
    links: &'a BTreeMap<String, Vec<Row>>,
    named: &[String],
) -> Result<Vec<(&'a str, &'a [Row])>, Failure> {
    if !named.is_empty() {
        let known = || links.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return named
            .iter()
            .map(|name| {
                let found = links.get_key_value(name).map(|(name, rows)| (name.as_str(), rows.as_slice()));
                found
                    .ok_or_else(|| Failure::Other(format!("--link {name}: no such link; links: {}", known())))
            })
            .collect();
    }
    let bits = |rows: &[Row]| {
        rows.iter().map(|row| row.throughput.unwrap_or_default() * (row.end - row.start)).sum::<f64>()
    };
    let mut all: Vec<_> = links.iter().map(|(name, rows)| (name.as_str(), rows.as_slice())).collect();
    all.sort_by(|a, b| bits(b.1).total_cmp(&bits(a.1)).then(a.0.cmp(b.0)));
    all.truncate(MOST_LINKS);
    all.sort_by(|a, b| a.0.cmp(b.0));
    Ok(all)
}

fn figure(name: &str, links: &[(&str, &[Row])], of: usize) -> Figure {
    let end = links.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.end)).fold(0.0, f64::max);
    let panel = |title: &str, label: &str, unit: &str, value: &dyn Fn(&Row) -> Option<f64>| {
        let lines = links.iter().enumerate().map(|(colour, (name, rows))| {
            // One step for each interval with a value.
            let steps =
                rows.iter().filter_map(|row| value(row).map(|value| [(row.start, value), (row.end, value)]));
            Line::new(*name, colour, steps.flatten().collect())
        });
        let lines: Vec<_> = lines.filter(|line| !line.points.is_empty()).collect();
        let any = lines.iter().any(|line| line.points.iter().any(|(_, value)| *value > 0.0));
        let y = Axis::linear(label, unit).covering(0.0, 0.0);
        any.then(|| Panel { title: title.into(), x: Axis::linear("time", "s").within(0.0, end), y, lines })
    };
    let per_second = |count: f64, row: &Row| Some(count / (row.end - row.start).max(1e-9));
    let panels = [
        panel("throughput on the wire", "rate", "bit/s", &|row| row.throughput),
        panel("backlog at the end of the interval", "packets", "", &|row| Some(row.backlog)),
        panel("mean time in the queue", "time", "s", &|row| row.sojourn),
        panel("drops", "packets per second", "", &|row| per_second(row.dropped, row)),
        panel("congestion marks", "packets per second", "", &|row| per_second(row.marked, row)),
    ];
    let subtitle = match of - links.len() {
        0 => String::new(),
        more => format!("{more} more links are not shown"),
    };
    Figure { title: title(name), subtitle, columns: 1, panels: panels.into_iter().flatten().collect() }
}

/// The name of the file, without its folder.
fn title(name: &str) -> String {
    Path::new(name).file_name().map_or(name.into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "start_ns,end_ns,kind,name,flow,backlog_packets,backlog_bytes,in_flight_packets,sojourn_mean_ns,\
                        throughput_bps,delivered_packets,dropped_packets,marked_packets,offered_packets,drops";

    fn read(rows: &str) -> Result<BTreeMap<String, Vec<Row>>, String> {
        links("x.csv", &format!("{HEAD}\n{rows}")).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_of_links_are_read_and_those_with_most_traffic_chosen() {
        let mut rows = String::from(
            "0,100000000,flow,web,tcp a > b,,,,,,1,0,0,,\n0,100000000,link,\"a,\"\"b\",,3,900,1,2000000,1000,5,2,0,7,queue full=2\n",
        );
        for link in 0..9 {
            rows += &format!("0,100000000,link,l{link},,0,0,0,,{},1,0,0,1,\n", 10_000 + link);
        }
        let links = read(&rows).unwrap();
        let odd = &links["a,\"b"][0];
        assert_eq!(
            (odd.backlog, odd.sojourn, odd.throughput, odd.dropped),
            (3.0, Some(0.002), Some(1000.0), 2.0)
        );
        let chosen: Vec<_> = choose(&links, &[]).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(chosen, ["l2", "l3", "l4", "l5", "l6", "l7", "l8"]);
        assert!(choose(&links, &["l9".into()]).unwrap_err().to_string().contains("no such link; links: a,"));
        let figure = figure("x.csv", &choose(&links, &["a,\"b".into()]).unwrap(), links.len());
        let titles: Vec<_> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "throughput on the wire",
                "backlog at the end of the interval",
                "mean time in the queue",
                "drops"
            ]
        );
        assert_eq!(figure.panels[3].lines[0].points, [(0.0, 20.0), (0.1, 20.0)]);
    }

    #[test]
    fn what_is_no_series_is_told_with_its_line() {
        assert!(links("x.csv", "a,b\n").unwrap_err().to_string().contains("x.csv:1: no column kind"));
        assert!(read("").unwrap_err().contains("no rows of links"));
        assert!(read("0,1,link,l\n").unwrap_err().contains("x.csv:2: 4 cells, expected 15"));
        let error = read("0,1,link,l,,x,0,0,,,0,0,0,0,\n").unwrap_err();
        assert!(error.contains("x.csv:2: `x` is not a number (backlog_packets)"), "{error}");
    }
}
