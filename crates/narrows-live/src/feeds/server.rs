//! The thread of a feed: one socket, one writer at a time.
//!
//! It waits in the kernel: for a writer, for its bytes, for its reading of our answers; and where the lead is full, by a
//! timer for as long as the values will last, or until the packet loop calls. It never waits for a writer to do
//! something: a slow one, one that does not read, or one byte at a time only makes this thread sleep.

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

/// Connections taken in a row; then those that come have to wait, so that a flood of them leaves the processor alone.
const WELCOMES: usize = 16;
const REST: Duration = Duration::from_millis(10);
/// Reads in a row before the thread looks around.
const ROUNDS: usize = 8;
/// While this many bytes of answers wait for their reader, nothing more is read from it.
const MOST_UNREAD: usize = 8192;
/// While this many do, it is told no more questions.
const MOST_TOLD: usize = 4096;

/// The thread's state.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    intake: Intake,
    /// Calls this thread.
    waker: Arc<Waker>,
    /// The two-way form.
    two_way: Option<TwoWay>,
    pace: Pace,
    writer: Option<Writer>,
    /// Somebody may be at the door.
    knocks: bool,
    /// The writer is gone, but not all it sent has been taken: the next one waits until then.
    successor_waits: bool,
    /// Nobody is let in before this.
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
    /// There is none, or no more.
    Nobody,
    /// It has sent no more.
    Empty,
    /// It does not read what it is told.
    Deaf,
    /// There is no room.
    Full(Full),
    /// There is more to do.
    Busy,
}

/// When a writer for whose values there is no room can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Full {
    /// A timer is set for when no more than so many values wait at the pace of late.
    nap_until: usize,
    /// The packet loop calls when no more than so many do.
    call_at: usize,
}

impl Server {
    /// Serves `listener`, which must not block. For the two-way form, `asks` calls the packet loop, and has the number of
    /// the first question.
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

    /// Until the loop says that it is over.
    pub(super) fn run(mut self) {
        while !self.intake.is_over() {
            self.welcome();
            self.take_questions();
            let halt = self.converse();
            if halt != Halt::Busy && self.sleep(halt).is_err() {
                // Waiting fails only where the kernel has no memory left for it.
                std::thread::sleep(std::time::Duration::from_nanos(REST.nanos()));
            }
        }
        if let Some(mut writer) = self.writer.take() {
            writer.say(Answer::Over);
        }
        // Those at the door want to know, too.
        let at_the_door = std::iter::from_fn(|| self.listener.accept().ok()).take(WELCOMES);
        for mut writer in at_the_door.filter_map(|(stream, _)| Writer::new(stream).ok()) {
            writer.say(Answer::Over);
        }
    }

    /// Lets a writer in, and sends others away.
    fn welcome(&mut self) {
        if !self.knocks || clock_monotonic() < self.rests_until {
            return;
        }
        for _ in 0..WELCOMES {
            // Whoever comes after a writer that is gone waits at the door until all that one sent has been taken.
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
                // No descriptor is left, or whoever knocked is gone.
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

    /// Does for the writer what can be done without waiting.
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
                // The next one may be at the door.
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
                    // It is no torn value.
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

    /// Takes the messages that are there, in order. Gives how many values more there is room for; or why it cannot go
    /// on, which is [`Halt::Nobody`] for what is no message.
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
                    // There is room: in the ring for all of the lead, in the engine for each answer.
                    self.intake.give(Stamped { at: now, value });
                }
                Message::Room => writer.answer(Answer::Room(room as u64)),
                Message::Wake(level) => {
                    // More than there ever is would mean never.
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

    /// Takes new questions from the engine, closes those that nobody will answer, and tells the writer the others.
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

    /// Waits until there is something to do.
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

    /// Until when the values will last that are too many.
    fn nap(&self, full: Full, now: MonotonicTime) -> Option<MonotonicTime> {
        let count = self.intake.waiting().saturating_sub(full.nap_until);
        let nap = self.pace.nap(now.as_nanos(), self.intake.asked(), count as u64)?;
        Some(later(now, nap))
    }
}

/// Answers questions whose time is over and that nobody was told, so that the answers of others stay in step.
fn close(questions: &mut Questions, intake: &mut Intake, now: MonotonicTime) {
    for _ in 0..questions.close(now, intake.slots().saturating_sub(1)) {
        Counts::add(&intake.shared.counts.unanswered);
        intake.give(Stamped { at: now, value: 0 });
    }
}

impl Full {
    /// For a writer that just writes: half of the lead is to be used up before it goes on, so that it does in strides;
    /// three quarters when that was sooner than expected.
    fn of(allowed: usize) -> Self {
        Self { nap_until: allowed / 2, call_at: allowed / 4 }
    }

    /// For a writer that asked to be told.
    fn below(waiting: usize) -> Self {
        Self { nap_until: waiting, call_at: waiting }
    }

    /// For answers that others must go before.
    fn soon(waiting: usize) -> Self {
        Self::below(waiting.saturating_sub(1))
    }
}

fn later(now: MonotonicTime, by: Duration) -> MonotonicTime {
    MonotonicTime::from_nanos(now.as_nanos().saturating_add(by.nanos()))
}

#[cfg(test)]
mod tests;
