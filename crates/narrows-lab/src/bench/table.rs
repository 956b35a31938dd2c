//! Formats results, as text and as JSON.

use std::fmt::Write;

use narrows_scenario::SchedulerKind;
use serde::Serialize;

use super::plan::most_flows;
use super::{Figure, Plan};
use crate::Algorithm;

/// All results, for JSON.
#[derive(Serialize)]
struct Rows {
    runs: Vec<Row>,
}

/// A result, for JSON.
#[derive(Serialize)]
struct Row {
    algorithm: &'static str,
    flows: u64,
    /// The minimum and maximum backlog, in packets.
    qmin: u64,
    qmax: u64,
    /// Packets in each run.
    packets: u64,
    /// Of the median run.
    ns_per_packet: f64,
}

/// The results as a JSON list of objects.
pub fn json(plan: &Plan, figures: &[Figure]) -> impl Serialize {
    let row = |figure: &Figure| {
        let (_, workload) = &plan.columns[figure.column];
        Row {
            algorithm: figure.algorithm.name(),
            flows: workload.flows(),
            qmin: workload.qmin(),
            qmax: workload.qmax(),
            packets: plan.packets,
            // Digits beyond thousandths are below the accuracy of clock and loop.
            ns_per_packet: (figure.median() * 1000.0).round() / 1000.0,
        }
    };
    Rows { runs: figures.iter().map(row).collect() }
}

/// The results as a table: for one load with a column per measure, for several with a table per measure.
pub fn table(plan: &Plan, figures: &[Figure]) -> String {
    let mut text = String::new();
    for (column, workload) in &plan.columns {
        let (flows, qmin, qmax) = (workload.flows(), workload.qmin(), workload.qmax());
        let name = &column.name;
        let noun = if flows == 1 { "flow" } else { "flows" };
        let _ = writeln!(text, "{name}: {flows} {noun}; {qmin} to {qmax} packets wait");
    }
    let (packets, of) = (plan.packets, "in each round one run of each algorithm");
    let _ = match plan.runs {
        1 => writeln!(text, "{packets} packets a run; one run of each algorithm\n"),
        runs => writeln!(text, "{packets} packets a run; the median of {runs} runs, {of}\n"),
    };
    for &algorithm in &plan.algorithms {
        if let Some(most) = most_flows(algorithm)
            && plan.columns.iter().any(|(_, workload)| workload.flows() > most)
        {
            let _ = writeln!(text, "{algorithm} supports at most {most} flows; no figure above\n");
        }
    }
    let sheet = Sheet { plan, figures };
    match plan.columns.len() {
        1 => sheet.one(&mut text),
        _ => sheet.several(&mut text),
    }
    text
}

struct Sheet<'a> {
    plan: &'a Plan,
    figures: &'a [Figure],
}

/// A measure of an algorithm under a load. Some compare with a run of NONE or FIFO and are empty without it.
type Measure = fn(&Sheet<'_>, &Figure) -> Option<String>;

const MEDIAN: Measure = |_, figure| Some(format!("{:.1}", figure.median()));
const LEAST: Measure = |_, figure| Some(format!("{:.1}", figure.minimum()));
const BOTH: Measure = |_, figure| Some(format!("{:.1}/{:.1}", figure.median(), figure.minimum()));
const NET: Measure = |sheet, figure| {
    let none = sheet.figure(Algorithm::None, figure.column)?;
    (figure.algorithm != Algorithm::None).then(|| format!("{:.1}", figure.median() - none.median()))
};
const TO_NONE: Measure = |sheet, figure| sheet.ratio(figure, Algorithm::None);
const TO_FIFO: Measure = |sheet, figure| sheet.ratio(figure, Algorithm::Of(SchedulerKind::Fifo));

impl Sheet<'_> {
    fn figure(&self, algorithm: Algorithm, column: usize) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.algorithm == algorithm && figure.column == column)
    }

    fn ratio(&self, figure: &Figure, to: Algorithm) -> Option<String> {
        let base = self.figure(to, figure.column)?;
        Some(format!("{:.2}", figure.median() / base.median()))
    }

    fn one(&self, text: &mut String) {
        let measures = [
            ("ns per packet", MEDIAN),
            ("min", LEAST),
            ("net of NONE", NET),
            ("to NONE", TO_NONE),
            ("to FIFO", TO_FIFO),
        ];
        let row = |&algorithm: &Algorithm| {
            let figure = self.figure(algorithm, 0);
            let cell = |(_, measure): &(_, Measure)| figure.and_then(|figure| measure(self, figure));
            (algorithm.name(), measures.iter().map(cell).collect())
        };
        let rows: Vec<_> = self.plan.algorithms.iter().map(row).collect();
        lay_out(text, "", &measures.map(|(name, _)| name), &rows);
    }

    fn several(&self, text: &mut String) {
        let names: Vec<&str> = self.plan.columns.iter().map(|(column, _)| column.name.as_str()).collect();
        let measures = [
            ("ns per packet, p50/min", BOTH),
            ("net of NONE", NET),
            ("to NONE", TO_NONE),
            ("to FIFO", TO_FIFO),
        ];
        for (title, measure) in measures {
            let row = |&algorithm: &Algorithm| {
                let cell = |column| self.figure(algorithm, column).and_then(|figure| measure(self, figure));
                (algorithm.name(), (0..names.len()).map(cell).collect::<Vec<_>>())
            };
            let rows: Vec<_> = self.plan.algorithms.iter().map(row).collect();
            if rows.iter().any(|(_, cells)| cells.iter().any(Option::is_some)) {
                lay_out(text, title, &names, &rows);
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}

/// Names left-aligned, numbers right-aligned, columns as wide as needed. Columns and rows without numbers are left
/// out.
fn lay_out(text: &mut String, title: &str, heads: &[&str], rows: &[(&str, Vec<Option<String>>)]) {
    let used: Vec<usize> =
        (0..heads.len()).filter(|&at| rows.iter().any(|(_, cells)| cells[at].is_some())).collect();
    let rows = || rows.iter().filter(|(_, cells)| cells.iter().any(Option::is_some));
    let length = |text: &str| text.chars().count();
    let first = rows().map(|(name, _)| length(name)).chain([length(title)]).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows().filter_map(|(_, cells)| cells[at].as_deref());
        cells.chain([heads[at]]).map(length).max().unwrap_or(0)
    };
    let widths: Vec<usize> = used.iter().map(|&at| width(at)).collect();
    let mut line = |name: &str, cells: &mut dyn Iterator<Item = &str>| {
        let mut line = format!("{name:first$}");
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(title, &mut used.iter().map(|&at| heads[at]));
    for (name, cells) in rows() {
        line(name, &mut used.iter().map(|&at| cells[at].as_deref().unwrap_or("")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Workload, columns, quantity};
    use super::*;

    /// NONE takes 10 and 20 ns under the loads, the others that many more.
    fn made_up(loads: &str, others: &[(Algorithm, f64)]) -> (Plan, Vec<Figure>) {
        let algorithms: Vec<Algorithm> =
            [Algorithm::None].into_iter().chain(others.iter().map(|&(algorithm, _)| algorithm)).collect();
        let (qmin, qmax) = (quantity("4n").unwrap(), quantity("30n").unwrap());
        let with_workload = |column| (Workload::new(&column, qmin, qmax).unwrap(), column);
        let columns =
            columns(loads).unwrap().into_iter().map(with_workload).map(|(load, column)| (column, load));
        let plan = Plan { plugin: None, algorithms, columns: columns.collect(), packets: 1000, runs: 3 };
        let mut figures = Vec::new();
        for column in 0..plan.columns.len() {
            let none = 10.0 * (column + 1) as f64;
            for (algorithm, more) in [(Algorithm::None, 0.0)].iter().chain(others) {
                let runs = vec![none + more, none + more - 0.5, none + more + 30.0];
                figures.push(Figure::new(*algorithm, column, runs));
            }
        }
        (plan, figures)
    }

    #[test]
    fn one_load_has_a_column_for_each_measure() {
        let (plan, figures) = made_up(
            "1::2,8::1",
            &[(Algorithm::Of(SchedulerKind::Fifo), 5.0), (Algorithm::Of(SchedulerKind::Qfq), 20.0)],
        );
        let expected = "\
1::2,8::1: 3 flows; 12 to 90 packets wait
1000 packets a run; the median of 3 runs, in each round one run of each algorithm

      ns per packet   min  net of NONE  to NONE  to FIFO
none           10.0   9.5                  1.00     0.67
fifo           15.0  14.5          5.0     1.50     1.00
qfq            30.0  29.5         20.0     3.00     2.00
";
        assert_eq!(table(&plan, &figures), expected);
    }

    #[test]
    fn several_loads_have_a_table_for_each_measure_that_there_is() {
        let (plan, figures) = made_up("1,8", &[(Algorithm::Of(SchedulerKind::Qfq), 20.0)]);
        let expected = "\
1: 1 flow; 4 to 30 packets wait
8: 8 flows; 32 to 240 packets wait
1000 packets a run; the median of 3 runs, in each round one run of each algorithm

ns per packet, p50/min          1          8
none                     10.0/9.5  20.0/19.5
qfq                     30.0/29.5  40.0/39.5

net of NONE     1     8
qfq          20.0  20.0

to NONE     1     8
none     1.00  1.00
qfq      3.00  2.00
";
        assert_eq!(table(&plan, &figures), expected);
    }

    #[test]
    fn a_program_gets_a_list_of_objects() {
        let (plan, figures) = made_up("mix", &[(Algorithm::Of(SchedulerKind::Wf2q), 800.0)]);
        let expected = r#"{
  "runs": [
  {
    "algorithm": "none",
    "flows": 39953,
    "qmin": 159812,
    "qmax": 1198590,
    "packets": 1000,
    "ns_per_packet": 10.0
  },
  {
    "algorithm": "wf2q+",
    "flows": 39953,
    "qmin": 159812,
    "qmax": 1198590,
    "packets": 1000,
    "ns_per_packet": 810.0
  }
  ]
}"#;
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        assert_eq!(serde_json::to_value(json(&plan, &figures)).unwrap(), expected);
    }
}
