//! The agents of a run across machines: starting them, asking them step by step, and ending all when one ends or is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use narrows_io::clock::clock_monotonic;
use narrows_live::agent::{Answer, Cut, LONGEST_ANSWER, Order, Preparation, hear, tell};
use narrows_live::underlay::UnderlayFigures;
use narrows_report::Report;

use super::agent;
use super::last_words::why_gone;
use crate::args::VERSION;
use crate::output::{Failure, say};

/// By default: no questions, and the end of a connection is noticed within seconds.
pub(super) const SSH: &str =
    "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=2 -o ServerAliveCountMax=2";
/// How long an agent may be silent during the preparation, and how long it may take to end.
const PATIENCE: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);
/// How long the exit status of ssh and its last lines are awaited.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The maximum number of lines kept of what ssh says before the agent does.
const MOST_LINES: usize = 20;
/// How often agents hear that the coordinator is there.
const ALIVE: Duration = Duration::from_secs(1);

/// An agent.
pub(super) struct Agent {
    pub(super) machine: String,
    /// Its address between the machines, if given.
    address: Option<IpAddr>,
    ssh: Child,
    /// The program that `ssh` runs.
    program: String,
    orders: Option<ChildStdin>,
    /// Whether the agent itself has said something; before, what ssh says.
    greeted: bool,
    lines: Vec<String>,
    /// When it was last heard.
    heard: Duration,
    pub(super) ended: Option<(Box<Report>, BTreeMap<String, UnderlayFigures>)>,
}

impl Agent {
    fn tell(&mut self, order: &Order) {
        // An agent that is gone is noticed by what it says: nothing.
        let _ = self.orders.as_mut().map(|to| tell(to, order));
    }

    /// A line that is no answer: shown, or kept until it is known whether the agent starts.
    fn heard_line(&mut self, line: String) {
        if self.greeted {
            say(format_args!("narrows: on the machine `{}`: {line}", self.machine));
        } else if self.lines.len() < MOST_LINES && !line.trim().is_empty() {
            self.lines.push(line);
        }
    }

    /// The exit status of ssh, if it ends soon.
    fn status(&mut self) -> Option<i32> {
        let until = now() + LAST_WORDS;
        loop {
            match self.ssh.try_wait() {
                Ok(None) if now() < until => thread::sleep(Duration::from_millis(5)),
                Ok(Some(status)) => return status.code(),
                _ => return None,
            }
        }
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

/// Starts the agents, by this command in place of ssh.
pub(super) fn start(
    machines: &[String],
    ssh: Option<&str>,
    events: &Sender<Event>,
) -> Result<Vec<Agent>, Failure> {
    let mut agents = Vec::new();
    let mut names = BTreeSet::new();
    for word in machines {
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
        let mut words = ssh.unwrap_or(SSH).split_whitespace();
        let program = words.next().unwrap_or("ssh").to_owned();
        let mut command = Command::new(&program);
        command.args(words).args([name, "narrows", "agent"]);
        // A Ctrl-C is for the coordinator, which ends the agents.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut ssh =
            command.spawn().map_err(|cause| trouble(format!("cannot start `{program}`: {cause}")))?;
        let (orders, says, complains) = (ssh.stdin.take(), ssh.stdout.take(), ssh.stderr.take());
        listen(number, says, events.clone(), true);
        listen(number, complains, events.clone(), false);
        agents.push(Agent {
            machine: name.to_owned(),
            address,
            ssh,
            program,
            orders,
            greeted: false,
            lines: Vec::new(),
            heard: now(),
            ended: None,
        });
    }
    Ok(agents)
}

/// Hands on what an agent says: answers, or lines for people; and that it is gone.
fn listen(number: usize, says: Option<impl Read + Send + 'static>, events: Sender<Event>, has_answers: bool) {
    thread::spawn(move || {
        // Whatever ssh or a shell says: not all of it may be text.
        let mut says = says.map(BufReader::new);
        let mut next = || match hear(says.as_mut()?, LONGEST_ANSWER) {
            Ok(line) => line,
            // It says nothing more that could be believed.
            Err(error) => says.take().map(|_| error.to_string().into_bytes()),
        };
        while let Some(line) = next() {
            let event = match serde_json::from_slice(&line) {
                Ok(answer) if has_answers => Event::Said(number, answer),
                _ => Event::Noise(number, String::from_utf8_lossy(&line).trim_end().to_owned()),
            };
            if events.send(event).is_err() {
                return;
            }
        }
        if has_answers {
            let _ = events.send(Event::Gone(number));
        }
    });
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
        self.agents.iter_mut().for_each(|agent| agent.heard = now());
        let mut beat = now();
        while !left.is_empty() {
            let time = now();
            if time >= beat {
                self.agents.iter_mut().for_each(|agent| agent.tell(&Order::Alive));
                beat = time + ALIVE;
            }
            let silent = |number: &&usize| time.saturating_sub(self.agents[**number].heard) > PATIENCE;
            if let Some(&number) = left.iter().find(silent) {
                return Err(trouble(format!(
                    "the agent on `{}` does not answer within {} s",
                    self.agents[number].machine,
                    PATIENCE.as_secs()
                )));
            }
            let event = match self.heard.recv_timeout(ALIVE) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(trouble("all agents have ended before the network was up".into()));
                }
            };
            match event {
                Event::Said(number, Answer::Failed { why }) => {
                    return Err(trouble(format!("on the machine `{}`: {why}", self.agents[number].machine)));
                }
                Event::Said(number, answer) => {
                    let agent = &mut self.agents[number];
                    (agent.heard, agent.greeted) = (now(), true);
                    std::mem::take(&mut agent.lines).into_iter().for_each(|line| agent.heard_line(line));
                    if take(agent, answer)? {
                        left.remove(&number);
                    }
                }
                Event::Noise(number, line) => self.agents[number].heard_line(line),
                Event::Gone(number) => return Err(self.gone(number)),
                Event::Signal => return Err(trouble("ended by a signal before the network was up".into())),
            }
        }
        Ok(())
    }

    /// What an agent that is gone leaves as a reason.
    fn gone(&mut self, number: usize) -> Failure {
        let status = self.agents[number].status();
        let until = now() + LAST_WORDS;
        // Both streams end at about the same time, unless ssh leaves a process that shares the connection.
        while let Ok(event) = self.heard.recv_timeout(until.saturating_sub(now()).min(LAST_WORDS / 5)) {
            if let Event::Noise(of, line) = event {
                self.agents[of].heard_line(line);
            }
        }
        let agent = &self.agents[number];
        if let Some((_, before)) = agent.lines.split_last() {
            before.iter().for_each(|line| say(format_args!("{}: {line}", agent.machine)));
        }
        if agent.greeted {
            return trouble(format!("the agent on `{}` has ended before the network was up", agent.machine));
        }
        trouble(why_gone(&agent.machine, &agent.program, status, &agent.lines))
    }

    /// Waits for the greetings, and compares versions. Returns the user of each, and whether that has all privileges.
    pub(super) fn greet(&mut self) -> Result<Vec<(u32, bool)>, Failure> {
        let mut users = BTreeMap::new();
        self.each(|agent, answer| {
            let Answer::Hello { version, address, user, is_privileged } = answer else { return Ok(false) };
            if version != VERSION {
                return Err(trouble(format!(
                    "narrows on the machine `{}` is version {version}, and here it is {VERSION}: install the same",
                    agent.machine
                )));
            }
            agent.address = agent.address.or(address);
            users.insert(agent.machine.clone(), (user, is_privileged));
            Ok(true)
        })?;
        Ok(self.agents.iter().filter_map(|agent| users.get(&agent.machine).copied()).collect())
    }

    /// Has the agents measure the network between them.
    pub(super) fn measure(&mut self) -> Result<BTreeMap<String, BTreeMap<String, UnderlayFigures>>, Failure> {
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
                Ok(Event::Noise(number, line)) => self.agents[number].heard_line(line),
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
