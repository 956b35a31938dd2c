//! `narrows kernel build`.

use std::env;
use std::io::{self, BufRead, IsTerminal, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::Args;
use narrows_guest::kernel::{BuildPlan, Progress, Source, Step, Store};
use narrows_scenario::printable;

use crate::output::{Failure, print};

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// A kernel's source: a folder, which is copied, or an archive, such as linux-6.12.tar.xz from kernel.org
    #[arg(long, value_name = "DIR|FILE", conflicts_with = "package")]
    source: Option<PathBuf>,
    /// A source package that apt offers: linux-source-6.12, linux-source-6.1, … [default: the newest that is known to work]
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// How many compilers run at a time [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroU16>,
    /// Leave the source and what was compiled, so that another build takes seconds
    #[arg(long)]
    keep_source: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn build(args: &Build, store: Store) -> Result<u8, Failure> {
    let path = env::var_os("PATH");
    let source = match &args.source {
        Some(given) => Source::given(given)?,
        None => Source::package(args.package.as_deref(), path.as_deref())?,
    };
    let plan = BuildPlan::new(source, store, args.jobs, args.keep_source)?;
    say(&printable(&plan.describe()));
    if !args.yes && io::stdin().is_terminal() && !agreed()? {
        say("nothing was done\n");
        return Ok(1);
    }
    let mut line = Line { counts: io::stderr().is_terminal() };
    let kernel = plan.build(&mut |progress| line.show(progress))?;
    print(&format!("guest kernel {} is in {}\n", kernel.version, kernel.path.display()))?;
    Ok(0)
}

/// Progress is no result: it goes to the standard error, and where nobody reads that, nowhere.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn agreed() -> Result<bool, Failure> {
    say("Go on? [Y/n] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    let read = read.map_err(|cause| Failure::Other(format!("cannot read the answer: {cause}")))?;
    let answer = answer.trim();
    Ok(read > 0
        && (answer.is_empty() || answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")))
}

/// Steps, a line each; on a terminal with a count of files that grows.
struct Line {
    counts: bool,
}

impl Line {
    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Begins(step) => {
                let end = if self.counts && step == Step::Keep { "\n" } else { "" };
                say(&format!("{end}{}\n", step.describe()));
            }
            Progress::Compiled(files) if self.counts => say(&format!("\r{files} files")),
            Progress::Compiled(_) => {}
        }
    }
}
