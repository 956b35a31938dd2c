//! The questions of a two-way feed, between the engine and changing writers.
//!
//! The engine takes answers in the order of its questions, one for each, and discards answers that arrive after the
//! deadline of their question. So every question must be answered: by the writer that received it; or, if that one is
//! gone, by the next, which receives the open questions; or, if its deadline has passed and no writer received it, by
//! us, with an answer that is too late and decides nothing.

use std::collections::VecDeque;

use narrows_io::clock::MonotonicTime;

use super::channel::Asked;
use super::protocol::QUESTION;

/// The maximum number of open questions; beyond it, further ones stay in the engine.
const MOST: usize = 8192;

/// Unanswered questions, oldest first.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Open>,
    /// How many of them, at the front, were sent to the present writer, or skipped because their deadline had passed.
    told: usize,
    /// The expected number of the next one.
    next: u64,
}

#[derive(Debug)]
struct Open {
    until: MonotonicTime,
    /// The number of questions: one, or a run of questions that the engine could not hand out.
    count: u64,
    /// `None` for those.
    record: Option<[u8; QUESTION]>,
    /// It was sent to the present writer, which will answer.
    told: bool,
}

/// The result of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It answers the oldest question.
    Taken,
    /// Earlier questions must be [closed](Questions::close) first.
    NotYet,
    /// There is no question for it.
    Unasked,
}

impl Questions {
    /// An empty list; the first question will have this number.
    pub(super) fn from(first: u64) -> Self {
        Self { next: first, ..Self::default() }
    }

    /// Whether there is room for another question.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < MOST
    }

    /// Adds a question of the engine.
    pub(super) fn ask(&mut self, asked: Asked) {
        // The ones in between were never handed out: there was no room for them.
        let count = asked.number.saturating_sub(self.next);
        if count > 0 {
            self.open.push_back(Open { until: asked.until, count, record: None, told: false });
        }
        self.next = asked.number + 1;
        self.open.push_back(Open { until: asked.until, count: 1, record: Some(asked.record), told: false });
    }

    /// The next question for the present writer.
    pub(super) fn tell(&mut self, now: MonotonicTime) -> Option<[u8; QUESTION]> {
        while let Some(open) = self.open.get_mut(self.told) {
            let in_time = now <= open.until;
            if in_time && open.record.is_none() {
                // Nobody will answer it: an answer to a later one would have to wait.
                return None;
            }
            self.told += 1;
            if in_time {
                open.told = true;
                return open.record;
            }
        }
        None
    }

    /// The present writer answers the oldest question sent to it.
    pub(super) fn answer(&mut self) -> Answered {
        match self.open.iter().take(self.told).position(|open| open.told) {
            None => Answered::Unasked,
            Some(0) => {
                self.open.pop_front();
                self.told -= 1;
                Answered::Taken
            }
            Some(_) => Answered::NotYet,
        }
    }

    /// How many questions await the present writer's answer.
    pub(super) fn waiting(&self) -> usize {
        self.open.iter().take(self.told).filter(|open| open.told).count()
    }

    /// The writer is gone: its unanswered questions are open to the next.
    pub(super) fn forget_writer(&mut self) {
        self.told = 0;
        self.open.iter_mut().for_each(|open| open.told = false);
    }

    /// Closes up to `most` questions whose deadline has passed and that nobody will answer, as long as none before
    /// them will be answered. Returns how many.
    pub(super) fn close(&mut self, now: MonotonicTime, most: usize) -> usize {
        let mut left = most as u64;
        while let Some(open) = self.open.front_mut().filter(|open| !open.told && open.until < now) {
            let count = open.count.min(left);
            open.count -= count;
            left -= count;
            if open.count > 0 {
                break;
            }
            self.open.pop_front();
            self.told = self.told.saturating_sub(1);
        }
        most - left as usize // no more than `most`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(nanos)
    }

    fn question(number: u64, until: u64) -> Asked {
        Asked { number, until: at(until), record: [number as u8; QUESTION] }
    }

    #[test]
    fn a_writer_answers_in_order_what_it_was_told() {
        let mut questions = Questions::default();
        assert_eq!(questions.answer(), Answered::Unasked);
        (0..3).for_each(|number| questions.ask(question(number, 100)));
        assert_eq!(questions.answer(), Answered::Unasked, "not told yet");
        assert_eq!(questions.tell(at(1)), Some([0; QUESTION]));
        assert_eq!(questions.tell(at(1)), Some([1; QUESTION]));
        assert_eq!(questions.waiting(), 2);
        assert_eq!(questions.answer(), Answered::Taken);
        assert_eq!(questions.tell(at(1)), Some([2; QUESTION]));
        assert_eq!(questions.tell(at(1)), None);
        // However late: the engine knows that it is.
        assert_eq!(questions.close(at(1000), 10), 0);
        assert_eq!(questions.answer(), Answered::Taken);
        assert_eq!(questions.answer(), Answered::Taken);
        assert_eq!(questions.answer(), Answered::Unasked);
    }

    #[test]
    fn the_next_writer_is_told_what_is_still_open() {
        let mut questions = Questions::default();
        (0..3).for_each(|number| questions.ask(question(number, 10 * (number + 1))));
        assert!((0..3).all(|_| questions.tell(at(1)).is_some()));
        questions.forget_writer();
        assert_eq!(questions.waiting(), 0);
        // The first one's time is over at 15.
        assert_eq!(questions.tell(at(15)), Some([1; QUESTION]));
        assert_eq!(questions.answer(), Answered::NotYet);
        assert_eq!(questions.close(at(15), 10), 1);
        assert_eq!(questions.answer(), Answered::Taken);
        assert_eq!(questions.tell(at(15)), Some([2; QUESTION]));
        assert_eq!(questions.waiting(), 1);
    }

    #[test]
    fn what_nobody_answers_is_closed_after_its_time_in_order() {
        let mut questions = Questions::default();
        (0..4).for_each(|number| questions.ask(question(number, 10)));
        assert_eq!(questions.close(at(10), 10), 0, "its last moment");
        assert_eq!(questions.close(at(11), 3), 3);
        assert_eq!(questions.close(at(11), 3), 1);
        assert_eq!(questions.answer(), Answered::Unasked);
    }

    #[test]
    fn questions_that_were_never_handed_out_are_closed_too() {
        let mut questions = Questions::default();
        questions.ask(question(0, 10));
        questions.ask(question(3, 10));
        assert_eq!(questions.tell(at(1)), Some([0; QUESTION]));
        assert_eq!(questions.tell(at(1)), None, "those before it must be closed");
        questions.ask(question(4, 20));
        assert_eq!(questions.tell(at(11)), Some([4; QUESTION]));
        assert_eq!(questions.answer(), Answered::Taken);
        assert_eq!(questions.answer(), Answered::NotYet);
        assert_eq!((questions.close(at(11), 1), questions.close(at(11), 10)), (1, 2), "1; 2 and 3");
        assert_eq!(questions.answer(), Answered::Taken);
    }
}
