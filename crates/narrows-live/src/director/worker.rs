//! The packet threads, as the director sees them.
//!
//! What they are told goes to each by a channel, with a call that wakes it; what they answer comes back by one channel for
//! all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::{io, mem};

use narrows_core::Time;
use narrows_io::waker::Waker;
use narrows_report::{Meter, Recent, SourceMeter};

use crate::data::orders::{Answer, Inbox, Order};
use crate::data::pace::Pace;
use crate::data::sample::Sampled;
use crate::data::{DataLoop, LoopError};
use crate::feeds::FeedServers;

/// All packet threads.
pub(super) struct WorkerPool {
    pub(super) workers: Vec<Worker>,
    sender: Sender<(usize, Answer)>,
    answers: Receiver<(usize, Answer)>,
    called: Arc<Waker>,
}

/// A packet thread.
pub(super) struct Worker {
    orders: Sender<Order>,
    called: Arc<Waker>,
    /// Until it is started.
    waiting: Option<Box<DataLoop>>,
    /// Gives back the loop, whose ports are closed by who started it.
    thread: Option<JoinHandle<Box<DataLoop>>>,
    pub(super) feeds: Option<FeedServers>,
    pub(super) backends: Vec<String>,
    /// What its meters have seen in all.
    pub(super) seen: Meter,
    /// What became of the scenario's own traffic, by its places.
    pub(super) traffic: BTreeMap<u32, SourceMeter>,
    /// One of these meters, with nothing in it but room.
    spare: Option<Meter>,
    /// What it had counted when it was last asked, but for what is in `seen`.
    pub(super) last: Option<Box<Sampled>>,
    /// Since when a sample is awaited.
    pub(super) asked: Option<Time>,
    /// How many packets it had released later than each bound when that was last looked at.
    pub(super) late: Vec<(narrows_core::Duration, u64)>,
    /// What its links have let out of late.
    pub(super) recent: Recent,
}

impl WorkerPool {
    /// None yet.
    pub(super) fn new() -> io::Result<Self> {
        let (sender, answers) = mpsc::channel();
        Ok(Self { workers: Vec::new(), sender, answers, called: Arc::new(Waker::new()?) })
    }

    /// Adds one, which is made with its end of the channels.
    pub(super) fn add(&mut self, make: impl FnOnce(Inbox) -> DataLoop) -> io::Result<()> {
        let (orders, received) = mpsc::channel();
        let called = Arc::new(Waker::new()?);
        let data = make(Inbox {
            number: self.workers.len(),
            orders: received,
            called: called.clone(),
            answers: self.sender.clone(),
            caller: self.called.clone(),
        });
        let seen = data.meter.successor();
        self.workers.push(Worker {
            orders,
            called,
            waiting: Some(Box::new(data)),
            thread: None,
            feeds: None,
            backends: Vec::new(),
            seen,
            traffic: BTreeMap::new(),
            spare: None,
            last: None,
            asked: None,
            late: Vec::new(),
            recent: Recent::default(),
        });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Those that are not started yet.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = &mut DataLoop> {
        self.workers.iter_mut().filter_map(|worker| worker.waiting.as_deref_mut())
    }

    /// Starts them all; each says when it runs as it should.
    pub(super) fn start(&mut self, paces: impl Iterator<Item = Pace>) -> Result<(), LoopError> {
        for ((number, worker), pace) in self.workers.iter_mut().enumerate().zip(paces) {
            let leaving = Leaving { number, answers: self.sender.clone(), caller: self.called.clone() };
            worker.start(number, pace, leaving).map_err(LoopError::Thread)?;
        }
        Ok(())
    }

    /// Becomes readable when one of them has something to say.
    pub(super) fn called(&self) -> &Arc<Waker> {
        &self.called
    }

    /// Tells each of them; it hears of it in its next turn.
    pub(super) fn tell(&self, mut order: impl FnMut(usize) -> Order) {
        for (number, worker) in self.workers.iter().enumerate() {
            worker.tell(order(number));
        }
    }

    /// Wakes those that sleep.
    pub(super) fn call(&self) {
        self.workers.iter().for_each(Worker::call);
    }

    /// The next answer, if there is one, and whose it is.
    pub(super) fn next(&self) -> Option<(usize, Answer)> {
        self.called.clear();
        let answer = self.answers.try_recv().ok()?;
        // There may be more.
        self.called.wake();
        Some(answer)
    }
}

impl Worker {
    fn start(&mut self, number: usize, pace: Pace, leaving: Leaving) -> io::Result<()> {
        let Some(mut data) = self.waiting.take() else { return Ok(()) };
        let thread = thread::Builder::new().name(format!("packets {number}"));
        self.thread = Some(thread.spawn(move || {
            let leaving = leaving;
            if let Err(error) = data.serve(pace) {
                let _ = leaving.answers.send((number, Answer::Failed(error)));
            }
            data
        })?);
        Ok(())
    }

    pub(super) fn tell(&self, order: Order) {
        // One that is gone has said so.
        let _ = self.orders.send(order);
    }

    pub(super) fn call(&self) {
        self.called.wake();
    }

    /// A meter for it to go on with, which costs it as little as can be.
    pub(super) fn meter(&mut self) -> Meter {
        self.spare.take().unwrap_or_else(|| self.seen.successor())
    }

    /// Takes what it has counted.
    pub(super) fn take(&mut self, mut sampled: Box<Sampled>) {
        let mut meter = mem::replace(&mut sampled.meter, Meter::new(0));
        self.seen.add(&meter);
        meter.clear();
        self.spare = Some(meter);
        for (place, counted) in sampled.traffic.sources.drain(..) {
            self.traffic.entry(place).or_default().add(&counted);
        }
        self.last = Some(sampled);
        self.asked = None;
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.tell(|_| Order::Quit);
        self.call();
        for worker in &mut self.workers {
            // Before its loop: nobody takes their values any more.
            worker.feeds = None;
            if let Some(thread) = worker.thread.take() {
                // Why it broke off, if it did, has been said. Its ports are closed here, where the right to do so is.
                let _ = thread.join();
            }
        }
    }
}

/// Says so when a thread ends, however it does.
struct Leaving {
    number: usize,
    answers: Sender<(usize, Answer)>,
    caller: Arc<Waker>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let _ = self.answers.send((self.number, Answer::Gone));
        self.caller.wake();
    }
}
