//! `narrows clab`.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use narrows_containers::lab::Lab;
use narrows_containers::watch::Asked;
use narrows_io::process;

use crate::containers::{self, WatchArgs};
use crate::output::{Failure, print};

/// Additional help text, at the end of the help.
const HELP: &str = "\
Links of the topology file have their settings in vars.narrows:

  links:
    - endpoints: [\"a:eth1\", \"b:eth1\"]
      vars: { narrows: { rate: 10mbit, delay: 20ms, up: { loss: 1% } } }     # up is from a to b

Start narrows before or after `containerlab deploy`. Needs containerlab, root and Linux 6.6.

Examples:
  narrows clab -t lab.clab.yml
  narrows clab -t lab.clab.yml --fail closed
  narrows clab --check";

/// The arguments of `narrows clab`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Clab {
    /// The topology file [default: the only *.clab.yml or *.clab.yaml of this folder]
    #[arg(long, short, value_name = "FILE")]
    topo: Option<PathBuf>,
    /// The name of the lab [default: the file's `name`]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The program whose events are followed [default: CONTAINERLAB, or containerlab from PATH]
    #[arg(long, value_name = "PROGRAM")]
    containerlab: Option<PathBuf>,
    /// Check the file and print the scenario of each link; needs no engine
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    #[command(flatten)]
    watch: WatchArgs,
}

pub(crate) fn clab(args: &Clab) -> Result<u8, Failure> {
    let file = match &args.topo {
        Some(file) => file.clone(),
        None => found()?,
    };
    let mut lab = Lab::load(&file, args.name.as_deref())?;
    if args.check {
        for (link, plan) in lab.plans()? {
            print(&format!("# link {link}\n{plan}\n"))?;
        }
        return Ok(0);
    }
    lab.program = program(args.containerlab.clone());
    process::check(&Command::new(&lab.program)).map_err(|error| {
        Failure::Other(format!("{error}; its events tell of the lab: install containerlab, or name it with --containerlab or CONTAINERLAB"))
    })?;
    let what = format!("the lab {}", lab.name);
    containers::run(&args.watch, Asked::Lab(Box::new(lab)), &what)
}

/// The program whose events are followed: this one, or by the environment, or from PATH.
pub(crate) fn program(given: Option<PathBuf>) -> PathBuf {
    let named = || std::env::var_os("CONTAINERLAB").filter(|named| !named.is_empty()).map(PathBuf::from);
    given.or_else(named).unwrap_or_else(|| "containerlab".into())
}

/// The topology file of this folder.
fn found() -> Result<PathBuf, Failure> {
    let is_topology = |name: &str| name.ends_with(".clab.yml") || name.ends_with(".clab.yaml");
    let all = std::fs::read_dir(".").into_iter().flatten().flatten().map(|file| file.file_name());
    let mut found: Vec<_> = all.filter(|name| name.to_str().is_some_and(is_topology)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(name), true) => Ok(name.into()),
        (None, _) => Err(Failure::Other("no topology file here (*.clab.yml): name one with -t FILE".into())),
        (Some(_), false) => Err(Failure::Other("several topology files here: name one with -t FILE".into())),
    }
}
