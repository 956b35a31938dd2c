//! Where threads meet between two windows of virtual time.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use narrows_core::Time;

/// How often a thread looks for the others before it sleeps: some ten microseconds, as long as it takes to wake up.
const LOOKS: u32 = 2_000;
/// How long it sleeps at most before it looks whether another has died.
const NAP: Duration = Duration::from_millis(100);

/// How a thread wants the run to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// As before.
    GoOn = 0,
    /// It was told to stop.
    Stop = 1,
    /// It cannot go on.
    Fail = 2,
}

/// What threads tell each other at a meeting.
#[derive(Debug)]
struct Words {
    next: Vec<AtomicU64>,
    active: Vec<AtomicU64>,
    memory: Vec<AtomicU64>,
    steps: Vec<AtomicU64>,
    events: Vec<AtomicU64>,
    wish: AtomicU8,
}

/// What one thread says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// When something happens next there.
    pub(super) next: Time,
    /// When something other than a change of the timeline happened last.
    pub(super) active: Time,
    /// The most memory that packets have taken there since the last meeting.
    pub(super) memory: u64,
    /// The work that it has done since then.
    pub(super) steps: u64,
    /// Events that it keeps for the outputs.
    pub(super) events: u64,
    pub(super) wish: Wish,
}

/// All threads come to each meeting, and none goes on before all have come.
#[derive(Debug)]
pub(super) struct Meeting {
    threads: usize,
    come: AtomicUsize,
    meetings: AtomicU64,
    /// Threads that sleep, or are about to.
    sleepers: AtomicUsize,
    bed: (Mutex<()>, Condvar),
    /// A thread has died.
    broken: AtomicBool,
    /// Of this meeting and the next in turn: nobody speaks at the one after that before all have left this one.
    words: [Words; 2],
}

/// What was said at a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// When something happens next anywhere; never if the run is over.
    pub(super) next: Time,
    /// The latest of all.
    pub(super) active: Time,
    /// The sum of all.
    pub(super) memory: u64,
    /// The sum, and the most of one thread, for which the others have waited.
    pub(super) steps: (u64, u64),
    /// The sum.
    pub(super) events: u64,
    /// The strongest.
    pub(super) wish: Wish,
}

/// A thread has died, so that there are no meetings any more.
#[derive(Debug)]
pub(super) struct Broken;

impl Meeting {
    pub(super) fn new(threads: usize) -> Self {
        let numbers = || (0..threads).map(|_| AtomicU64::new(0)).collect();
        let words = || Words {
            next: numbers(),
            active: numbers(),
            memory: numbers(),
            events: numbers(),
            steps: numbers(),
            wish: AtomicU8::new(Wish::GoOn as u8),
        };
        Self {
            threads,
            come: AtomicUsize::new(0),
            meetings: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            bed: (Mutex::new(()), Condvar::new()),
            broken: AtomicBool::new(false),
            words: [words(), words()],
        }
    }

    /// A thread comes to the meeting with this number, counted from 0.
    pub(super) fn meet(&self, number: u64, thread: usize, word: Word) -> Result<Agreed, Broken> {
        let words = &self.words[(number % 2) as usize];
        words.next[thread].store(word.next.nanos(), Ordering::Relaxed);
        words.active[thread].store(word.active.nanos(), Ordering::Relaxed);
        words.memory[thread].store(word.memory, Ordering::Relaxed);
        words.events[thread].store(word.events, Ordering::Relaxed);
        words.steps[thread].store(word.steps, Ordering::Relaxed);
        words.wish.fetch_max(word.wish as u8, Ordering::Relaxed);
        // The last one to come lets all go, with all that was written before by any of them.
        if self.come.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.come.store(0, Ordering::Relaxed);
            // In one order with what a thread does before it sleeps: either it sees this, or it is seen here.
            self.meetings.store(number + 1, Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                drop(self.bed.0.lock());
                self.bed.1.notify_all();
            }
        } else {
            self.wait_for(number + 1)?;
        }
        let all = |numbers: &[AtomicU64]| {
            let loaded = numbers.iter().map(|number| number.load(Ordering::Relaxed));
            loaded.fold((0, u64::MAX, 0), |(sum, least, most), number| {
                (u64::wrapping_add(sum, number), number.min(least), number.max(most))
            })
        };
        let (_, next, _) = all(&words.next);
        let (_, _, active) = all(&words.active);
        let (memory, ..) = all(&words.memory);
        let (events, ..) = all(&words.events);
        let (sum, _, most) = all(&words.steps);
        let wish = match words.wish.load(Ordering::Relaxed) {
            0 => Wish::GoOn,
            1 => Wish::Stop,
            _ => Wish::Fail,
        };
        let (next, active) = (Time::from_nanos(next), Time::from_nanos(active));
        Ok(Agreed { next, active, memory, steps: (sum, most), events, wish })
    }

    fn wait_for(&self, meetings: u64) -> Result<(), Broken> {
        let has_met = |order| self.meetings.load(order) >= meetings;
        for _ in 0..LOOKS {
            if has_met(Ordering::Acquire) {
                return Ok(());
            }
            spin_loop();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut bed = self.bed.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !has_met(Ordering::SeqCst) && !self.broken.load(Ordering::Relaxed) {
            bed = self.bed.1.wait_timeout(bed, NAP).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(bed);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        if has_met(Ordering::Acquire) { Ok(()) } else { Err(Broken) }
    }

    /// A guard of a thread: if the thread panics, the others do not wait for it.
    pub(super) fn attend(&self) -> Attendance<'_> {
        Attendance(self)
    }
}

/// See [`Meeting::attend`].
#[derive(Debug)]
pub(super) struct Attendance<'a>(&'a Meeting);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn all_agree_at_each_meeting() {
        let meeting = Meeting::new(3);
        let come = |thread: usize| {
            let meeting = &meeting;
            move || {
                (0..20_000)
                    .map(|number| {
                        let next = Time::from_nanos(3 * number + (thread as u64 + number) % 3);
                        let own = number + thread as u64;
                        let word = Word {
                            next,
                            active: next,
                            memory: own,
                            steps: own,
                            events: own,
                            wish: Wish::GoOn,
                        };
                        meeting.meet(number, thread, word).unwrap()
                    })
                    .collect::<Vec<_>>()
            }
        };
        let agreed = |number: u64| Agreed {
            next: Time::from_nanos(3 * number),
            active: Time::from_nanos(3 * number + 2),
            memory: 3 * number + 3,
            events: 3 * number + 3,
            steps: (3 * number + 3, number + 2),
            wish: Wish::GoOn,
        };
        let expected: Vec<_> = (0..20_000).map(agreed).collect();
        thread::scope(|scope| {
            let all = [0, 1, 2].map(|thread| scope.spawn(come(thread)));
            for thread in all {
                assert!(thread.join().unwrap() == expected);
            }
        });
    }

    #[test]
    fn the_strongest_wish_counts_and_nobody_waits_for_the_dead() {
        let meeting = Meeting::new(2);
        let word = |wish| Word { next: Time::ZERO, active: Time::ZERO, memory: 1, steps: 1, events: 1, wish };
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _attendance = meeting.attend();
                let agreed = meeting.meet(0, 1, word(Wish::Stop)).unwrap();
                assert_eq!((agreed.memory, agreed.steps, agreed.wish), (2, (2, 1), Wish::Stop));
                // The thread dies; the message is of no interest.
                std::panic::resume_unwind(Box::new(()));
            });
            assert_eq!(meeting.meet(0, 0, word(Wish::GoOn)).unwrap().wish, Wish::Stop);
            assert!(meeting.meet(1, 0, word(Wish::GoOn)).is_err());
            assert!(other.join().is_err());
        });
    }
}
