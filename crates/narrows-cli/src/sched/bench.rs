//! `narrows sched bench`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use narrows_lab::Algorithm;
use narrows_lab::bench::{BENCHED, Column, Plan, Plugin, columns, json, quantity, table};
use narrows_plugin::{Module, abi};
use narrows_scenario::SchedulerKind;

use crate::json::Json;
use crate::output::Failure;
use crate::progress::{Long, Quiet, interrupted, status_or_interrupted};

/// Additional help text, at the end of the help.
const HELP: &str = "\
A load is a number of flows of weight 1, the published mix, or flow sets weight:maxlen:flows (default:
weight 1, 1000 bytes, one flow). Commas separate loads, semicolons or spaces loads of flow sets. In
numbers k and m are 2^10 and 2^20, K and M 10^3 and 10^6, and n means \"times the number of flows\".

Examples:
  narrows sched bench --algorithms none,fifo,qfq --flows 1,512,32k,mix --packets 20m
  narrows sched bench --algorithms none,drr,wf2q+ --flows '1::512,8:1500:64' --qmin 4n --qmax 30n
  narrows sched bench --plugin examples/scheduler-rust/drr.wasm --algorithms none,drr,plugin --flows 64";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Bench {
    /// Algorithms, comma-separated; none is the bare harness [default: all]
    #[arg(long, value_name = "NAMES", default_value = "all", hide_default_value = true)]
    algorithms: String,
    /// Scheduler in a WebAssembly module, as the algorithm `plugin`
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Parameter of the module, such as quantum=1500; repeatable
    #[arg(long, value_name = "NAME=NUMBER", requires = "plugin")]
    parameter: Vec<String>,
    /// Loads: 1,8,64,mix or 1::512,8::64
    #[arg(long, visible_alias = "flowsets", value_name = "LOADS", default_value = "1,8,64,512,4k,32k,mix")]
    flows: Vec<String>,
    /// Dequeue until this many packets wait
    #[arg(long, value_name = "PACKETS", default_value = "0", allow_hyphen_values = true)]
    qmin: String,
    /// Enqueue until this many packets wait
    #[arg(long, value_name = "PACKETS", default_value = "20n", allow_hyphen_values = true)]
    qmax: String,
    /// Packets enqueued per run
    #[arg(long, value_name = "PACKETS", default_value = "5m", allow_hyphen_values = true)]
    packets: String,
    /// Runs of each algorithm and load, interleaved; the median counts
    #[arg(long, value_name = "RUNS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    quiet: Quiet,
}

pub(crate) fn bench(bench: &Bench) -> Result<u8, Failure> {
    let other = |error: &dyn std::fmt::Display, option: &str| Failure::Other(format!("--{option}: {error}"));
    let plugin = bench.plugin.as_deref().map(|file| plugin(file, &bench.parameter)).transpose()?;
    let loaded = plugin.is_some().then_some(Algorithm::Of(SchedulerKind::Plugin));
    let known: Vec<Algorithm> = BENCHED.iter().copied().chain(loaded).collect();
    let algorithms = Algorithm::parse_list(&bench.algorithms, &known).map_err(|e| other(&e, "algorithms"))?;
    let loads: Vec<Column> = columns(&bench.flows.join(" ")).map_err(|e| other(&e, "flows"))?;
    let number = |option: &str, text: &str| quantity(text).map_err(|e| other(&e, option));
    let thresholds = (number("qmin", &bench.qmin)?, number("qmax", &bench.qmax)?);
    let packets = match number("packets", &bench.packets)?.fixed() {
        Some(packets) if packets > 0 => packets,
        _ => return Err(other(&"a number of at least 1 is needed, the same for every load", "packets")),
    };
    let plan = Plan::new(algorithms, loads, thresholds, packets, bench.runs)
        .map_err(|error| Failure::Other(error.to_string()))?;
    let plan = Plan { plugin, ..plan };
    bench.json.probe()?;
    let mut long = Long::start(bench.quiet.quiet)?;
    let figures = plan.run(&mut |step| long.step(step));
    drop(long);
    let figures = figures.map_err(|error| Failure::Other(error.to_string()))?;
    let part = interrupted().is_some();
    bench.json.put_part(super::SCHEMA, &json(&plan, &figures), part, || table(&plan, &figures))?;
    Ok(status_or_interrupted(0, "partial results follow"))
}

/// The plugin module in a file, with these parameters.
fn plugin(file: &Path, parameters: &[String]) -> Result<Plugin, Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::Other(format!("--plugin {}: {error}", file.display()));
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| wrong(&error))?;
    opened.take(abi::LONGEST_MODULE as u64 + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    let module = Module::new(&bytes).map_err(|error| wrong(&error))?;
    let parameter = |text: &String| {
        let given =
            text.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
        given.ok_or_else(|| {
            Failure::Other(format!("--parameter: found `{text}`, expected NAME=NUMBER with a whole number"))
        })
    };
    let parameters: Vec<(String, i64)> = parameters.iter().map(parameter).collect::<Result<_, _>>()?;
    module.scheduler(&parameters, abi::FUEL).map_err(|error| wrong(&error))?;
    Ok(Plugin { module, parameters })
}
