//! The packet threads, from the director's side.
//!
//! Each thread receives orders through its own channel, with a wake-up call; all answers come back through one
//! channel.

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
    /// Returns the loop, whose ports are closed by the thread that started it.
    thread: Option<JoinHandle<Box<DataLoop>>>,
    pub(super) feeds: Option<FeedServers>,
    pub(super) backends: Vec<String>,
    pub(super) confined: bool,
    /// The total of its meters.
    pub(super) seen: Meter,
    /// The results of the scenario's own traffic, by index.
    pub(super) traffic: BTreeMap<u32, SourceMeter>,
    /// A cleared meter with allocated memory.
    spare: Option<Meter>,
    /// Its counters at the last sample, except those in `seen`.
    pub(super) last: Option<Box<Sampled>>,
    /// Since when a sample has been pending.
    pub(super) asked: Option<Time>,
    /// How many packets had exceeded each bound on lateness at the last check.
    pub(super) late: Vec<(narrows_core::Duration, u64)>,
    /// What its links have delivered recently.
    pub(super) recent: Recent,
}

impl WorkerPool {
    /// An empty pool.
    pub(super) fn new() -> io::Result<Self> {
        let (sender, answers) = mpsc::channel();
        Ok(Self { workers: Vec::new(), sender, answers, called: Arc::new(Waker::new()?) })
    }

    /// Adds a thread, created with its end of the channels.
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
            confined: false,
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

    /// The threads that have not been started.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = &mut DataLoop> {
        self.workers.iter_mut().filter_map(|worker| worker.waiting.as_deref_mut())
    }

    /// Starts all threads; each reports when it runs as configured.
    pub(super) fn start(&mut self, paces: impl Iterator<Item = Pace>) -> Result<(), LoopError> {
        for ((number, worker), pace) in self.workers.iter_mut().enumerate().zip(paces) {
            let leaving = Leaving { number, answers: self.sender.clone(), caller: self.called.clone() };
            worker.start(number, pace, leaving).map_err(LoopError::Thread)?;
        }
        Ok(())
    }

    /// Becomes readable when a thread has sent something.
    pub(super) fn called(&self) -> &Arc<Waker> {
        &self.called
    }

    /// Sends each an order; it reads it in its next turn.
    pub(super) fn tell(&self, mut order: impl FnMut(usize) -> Order) {
        for (number, worker) in self.workers.iter().enumerate() {
            worker.tell(order(number));
        }
    }

    /// Wakes sleeping threads.
    pub(super) fn call(&self) {
        self.workers.iter().for_each(Worker::call);
    }

    /// The next answer, if there is one, and its sender.
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
        // A thread that is gone has reported that.
        let _ = self.orders.send(order);
    }

    pub(super) fn call(&self) {
        self.called.wake();
    }

    /// A meter for it to continue with, at minimal cost to the thread.
    pub(super) fn meter(&mut self) -> Meter {
        self.spare.take().unwrap_or_else(|| self.seen.successor())
    }

    /// Takes its counters.
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
                // Its failure, if any, has been reported. Its ports are closed here, in the thread that has the right
                // to do so.
                let _ = thread.join();
            }
        }
    }
}

/// Reports the end of a thread, however it ends.
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
