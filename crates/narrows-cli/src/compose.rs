//! `narrows compose`.

use std::path::{Path, PathBuf};

use clap::Args;
use narrows_containers::project::{FILES, Project};
use narrows_containers::watch::Asked;

use crate::containers::{self, WatchArgs};
use crate::output::{Failure, print};

/// Additional help text, at the end of the help.
const HELP: &str = "\
The file has a block x-narrows, which compose itself ignores:

  x-narrows:
    defaults: { delay: 2ms }                        # the own link of every service
    services: { web: { preset: 4g } }               # the own link of one
    links:
      \"web -> db\": { delay: 20ms, loss: 1% }        # from one to another; <-> for both directions

Start narrows before or after `docker compose up`. Needs root and Linux 6.6.

Examples:
  narrows compose
  narrows compose -f docker-compose.yml --fail closed
  narrows compose --check";

/// The arguments of `narrows compose`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Compose {
    /// The compose file [default: compose.yaml, compose.yml, docker-compose.yml or docker-compose.yaml]
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The name of the project [default: COMPOSE_PROJECT_NAME, the file's `name`, or that of its folder]
    #[arg(long, short, value_name = "NAME")]
    project: Option<String>,
    /// Check the file and print the scenario of each service; needs no engine
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    #[command(flatten)]
    watch: WatchArgs,
}

pub(crate) fn compose(args: &Compose) -> Result<u8, Failure> {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => found()?,
    };
    let named = std::env::var("COMPOSE_PROJECT_NAME").ok().filter(|name| !name.is_empty());
    let project = Project::load(&file, args.project.as_deref().or(named.as_deref()))?;
    if args.check {
        for (service, plan) in project.plans()? {
            let text = plan.unwrap_or_else(|| "# nothing to attach\n".into());
            print(&format!("# service {service}\n{text}\n"))?;
        }
        return Ok(0);
    }
    let what = format!("the project {}", project.name);
    containers::run(&args.watch, Asked::Project(Box::new(project)), &what)
}

/// The compose file of this folder.
fn found() -> Result<PathBuf, Failure> {
    let found = FILES.iter().find(|name| Path::new(name).is_file());
    found.map(PathBuf::from).ok_or_else(|| {
        Failure::Other(format!("no compose file here ({}): name one with -f FILE", FILES.join(", ")))
    })
}
