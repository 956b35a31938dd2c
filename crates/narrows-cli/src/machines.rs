//! `narrows up --machines`: one scenario across several machines, each reached by ssh.
//!
//! The coordinator runs no network. It starts an agent on each machine, has them measure the network between them, places the
//! hosts, and gives each agent its part. It ends all of them when one ends or is lost.

mod agent;
mod asked;
mod group;
mod last_words;

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{io, thread};

use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_live::agent::{Cut, Preparation};
use narrows_live::underlay::UnderlayFigures;
use narrows_report::{PortReport, Report};
use narrows_scenario::{CutLink, Placement, Scenario, read_text, span_of_time, tunnel_link};
use serde::Serialize;

pub(crate) use agent::agent;
pub(crate) use asked::ask;

use crate::args::{Place, Up};
use crate::certify::TOO_LATE;
use crate::check::live_scenario;
use crate::output::{Failure, say, write_json};
use crate::report::{ReportForm, form, look};
use group::{Agent, Event, Group, start, trouble};

/// Network identifiers of tunnels begin here.
const FIRST_IDENTIFIER: u32 = 1;

pub(crate) fn up(args: &Up) -> Result<u8, Failure> {
    let mut signals =
        EndSignals::catch().map_err(|cause| trouble(format!("cannot catch signals: {cause}")))?;
    let tolerance = span_of_time("underlay-tolerance", &args.underlay_tolerance)?;
    let ttl = args.ttl.as_deref().map(|text| span_of_time("ttl", text)).transpose()?;
    let Some(file) = &args.scenario else {
        return Err(trouble("--machines takes a scenario file".into()));
    };
    let scenario = live_scenario(Some(file), &args.link, &args.live)?;
    supported(&scenario)?;
    let form = form(&args.live.report)?;
    args.live.report.json.probe()?;
    let (events, heard) = channel();
    if args.machines.len() < 2 {
        return Err(trouble("--machines: at least two, as in --machines alpha,beta".into()));
    }
    let mut agents = start(&args.machines, args.ssh.as_deref(), &events)?;
    thread::spawn(move || {
        let _ = wait(&mut [Waiting::readable(&signals)], None);
        let _ = signals.take();
        let _ = events.send(Event::Signal);
    });
    let mut group = Group { agents: &mut agents, heard: &heard };
    let names: Vec<String> = group.agents.iter().map(|agent| agent.machine.clone()).collect();
    group.greet()?;
    let measured = group.measure()?;
    let p99 = |one: &str, other: &str| {
        let of = |a: &str, b: &str| measured.get(a).and_then(|all| all.get(b)).copied().unwrap_or_default();
        let (there, back) = (of(one, other), of(other, one));
        if there.p99_ns >= back.p99_ns { there } else { back }
    };
    let slowest = measured.values().flat_map(BTreeMap::values).map(|figures| figures.p99_ns).max();
    let least = narrows_core::Duration::from_nanos(slowest.unwrap_or(0));
    let auto = args.place == Place::Auto;
    let placement = Placement::of(&scenario, &names, auto, least).map_err(trouble)?;
    let cuts = placement.cut(&scenario).map_err(trouble)?;
    for cut in &cuts {
        let figures = p99(&cut.machines[0], &cut.machines[1]);
        if cut.delay.nanos() < figures.p99_ns {
            return Err(trouble(format!(
                "the link `{}` cannot join the machines `{}` and `{}`: its delay is {}, and the network between them \
                 takes {} one way (p50), {} (p99): raise the delay, or put both ends on one machine",
                cut.link,
                cut.machines[0],
                cut.machines[1],
                cut.delay,
                span(figures.p50_ns),
                span(figures.p99_ns)
            )));
        }
    }
    let (text, _) = read_text(file, "scenario")?;
    let cut_of = |(number, cut): (usize, &CutLink), machine: &str| {
        let at = cut.machines.iter().position(|other| other == machine)?;
        let peer = cut.machines[1 - at].clone();
        Some(Cut {
            link: cut.link.clone(),
            identifier: FIRST_IDENTIFIER + number as u32,
            payload: cut.mtu as usize + narrows_io::tunnel::OVERHEAD - 8,
            subtract_ns: p99(&peer, machine).p50_ns.min(p99(machine, &peer).p50_ns),
            peer,
        })
    };
    let mut parts = BTreeMap::new();
    for machine in &names {
        let cuts: Vec<Cut> = cuts.iter().enumerate().filter_map(|cut| cut_of(cut, machine)).collect();
        let limits = cuts.iter().map(|cut| (cut.peer.clone(), cut.subtract_ns + tolerance.nanos()));
        let files = scenario.files();
        let files = files.iter().map(|file| (file.name.to_string(), file.contents.to_vec())).collect();
        parts.insert(
            machine.clone(),
            Preparation {
                machine: machine.clone(),
                file: scenario.file.clone(),
                text: text.clone(),
                files,
                set: args.live.set.clone(),
                seed: scenario.seed,
                nodes: placement.nodes.clone(),
                limits: limits.collect(),
                cuts,
            },
        );
    }
    let notes = notes(&placement, &cuts, &names, &p99);
    group.begin(parts, &args.live.name.as_ref().map(ToString::to_string))?;
    if form != ReportForm::None {
        notes.iter().for_each(say);
    }
    let ttl = ttl.map(|span| Duration::from_nanos(span.nanos()));
    let lost = group.accompany(ttl);
    conclude(args, form, &agents, notes, lost)
}

/// Refuses what cannot run across machines.
fn supported(scenario: &Scenario) -> Result<(), Failure> {
    if !scenario.traffic.is_empty() {
        let why = "--machines does not carry generated traffic: --no-traffic leaves out that of the scenario";
        return Err(trouble(why.into()));
    }
    let elsewhere = |host: &&narrows_scenario::Host| host.place != narrows_scenario::Place::New;
    match scenario.hosts.iter().find(elsewhere) {
        Some(host) => Err(trouble(format!(
            "host `{}` is in an existing namespace, which --machines does not support: leave out its `namespace` or \
             `pid`",
            host.name
        ))),
        None => Ok(()),
    }
}

/// Where the hosts are, which links join machines, and what was measured between them.
fn notes(
    placement: &Placement,
    cuts: &[CutLink],
    machines: &[String],
    figures: &impl Fn(&str, &str) -> UnderlayFigures,
) -> Vec<String> {
    let mut notes = Vec::new();
    for machine in machines {
        let there = placement.nodes.iter().filter(|(_, at)| *at == machine).map(|(node, _)| node.as_str());
        notes.push(format!("  {machine}: {}", there.collect::<Vec<_>>().join(", ")));
    }
    for cut in cuts {
        let [one, other] = &cut.machines;
        let there = figures(one, other);
        notes.push(format!(
            "  link {} from {one} to {other}: of its {}, {} are the network between them (p99 {}; ±{} if its two \
             directions differ); the clock of {other} is {}",
            cut.link,
            cut.delay,
            span(there.p50_ns),
            span(there.p99_ns),
            span(there.min_ns),
            apart(&there)
        ));
    }
    notes
}

/// How far a machine's wall clock is from that of the other one.
fn apart(figures: &UnderlayFigures) -> String {
    let (offset, bound) = (figures.clock_offset_ns, span(figures.min_ns));
    let side = if offset < 0 { "behind" } else { "ahead" };
    format!("{} {side} (±{bound})", span(offset.unsigned_abs()))
}

/// The reports of all machines.
#[derive(Serialize)]
struct Reports<'a> {
    notes: Vec<String>,
    lost: Vec<String>,
    accurate: bool,
    machines: BTreeMap<&'a str, MachineReport<'a>>,
}

#[derive(Serialize)]
struct MachineReport<'a> {
    underlay: &'a BTreeMap<String, UnderlayFigures>,
    report: &'a Report,
}

/// The links whose packets the network between the machines lost on their way to this one.
fn losses(machine: &str, report: &Report) -> Vec<String> {
    let lossy = report.ports.iter().filter(|port| port.receive_ring_dropped_packets > 0);
    let of_links = lossy.filter_map(|port| Some((port, tunnel_link(&port.name)?)));
    let line = |(port, link): (&PortReport, &str)| {
        let lost = port.receive_ring_dropped_packets;
        format!(
            "not accurate: {lost} of {} packets of the link `{link}` were lost on their way to {machine}, after the link \
             had delivered them",
            lost + port.arrived_packets
        )
    };
    of_links.map(line).collect()
}

fn conclude(
    args: &Up,
    form: ReportForm,
    agents: &[Agent],
    mut notes: Vec<String>,
    lost: Vec<String>,
) -> Result<u8, Failure> {
    let mut excursions = Vec::new();
    let mut machines = BTreeMap::new();
    for agent in agents {
        let Some((report, underlay)) = &agent.ended else { continue };
        excursions.extend(losses(&agent.machine, report));
        for (peer, figures) in underlay {
            if !figures.is_excursion() && figures.lost_probes > 0 {
                notes.push(format!(
                    "  from {} to {peer}, {} of {} probes were lost",
                    agent.machine, figures.lost_probes, figures.probes
                ));
                say(notes.last().map_or("", String::as_str));
            } else if figures.is_excursion() {
                excursions.push(format!(
                    "not accurate: from {} to {peer} the network took up to {} one way, above {} in {} of {} probes; \
                     {} were lost, and none was answered for up to {}",
                    agent.machine,
                    span(figures.max_ns),
                    span(figures.limit_ns),
                    figures.excursions,
                    figures.probes,
                    figures.lost_probes,
                    span(figures.longest_gap_ns)
                ));
            }
        }
        match form {
            ReportForm::None => {}
            ReportForm::Full => say(format_args!("\nmachine {}\n{}", agent.machine, report.text())),
            ReportForm::Summary => {
                say(format_args!("\nmachine {}\n{}", agent.machine, report.summary(look(&io::stderr()))));
            }
        }
    }
    for agent in agents {
        if let Some((report, underlay)) = &agent.ended {
            machines.insert(agent.machine.as_str(), MachineReport { underlay, report });
        }
    }
    excursions.iter().chain(&lost).for_each(|line| say(format_args!("narrows: {line}")));
    let (status, accurate) = match (lost.is_empty(), excursions.is_empty()) {
        (false, _) => (2, false),
        (true, false) => (TOO_LATE, false),
        (true, true) => (0, true),
    };
    if let Some(path) = args.live.report.json.path() {
        let notes = notes.into_iter().map(|note| note.trim().to_owned()).chain(excursions).collect();
        write_json(path, &Reports { notes, lost, accurate, machines })?;
    }
    Ok(status)
}

fn span(nanos: u64) -> String {
    narrows_core::Duration::from_nanos(nanos / 1000 * 1000).to_string()
}
