//! A query and its response, one datagram each.

use narrows_core::Time;
use narrows_scenario::Query;

use super::scene::{Kind, Outcome, Scene, Side, span};

#[derive(Debug)]
pub(super) struct QuerySession {
    query: Query,
    begun: Time,
    /// How often it was sent.
    asked: u32,
    /// How often it arrived at the server.
    questions: u32,
    /// When it is retransmitted or given up.
    next: Option<Time>,
    /// When the server responds.
    answers: Vec<Time>,
    outcome: Option<Outcome>,
}

impl QuerySession {
    pub(super) fn begin(query: &Query, scene: &mut Scene<'_>) -> Self {
        let mut session = Self {
            query: query.clone(),
            begun: scene.now,
            asked: 0,
            questions: 0,
            next: None,
            answers: Vec::new(),
            outcome: None,
        };
        session.ask(scene);
        session
    }

    fn ask(&mut self, scene: &mut Scene<'_>) {
        scene.datagram(Side::Client, Kind::Request, self.asked, self.query.request);
        self.asked += 1;
        self.next = Some(scene.now + self.query.timeout);
    }

    pub(super) fn arrive(&mut self, scene: &mut Scene<'_>, side: Side) {
        if side == Side::Client {
            self.next = None;
            self.outcome.get_or_insert(Outcome::Succeeded(scene.now.since(self.begun)));
            return;
        }
        let service = span(&scene.draws.service, scene.serial, self.questions, self.query.service);
        self.questions += 1;
        self.answers.push(scene.now + service);
        self.answer(scene);
    }

    pub(super) fn wakes(&self) -> Option<Time> {
        self.answers.iter().copied().chain(self.next).min()
    }

    pub(super) fn wake(&mut self, scene: &mut Scene<'_>) {
        self.answer(scene);
        if self.next.is_some_and(|at| at <= scene.now) {
            if self.asked < self.query.tries {
                self.ask(scene);
            } else {
                self.next = None;
                self.outcome.get_or_insert(Outcome::TimedOut);
            }
        }
    }

    fn answer(&mut self, scene: &mut Scene<'_>) {
        let due = self.answers.iter().filter(|&&at| at <= scene.now).count();
        self.answers.retain(|&at| at > scene.now);
        for _ in 0..due {
            scene.datagram(Side::Server, Kind::Answer, 0, self.query.response);
        }
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// A copy of the query that arrives later finds no session.
    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some() && self.answers.is_empty()
    }
}
