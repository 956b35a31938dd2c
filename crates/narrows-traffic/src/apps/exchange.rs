//! Requests and responses on a connection.

use narrows_core::source::{Period, Sizes};
use narrows_core::{Duration, Time};
use narrows_scenario::{Exchanges, Transfer};

use super::scene::{Scene, Side, size, span};

/// What a side writes to a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writer {
    /// Bytes still to be written.
    pub(super) backlog: u64,
    /// Whether the stream is closed after them.
    pub(super) closes: bool,
}

#[derive(Debug)]
pub(super) struct Exchange {
    count: u32,
    /// `None` for an endless exchange.
    request: Option<Sizes>,
    response: Option<Sizes>,
    pause: Period,
    service: Period,
    /// The index of the current one.
    index: u32,
    /// Bytes that each side still expects: the client of the response, the server of the request.
    expected: [u64; 2],
    /// When the server responds.
    answers: Option<Time>,
    /// When the client sends its next request.
    asks: Option<Time>,
    /// When an endless exchange stops.
    stops: Option<Time>,
    is_done: bool,
}

impl Exchange {
    pub(super) fn new(exchanges: &Exchanges) -> Self {
        let Exchanges { count, request, response, pause, service } = exchanges.clone();
        Self::of(count, Some(request), Some(response), (pause, service))
    }

    /// A file transfer as a request and a response; an endless one stops at `stop`.
    pub(super) fn transfer(transfer: &Transfer, stop: Time) -> Self {
        let line = Some(Sizes::Fixed(Transfer::LINE));
        let file = transfer.size.clone();
        let none = Period::Fixed(Duration::ZERO);
        let stops = (file.is_none() && stop < Time::NEVER).then_some(stop);
        let (request, response) = if transfer.put { (file, line) } else { (line, file) };
        Self { stops, ..Self::of(1, request, response, (none, none)) }
    }

    fn of(
        count: u32,
        request: Option<Sizes>,
        response: Option<Sizes>,
        (pause, service): (Period, Period),
    ) -> Self {
        let (answers, asks, stops) = (None, None, None);
        let (expected, index) = ([0; 2], 0);
        Self {
            count,
            request,
            response,
            pause,
            service,
            index,
            expected,
            answers,
            asks,
            stops,
            is_done: false,
        }
    }

    /// The client sends a request.
    pub(super) fn ask(&mut self, scene: &Scene<'_>, writers: &mut [Writer; 2]) {
        let draws = scene.draws;
        let draw = |sizes: &Option<Sizes>, stream| {
            sizes.as_ref().map_or(u64::MAX, |sizes| size(stream, scene.serial, self.index, sizes))
        };
        let request = draw(&self.request, &draws.request);
        self.expected = [draw(&self.response, &draws.response), request];
        writers[Side::Client as usize].backlog = request;
    }

    /// Bytes have arrived.
    pub(super) fn read(&mut self, scene: &Scene<'_>, side: Side, bytes: u64, writers: &mut [Writer; 2]) {
        let expected = &mut self.expected[side as usize];
        *expected = expected.saturating_sub(bytes);
        if *expected > 0 {
            return;
        }
        match side {
            Side::Server => {
                let service = span(&scene.draws.service, scene.serial, self.index, self.service);
                self.answers = Some(scene.now + service);
            }
            Side::Client => {
                self.index += 1;
                self.is_done = self.index == self.count;
                if !self.is_done {
                    let pause = span(&scene.draws.pause, scene.serial, self.index, self.pause);
                    self.asks = Some(scene.now + pause);
                }
            }
        }
        self.wake(scene, writers);
    }

    pub(super) fn wakes(&self) -> Option<Time> {
        [self.answers, self.asks, self.stops].into_iter().flatten().min()
    }

    pub(super) fn wake(&mut self, scene: &Scene<'_>, writers: &mut [Writer; 2]) {
        let is_due = |at: &mut Option<Time>| at.take_if(|at| *at <= scene.now).is_some();
        if is_due(&mut self.answers) {
            let is_last = self.index + 1 == self.count;
            // Nothing of the response has arrived yet.
            let backlog = self.expected[Side::Client as usize];
            writers[Side::Server as usize] = Writer { backlog, closes: is_last };
        }
        if is_due(&mut self.asks) {
            self.ask(scene, writers);
        }
        if is_due(&mut self.stops) {
            self.is_done = true;
            *writers = [Writer { backlog: 0, closes: true }; 2];
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }
}
