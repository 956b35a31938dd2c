//! The `narrows` program: command line in, reports and errors out.
#![forbid(unsafe_code)]

mod args;
mod attach;
mod bridge;
mod calibrate;
mod certify;
mod check;
mod clean;
mod diff;
mod dist;
mod doctor;
mod feed;
mod in_virtual_time;
mod ipfw;
mod kernel;
mod lab;
mod live;
mod output;
mod pattern;
mod preset;
mod probe;
mod profile;
mod remote;
mod report;
mod sched;
mod sim;
mod standing;
mod tc;
mod trace;

use std::process::{ExitCode, exit};

use clap::Parser;
use narrows_io::allocator::SaysWhenFull;
use narrows_scenario::printable;

use args::{Arguments, Command};
use output::Failure;

#[global_allocator]
static ALLOCATOR: SaysWhenFull = SaysWhenFull;

/// What a program that cannot do what it was asked exits with.
const TROUBLE: u8 = 2;

/// The command line. What is wrong with it may be quoted from it: clap's colours go where that would steer a terminal.
fn arguments() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        let text = error.to_string();
        if error.use_stderr() && printable(&text) != text {
            output::say(text.trim_end());
            exit(error.exit_code());
        }
        error.exit()
    })
}

fn main() -> ExitCode {
    // Where it is refused, a file that grows too large ends us as before.
    let _ = narrows_io::process::outlive_file_limit();
    let result = match arguments().command {
        Command::Run(run) => live::run(&run),
        Command::Shell(shell) => live::shell(&shell),
        Command::Bridge(args) => bridge::bridge(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Sim(sim) => sim::sim(&sim),
        Command::Check(check) => check::check(&check),
        Command::Set(set) => remote::set(&set),
        Command::Diff(args) => diff::diff(&args),
        Command::Stats(stats) => remote::stats(&stats),
        Command::Report(args) => report::report(&args),
        Command::Feed(args) => feed::feed(&args),
        Command::Trace(command) => trace::trace(&command),
        Command::Pattern(command) => pattern::pattern(&command),
        Command::Profile(command) => profile::profile(&command),
        Command::Preset(command) => preset::preset(&command),
        Command::Probe(args) => probe::probe(&args),
        Command::Sched(sched) => sched::sched(&sched),
        Command::Lab { .. } => Err(lab::lab()),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Tc(args) => tc::tc(&args),
        Command::Ipfw(args) => ipfw::ipfw(&args),
        Command::Dist(dist) => dist::dist(&dist),
        Command::Kernel(command) => kernel::kernel(&command),
        Command::Doctor => doctor::doctor(),
        Command::Clean => clean::clean(),
        Command::GuestKeeper { descriptor } => in_virtual_time::keep(descriptor),
        Command::GuestInit { .. } => in_virtual_time::init(),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        // Whoever read our output has enough of it.
        Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(failure) => {
            // A scenario's errors are laid out each as a tool's own; here the tool has a name.
            let text = failure.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).replace("\n\nerror: ", "\n\nnarrows: ");
            output::say(format_args!("narrows: {}", text.trim_end()));
            ExitCode::from(TROUBLE)
        }
    }
}
