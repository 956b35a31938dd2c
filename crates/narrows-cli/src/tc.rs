//! `narrows tc`: explains tc commands, or applies them to a run.

mod check;
mod classes;
mod device;
mod filters;
mod show;
mod tins;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use narrows_live::control::{Client, ControlError, CurrentLink, CurrentScenario};
use narrows_report::Report;
use narrows_scenario::netem::{self, Command, Qdisc, Verb};
use narrows_scenario::tc::{ClassShow, FilterShow, Script};
use narrows_scenario::{Scenario, ScenarioError};

use crate::commands::{Commands, System, commands};
use crate::output::{Failure, print};
use device::{devices, link_of};

/// Maximum number of attempts to apply a change while others change the run.
const TRIES: usize = 10;

/// The command as it follows `narrows tc`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows tc check 'delay 100ms 20ms 25% distribution normal loss 0.3% rate 1mbit limit 50'
  narrows tc check 'tc qdisc add dev eth0 root netem delay 10ms reorder 25% 50%'
  narrows tc check shape.sh
  narrows tc qdisc add dev client root netem delay 50ms
  narrows tc qdisc change dev link.down root netem delay 20ms loss 1%
  narrows tc -s qdisc show
  narrows tc -s class show dev link.up
  narrows tc qdisc del dev link.down root
  narrows tc class change dev link.up classid 1:10 htb rate 2mbit ceil 4mbit
  narrows tc filter add dev link.up parent 1: prio 1 flower ip_proto udp dst_port 5060 flowid 1:10
  narrows tc --batch changes.tc

`dev` names a port (client.link), a host with one link, an interface of a host (link), or a direction of
a link (link.up); the qdisc handles packets that leave there.")]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Tc {
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long)]
    run: Option<String>,
    /// Apply all commands of this file at one instant, or none of them; - is stdin
    #[arg(long, short, value_name = "FILE", conflicts_with = "words")]
    batch: Option<PathBuf>,
    /// tc command: add, change, replace, del or show of qdisc, class or filter
    #[arg(
        required_unless_present = "batch",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    words: Vec<String>,
    #[command(subcommand)]
    explained: Option<Explained>,
}

#[derive(Debug, Subcommand)]
enum Explained {
    /// Explain a tc script or NetEm options, and print the equivalent scenario
    Check(check::Check),
    /// Let a shell run a script in a sandbox, and print its commands of tc, ip and the like
    Commands(Commands),
}

pub(crate) fn tc(args: &Tc) -> Result<u8, Failure> {
    match &args.explained {
        Some(Explained::Check(args)) => return check::check(args),
        Some(Explained::Commands(args)) => return commands(args, System::Linux),
        None => {}
    }
    if let Some(file) = &args.batch {
        change_tree(&Client::find_or_start(args.run.as_deref())?, &Script::load(file)?)?;
        return Ok(0);
    }
    let text = args.words.join(" ");
    if let Some(show) = ClassShow::parse(&text)? {
        let run = Client::find_or_start(args.run.as_deref())?;
        let current = run.scenario()?;
        let link = show.device.as_deref().map(|device| link_of(&current, device)).transpose()?;
        let report = report(&run, show.statistics)?;
        print(&classes::show(&current, link, report.as_ref()))?;
        return Ok(0);
    }
    if let Some(show) = FilterShow::parse(&text)? {
        let current = Client::find_or_start(args.run.as_deref())?.scenario()?;
        let link = show.device.as_deref().map(|device| link_of(&current, device)).transpose()?;
        print(&filters::show(&current, link))?;
        return Ok(0);
    }
    // NetEm at the root of a plain link has its own syntax; everything else is a tree of qdiscs.
    let netem = Command::parse(&text);
    let script = Script::parse(&text, "tc");
    let run = Client::find_or_start(args.run.as_deref())?;
    let command = match (netem, script) {
        (Ok(command), _) if command.verb == Verb::Show || is_plain(&run, &command)? => command,
        (_, Ok(script)) => {
            change_tree(&run, &script)?;
            return Ok(0);
        }
        (Err(netem), Err(_)) if text.contains("netem") => return Err(netem.into()),
        (_, Err(error)) => return Err(error.into()),
    };
    if command.verb == Verb::Show {
        let current = run.scenario()?;
        let link = command.device.as_deref().map(|device| link_of(&current, device)).transpose()?;
        let report = report(&run, command.statistics)?;
        print(&show::show(&current, link, command.device.as_deref(), report.as_ref()))?;
        return Ok(0);
    }
    change(&run, &command)?;
    Ok(0)
}

/// Whether a command concerns NetEm at the root of a link without a tree of qdiscs.
fn is_plain(run: &Client, command: &Command) -> Result<bool, Failure> {
    let Some(device) = command.device.as_deref() else { return Ok(true) };
    let current = run.scenario()?;
    let at_root = command.parent.as_deref().is_none_or(|parent| parent == "root");
    Ok(at_root && link_of(&current, device)?.tree.is_none())
}

/// Executes all commands at one instant, or none.
fn change_tree(run: &Client, script: &Script) -> Result<(), Failure> {
    for _ in 0..TRIES {
        let current = run.scenario()?;
        let link = |device: &&str| Ok((device.to_string(), link_of(&current, device)?.link.clone()));
        let links = script.changed_devices().iter().map(link).collect::<Result<_, Failure>>()?;
        let here = std::env::current_dir().unwrap_or_default().join("the run");
        let before = Scenario::parse(&current.toml, &here.to_string_lossy())?;
        let mut after = before.clone();
        let assignments = script.changes(&before, &links)?;
        after.set(&assignments).map_err(|error| refused(&assignments, &error))?;
        let difference = before.difference(&after).assignments;
        if difference.is_empty() {
            return Ok(());
        }
        match run.set(difference, Some(current.generation)) {
            Err(ControlError::Stale(_)) => {}
            result => return Ok(result.map(|_| ())?),
        }
    }
    Err(restless())
}

/// The commands would make an invalid link: report it with the resulting settings.
fn refused(assignments: &[String], error: &ScenarioError) -> Failure {
    Failure::Other(format!("the link would be: {}\n{error}", assignments.join(" ")))
}

fn restless() -> Failure {
    Failure::Other(format!("others changed the run {TRIES} times in the meantime; try again"))
}

/// Executes a command. It changes the current settings: if somebody else changed them first, tries again
/// from the new settings.
fn change(run: &Client, command: &Command) -> Result<(), Failure> {
    let device = command.device.as_deref().ok_or_else(|| Failure::Other("`dev` is missing".into()))?;
    for _ in 0..TRIES {
        let current = run.scenario()?;
        let link = link_of(&current, device)?;
        let new = replacement(command, link)?;
        let assignments =
            new.into_iter().map(|(key, value)| format!("{}.{key}={value}", link.link)).collect();
        match run.set(assignments, Some(current.generation)) {
            Err(ControlError::Stale(_)) => {}
            result => return Ok(result.map(|_| ())?),
        }
    }
    Err(restless())
}

/// The report of the run, if its counters are requested.
fn report(run: &Client, statistics: bool) -> Result<Option<Report>, Failure> {
    Ok(if statistics { Some(run.stats()?.report) } else { None })
}

/// The keys and values that a command sets on a link.
fn replacement(command: &Command, link: &CurrentLink) -> Result<Vec<netem::Assignment>, Failure> {
    let before = link.netem.as_deref().map(netem::parse).transpose()?;
    let there = before.is_some() || !link.unrepresentable.is_empty();
    let nothing = || {
        Failure::Other(format!(
            "there is no queueing discipline at {} to {}: use `add`",
            link.link,
            if command.verb == Verb::Delete { "delete" } else { "change" }
        ))
    };
    let with = |qdisc: &Qdisc| {
        if qdisc.seed().is_some() {
            return Err(Failure::Other("`seed`: the seed of a run is fixed when it begins (--seed)".into()));
        }
        Ok(netem::replacement(&link.keys, link.exact, Some(qdisc))?)
    };
    match (command.verb, command.qdisc.clone()) {
        (Verb::Delete, _) if !there => Err(nothing()),
        (Verb::Delete, _) => Ok(netem::replacement(&link.keys, false, None)?),
        (Verb::Add, _) if there => Err(Failure::Other(format!(
            "a queueing discipline already exists at {}: {}\nuse `change`, `replace` or `del`",
            link.link,
            link.netem.clone().unwrap_or_else(|| link.unrepresentable.join(", "))
        ))),
        (Verb::Change, _) if !there => Err(nothing()),
        // As in the kernel, replacing a qdisc by one of the same kind changes it, unless the handle
        // differs.
        (Verb::Change | Verb::Replace, Some(qdisc)) => match before {
            Some(before) if command.verb == Verb::Change && !before.is_like(&qdisc) => {
                Err(Failure::Other(format!(
                    "{} has another kind of queueing discipline, which `change` cannot convert: {}\nuse `replace`",
                    link.link,
                    before.text()
                )))
            }
            Some(before) if command.verb == Verb::Change || command.handle.is_none() => {
                with(&qdisc.changed_from(&before))
            }
            _ => with(&qdisc),
        },
        (_, Some(qdisc)) => with(&qdisc),
        (_, None) => {
            Err(Failure::Other("the queueing discipline is missing, as in: root netem delay 10ms".into()))
        }
    }
}

/// The names that a device may have, for help.
fn known(current: &CurrentScenario) -> String {
    devices(current).join(", ")
}
