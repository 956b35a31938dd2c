//! `narrows ls`: the runs of this user, or the hosts of one.

use clap::Args;
use narrows_live::attach::{Staying, staying};
use narrows_live::control::{
    self, Client, ControlError, HostOfRun, InterfaceOfRun, KnownRun, Liveness, Status, known_runs,
};
use narrows_live::run_record::Membership;
use narrows_report::RecentRates;
use serde::Serialize;

use crate::json::Json;
use crate::output::{Failure, print, say};

/// Version of the JSON output.
const SCHEMA: u32 = 1;

/// The arguments of `narrows ls`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows ls
  narrows ls dsl
  narrows ls --json | jq -r '.runs[] | select(.state == \"running\") | .name'")]
pub(crate) struct Ls {
    /// List the hosts of this run, by name or number
    #[arg(value_name = "NAME")]
    run: Option<String>,
    /// Print names only
    #[arg(long, short, conflicts_with = "to")]
    quiet: bool,
    #[command(flatten)]
    json: Json,
}

/// A listed run.
#[derive(Debug, Serialize)]
struct Listed {
    name: Option<String>,
    run: u32,
    command: String,
    state: State,
    since_ns: u64,
    title: String,
    hosts: usize,
    links: usize,
    /// `None` if it does not answer.
    trust: Option<String>,
    generation: Option<u64>,
    inside_packets: Option<u64>,
    /// Recent rates delivered to hosts.
    delivered: Option<RecentRates>,
    control: String,
    output: Option<String>,
    /// What it was started for, such as an attachment of CNI.
    owner: Option<String>,
    /// The group that it belongs to, such as a lab.
    membership: Option<Membership>,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Running,
    /// Starting or ending: it has no control socket.
    Changing,
    /// Running, but not answering.
    Stopped,
    /// Killed, with leftovers.
    Killed,
}

#[derive(Serialize)]
struct Runs {
    runs: Vec<Listed>,
    /// Networks without a run, of `attach --persist`.
    stays: Vec<Staying>,
}

#[derive(Serialize)]
struct Hosts {
    hosts: Vec<HostOfRun>,
}

pub(crate) fn ls(args: &Ls) -> Result<u8, Failure> {
    args.json.probe()?;
    match &args.run {
        Some(run) => hosts(run, args),
        None => runs(args),
    }
}

fn hosts(run: &str, args: &Ls) -> Result<u8, Failure> {
    let hosts = Client::find(Some(run))?.hosts()?;
    if args.quiet {
        hosts.iter().try_for_each(|host| print(&format!("{}\n", host.host)))?;
        return Ok(0);
    }
    let found = Hosts { hosts };
    args.json.put(SCHEMA, &found, || {
        let rows = found.hosts.iter().flat_map(|host| {
            let row = |interface: &InterfaceOfRun| {
                let addresses = interface.addresses.join(" ");
                [host.host.clone(), interface.name.clone(), addresses, interface.peer.clone()]
            };
            host.interfaces.iter().map(row).collect::<Vec<_>>()
        });
        table(["HOST", "INTERFACE", "ADDRESSES", "PEER"], &rows.collect::<Vec<_>>())
    })?;
    Ok(0)
}

fn runs(args: &Ls) -> Result<u8, Failure> {
    let (known, failed) =
        known_runs(&control::run_folder()).map_err(|error| Failure::Other(error.to_string()))?;
    if args.quiet {
        for run in known.iter().filter(|run| run.liveness != Liveness::Dead) {
            print(&format!("{}\n", run.name()))?;
        }
        return Ok(0);
    }
    let found = Runs { runs: known.iter().map(listed).collect(), stays: staying() };
    args.json.put(SCHEMA, &found, || {
        if known.is_empty() {
            return "no run is active\n".into();
        }
        let rows: Vec<_> = known.iter().zip(&found.runs).map(|(run, listed)| row(run, listed)).collect();
        table(["NAME", "RUN", "COMMAND", "SINCE", "HOSTS", "LINKS", "RATE", "STATE"], &rows)
    })?;
    if found.runs.iter().any(|run| run.state == State::Killed) {
        say("narrows: killed runs have left something: narrows clean removes it");
    }
    for network in &found.stays {
        let Staying { interface, namespace } = network;
        say(format_args!("narrows: a network stays at {interface}: ip netns exec {namespace} tc -s qdisc"));
    }
    failed.iter().for_each(|error| say(format_args!("narrows: {error}")));
    Ok(0)
}

fn listed(run: &KnownRun) -> Listed {
    let asked = (run.liveness == Liveness::GoingOn).then(|| Client::at(&run.socket).status());
    let state = match (run.liveness, &asked) {
        (Liveness::Dead, _) => State::Killed,
        (Liveness::GoingOn, Some(Err(ControlError::Silent { .. }))) => State::Stopped,
        (Liveness::GoingOn, Some(Ok(_))) => State::Running,
        _ => State::Changing,
    };
    let status: Option<Status> = asked.and_then(Result::ok);
    let about = &run.about;
    Listed {
        name: about.name.as_ref().map(ToString::to_string),
        run: run.number,
        command: about.kind.to_string(),
        state,
        since_ns: about.since_ns,
        title: about.title.clone(),
        hosts: about.hosts,
        links: about.links,
        trust: status.as_ref().map(|status| status.trust.clone()),
        generation: status.as_ref().map(|status| status.generation),
        inside_packets: status.as_ref().map(|status| status.inside_packets),
        delivered: status.as_ref().map(|status| status.delivered),
        control: run.socket.display().to_string(),
        output: about.output.as_ref().map(|path| path.display().to_string()),
        owner: about.owner.clone(),
        membership: about.membership.clone(),
    }
}

fn row(run: &KnownRun, listed: &Listed) -> [String; 8] {
    let state = match (listed.state, &listed.trust) {
        (State::Running, Some(trust)) => trust.clone(),
        (State::Running, None) => "running".into(),
        (State::Changing, _) => "begins or ends".into(),
        (State::Stopped, _) => "stopped: does not answer".into(),
        (State::Killed, _) => "killed: narrows clean".into(),
    };
    let since = if run.about.since_ns == 0 { "-".into() } else { run.about.age() };
    [
        listed.name.clone().unwrap_or_else(|| "-".into()),
        listed.run.to_string(),
        listed.command.clone(),
        since,
        listed.hosts.to_string(),
        listed.links.to_string(),
        listed.delivered.map_or_else(|| "-".into(), |delivered| delivered.to_string()),
        state,
    ]
}

/// Columns as wide as their contents.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let line = |cells: &[&str]| {
        let padded = cells.iter().enumerate().map(|(column, cell)| format!("{cell:0$}", width(column)));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(&head);
    for row in rows {
        text += &line(&row.each_ref().map(String::as_str));
    }
    text
}
