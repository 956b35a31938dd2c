//! The agents of a run across machines: starting them, asking them step by step, and ending all when one ends or is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use narrows_io::clock::clock_monotonic;
use narrows_live::underlay::UnderlayFigures;
use narrows_report::Report;

use super::agent;
use super::words::{Answer, Cut, Order, Preparation, tell};
use crate::args::{Up, VERSION};
use crate::output::{Failure, say};

/// By default: no questions, and the end of a connection is noticed within seconds.
const SSH: &str = "ssh -T -o BatchMode=yes -o ServerAliveInterval=2 -o ServerAliveCountMax=2";
/// How long an agent may take for each step of the preparation, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);
/// How often agents hear that the coordinator is there.
const ALIVE: Duration = Duration::from_secs(1);

/// An agent.
pub(super) struct Agent {
    pub(super) machine: String,
    /// Its address between the machines, if given.
    address: Option<IpAddr>,
    ssh: Child,
    orders: Option<ChildStdin>,
    /// When it was last heard.
    heard: Duration,
    pub(super) ended: Option<(Box<Report>, BTreeMap<String, UnderlayFigures>)>,
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
pub(super) enum Event {
    Said(usize, Answer),
    /// Something else came, such as a line of ssh or of the shell.
    Noise(usize, String),
    Gone(usize),
    Signal,
}

/// Starts the agents.
pub(super) fn start(args: &Up, events: &Sender<Event>) -> Result<Vec<Agent>, Failure> {
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
pub(super) struct Group<'a> {
    pub(super) agents: &'a mut [Agent],
    pub(super) heard: &'a Receiver<Event>,
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
    pub(super) fn measure(&mut self) -> Result<BTreeMap<String, BTreeMap<String, UnderlayFigures>>, Failure> {
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
    pub(super) fn begin(
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
    pub(super) fn accompany(&mut self, ttl: Option<Duration>) -> Vec<String> {
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

/// Time since the clock's zero.
fn now() -> Duration {
    Duration::from_nanos(clock_monotonic().as_nanos())
}

pub(super) fn trouble(why: String) -> Failure {
    Failure::Other(why)
}
