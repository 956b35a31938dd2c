//! Feeds: other processes stream delays into links of a run.
//!
//! Each feed has a Unix stream socket, for its owner only, in the run folder, and a thread that reads it:
//!
//! ```text
//! writer ──socket──▶ thread ──ring──▶ packet loop ──▶ engine
//!        ◀─answers──        ◀─ring──  (questions)
//! ```
//!
//! The thread sleeps in the kernel until something comes; whatever a writer does, it harms no more than that thread. The
//! packet loop takes values out of the ring in each turn and hands them in with the instants at which they came, all
//! without a system call. `docs/feeds.md` is for those who write writers.

mod channel;
pub mod client;
mod lead;
pub mod protocol;
mod questions;
mod record;
mod server;
mod socket;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use narrows_core::{Duration, Engine, FeedView, LinkId, Question, Time};
use narrows_io::privileges;
use narrows_io::waker::Waker;
use narrows_report::FeedWriters;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use channel::{Asked, Outlet, channel};
use lead::Lead;
use server::Server;
use socket::Socket;

pub use socket::{Leftover, leftovers};

/// The variable by which programs inside a run find the socket of its feed, if it has just one; of each feed, it is
/// this, `_`, and the names of its link and itself in capitals.
pub const ENVIRONMENT: &str = "NARROWS_FEED";

/// A feed may be given a longer lead later, up to this many values.
const RING: usize = 4096;

/// Why there is no feed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// Its socket could not be made.
    #[error("cannot make the socket of the feed {feed}: {cause}")]
    Make {
        /// Its link and its name.
        feed: String,
        /// Why.
        cause: io::Error,
    },
}

/// Where a feed is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Place {
    /// The link, with its direction.
    pub link: String,
    /// Its name, unique on that link.
    pub name: String,
    /// The socket.
    pub path: PathBuf,
    /// Whether it asks for each packet.
    pub two_way: bool,
}

/// Values to be handed in together.
#[derive(Debug)]
pub struct Batch {
    /// When they came.
    pub at: Time,
    /// For which link.
    pub link: LinkId,
    /// And which feed of it.
    pub feed: Arc<str>,
    /// In order.
    pub values: Vec<i64>,
}

/// The feeds of a run.
#[derive(Debug)]
pub struct Feeds {
    folder: PathBuf,
    open: Vec<Feed>,
    /// Called when there are answers to questions.
    caller: Arc<Waker>,
    /// What has come and is not handed in yet, in the order in which it came.
    batches: VecDeque<Batch>,
    questions: Vec<Question>,
    spent: Vec<Vec<i64>>,
    /// How far the engine had got when the threads were told last.
    told: Time,
}

/// A feed that has its socket.
#[derive(Debug)]
struct Feed {
    link: LinkId,
    name: Arc<str>,
    place: Place,
    outlet: Outlet,
    thread: Option<JoinHandle<()>>,
    _socket: Socket,
}

impl Feeds {
    /// None yet; their sockets will be in this folder.
    ///
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: folder.into(),
            open: Vec::new(),
            caller: Arc::new(Waker::new()?),
            batches: VecDeque::new(),
            questions: Vec::new(),
            spent: Vec::new(),
            told: Time::NEVER,
        })
    }

    /// Makes a socket for each feed of these links that has none, and closes those of feeds that are gone. `span` is the
    /// lead in time of a link's feed, where it is given so.
    ///
    /// # Errors
    /// When a socket cannot be made. Those of other feeds are there.
    pub fn update<B>(
        &mut self,
        engine: &Engine<B>,
        links: impl IntoIterator<Item = LinkId>,
        span: impl Fn(&str, &str) -> Option<Duration>,
    ) -> Result<(), FeedError> {
        let mut before = std::mem::take(&mut self.open);
        let mut result = Ok(());
        for link in links {
            let view = engine.view(link);
            for feed in view.feeds() {
                let config = feed.config;
                let lead = match span(view.name(), &config.name) {
                    Some(span) => Lead::Span(span, config.lead),
                    None => Lead::Values(config.lead),
                };
                let two_way = config.ask.is_some();
                let same = |open: &Feed| {
                    open.link == link && *open.name == *config.name && open.place.two_way == two_way
                };
                match before.iter().position(same) {
                    Some(at) => {
                        let open = before.swap_remove(at);
                        open.outlet.set_lead(lead);
                        self.open.push(open);
                    }
                    None => {
                        // One of the same name may stand in the way of the new socket.
                        before.retain(|open| open.link != link || *open.name != *config.name);
                        let place = (view.name(), config.name.as_str());
                        match self.start(link, place, lead, two_way, feed.counters.asked) {
                            Ok(open) => self.open.push(open),
                            Err(cause) => {
                                let feed = format!("{}/{}", place.0, place.1);
                                result = Err(FeedError::Make { feed, cause });
                            }
                        }
                    }
                }
            }
        }
        result
    }

    fn start(
        &self,
        link: LinkId,
        (link_name, name): (&str, &str),
        lead: Lead,
        two_way: bool,
        first_question: u64,
    ) -> io::Result<Feed> {
        let (socket, listener) = Socket::make(&self.folder, link_name, name)?;
        let waker = Arc::new(Waker::new()?);
        let (outlet, intake) = channel(lead.most().max(RING), lead, waker.clone());
        let caller = two_way.then(|| (self.caller.clone(), first_question));
        let server = Server::new(listener, intake, waker, caller);
        let thread = thread::Builder::new().name("feed".into()).spawn(move || {
            // Its sockets are open; and it reads them as well where the kernel lets it give up none.
            let _ = privileges::give_up();
            server.run()
        })?;
        let path = socket.path().to_owned();
        let place = Place { link: link_name.into(), name: name.into(), path, two_way };
        Ok(Feed { link, name: name.into(), place, outlet, thread: Some(thread), _socket: socket })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Where they are.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.open.iter().map(|feed| &feed.place)
    }

    /// Takes what had come by `until`, as much as the engine has room for. No system call.
    pub fn receive<B>(&mut self, clock: &Clock, engine: &Engine<B>, until: Time) {
        let reading = clock.reading(until);
        for feed in &mut self.open {
            if !feed.outlet.has_values() {
                continue;
            }
            let room = feed.view(engine, |view| view.room).unwrap_or(0);
            let (link, name, batches, spent) = (feed.link, &feed.name, &mut self.batches, &mut self.spent);
            let first = batches.len();
            feed.outlet.take(reading, usize::try_from(room).unwrap_or(usize::MAX), |stamped| {
                let at = clock.instant(stamped.at);
                match batches.range_mut(first..).next_back().filter(|last| last.at == at) {
                    Some(last) => last.values.push(stamped.value),
                    None => {
                        let mut values = spent.pop().unwrap_or_default();
                        values.push(stamped.value);
                        batches.push_back(Batch { at, link, feed: name.clone(), values });
                    }
                }
            });
        }
        // Stable: those of one feed stay in order.
        self.batches.make_contiguous().sort_by_key(|batch| batch.at);
    }

    /// What is to be handed in up to `until`, oldest first.
    pub fn next(&mut self, until: Time) -> Option<Batch> {
        if self.batches.front().is_none_or(|batch| batch.at > until) {
            return None;
        }
        self.batches.pop_front()
    }

    /// Takes back the room of a batch that was handed in.
    pub fn recycle(&mut self, mut batch: Batch) {
        batch.values.clear();
        self.spent.push(batch.values);
    }

    /// Tells the threads how far packets have got, and passes questions on. No system call.
    pub fn tell<B>(&mut self, clock: &Clock, engine: &mut Engine<B>) {
        // As long as nothing happens, packets get no further.
        if engine.now() == self.told {
            return;
        }
        self.told = engine.now();
        for feed in &self.open {
            feed.view(engine, |view| {
                let waiting = usize::try_from(view.waiting).unwrap_or(usize::MAX);
                feed.outlet.tell(waiting, view.counters.used + view.counters.underruns);
            });
        }
        if self.open.iter().all(|feed| !feed.place.two_way) {
            return;
        }
        engine.take_questions(&mut self.questions);
        for question in self.questions.drain(..) {
            let feeds = engine.view(question.link).feeds();
            let Some(config) = feeds.get(question.feed as usize).map(|view| view.config) else { continue };
            let of_it = |feed: &&mut Feed| feed.link == question.link && *feed.name == *config.name;
            let Some(feed) = self.open.iter_mut().find(of_it) else { continue };
            let until = clock.reading(question.at + config.ask.unwrap_or_default());
            let record = record::encode(&question, clock.reading(question.at), until);
            // One for which there is no room is missed by the thread, and closed by it in its turn.
            feed.outlet.ask(Asked { number: question.number, until, record });
        }
    }

    /// Calls threads that want that. To be done between turns.
    pub fn call(&mut self) {
        self.open.iter_mut().for_each(|feed| feed.outlet.call());
    }

    /// Becomes readable when there are answers to questions.
    pub fn caller(&self) -> BorrowedFd<'_> {
        self.caller.as_fd()
    }

    /// The answers are being taken care of.
    pub fn called(&self) {
        self.caller.clear();
    }

    /// What became of writers.
    pub fn writers(&self) -> impl Iterator<Item = FeedWriters> {
        self.open.iter().map(|feed| {
            let counts = &feed.outlet.shared.counts;
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            FeedWriters {
                link: feed.place.link.clone(),
                feed: feed.place.name.clone(),
                writers: of(&counts.writers),
                refused_writers: of(&counts.refused),
                malformed_writers: of(&counts.malformed),
                torn_values: of(&counts.torn),
                unanswered: of(&counts.unanswered),
            }
        })
    }
}

impl Feed {
    fn view<B, T>(&self, engine: &Engine<B>, of: impl FnOnce(&FeedView<'_>) -> T) -> Option<T> {
        let feeds = engine.view(self.link).feeds();
        feeds.iter().find(|view| *view.config.name == *self.name).map(of)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.outlet.end();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there would be nothing to do about it.
            let _ = thread.join();
        }
    }
}

/// What programs of a run with these feeds find in their environment.
pub fn environment(places: &[Place]) -> Vec<(String, PathBuf)> {
    let variable =
        |place: &Place| format!("{ENVIRONMENT}_{}_{}", capitals(&place.link), capitals(&place.name));
    let mut all: Vec<_> = places.iter().map(|place| (variable(place), place.path.clone())).collect();
    if let [only] = places {
        all.push((ENVIRONMENT.to_owned(), only.path.clone()));
    }
    all
}

/// As part of the name of a variable.
fn capitals(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
