//! `narrows kernel build`.

use std::env;
use std::io::{self, BufRead, IsTerminal, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::Args;
use narrows_guest::kernel::{BuildPlan, Progress, Source, Step, Store};
use narrows_scenario::printable;

use crate::output::{Failure, print};
use crate::progress::{self, Quiet};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows kernel build
  narrows kernel build --source linux-6.12.tar.xz --yes")]
pub(crate) struct Build {
    /// Kernel source: a folder (it is copied) or an archive such as linux-6.12.tar.xz from kernel.org
    #[arg(long, value_name = "DIR|FILE", conflicts_with = "package")]
    source: Option<PathBuf>,
    /// Source package from apt: linux-source-6.12, linux-source-6.1, … [default: the newest known to work]
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Parallel compiler jobs [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroU16>,
    /// Keep source and object files, so that the next build takes seconds
    #[arg(long)]
    keep_source: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    quiet: Quiet,
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
    let mut steps = Steps { quiet: args.quiet.quiet, compiling: None };
    let kernel = plan.build(&mut |progress| steps.show(progress))?;
    print(&format!("guest kernel {} is in {}\n", kernel.version, kernel.path.display()))?;
    Ok(0)
}

/// Progress is not a result: it goes to stderr, and is dropped if stderr is closed.
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

/// Approximate number of compiled files of a kernel. Used only to estimate the remaining time.
const FILES: u64 = 1_000;

/// Steps, one line each; on a terminal with the progress of the longest one.
struct Steps {
    quiet: bool,
    compiling: Option<progress::Progress>,
}

impl Steps {
    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Begins(step) => {
                self.compiling = (step == Step::Compile).then(|| progress::Progress::new(self.quiet));
                if !self.quiet {
                    say(&format!("{}\n", step.describe()));
                }
            }
            Progress::Compiled(files) => {
                let files = files as u64;
                if let Some(compiling) = &mut self.compiling {
                    compiling.tell(files, Some(FILES.max(files + 1)), &format!("{files} files"));
                }
            }
        }
    }
}
