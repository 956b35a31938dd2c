//! `narrows plot`: plots a time series, with a panel for each quantity and a line for each link.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use narrows_lab::plot::{Axis, COLOURS, Figure, Line, Panel};
use narrows_report::{LinkInterval, read_series};

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
  narrows plot series.csv --link access.down --plot downstream.svg")]
pub(crate) struct Plot {
    /// Series file of `run`, `up`, `bridge`, `route`, `attach` or `sim` (--series); - is stdin
    #[arg(value_name = "SERIES.csv", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Output file for the figure, an SVG; - is stdout
    #[arg(long, alias = "output", short_alias = 'o', value_name = "FILE.svg")]
    plot: PathBuf,
    /// Draw this link, such as access.down; repeatable
    #[arg(long, value_name = "LINK")]
    link: Vec<String>,
}

/// Plots the time series.
pub(crate) fn plot(args: &Plot) -> Result<u8, Failure> {
    probe_plot(Some(&args.plot))?;
    let (name, bytes) = read(&args.file)?;
    refuse_parquet(&name, &bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::Other(format!("{name}: not UTF-8 text")))?;
    let links = read_series(&text).map_err(|error| Failure::Other(format!("{name}:{error}")))?;
    let chosen = choose(&links, &args.link)?;
    put(&args.plot, &figure(&name, &chosen, links.len()).svg())?;
    Ok(0)
}

/// Refuses a Parquet file by its first bytes.
pub(crate) fn refuse_parquet(name: &str, bytes: &[u8]) -> Result<(), Failure> {
    if !bytes.starts_with(b"PAR1") {
        return Ok(());
    }
    Err(Failure::Other(format!(
        "{name}: a Parquet file; this command reads series as CSV (--series FILE.csv). DuckDB converts it: duckdb -c \"COPY '{name}' TO 'series.csv'\""
    )))
}

/// The named links, or those with the most traffic.
fn choose<'a>(
    links: &'a BTreeMap<String, Vec<LinkInterval>>,
    named: &[String],
) -> Result<Vec<(&'a str, &'a [LinkInterval])>, Failure> {
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
    let bits = |rows: &[LinkInterval]| {
        rows.iter().map(|row| row.throughput_bps.unwrap_or_default() as f64 * row.seconds()).sum::<f64>()
    };
    let mut all: Vec<_> = links.iter().map(|(name, rows)| (name.as_str(), rows.as_slice())).collect();
    all.sort_by(|a, b| bits(b.1).total_cmp(&bits(a.1)).then(a.0.cmp(b.0)));
    all.truncate(MOST_LINKS);
    all.sort_by(|a, b| a.0.cmp(b.0));
    Ok(all)
}

fn figure(name: &str, links: &[(&str, &[LinkInterval])], of: usize) -> Figure {
    let end = links.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.end_ns)).max().unwrap_or_default();
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let panel = |title: &str, label: &str, unit: &str, value: &dyn Fn(&LinkInterval) -> Option<f64>| {
        let lines = links.iter().enumerate().map(|(colour, (name, rows))| {
            // One step for each interval with a value.
            let steps = rows.iter().filter_map(|row| {
                value(row).map(|value| [(seconds(row.start_ns), value), (seconds(row.end_ns), value)])
            });
            Line::new(*name, colour, steps.flatten().collect())
        });
        let lines: Vec<_> = lines.filter(|line| !line.points.is_empty()).collect();
        let any = lines.iter().any(|line| line.points.iter().any(|(_, value)| *value > 0.0));
        let y = Axis::linear(label, unit).covering(0.0, 0.0);
        let x = Axis::linear("time", "s").within(0.0, seconds(end));
        any.then(|| Panel { title: title.into(), x, y, lines })
    };
    let per_second = |count: u64, row: &LinkInterval| Some(count as f64 / row.seconds().max(1e-9));
    let panels = [
        panel("throughput on the wire", "rate", "bit/s", &|row| row.throughput_bps.map(|bps| bps as f64)),
        panel("backlog at the end of the interval", "packets", "", &|row| Some(row.backlog_packets as f64)),
        panel("mean time in the queue", "time", "s", &|row| row.sojourn_mean_ns.map(seconds)),
        panel("drops", "packets per second", "", &|row| per_second(row.dropped_packets, row)),
        panel("congestion marks", "packets per second", "", &|row| per_second(row.marked_packets, row)),
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
    use narrows_report::SERIES_HEAD;

    use super::*;

    #[test]
    fn those_with_most_traffic_are_chosen_and_drawn() {
        let mut rows =
            String::from("0,100000000,link,\"a,\"\"b\",,3,900,1,2000000,1000,5,2,0,7,queue full=2\n");
        for link in 0..9 {
            rows += &format!("0,100000000,link,l{link},,0,0,0,,{},1,0,0,1,\n", 10_000 + link);
        }
        let links = read_series(&format!("{SERIES_HEAD}{rows}")).unwrap();
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
}
