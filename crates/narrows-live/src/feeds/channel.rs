//! Connects the packet loop and the thread of a feed: two lock-free rings, and a few counters.
//!
//! The thread records the arrival time of each value, so the loop can hand it in with that instant, however late it
//! reads it. The loop reports in [`Shared`] how far its packets have got, by memory stores only. The thread sleeps on
//! a timer for as long as values will last at the recent rate; the loop calls it ([`Outlet::call`], between turns)
//! only if they are used up sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use narrows_core::Duration;
use narrows_io::clock::MonotonicTime;
use narrows_io::waker::Waker;
use rtrb::{Consumer, Producer, RingBuffer};

use super::call::Call;
use super::lead::Lead;
use super::protocol::QUESTION;

/// The maximum number of questions in transit to the thread; further ones are not asked.
const QUESTIONS: usize = 4096;

/// A value, with its arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamped {
    /// On the monotonic clock.
    pub(super) at: MonotonicTime,
    /// Nanoseconds, or −1.
    pub(super) value: i64,
}

/// A packet that needs its delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its number among the questions of the feed, from 0.
    pub(super) number: u64,
    /// The deadline of the answer.
    pub(super) until: MonotonicTime,
    /// As sent to the writer.
    pub(super) record: [u8; QUESTION],
}

/// What both sides see.
#[derive(Debug)]
pub(super) struct Shared {
    /// The maximum number of values in the ring and the engine together.
    lead: AtomicUsize,
    /// The same in time, in nanoseconds; 0 if it is only in values.
    span: AtomicU64,
    /// How many values are gone, and when the thread wants to be called.
    call: Call,
    /// How many values packets have needed, whether or not there was one.
    asked: AtomicU64,
    /// The run is over, or the feed has been removed.
    over: AtomicBool,
    /// What the thread counts.
    pub(super) counts: Counts,
}

/// The thread's counters of writers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Writers accepted.
    pub(super) writers: AtomicU64,
    /// Writers disconnected.
    pub(super) gone: AtomicU64,
    /// Writers refused, because there was one already.
    pub(super) refused: AtomicU64,
    /// Writers disconnected because of what they sent.
    pub(super) malformed: AtomicU64,
    /// Incomplete values, because the writer disconnected.
    pub(super) torn: AtomicU64,
    /// Questions that no writer answered, which were closed after their deadline.
    pub(super) unanswered: AtomicU64,
}

impl Counts {
    /// Adds one; these counters order nothing.
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The packet loop's end.
#[derive(Debug)]
pub(super) struct Outlet {
    values: Consumer<Stamped>,
    questions: Producer<Asked>,
    /// Values taken out of the ring.
    taken: u64,
    /// Whether a question was sent since the thread was last called.
    has_asked: bool,
    /// What both see.
    pub(super) shared: Arc<Shared>,
    /// Calls the thread.
    waker: Arc<Waker>,
}

/// Controls the thread, apart from the packet loop's end, whose turns it does not disturb.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    waker: Arc<Waker>,
    /// The capacity of the ring.
    capacity: usize,
}

/// The thread's end.
#[derive(Debug)]
pub(super) struct Intake {
    values: Producer<Stamped>,
    /// From the packet loop.
    pub(super) questions: Consumer<Asked>,
    /// Values put into the ring.
    given: u64,
    /// What both see.
    pub(super) shared: Arc<Shared>,
}

/// Creates both ends, for at most `capacity` queued values.
pub(super) fn channel(capacity: usize, lead: Lead, waker: Arc<Waker>) -> (Outlet, Intake) {
    let (into, out) = RingBuffer::new(capacity.max(1));
    let (ask, asked) = RingBuffer::new(QUESTIONS);
    let shared = Arc::new(Shared {
        lead: AtomicUsize::new(1),
        span: AtomicU64::new(0),
        call: Call::new(),
        asked: AtomicU64::new(0),
        over: AtomicBool::new(false),
        counts: Counts::default(),
    });
    let outlet =
        Outlet { values: out, questions: ask, taken: 0, has_asked: false, shared: shared.clone(), waker };
    outlet.handle().set_lead(lead);
    (outlet, Intake { values: into, questions: asked, given: 0, shared })
}

impl Outlet {
    /// Whether the ring has values. No system call.
    pub(super) fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Takes values out of the ring, oldest first, up to `most`, of those that had arrived by `until`. No system
    /// call.
    pub(super) fn take(&mut self, until: MonotonicTime, most: usize, mut each: impl FnMut(Stamped)) {
        let ready = self.values.slots().min(most);
        if ready == 0 {
            return;
        }
        let Ok(chunk) = self.values.read_chunk(ready) else { return };
        let (first, second) = chunk.as_slices();
        let mut count = 0;
        for &stamped in first.iter().chain(second).take_while(|stamped| stamped.at <= until) {
            each(stamped);
            count += 1;
        }
        chunk.commit(count);
        self.taken += count as u64;
    }

    /// Reports how far packets have got: how many values are queued in the engine and how many were needed. No system
    /// call.
    pub(super) fn tell(&self, waiting: usize, asked: u64) {
        self.shared.asked.store(asked, Ordering::Relaxed);
        self.shared.call.tell(self.taken.saturating_sub(waiting as u64));
    }

    /// Passes a question on, or returns that there is no room. No system call.
    pub(super) fn ask(&mut self, question: Asked) -> bool {
        let fits = self.questions.push(question).is_ok();
        self.has_asked |= fits;
        fits
    }

    /// Calls the thread if it wants it: a system call, but only if a lead was used up faster than recently, or there
    /// are questions.
    pub(super) fn call(&mut self) {
        if self.shared.call.is_due() || self.has_asked {
            self.has_asked = false;
            self.waker.wake();
        }
    }

    /// What directs the thread.
    pub(super) fn handle(&self) -> Handle {
        let capacity = self.values.buffer().capacity();
        Handle { shared: self.shared.clone(), waker: self.waker.clone(), capacity }
    }
}

impl Handle {
    /// Sets how many values may be queued, as far as the ring has room.
    pub(super) fn set_lead(&self, lead: Lead) {
        let (most, span) = match lead {
            Lead::Values(most) => (most, Duration::ZERO),
            Lead::Span(span, most) => (most, span.max(Duration::from_nanos(1))),
        };
        self.shared.lead.store(most.clamp(1, self.capacity), Ordering::Relaxed);
        self.shared.span.store(span.nanos(), Ordering::Relaxed);
    }

    /// Tells the thread to end.
    pub(super) fn end(&self) {
        self.shared.over.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Intake {
    /// Puts a value into the ring, if there is room.
    pub(super) fn give(&mut self, stamped: Stamped) -> bool {
        let fits = self.values.push(stamped).is_ok();
        self.given += u64::from(fits);
        fits
    }

    /// How many more values the ring itself can hold.
    pub(super) fn slots(&self) -> usize {
        self.values.slots()
    }

    /// How many values are queued for packets.
    pub(super) fn waiting(&self) -> usize {
        let waiting = self.given.saturating_sub(self.shared.call.gone());
        usize::try_from(waiting).unwrap_or(usize::MAX)
    }

    /// How many values packets have needed.
    pub(super) fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// How many values may be queued.
    pub(super) fn lead(&self) -> Lead {
        let most = self.shared.lead.load(Ordering::Relaxed);
        match self.shared.span.load(Ordering::Relaxed) {
            0 => Lead::Values(most),
            span => Lead::Span(Duration::from_nanos(span), most),
        }
    }

    /// Whether to end.
    pub(super) fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// Requests a call when at most `waiting` values are queued; or returns that this is already so.
    pub(super) fn wants_call(&self, waiting: usize) -> bool {
        self.shared.call.want(self.given.saturating_sub(waiting as u64))
    }

    /// Cancels the request for a call.
    pub(super) fn is_awake(&self) {
        self.shared.call.cancel();
    }
}
