//! `narrows exec`: a program, or a shell, in a host of a run that is going on.

use std::ffi::OsString;
use std::process::Command;

use clap::{Args, ValueHint};
use narrows_live::control::Client;
use narrows_live::exec::Place;

use crate::output::{Failure, say};
use crate::shell::Shell;

/// The arguments of `narrows exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows exec dsl client -- ping -c 3 server
  narrows exec dsl client")]
pub(crate) struct Exec {
    /// The run, by its name or number
    #[arg(value_name = "NAME")]
    run: String,
    /// The host
    #[arg(value_name = "HOST")]
    host: String,
    /// The program to run and its arguments [default: your shell]
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

pub(crate) fn exec(args: &Exec) -> Result<u8, Failure> {
    let run = Client::find(Some(&args.run))?;
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
