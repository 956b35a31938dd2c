//! `narrows docker watch`.

use clap::{Args, Subcommand};
use narrows_containers::watch::Asked;
use narrows_scenario::Files;

use crate::containers::{self, WatchArgs};
use crate::output::Failure;

/// Its commands.
#[derive(Debug, Subcommand)]
pub(crate) enum DockerCommand {
    /// Attach a network to every container with labels `narrows.KEY=VALUE`, as it starts
    Watch(Watch),
}

/// Additional help text, at the end of the help.
const HELP: &str = "\
Labels are keys of a link: narrows.rate, narrows.delay, narrows.preset and so on, one value for both
directions, or DOWN/UP; narrows.up.KEY is what the container sends, narrows.down.KEY what it receives.
narrows.interface, narrows.network and narrows.direction select where. Labels of docker-tc
(com.docker-tc.*) are read too. Works with Docker and with Podman's socket. Needs root and Linux 6.6.

Examples:
  docker run -d --label narrows.delay=25ms --label narrows.loss=1% nginx
  narrows docker watch
  narrows docker watch --socket /run/podman/podman.sock --fail closed
  narrows docker watch --dry-run";

/// The arguments of `narrows docker watch`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Watch {
    #[command(flatten)]
    watch: WatchArgs,
    /// Let labels name files of this host, such as traces; anybody who starts containers can then have them read
    #[arg(long)]
    allow_files: bool,
}

pub(crate) fn docker(command: &DockerCommand) -> Result<u8, Failure> {
    let DockerCommand::Watch(args) = command;
    let files = if args.allow_files { Files::beside("") } else { Files::given::<&str>([]) };
    containers::run(&args.watch, Asked::Labels(files), "containers with labels narrows.KEY")
}
