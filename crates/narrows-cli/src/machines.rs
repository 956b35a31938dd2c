//! `narrows up --machines`: one scenario across several machines, each reached by ssh.
//!
//! The coordinator runs no network. It starts an agent on each machine, has them measure the network between them, places the
//! hosts, and gives each agent its part. It ends all of them when one ends or is lost.

mod agent;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use narrows_io::clock::clock_monotonic;
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_live::underlay::UnderlayFigures;
use narrows_report::Report;
use narrows_scenario::{CutLink, Placement, Scenario, span_of_time};
use serde::Serialize;

pub(crate) use agent::agent;

use crate::args::{Place, Up, VERSION};
use crate::certify::TOO_LATE;
use crate::check::live_scenario;
use crate::output::{Failure, say, write_json};
use crate::report::{ReportForm, form, look};
use words::{Answer, Cut, Order, Preparation, tell};

/// By default: no questions, and the end of a connection is noticed within seconds.
const SSH: &str = "ssh -T -o BatchMode=yes -o ServerAliveInterval=2 -o ServerAliveCountMax=2";
/// How long an agent may take for each step of the preparation, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);
/// How often agents hear that the coordinator is there.
const ALIVE: Duration = Duration::from_secs(1);
/// Network identifiers of tunnels begin here.
const FIRST_IDENTIFIER: u32 = 1;

/// An agent.
struct Agent {
    machine: String,
    /// Its address between the machines, if given.
    address: Option<IpAddr>,
    ssh: Child,
    orders: Option<ChildStdin>,
    /// When it was last heard.
    heard: Duration,
    ended: Option<(Box<Report>, BTreeMap<String, UnderlayFigures>)>,
}

impl Agent {
    fn tell(&mut self, order: &Order) {
        // An agent that is gone is noticed by what it says: nothing.
        let _ = self.orders.as_mut().map(|to| tell(to, order));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

/// What happens while the coordinator waits.
enum Event {
    Said(usize, Answer),
    /// Something else came, such as a line of ssh or of the shell.
    Noise(usize, String),
    Gone(usize),
    Signal,
}

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
    let mut agents = start(args, &events)?;
    thread::spawn(move || {
        let _ = wait(&mut [Waiting::readable(&signals)], None);
        let _ = signals.take();
        let _ = events.send(Event::Signal);
    });
    let mut group = Group { agents: &mut agents, heard: &heard };
    let names: Vec<String> = group.agents.iter().map(|agent| agent.machine.clone()).collect();
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
    let text =
        std::fs::read_to_string(file).map_err(|cause| trouble(format!("{}: {cause}", file.display())))?;
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

/// Starts the agents.
fn start(args: &Up, events: &Sender<Event>) -> Result<Vec<Agent>, Failure> {
    let mut agents = Vec::new();
    let mut names = BTreeSet::new();
    for word in &args.machines {
        let (name, address) = match word.split_once('=') {
            Some((name, address)) => {
                let parsed = address.parse().map_err(|_| {
                    trouble(format!(
                        "--machines {word}: `{address}` is not an IP address, as in {name}=10.0.0.1"
                    ))
                })?;
                (name, Some(parsed))
            }
            None => (word.as_str(), None),
        };
        if name.is_empty() || name.starts_with('-') || !names.insert(name) {
            return Err(trouble(format!(
                "--machines: `{word}` is empty, begins with a hyphen, or is there twice; expected names as ssh knows \
                 them, as in --machines alpha,beta"
            )));
        }
        let number = agents.len();
        let mut words = args.ssh.as_deref().unwrap_or(SSH).split_whitespace();
        let program = words.next().unwrap_or("ssh");
        let mut command = Command::new(program);
        command.args(words).args([name, "narrows", "agent"]);
        // A Ctrl-C is for the coordinator, which ends the agents.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut ssh =
            command.spawn().map_err(|cause| trouble(format!("cannot start `{program}`: {cause}")))?;
        let (orders, says) = (ssh.stdin.take(), ssh.stdout.take());
        let events = events.clone();
        thread::spawn(move || {
            let lines = says.map(|says| BufReader::new(says).lines().map_while(Result::ok));
            for line in lines.into_iter().flatten() {
                let event = match serde_json::from_str(&line) {
                    Ok(answer) => Event::Said(number, answer),
                    Err(_) => Event::Noise(number, line),
                };
                if events.send(event).is_err() {
                    return;
                }
            }
            let _ = events.send(Event::Gone(number));
        });
        let (machine, heard) = (name.to_owned(), now());
        agents.push(Agent { machine, address, ssh, orders, heard, ended: None });
    }
    if agents.len() < 2 {
        return Err(trouble("--machines: at least two, as in --machines alpha,beta".into()));
    }
    Ok(agents)
}

/// The agents, and what they say.
struct Group<'a> {
    agents: &'a mut [Agent],
    heard: &'a Receiver<Event>,
}

impl Group<'_> {
    /// Waits until each agent has said something that `take` accepts.
    fn each(
        &mut self,
        mut take: impl FnMut(&mut Agent, Answer) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut left: BTreeSet<usize> = (0..self.agents.len()).collect();
        let until = now() + PATIENCE;
        while !left.is_empty() {
            let patience = until.saturating_sub(now());
            let silent = || left.iter().next().map_or("", |&number| &self.agents[number].machine);
            let event = self.heard.recv_timeout(patience).map_err(|_| {
                trouble(format!(
                    "the agent on `{}` does not answer within {} s",
                    silent(),
                    PATIENCE.as_secs()
                ))
            })?;
            match event {
                Event::Said(number, Answer::Failed { why }) => {
                    return Err(trouble(format!("on the machine `{}`: {why}", self.agents[number].machine)));
                }
                Event::Said(number, answer) => {
                    if take(&mut self.agents[number], answer)? {
                        left.remove(&number);
                    }
                }
                Event::Noise(number, line) => {
                    say(format_args!("narrows: on the machine `{}`: {line}", self.agents[number].machine));
                }
                Event::Gone(number) => {
                    return Err(trouble(format!(
                        "the agent on `{0}` did not start or has ended: try `ssh {0} narrows --version`; ssh may not ask \
                         for anything here",
                        self.agents[number].machine
                    )));
                }
                Event::Signal => return Err(trouble("ended by a signal before the network was up".into())),
            }
        }
        Ok(())
    }

    /// Compares versions, and has the agents measure the network between them.
    fn measure(&mut self) -> Result<BTreeMap<String, BTreeMap<String, UnderlayFigures>>, Failure> {
        self.each(|agent, answer| {
            let Answer::Hello { version, address } = answer else { return Ok(false) };
            if version != VERSION {
                return Err(trouble(format!(
                    "narrows on the machine `{}` is version {version}, and here it is {VERSION}: install the same",
                    agent.machine
                )));
            }
            agent.address = agent.address.or(address);
            Ok(true)
        })?;
        let mut addresses = BTreeMap::new();
        for agent in &*self.agents {
            let address = agent.address.ok_or_else(|| {
                trouble(format!(
                    "the address of `{0}` is not known: write it as in --machines {0}=10.0.0.1",
                    agent.machine
                ))
            })?;
            addresses.insert(agent.machine.clone(), address);
        }
        for agent in &mut *self.agents {
            let peers = addresses.keys().filter(|peer| **peer != agent.machine).cloned().collect();
            agent.tell(&Order::Bind { address: addresses[&agent.machine], peers });
        }
        let ports = self.bound()?;
        for agent in &mut *self.agents {
            let others = ports.iter().filter(|(peer, _)| **peer != agent.machine);
            let peers = others.filter_map(|(peer, ports)| {
                Some((peer.clone(), SocketAddr::new(addresses[peer], *ports.get(&agent.machine)?)))
            });
            agent.tell(&Order::Measure { peers: peers.collect() });
        }
        let mut measured = BTreeMap::new();
        self.each(|agent, answer| {
            let Answer::Measured { figures } = answer else { return Ok(false) };
            measured.insert(agent.machine.clone(), figures);
            Ok(true)
        })?;
        Ok(measured)
    }

    /// The ports that each agent has bound.
    fn bound(&mut self) -> Result<BTreeMap<String, BTreeMap<String, u16>>, Failure> {
        let mut all = BTreeMap::new();
        self.each(|agent, answer| {
            let Answer::Bound { ports } = answer else { return Ok(false) };
            all.insert(agent.machine.clone(), ports);
            Ok(true)
        })?;
        Ok(all)
    }

    /// Starts all parts.
    fn begin(
        &mut self,
        mut parts: BTreeMap<String, Preparation>,
        name: &Option<String>,
    ) -> Result<(), Failure> {
        let addresses: BTreeMap<String, Option<IpAddr>> =
            self.agents.iter().map(|agent| (agent.machine.clone(), agent.address)).collect();
        let cuts: BTreeMap<String, Vec<Cut>> =
            parts.iter().map(|(machine, part)| (machine.clone(), part.cuts.clone())).collect();
        for agent in &mut *self.agents {
            if let Some(part) = parts.remove(&agent.machine) {
                agent.tell(&Order::Prepare(Box::new(part)));
            }
        }
        let ports = self.bound()?;
        for agent in &mut *self.agents {
            let tunnels = cuts[&agent.machine].iter().filter_map(|cut| {
                let port = *ports.get(&cut.peer)?.get(&cut.link)?;
                Some((cut.link.clone(), SocketAddr::new(addresses[&cut.peer]?, port)))
            });
            agent.tell(&Order::Start { name: name.clone(), tunnels: tunnels.collect() });
        }
        self.each(|agent, answer| {
            let Answer::Up { name } = answer else { return Ok(false) };
            say(format_args!("narrows run {name} is up on the machine {}", agent.machine));
            agent.heard = now();
            Ok(true)
        })
    }

    /// Until a signal, the end of the time, or the end of an agent; then ends all. Returns what was lost.
    fn accompany(&mut self, ttl: Option<Duration>) -> Vec<String> {
        let mut lost = Vec::new();
        let begin = now();
        let mut end = ttl.map(|ttl| begin + ttl);
        let mut ending = false;
        let mut beat = begin;
        loop {
            let time = now();
            if time >= beat && !ending {
                self.agents.iter_mut().for_each(|agent| agent.tell(&Order::Alive));
                beat = time + ALIVE;
            }
            let mut ends = end.is_some_and(|end| time >= end);
            match self.heard.recv_timeout(ALIVE / 4) {
                Ok(Event::Said(number, Answer::Ended { report, figures, broken })) => {
                    let agent = &mut self.agents[number];
                    agent.ended = Some((report, figures));
                    lost.extend(broken.map(|why| format!("on the machine `{}`: {why}", agent.machine)));
                    ends = true;
                }
                Ok(Event::Said(number, Answer::Failed { why })) => {
                    lost.push(format!("on the machine `{}`: {why}", self.agents[number].machine));
                    ends = true;
                }
                Ok(Event::Said(number, _)) => self.agents[number].heard = now(),
                Ok(Event::Gone(number)) => {
                    let agent = &mut self.agents[number];
                    if agent.ended.is_none() && agent.orders.is_some() {
                        lost.push(format!("the agent on the machine `{}` was lost", agent.machine));
                    }
                    agent.orders = None;
                    ends = true;
                }
                Ok(Event::Noise(number, line)) => {
                    say(format_args!("narrows: on the machine `{}`: {line}", self.agents[number].machine));
                }
                Ok(Event::Signal) => ends = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return lost,
            }
            if !ending {
                for agent in
                    self.agents.iter_mut().filter(|agent| now().saturating_sub(agent.heard) > agent::SILENCE)
                {
                    lost.push(format!("the agent on the machine `{}` is silent", agent.machine));
                    ends = true;
                }
            }
            if ends && !ending {
                self.agents.iter_mut().for_each(|agent| agent.tell(&Order::End));
                (ending, end) = (true, Some(now() + END));
            }
            let all = self.agents.iter().all(|agent| agent.ended.is_some() || agent.orders.is_none());
            if ending && (all || end.is_some_and(|end| now() >= end)) {
                return lost;
            }
        }
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
             directions differ)",
            cut.link,
            cut.delay,
            span(there.p50_ns),
            span(there.p99_ns),
            span(there.min_ns)
        ));
    }
    notes
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

fn conclude(
    args: &Up,
    form: ReportForm,
    agents: &[Agent],
    notes: Vec<String>,
    lost: Vec<String>,
) -> Result<u8, Failure> {
    let mut excursions = Vec::new();
    let mut machines = BTreeMap::new();
    for agent in agents {
        let Some((report, underlay)) = &agent.ended else { continue };
        for (peer, figures) in underlay {
            if figures.is_excursion() {
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

/// Time since the clock's zero.
fn now() -> Duration {
    Duration::from_nanos(clock_monotonic().as_nanos())
}

fn span(nanos: u64) -> String {
    narrows_core::Duration::from_nanos(nanos / 1000 * 1000).to_string()
}

fn trouble(why: String) -> Failure {
    Failure::Other(why)
}
