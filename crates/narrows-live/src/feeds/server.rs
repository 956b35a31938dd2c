//! The thread of a feed: one socket, one writer at a time.
//!
//! It waits in the kernel: for a writer, for its bytes, for it to read our answers; and, if the lead is full, on a
//! timer for as long as the values will last, or until the packet loop calls. It never waits for a particular action
//! of a writer: a slow writer, one that does not read, or one that sends single bytes only makes this thread sleep.

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use narrows_core::Duration;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::wait::{Waiting, wait};
use narrows_io::waker::Waker;

use super::channel::{Counts, Intake, Stamped};
use super::lead::Pace;
use super::protocol::{Answer, Decoded, Message, decode};
use super::questions::{Answered, Questions};
use super::writer::{Read, Writer};

/// The maximum number of connections accepted in a row; others wait, so that a flood of them does not use up the
/// processor.
const WELCOMES: usize = 16;
const REST: Duration = Duration::from_millis(10);
/// The maximum number of reads in a row before other work is checked.
const ROUNDS: usize = 8;
/// While this many bytes of answers are unread, nothing more is read from the writer.
const MOST_UNREAD: usize = 8192;
/// While this many bytes of answers are unread, no more questions are sent to it.
const MOST_TOLD: usize = 4096;

/// The thread's state.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    intake: Intake,
    /// Calls this thread.
    waker: Arc<Waker>,
    /// The state of a two-way feed.
    two_way: Option<TwoWay>,
    pace: Pace,
    writer: Option<Writer>,
    /// A connection may be pending.
    knocks: bool,
    /// The writer is gone, but not everything it sent has been taken: the next one waits until then.
    successor_waits: bool,
    /// No connection is accepted before this.
    rests_until: MonotonicTime,
}

#[derive(Debug)]
struct TwoWay {
    questions: Questions,
    /// Calls the packet loop.
    caller: Arc<Waker>,
}

/// Why nothing more can be done for the writer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// There is no writer, or no longer.
    Nobody,
    /// It has sent nothing more.
    Empty,
    /// It does not read its answers.
    Deaf,
    /// There is no room.
    Full(Full),
    /// There is more to do.
    Busy,
}

/// When a writer whose values have no room can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Full {
    /// A timer is set for when this number of queued values will be left at the recent rate.
    nap_until: usize,
    /// The packet loop calls when this number is left.
    call_at: usize,
}

impl Server {
    /// Serves `listener`, which must be non-blocking. For a two-way feed, `asks` calls the packet loop, and has the
    /// number of the first question.
    pub(super) fn new(
        listener: UnixListener,
        intake: Intake,
        waker: Arc<Waker>,
        asks: Option<(Arc<Waker>, u64)>,
    ) -> Self {
        Self {
            listener,
            intake,
            waker,
            two_way: asks.map(|(caller, first)| TwoWay { questions: Questions::from(first), caller }),
            pace: Pace::new(clock_monotonic().as_nanos()),
            writer: None,
            knocks: true,
            successor_waits: false,
            rests_until: MonotonicTime::default(),
        }
    }

    /// Runs until the loop says that it is over.
    pub(super) fn run(mut self) {
        while !self.intake.is_over() {
            self.welcome();
            self.take_questions();
            let halt = self.converse();
            if halt != Halt::Busy && self.sleep(halt).is_err() {
                // Waiting only fails if the kernel has no memory for it.
                std::thread::sleep(std::time::Duration::from_nanos(REST.nanos()));
            }
        }
        if let Some(mut writer) = self.writer.take() {
            writer.say(Answer::Over);
        }
        // Pending connections get the message, too.
        let at_the_door = std::iter::from_fn(|| self.listener.accept().ok()).take(WELCOMES);
        for mut writer in at_the_door.filter_map(|(stream, _)| Writer::new(stream).ok()) {
            writer.say(Answer::Over);
        }
    }

    /// Accepts a writer, and refuses others.
    fn welcome(&mut self) {
        if !self.knocks || clock_monotonic() < self.rests_until {
            return;
        }
        for _ in 0..WELCOMES {
            // The successor of a writer that is gone waits until everything that one sent has been taken.
            self.successor_waits = self.writer.as_ref().is_some_and(Writer::is_gone);
            if self.successor_waits {
                return;
            }
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.knocks = false;
                    return;
                }
                // No descriptor is left, or the client is gone.
                Err(_) => break,
            };
            let Ok(mut writer) = Writer::new(stream) else { continue };
            if self.writer.is_some() {
                Counts::add(&self.intake.shared.counts.refused);
                writer.say(Answer::Refused);
            } else {
                Counts::add(&self.intake.shared.counts.writers);
                self.writer = Some(writer);
            }
        }
        self.rests_until = later(clock_monotonic(), REST);
    }

    /// Does everything for the writer that is possible without waiting.
    fn converse(&mut self) -> Halt {
        let Some(mut writer) = self.writer.take() else { return Halt::Nobody };
        match self.listen_to(&mut writer) {
            Halt::Nobody => {
                Counts::add(&self.intake.shared.counts.gone);
                if !writer.unread.is_empty() {
                    Counts::add(&self.intake.shared.counts.torn);
                }
                if let Some(two_way) = &mut self.two_way {
                    two_way.questions.forget_writer();
                }
                // The next one may be pending.
                self.successor_waits = false;
                self.knocks = true;
                Halt::Busy
            }
            halt => {
                self.writer = Some(writer);
                halt
            }
        }
    }

    fn listen_to(&mut self, writer: &mut Writer) -> Halt {
        for _ in 0..ROUNDS {
            writer.send();
            if writer.answers.len() >= MOST_UNREAD {
                return Halt::Deaf;
            }
            let room = match self.take_messages(writer) {
                Ok(room) => room,
                Err(Halt::Nobody) => {
                    Counts::add(&self.intake.shared.counts.malformed);
                    writer.say(Answer::Malformed);
                    // Not an incomplete value.
                    writer.unread.clear();
                    return Halt::Nobody;
                }
                Err(halt) => return halt,
            };
            match writer.read(room) {
                Read::Some => {}
                Read::Nothing => {
                    writer.send();
                    return if writer.answers.is_empty() { Halt::Empty } else { Halt::Deaf };
                }
                Read::End => return Halt::Nobody,
            }
        }
        Halt::Busy
    }

    /// Processes the complete messages, in order. Returns how many more values there is room for; or why it cannot
    /// continue, which is [`Halt::Nobody`] if something is not a message.
    fn take_messages(&mut self, writer: &mut Writer) -> Result<usize, Halt> {
        let now = clock_monotonic();
        let (asked, lead) = (self.intake.asked(), self.intake.lead());
        self.pace.mark(now.as_nanos(), asked, lead);
        let allowed = self.pace.allowed(now.as_nanos(), asked, lead).max(1);
        let mut room = match &self.two_way {
            None => allowed.saturating_sub(self.intake.waiting()).min(self.intake.slots()),
            Some(two_way) => two_way.questions.waiting(),
        };
        let mut has_answered = false;
        let mut at = 0;
        let result = loop {
            let (message, length) = match decode(&writer.unread[at..]) {
                Decoded::Whole(message, length) => (message, length),
                Decoded::Part => break Ok(room),
                Decoded::Malformed => break Err(Halt::Nobody),
            };
            match message {
                Message::Value(value) => {
                    if let Some(two_way) = &mut self.two_way {
                        close(&mut two_way.questions, &mut self.intake, now);
                        match two_way.questions.answer() {
                            Answered::Taken => has_answered = true,
                            Answered::NotYet => break Err(Halt::Full(Full::soon(self.intake.waiting()))),
                            Answered::Unasked => break Err(Halt::Nobody),
                        }
                    } else if room == 0 {
                        break Err(Halt::Full(Full::of(allowed)));
                    }
                    room = room.saturating_sub(1);
                    // There is room: in the ring for the whole lead, in the engine for each answer.
                    self.intake.give(Stamped { at: now, value });
                }
                Message::Room => writer.answer(Answer::Room(room as u64)),
                Message::Wake(level) => {
                    // A level above the maximum would never be reached.
                    let level = usize::try_from(level).unwrap_or(usize::MAX).min(allowed);
                    if self.two_way.is_none() && room < level {
                        break Err(Halt::Full(Full::below(allowed - level)));
                    }
                    writer.answer(Answer::Room(room as u64));
                }
            }
            at += length;
        };
        writer.unread.drain(..at);
        if let Some(two_way) = self.two_way.as_ref().filter(|_| has_answered) {
            two_way.caller.wake();
        }
        result
    }

    /// Takes new questions from the engine, closes those that nobody will answer, and sends the others to the writer.
    fn take_questions(&mut self) {
        let Some(TwoWay { questions, .. }) = &mut self.two_way else { return };
        let now = clock_monotonic();
        while questions.has_room()
            && let Ok(asked) = self.intake.questions.pop()
        {
            questions.ask(asked);
        }
        close(questions, &mut self.intake, now);
        if let Some(writer) = &mut self.writer {
            while writer.answers.len() < MOST_TOLD
                && let Some(record) = questions.tell(now)
            {
                writer.answers.extend_from_slice(&record);
            }
        }
    }

    /// Waits until there is work.
    fn sleep(&mut self, halt: Halt) -> io::Result<()> {
        let now = clock_monotonic();
        let mut deadline = None;
        let mut waiting = vec![Waiting::readable(&self.waker)];
        let listens = !self.successor_waits && now >= self.rests_until;
        if listens {
            waiting.push(Waiting::readable(&self.listener));
        } else if !self.successor_waits {
            deadline = Some(self.rests_until);
        }
        if let Some(writer) = &self.writer {
            match halt {
                Halt::Empty => waiting.push(Waiting::readable(&writer.stream)),
                Halt::Deaf => {
                    waiting.push(Waiting::writable(&writer.stream));
                    if writer.answers.len() < MOST_UNREAD {
                        waiting.push(Waiting::readable(&writer.stream));
                    }
                }
                Halt::Full(full) => {
                    let nap = self.nap(full, now);
                    deadline = deadline.into_iter().chain(nap).min();
                    if !self.intake.wants_call(full.call_at) {
                        return Ok(());
                    }
                }
                Halt::Nobody | Halt::Busy => {}
            }
        }
        wait(&mut waiting, deadline)?;
        let called = waiting[0].is_ready();
        self.knocks |= if listens { waiting[1].is_ready() } else { !self.successor_waits };
        self.intake.is_awake();
        if called {
            self.waker.clear();
        }
        Ok(())
    }

    /// The instant at which, at the recent rate, enough values will have been used up.
    fn nap(&self, full: Full, now: MonotonicTime) -> Option<MonotonicTime> {
        let count = self.intake.waiting().saturating_sub(full.nap_until);
        let nap = self.pace.nap(now.as_nanos(), self.intake.asked(), count as u64)?;
        Some(later(now, nap))
    }
}

/// Answers questions whose deadline has passed and that were not sent to a writer, so that other answers stay in
/// order.
fn close(questions: &mut Questions, intake: &mut Intake, now: MonotonicTime) {
    for _ in 0..questions.close(now, intake.slots().saturating_sub(1)) {
        Counts::add(&intake.shared.counts.unanswered);
        intake.give(Stamped { at: now, value: 0 });
    }
}

impl Full {
    /// For a writer that writes without asking: half of the lead must be used up before it continues, so that it
    /// works in chunks; three quarters if that took less time than expected.
    fn of(allowed: usize) -> Self {
        Self { nap_until: allowed / 2, call_at: allowed / 4 }
    }

    /// For a writer that asked to be told.
    fn below(waiting: usize) -> Self {
        Self { nap_until: waiting, call_at: waiting }
    }

    /// For answers that must wait for others.
    fn soon(waiting: usize) -> Self {
        Self::below(waiting.saturating_sub(1))
    }
}

fn later(now: MonotonicTime, by: Duration) -> MonotonicTime {
    MonotonicTime::from_nanos(now.as_nanos().saturating_add(by.nanos()))
}

#[cfg(test)]
mod tests;
