//! Attaches networks to containers for as long as they run.
//!
//! ```text
//! engine ── list, events ──▶ watch ── starts, ends ──▶ narrows attach, one process an interface
//!                              └── addresses of services ──▶ their control sockets
//! ```
//!
//! Each event leads to the same step: look at the container, and start what is missing at its interfaces. So an event
//! that comes twice, or after a list that has it already, changes nothing.
//!
//! Docker reports that a container joins a network before it starts the container's first process. From then on the
//! watch looks for the container's namespace and attaches as soon as its interface is up. Podman reports the start
//! only, and late: the watch looks at the folder of its namespaces as well.
//!
//! The events of a lab come from `containerlab events`. A node gets its interfaces after its start, so each of them is
//! an event, too. A node that stops has its interfaces taken away first, to wait in another namespace.

mod attachment;
mod follow;
mod look;
mod member;
mod namespaces;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::link::Interface;
use narrows_io::namespace::Namespace;
use narrows_io::own_folder::OwnFolderError;
use narrows_io::wait::{EndSignal, EndSignals, Waiting, wait};
use narrows_live::block::unblock;
use narrows_live::group::HeldShape;
use narrows_scenario::Files;

use self::attachment::Attachment;
use self::follow::{News, Source, follow, listed};
use self::member::{Member, after};
use self::namespaces::follow_namespaces;
use self::place::Place;
use crate::container::{Container, PROJECT};
use crate::engine::{Engine, EngineError};
use crate::event::Happening;
use crate::lab::{LAB, Lab};
use crate::plan::Addresses;
use crate::project::Project;

/// How often a container is looked at that is about to have an interface.
const LOOK: Duration = Duration::from_millis(2);
/// When a network is told addresses again that it did not take: asking it may take seconds.
const TELL_AGAIN: Duration = Duration::from_secs(5);
/// How long orderly ends may take: a second to drain, and a report to write.
const GRACE: Duration = Duration::from_secs(10);
/// Where Docker keeps network namespaces, until a container shows another folder.
const NAMESPACES: &str = "/run/docker/netns";
/// What the greeting of `narrows attach` begins with.
const GREETING: &str = "narrows run ";
/// What stands before the reason why it ended by itself.
const EARLY: &str = "ended early: ";
/// What its errors begin with.
const COMPLAINT: &str = "narrows: ";
/// Lines kept of what a network says is wrong. Later ones are not needed to say why it ended.
const MOST_COMPLAINTS: usize = 64;

/// Which containers are meant, and what they get.
#[derive(Clone, Debug)]
pub enum Asked {
    /// All containers with labels for narrows; files that labels name are taken from here.
    Labels(Files),
    /// The containers of a project, by its file and their labels.
    Project(Box<Project>),
    /// The nodes of a lab, by its topology file.
    Lab(Box<Lab>),
}

/// What to watch, and how.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The engine.
    pub engine: Engine,
    /// What containers get.
    pub asked: Asked,
    /// Whether interfaces are blocked until their network is there, and when that is killed.
    pub fails_closed: bool,
    /// The folder of control sockets.
    pub run_folder: PathBuf,
    /// The program `narrows`.
    pub program: PathBuf,
}

/// Why a watch cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The engine does not answer at the start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The kernel refuses to wait.
    #[error("cannot wait for signals: {0}")]
    Wait(#[from] io::Error),
    /// The run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] OwnFolderError),
    /// Some networks did not end in an orderly way.
    #[error("{0} of the networks did not end within {seconds} s and were killed; narrows clean removes what they left",
        seconds = GRACE.as_secs())]
    Killed(usize),
}

/// What reaches the watch from its threads.
#[derive(Debug)]
enum Message {
    News(News),
    /// A line of the network with this number.
    Said(u64, String),
    /// Its end.
    Ended(u64),
    Signal(EndSignal),
}

impl Asked {
    fn project(&self) -> Option<&Project> {
        match self {
            Self::Labels(_) | Self::Lab(_) => None,
            Self::Project(project) => Some(project),
        }
    }

    /// The label that all containers have that are meant.
    fn label(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Labels(_) => None,
            Self::Project(project) => Some((PROJECT, &project.name)),
            Self::Lab(lab) => Some((LAB, &lab.name)),
        }
    }

    fn source(&self, engine: &Engine) -> Source {
        Source {
            engine: engine.clone(),
            label: self.label().map(|(name, value)| (name, value.to_owned())),
            containerlab: match self {
                Self::Lab(lab) => Some(lab.program.clone()),
                Self::Labels(_) | Self::Project(_) => None,
            },
        }
    }
}

/// Watches until a signal, which is returned; `say` is called with each line for the user.
///
/// # Errors
/// If the engine does not answer at the start. Later it is waited for.
pub fn watch(
    options: WatchOptions,
    signals: EndSignals,
    say: &mut dyn FnMut(&str),
) -> Result<EndSignal, WatchError> {
    let (to, messages) = channel();
    // So that a mistake is an error, not a wait.
    options.engine.running(options.asked.label())?;
    let _shape = match &options.asked {
        Asked::Lab(lab) => Some(HeldShape::write(&options.run_folder, &lab.shape)?),
        Asked::Labels(_) | Asked::Project(_) => None,
    };
    relay(signals, to.clone());
    let source = options.asked.source(&options.engine);
    follow_namespaces(source.clone(), to.clone());
    follow(source, to.clone());
    let mut state = Watched::new(options, to, say);
    let signal = state.run(&messages)?;
    state.end(&messages)?;
    Ok(signal)
}

/// What a watch would do to the containers that run now, a line or more each.
///
/// # Errors
/// If the engine does not answer.
pub fn dry_run(options: WatchOptions, say: &mut dyn FnMut(&str)) -> Result<(), WatchError> {
    let all = listed(&options.engine, options.asked.label())?;
    let (to, _messages) = channel();
    Watched::new(options, to, say).describe(all);
    Ok(())
}

/// Sends signals as messages.
fn relay(mut signals: EndSignals, to: Sender<Message>) {
    thread::spawn(move || {
        loop {
            let waited = wait(&mut [Waiting::readable(&signals)], None);
            if waited.is_err() {
                return;
            }
            while let Ok(Some(signal)) = signals.take() {
                if to.send(Message::Signal(signal)).is_err() {
                    return;
                }
            }
        }
    });
}

/// The state of a watch.
struct Watched<'a> {
    options: WatchOptions,
    say: &'a mut dyn FnMut(&str),
    to: Sender<Message>,
    started: MonotonicTime,
    /// The containers that exist, by ID.
    members: BTreeMap<String, Member>,
    /// The networks, by their numbers.
    attachments: BTreeMap<u64, Attachment>,
    next_number: u64,
    /// Interfaces that are open only while their network is up.
    blocked: Vec<Blocked>,
    /// What the last lines of each network said.
    complaints: BTreeMap<u64, Vec<String>>,
    is_lost: bool,
    /// Where the engine keeps network namespaces.
    namespaces: PathBuf,
}

/// An interface that is open only while its network is up.
struct Blocked {
    container: String,
    place: Place,
    namespace: Namespace,
    interface: Interface,
}

impl<'a> Watched<'a> {
    fn new(options: WatchOptions, to: Sender<Message>, say: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            options,
            say,
            to,
            started: clock_monotonic(),
            members: BTreeMap::new(),
            attachments: BTreeMap::new(),
            next_number: 0,
            blocked: Vec::new(),
            complaints: BTreeMap::new(),
            is_lost: false,
            namespaces: NAMESPACES.into(),
        }
    }

    fn say(&mut self, text: impl AsRef<str>) {
        (self.say)(text.as_ref());
    }

    fn run(&mut self, messages: &Receiver<Message>) -> Result<EndSignal, WatchError> {
        loop {
            let now = clock_monotonic();
            let is_out_of_date = self.attachments.values().any(Attachment::is_out_of_date);
            let again = is_out_of_date.then(|| after(now, TELL_AGAIN));
            let next = self.members.values().filter_map(Member::next_look).chain(again).min();
            let message = match next {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => {
                    messages.recv_timeout(Duration::from_nanos(at.as_nanos().saturating_sub(now.as_nanos())))
                }
            };
            match message {
                Ok(Message::Signal(signal)) => return Ok(signal),
                Ok(Message::News(news)) => self.heed(news),
                Ok(Message::Said(number, line)) => self.hear(number, line),
                Ok(Message::Ended(number)) => self.ended(number),
                Err(RecvTimeoutError::Timeout) => {}
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("all threads have ended").into());
                }
            }
            let now = clock_monotonic();
            let due: Vec<_> = self
                .members
                .iter()
                .filter(|(_, member)| member.next_look().is_some_and(|at| at <= now))
                .map(|(id, _)| id.clone())
                .collect();
            due.iter().for_each(|id| self.look(id));
            self.tell();
        }
    }

    /// Ends all networks, and removes barriers before interfaces that have none.
    fn end(&mut self, messages: &Receiver<Message>) -> Result<(), WatchError> {
        let folder = self.options.run_folder.clone();
        self.attachments.values_mut().for_each(|attachment| attachment.end(&folder));
        let until = clock_monotonic().as_nanos() + GRACE.as_nanos() as u64;
        let mut killed = 0;
        while !self.attachments.is_empty() {
            let left = Duration::from_nanos(until.saturating_sub(clock_monotonic().as_nanos()));
            match messages.recv_timeout(left) {
                Ok(Message::Ended(number)) => self.ended(number),
                Ok(_) => {}
                Err(_) => {
                    killed = self.attachments.len();
                    self.attachments.values_mut().for_each(|attachment| {
                        attachment.kill();
                        attachment.wait();
                    });
                    self.attachments.clear();
                }
            }
        }
        self.unblock(|_| true);
        if killed == 0 { Ok(()) } else { Err(WatchError::Killed(killed)) }
    }

    /// Removes these barriers, where no network has taken them over.
    fn unblock(&mut self, which: impl Fn(&Blocked) -> bool) {
        let (meant, others) = std::mem::take(&mut self.blocked).into_iter().partition(|one| which(one));
        self.blocked = others;
        let meant: Vec<Blocked> = meant;
        for Blocked { namespace, interface, .. } in &meant {
            // An interface that is gone has no barrier.
            let _ = unblock(namespace, interface, &self.options.run_folder);
        }
    }

    fn heed(&mut self, news: News) {
        match news {
            News::Lost(why) => {
                if !std::mem::replace(&mut self.is_lost, true) {
                    self.say(format!("{why}; networks stay, and it is tried again"));
                }
            }
            News::Listed(all) => {
                if std::mem::take(&mut self.is_lost) {
                    self.say(match self.options.asked {
                        Asked::Lab(_) => "events come again",
                        Asked::Labels(_) | Asked::Project(_) => "the engine answers again",
                    });
                }
                let running: BTreeSet<_> = all.iter().map(|container| container.id.clone()).collect();
                let gone: Vec<_> = self.members.keys().filter(|id| !running.contains(*id)).cloned().collect();
                gone.iter().for_each(|id| self.forget(id));
                let now = clock_monotonic();
                all.into_iter().for_each(|container| self.meet(container, now));
            }
            News::Event(event, at, container) => match (event.happening, container) {
                // A network ends by itself with its interface.
                (Happening::Disconnected, _) => {}
                // It has started again before the event of its earlier end came.
                (Happening::Ended, _)
                    if self.members.get(&event.container).is_some_and(Member::is_running) => {}
                (Happening::Ended, _) | (_, None) => self.forget(&event.container),
                (Happening::Connected | Happening::Started, Some(container)) => self.meet(container, at),
            },
        }
    }

    /// A container is there, or has changed.
    fn meet(&mut self, container: Container, at: MonotonicTime) {
        if let Some(folder) = container.namespace.as_deref().and_then(|path| Path::new(path).parent()) {
            folder.clone_into(&mut self.namespaces);
        }
        if let Some((label, value)) = self.options.asked.label()
            && container.labels.get(label).is_none_or(|own| own != value)
        {
            return;
        }
        let id = container.id.clone();
        match self.members.get_mut(&id) {
            Some(member) => member.update(container, at),
            None => {
                let demands = self.demands(&container);
                self.members.insert(id.clone(), Member::new(container, demands, at));
            }
        }
        self.look(&id);
    }

    /// A container has ended.
    fn forget(&mut self, id: &str) {
        if self.members.remove(id).is_none() {
            return;
        }
        let folder = self.options.run_folder.clone();
        let own = self.attachments.values_mut().filter(|attachment| attachment.container == id);
        own.for_each(|attachment| attachment.end(&folder));
        // Where a network is, that opens it.
        let taken: Vec<_> = self.attachments.values().map(|attachment| attachment.place.clone()).collect();
        self.unblock(|blocked| blocked.container == id && !taken.contains(&blocked.place));
    }

    /// A network has said something.
    fn hear(&mut self, number: u64, line: String) {
        let Some(attachment) = self.attachments.get_mut(&number) else { return };
        if line.starts_with(GREETING) && !attachment.is_up {
            attachment.is_up = true;
            let after = clock_monotonic().as_nanos().saturating_sub(attachment.since.as_nanos()) / 1_000_000;
            let Attachment { container, name, interface, run, .. } = attachment;
            let text = format!("{name} {interface}: attached after {after} ms, run {run}");
            if let Some(member) = self.members.get_mut(container) {
                member.attached();
            }
            self.say(text);
        } else if line.starts_with(COMPLAINT) || self.complaints.contains_key(&number) {
            // What follows a complaint belongs to it.
            let complaints = self.complaints.entry(number).or_default();
            if complaints.len() < MOST_COMPLAINTS {
                complaints.push(line);
            }
        }
    }

    /// A network has ended.
    fn ended(&mut self, number: u64) {
        let Some(mut attachment) = self.attachments.remove(&number) else { return };
        let status = attachment.wait();
        let complaints = self.complaints.remove(&number).unwrap_or_default();
        let (id, interface, name) = (attachment.container.clone(), &attachment.interface, &attachment.name);
        if attachment.is_ending || status == Some(0) {
            // Nothing of it is to stay, even if its interface has gone in the middle of its end.
            self.unblock(|blocked| blocked.place == attachment.place);
            self.say(format!("{name} {interface}: detached, run {}", attachment.run));
            return;
        }
        let early = complaints.iter().find_map(|line| line.split_once(EARLY)?.1.split(';').next());
        let why = match (early, complaints.split_first()) {
            (Some(why), _) => why.to_owned(),
            (None, Some((first, others))) => {
                let first = first.strip_prefix(COMPLAINT).unwrap_or(first);
                let others = others.iter().map(|line| format!("\n  {line}"));
                [first.to_owned()].into_iter().chain(others).collect()
            }
            (None, None) => "it was killed".into(),
        };
        let news = self.members.get_mut(&id).is_none_or(|member| member.failed(&why, clock_monotonic()));
        if news {
            let what = if attachment.is_up { "detached" } else { "not attached" };
            self.say(format!("{name} {interface}: {what}: {why}"));
        }
    }

    /// The addresses of each service of the project.
    fn addresses(&self) -> Addresses {
        let mut all = Addresses::new();
        for member in self.members.values() {
            let Some(service) = member.container().service() else { continue };
            let of_service = all.entry(service.to_owned()).or_default();
            of_service
                .extend(member.container().networks.values().flat_map(|joined| joined.addresses.clone()));
        }
        all
    }

    /// Tells the networks that are up which addresses services have now.
    fn tell(&mut self) {
        if self.options.asked.project().is_none() {
            return;
        }
        let addresses = self.addresses();
        let folder = self.options.run_folder.clone();
        let told = self.attachments.values_mut().filter(|one| one.is_up && !one.is_ending);
        let failed: Vec<_> = told.filter_map(|attachment| attachment.tell(&addresses, &folder)).collect();
        failed.iter().for_each(|text| self.say(text));
    }
}
