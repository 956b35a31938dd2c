//! `narrows exec`: a program, or a shell, in a host of a running network.

use std::process::Command;

use narrows_live::control::Client;
use narrows_live::exec::Place;

use crate::args::Exec;
use crate::output::{Failure, say};
use crate::shell::Shell;

pub(crate) fn exec(args: &Exec) -> Result<u8, Failure> {
    let run = Client::find_or_start(Some(&args.run))?;
    let place = Place::find(&run, &args.host)?;
    let shell = match args.command.is_empty() {
        true => Some(Shell::of_user(&format!("{}:{}", args.run, args.host))?),
        false => None,
    };
    let words = shell.as_ref().map_or(&args.command, |shell| &shell.command);
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::Other("no program to run".into()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(shell) = &shell {
        command.envs(shell.environment.iter().cloned());
    }
    let ended = place.run(command)?;
    if ended.run_is_over {
        say(format_args!("narrows: the run {} has ended", args.run));
    }
    Ok(ended.status)
}
