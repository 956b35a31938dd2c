//! The `narrows` program: parses the command line, prints reports and errors.
#![forbid(unsafe_code)]

mod args;
mod attach;
mod background;
mod bridge;
mod calibrate;
mod certify;
mod check;
mod clab;
mod clean;
mod cni;
mod commands;
mod compare;
mod completions;
mod compose;
mod containers;
mod diff;
mod dist;
mod docker;
mod doctor;
mod down;
mod events;
mod exec;
mod fail;
mod feed;
mod help;
mod hints;
mod in_virtual_time;
mod inline;
mod interop;
mod ipfw;
mod json;
mod kernel;
mod lab;
mod live;
mod ls;
mod machines;
mod output;
mod outputs;
mod packets;
mod pattern;
mod plot;
mod preset;
mod probe;
mod profile;
mod progress;
mod remote;
mod report;
mod route;
mod sched;
mod shell;
mod sim;
mod state;
mod surroundings;
mod sweep;
mod tc;
mod top;
mod topology;
mod toxi;
mod trace;
mod up;
mod usage;
mod web;

use std::process::ExitCode;

use narrows_io::allocator::SaysWhenFull;

use args::Command;
use output::Failure;

#[global_allocator]
static ALLOCATOR: SaysWhenFull = SaysWhenFull;

/// Exit status if the command cannot do what was asked.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    // If this fails, exceeding the file size limit still terminates the process.
    let _ = narrows_io::process::outlive_file_limit();
    if let Some(status) = cni::as_plugin() {
        return status;
    }
    let result = usage::arguments().and_then(|arguments| match arguments.command {
        Command::Run(run) => live::run(&run),
        Command::Shell(shell) => live::shell(&shell),
        Command::Up(args) => up::up(&args),
        Command::Ls(args) => ls::ls(&args),
        Command::Exec(args) => exec::exec(&args),
        Command::Events(args) => events::events(&args),
        Command::Packets(args) => packets::packets(&args),
        Command::Down(args) => down::down(&args),
        Command::Bridge(args) => bridge::bridge(&args),
        Command::Route(args) => route::route(&args),
        Command::Interop(args) => interop::interop(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Docker(command) => docker::docker(&command),
        Command::Clab(args) => clab::clab(&args),
        Command::Cni(command) => cni::cni(&command),
        Command::Compose(args) => compose::compose(&args),
        Command::Sim(sim) => sim::sim(&sim),
        Command::Check(check) => check::check(&check),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Set(set) => remote::set(&set),
        Command::Diff(args) => diff::diff(&args),
        Command::Stats(stats) => remote::stats(&stats),
        Command::Top(args) => top::top(&args),
        Command::Web(args) => web::web(&args),
        Command::Report(args) => report::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Feed(args) => feed::feed(&args),
        Command::Trace(command) => trace::trace(&command),
        Command::Pattern(command) => pattern::pattern(&command),
        Command::Profile(command) => profile::profile(&command),
        Command::Preset(command) => preset::preset(&command),
        Command::Plot(args) => plot::plot(&args),
        Command::Topology(args) => topology::topology(&args),
        Command::Toxi(args) => toxi::toxi(&args),
        Command::Probe(args) => probe::probe(&args),
        Command::Sched(sched) => sched::sched(&sched),
        Command::Lab { .. } => Err(lab::lab()),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Tc(args) => tc::tc(&args),
        Command::Ipfw(args) => ipfw::ipfw(&args),
        Command::Dist(dist) => dist::dist(&dist),
        Command::Kernel(command) => kernel::kernel(&command),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Clean => clean::clean(),
        Command::Man(args) => help::man(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Agent => machines::agent(),
        Command::GuestSupervisor { descriptor } => in_virtual_time::keep(descriptor),
        Command::GuestInit { .. } => in_virtual_time::init(),
    });
    match result {
        Ok(status) => ExitCode::from(status),
        // The reader of our output has closed it.
        Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(failure) => {
            // Scenario errors have their own layout; here the program's name is added.
            let text = failure.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).replace("\n\nerror: ", "\n\nnarrows: ");
            output::say(format_args!("narrows: {}", text.trim_end()));
            ExitCode::from(TROUBLE)
        }
    }
}
