//! Feeds: other processes stream delays into links of a run.
//!
//! Each feed has a Unix stream socket, accessible to its owner only, in the run folder, and a thread that reads it:
//!
//! ```text
//! writer ──socket──▶ thread ──ring──▶ packet loop ──▶ engine
//!        ◀─answers──        ◀─ring──  (questions)
//! ```
//!
//! [`FeedServers`] creates the sockets and threads, separate from the packet loop, which has the other ends of the
//! rings ([`Feeds`]). The thread sleeps in the kernel until something arrives; a misbehaving writer affects only that
//! thread. Each turn, the packet loop takes values from the ring and hands them in with their arrival times, all
//! without a system call. `docs/feeds.md` is for authors of writers.

mod call;
mod channel;
pub mod client;
pub mod device;
mod lead;
pub mod protocol;
mod questions;
mod record;
mod server;
mod servers;
mod socket;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{self, Arc};

use narrows_core::{Engine, FeedView, LinkId, Question, Time};
use narrows_io::waker::Waker;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use channel::{Asked, Outlet};

pub use servers::FeedServers;
pub use socket::{Leftover, leftovers};

/// The environment variable by which programs inside a run find the feed socket, if there is only one; for each feed,
/// its name is this, `_`, and the names of its link and itself in capitals.
pub const ENVIRONMENT: &str = "NARROWS_FEED";

/// Why there is no feed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// Its socket cannot be created.
    #[error("cannot make the socket of the feed {feed}: {cause}")]
    Make {
        /// Its link and its name.
        feed: String,
        /// The cause.
        cause: io::Error,
    },
}

/// A feed's socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Place {
    /// The link, with its direction.
    pub link: String,
    /// Its name, unique on that link.
    pub name: String,
    /// The socket.
    pub path: PathBuf,
    /// Whether it is two-way: the writer is asked for the value of each packet.
    pub two_way: bool,
}

/// Values to be handed in together.
#[derive(Debug)]
pub struct Batch {
    /// When they arrived.
    pub at: Time,
    /// The link.
    pub link: LinkId,
    /// The feed on that link.
    pub feed: Arc<str>,
    /// The values, in order.
    pub values: Vec<i64>,
}

/// A feed that a link has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The link.
    pub link: LinkId,
    /// Its name.
    pub link_name: String,
    /// The name of the feed.
    pub name: String,
    /// The maximum number of values queued.
    pub lead: usize,
    /// Whether it is two-way: the writer is asked for the value of each packet.
    pub two_way: bool,
    /// How many questions it has already asked.
    pub asked: u64,
}

/// The feeds of these links of an engine.
pub fn wanted<B>(engine: &Engine<B>, links: impl IntoIterator<Item = LinkId>) -> Vec<Wanted> {
    let of_link = |link| {
        let view = engine.view(link);
        let name = view.name();
        let feeds = view.feeds().into_iter().map(|feed| Wanted {
            link,
            link_name: name.to_owned(),
            name: feed.config.name.clone(),
            lead: feed.config.lead,
            two_way: feed.config.ask.is_some(),
            asked: feed.counters.asked,
        });
        feeds.collect::<Vec<_>>()
    };
    links.into_iter().flat_map(of_link).collect()
}

/// The feeds of a packet loop: its ends of their rings.
#[derive(Debug)]
pub struct Feeds {
    open: Vec<Inlet>,
    /// Called when there are answers to questions.
    caller: Arc<Waker>,
    /// Values not handed in yet, in order of arrival.
    batches: VecDeque<Batch>,
    questions: Vec<Question>,
    spent: Vec<Vec<i64>>,
    /// How far the engine had got when the threads were last told.
    told: Time,
}

/// The input of a feed's values.
#[derive(Debug)]
struct Inlet {
    link: LinkId,
    name: Arc<str>,
    two_way: bool,
    outlet: Outlet,
}

/// A packet loop's new set of feeds: those kept, and new ones.
#[derive(Debug, Default)]
pub struct Inlets {
    stay: Vec<(LinkId, Arc<str>)>,
    new: Vec<Inlet>,
}

impl Feeds {
    /// An empty set. `caller` is called when there are answers to questions.
    pub fn new(caller: Arc<Waker>) -> Self {
        Self {
            open: Vec::new(),
            caller,
            batches: VecDeque::new(),
            questions: Vec::new(),
            spent: Vec::new(),
            told: Time::NEVER,
        }
    }

    /// Replaces the feeds.
    pub fn take(&mut self, inlets: Inlets) {
        self.open
            .retain(|open| inlets.stay.iter().any(|(link, name)| (open.link, &open.name) == (*link, name)));
        self.open.extend(inlets.new);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes what had arrived by `until`, as much as the engine has room for. No system call.
    pub fn receive<B>(&mut self, clock: &Clock, engine: &Engine<B>, until: Time) {
        self.receive_each(clock, engine, until, |_| ());
    }

    /// The same; `each` sees each new batch, and may set a later instant for it.
    pub fn receive_each<B>(
        &mut self,
        clock: &Clock,
        engine: &Engine<B>,
        until: Time,
        mut each: impl FnMut(&mut Batch),
    ) {
        let reading = clock.reading(until);
        for feed in &mut self.open {
            if !feed.outlet.has_values() {
                continue;
            }
            // Of what is not handed in yet, the engine knows nothing.
            let pending =
                self.batches.iter().filter(|batch| batch.link == feed.link && batch.feed == feed.name);
            let pending: usize = pending.map(|batch| batch.values.len()).sum();
            let room = feed.view(engine, |view| view.room).unwrap_or(0).saturating_sub(pending as u64);
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
            self.batches.range_mut(first..).for_each(&mut each);
        }
        // Stable: the values of one feed stay in order.
        self.batches.make_contiguous().sort_by_key(|batch| batch.at);
    }

    /// The next batch to be handed in up to `until`, oldest first.
    pub fn next(&mut self, until: Time) -> Option<Batch> {
        if self.batches.front().is_none_or(|batch| batch.at > until) {
            return None;
        }
        self.batches.pop_front()
    }

    /// Reuses the memory of a batch that was handed in.
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
        if self.open.iter().all(|feed| !feed.two_way) {
            return;
        }
        engine.take_questions(&mut self.questions);
        for question in self.questions.drain(..) {
            let feeds = engine.view(question.link).feeds();
            let Some(config) = feeds.get(question.feed as usize).map(|view| view.config) else { continue };
            let of_it = |feed: &&mut Inlet| feed.link == question.link && *feed.name == *config.name;
            let Some(feed) = self.open.iter_mut().find(of_it) else { continue };
            let until = clock.reading(question.at + config.ask.unwrap_or_default());
            let record = record::encode(&question, clock.reading(question.at), until);
            // A question without room is noticed by the thread, which closes it in order.
            feed.outlet.ask(Asked { number: question.number, until, record });
        }
    }

    /// Wakes threads that want it. Call it between turns.
    pub fn call(&mut self) {
        self.open.iter_mut().for_each(|feed| feed.outlet.call());
    }

    /// Becomes readable when there are answers to questions.
    pub fn caller(&self) -> BorrowedFd<'_> {
        self.caller.as_fd()
    }

    /// The answers are being processed.
    pub fn called(&self) {
        self.caller.clear();
    }
}

impl Inlet {
    fn view<B, T>(&self, engine: &Engine<B>, of: impl FnOnce(&FeedView<'_>) -> T) -> Option<T> {
        let feeds = engine.view(self.link).feeds();
        feeds.iter().find(|view| *view.config.name == *self.name).map(of)
    }
}

/// The environment variables for these feeds in programs of a run.
pub fn environment(places: &[Place]) -> Vec<(String, PathBuf)> {
    let variable =
        |place: &Place| format!("{ENVIRONMENT}_{}_{}", capitals(&place.link), capitals(&place.name));
    let mut all: Vec<_> = places.iter().map(|place| (variable(place), place.path.clone())).collect();
    if let [only] = places {
        all.push((ENVIRONMENT.to_owned(), only.path.clone()));
    }
    all
}

/// A name as part of a variable's name.
pub fn capitals(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
