//! `dbhpd`: a thesis's simulations, run again.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use narrows_core::{Duration, Seed};
use narrows_dbhpd::setup::Contender;
use narrows_dbhpd::{chain, figure_4_10, mixes, page, tail};
use narrows_scenario::{LinkFlags, Scenario, ScenarioError};

/// What nobody can guess, at the end of the help.
const HELP: &str = "\
Everything runs in virtual time: the same seed writes the same files. Without a subcommand it is
the traffic simulations and delay tests: mixes 1 to 3 through FIFO, PRIQ, CBQ and HPD at 10 Mbit/s,
half and full duplex, at the thesis's loads and at those that lose 5 % and 35 %; a page, index.html,
with the thesis's values beside ours, and the scenarios. docs/dbhpd-tail.md says more.

Examples:
  dbhpd --out dbhpd
  dbhpd tail --out tail
  dbhpd averages";

/// Delay-bounded hybrid proportional delay scheduling, by the thesis that put it into Linux
#[derive(Debug, Parser)]
#[command(after_help = HELP, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
struct Dbhpd {
    #[command(subcommand)]
    what: Option<What>,
    /// The folder for the results, which is made where there is none
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    run: Run,
}

/// What to run.
#[derive(Debug, Subcommand)]
enum What {
    /// Which fault of the published listing makes the long tail of its delays: tables and figures
    Tail(Tail),
    /// What each arithmetic would have printed in the thesis's figure 4.10
    Averages(Averages),
}

#[derive(Debug, Args)]
struct Tail {
    /// The folder for the results, which is made where there is none
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
struct Averages {
    #[command(flatten)]
    run: Run,
}

/// What is common to all of it.
#[derive(Debug, Args)]
struct Run {
    /// The seed of every random draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long each run lasts, in virtual time [default: 60s, or 5s with --quick]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Shorter runs, to see what it does
    #[arg(long)]
    quick: bool,
}

/// Why it ended early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Mixes(#[from] mixes::MixError),
    #[error("cannot write {}: {cause}", path.display())]
    Write { path: PathBuf, cause: io::Error },
    #[error("{0}")]
    Arguments(&'static str),
    /// Whoever read our output has enough of it.
    #[error("the standard output was closed")]
    Closed,
}

fn main() -> ExitCode {
    match dbhpd(&Dbhpd::parse()) {
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where nobody listens, the exit status says it.
            let _ = writeln!(io::stderr(), "dbhpd: {failure}");
            ExitCode::from(2)
        }
    }
}

fn dbhpd(args: &Dbhpd) -> Result<(), Failure> {
    let Some(what) = &args.what else { return evaluation(args) };
    match what {
        What::Tail(args) => {
            folder(&args.out)?;
            let (seed, span) = args.run.read()?;
            let study = tail::study(&tail::TailOptions { seed, span });
            for (name, figure) in study.figures() {
                write(&args.out.join(name).with_extension("svg"), &figure.svg())?;
            }
            let text = study.text().to_string();
            write(&args.out.join("tail.md"), &text)?;
            print(&format!("{text}\nwritten to {}\n", args.out.display()))?;
        }
        What::Averages(args) => {
            let (seed, span) = args.run.read()?;
            print(&figure_4_10::report(seed, span))?;
        }
    }
    Ok(())
}

/// The traffic simulations and the delay tests.
fn evaluation(args: &Dbhpd) -> Result<(), Failure> {
    let Some(out) = &args.out else {
        return Err(Failure::Arguments("say where the results go, as in: dbhpd --out dbhpd"));
    };
    folder(out)?;
    let (seed, span) = args.run.read()?;
    let options = mixes::MixOptions { seed: seed.0, span, quick: args.run.quick };
    let sections = mixes::run(&options)?;
    // A few seconds of constant traffic say all there is.
    let chain = chain::run(seed.0, span.min(Duration::from_secs(5)))?;
    let scenarios = out.join("scenarios");
    folder(&scenarios)?;
    for section in &sections {
        let name = section.file();
        write(&out.join(format!("{name}.svg")), &section.figure().svg())?;
        write(&out.join(format!("{name}-tails.svg")), &section.tails().svg())?;
        for run in section.runs.iter().take(Contender::FOUR.len()) {
            let file = format!("{name}-{}.toml", run.name.to_ascii_lowercase());
            write(&scenarios.join(file), &run.scenario)?;
        }
    }
    write(&out.join("chain.svg"), &chain.figure().svg())?;
    for row in &chain.rows {
        let scheduler = row.contender.name().to_ascii_lowercase();
        let file = format!("chain-{}-bytes-{}-classes-{scheduler}.toml", row.length, row.classes);
        write(&scenarios.join(file), &row.scenario)?;
    }
    write(&out.join("index.html"), &page::page(&options, &sections, &chain))?;
    print(&format!("{}\nwritten to {}: open index.html\n", mixes::text(&sections), out.display()))
}

impl Run {
    /// The seed and the length of a run.
    fn read(&self) -> Result<(Seed, Duration), Failure> {
        // The scenario's parser reads the time, and says what is wrong with it.
        let flags = LinkFlags::default().given("duration", self.duration.clone());
        let given = Scenario::from_flags(&flags)?.duration;
        let span = given.unwrap_or(Duration::from_secs(if self.quick { 5 } else { 60 }));
        if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&span) {
            return Err(Failure::Arguments("--duration: a run lasts from 1s to 3600s"));
        }
        Ok((Seed(self.seed), span))
    }
}

/// Makes a folder where there is none.
fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|cause| Failure::Write { path: path.into(), cause })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| Failure::Write { path: path.into(), cause })
}

/// Prints to the standard output.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|cause| match cause.kind() {
        ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Write { path: "the standard output".into(), cause },
    })
}
