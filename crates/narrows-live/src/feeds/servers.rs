//! The sockets of feeds and their threads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use narrows_core::{Duration, LinkId};
use narrows_io::confinement::{self, Work};
use narrows_io::waker::Waker;
use narrows_report::FeedWriters;

use super::channel::{Handle, channel};
use super::lead::Lead;
use super::server::Server;
use super::socket::Socket;
use super::{FeedError, Inlet, Inlets, Place, Wanted};

/// The minimum capacity of a ring: a feed may be given a longer lead later, up to this many values.
const RING: usize = 4096;

/// The feeds of a packet loop, from the writers' side.
#[derive(Debug)]
pub struct FeedServers {
    folder: PathBuf,
    open: Vec<Feed>,
    /// Calls the packet loop when there are answers to questions.
    caller: Arc<Waker>,
}

/// A feed with its socket.
#[derive(Debug)]
struct Feed {
    link: LinkId,
    name: Arc<str>,
    place: Place,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    _socket: Socket,
}

impl FeedServers {
    /// No feeds yet; their sockets will be in this folder.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { folder: folder.into(), open: Vec::new(), caller: Arc::new(Waker::new()?) })
    }

    /// Calls the packet loop when there are answers to questions.
    pub fn caller(&self) -> &Arc<Waker> {
        &self.caller
    }

    /// Creates a socket for each of these feeds that has none, and closes those of feeds that no longer exist. `span`
    /// is the lead in time of a link's feed, if it is given so. Returns what the packet loop is to take, and errors:
    /// other feeds are set up nonetheless.
    pub fn update(
        &mut self,
        wanted: &[Wanted],
        span: impl Fn(&str, &str) -> Option<Duration>,
    ) -> (Inlets, Option<FeedError>) {
        let mut before = std::mem::take(&mut self.open);
        let (mut inlets, mut failed) = (Inlets::default(), None);
        for feed in wanted {
            let lead = match span(&feed.link_name, &feed.name) {
                Some(span) => Lead::Span(span, feed.lead),
                None => Lead::Values(feed.lead),
            };
            let is_called_so = |open: &Feed| open.link == feed.link && *open.name == *feed.name;
            if let Some(at) =
                before.iter().position(|open| is_called_so(open) && open.place.two_way == feed.two_way)
            {
                let open = before.swap_remove(at);
                open.handle.set_lead(lead);
                inlets.stay.push((open.link, open.name.clone()));
                self.open.push(open);
                continue;
            }
            // One with the same name may be in the way of the new socket.
            before.retain(|open| !is_called_so(open));
            match self.start(feed, lead) {
                Ok((open, inlet)) => {
                    self.open.push(open);
                    inlets.new.push(inlet);
                }
                Err(cause) => {
                    let feed = format!("{}/{}", feed.link_name, feed.name);
                    failed = Some(FeedError::Make { feed, cause });
                }
            }
        }
        (inlets, failed)
    }

    fn start(&self, wanted: &Wanted, lead: Lead) -> io::Result<(Feed, Inlet)> {
        let Wanted { link, link_name, name, two_way, asked, .. } = wanted;
        let (socket, listener) = Socket::make(&self.folder, link_name, name)?;
        let waker = Arc::new(Waker::new()?);
        let (outlet, intake) = channel(lead.most().max(RING), lead, waker.clone());
        let handle = outlet.handle();
        let caller = two_way.then(|| (self.caller.clone(), *asked));
        let server = Server::new(listener, intake, waker, caller);
        let thread = thread::Builder::new().name("feed".into()).spawn(move || {
            // Its sockets are open; reading them also works if the kernel does not confine it.
            let _ = confinement::to(Work::Descriptors);
            server.run()
        })?;
        let path = socket.path().to_owned();
        let place = Place { link: link_name.clone(), name: name.clone(), path, two_way: *two_way };
        let name: Arc<str> = name.as_str().into();
        let inlet = Inlet { link: *link, name: name.clone(), two_way: *two_way, outlet };
        Ok((Feed { link: *link, name, place, handle, thread: Some(thread), _socket: socket }, inlet))
    }

    /// Their sockets.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.open.iter().map(|feed| &feed.place)
    }

    /// Their sockets, and how many writers each accepted and lost.
    pub fn connections(&self) -> impl Iterator<Item = (&Place, u64, u64)> {
        self.open.iter().map(|feed| {
            let counts = &feed.handle.shared.counts;
            let (came, went) = (counts.writers.load(Ordering::Relaxed), counts.gone.load(Ordering::Relaxed));
            (&feed.place, came, went)
        })
    }

    /// Information on writers.
    pub fn writers(&self) -> impl Iterator<Item = FeedWriters> {
        self.open.iter().map(|feed| {
            let counts = &feed.handle.shared.counts;
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            FeedWriters {
                link: feed.place.link.clone(),
                feed: feed.place.name.clone(),
                writers: of(&counts.writers),
                refused_writers: of(&counts.refused),
                malformed_writers: of(&counts.malformed),
                truncated_values: of(&counts.torn),
                unanswered: of(&counts.unanswered),
            }
        })
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.handle.end();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, nothing could be done about it.
            let _ = thread.join();
        }
    }
}
