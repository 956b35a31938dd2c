//! The `narrows` program: command line in, reports and errors out.
#![forbid(unsafe_code)]

mod args;
mod check;
mod clean;
mod doctor;
mod live;
mod output;
mod remote;
mod sim;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use output::Failure;

/// What a program that cannot do what it was asked exits with.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(run) => live::run(&run),
        Command::Shell(shell) => live::shell(&shell),
        Command::Sim(sim) => sim::sim(&sim),
        Command::Check(check) => check::check(&check),
        Command::Set(set) => remote::set(&set),
        Command::Stats(stats) => remote::stats(&stats),
        Command::Doctor => doctor::doctor(),
        Command::Clean => clean::clean(),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        // Whoever read our output has enough of it.
        Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            // A scenario's errors are laid out for a tool's; our name says as much.
            eprintln!("narrows: {}", text.strip_prefix("error: ").unwrap_or(&text));
            ExitCode::from(TROUBLE)
        }
    }
}
