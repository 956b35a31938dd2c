//! One link without a rate, so that packets enter its delay line as they come, with delays from outside.

use std::collections::BTreeMap;

use narrows_core::model::{DelayModel, Fed, FeedConfig, FeedCounters, OnEmpty};
use narrows_core::{
    Change, Duration, Engine, FeedView, FlowKey, LinkConfig, LinkId, NetworkConfig, Order, Packet,
    PortConfig, PortId, Question, Seed, Target, Time, Verdict,
};

pub(crate) struct Stand {
    pub(crate) engine: Engine<usize>,
    pub(crate) link: LinkId,
    port: PortId,
    sent: usize,
    left: BTreeMap<usize, Option<u64>>,
}

pub(crate) fn fed(on_empty: OnEmpty, lead: usize, ask: Option<u64>) -> Fed {
    let ask = ask.map(Duration::from_nanos);
    Fed::new(FeedConfig { on_empty, lead, ask, ..FeedConfig::new("f") })
}

impl Stand {
    pub(crate) fn new(order: Order, delay: impl DelayModel + 'static) -> Self {
        let mut link = LinkConfig::new("wire", Target::Port("b".into()));
        (link.settings.order, link.delay) = (order, Box::new(delay));
        Self::of(link)
    }

    pub(crate) fn of(link: LinkConfig) -> Self {
        let mut config = NetworkConfig::new(Seed(1));
        config.links.push(link);
        let entry = Target::Link { name: "wire".into(), lane: 0 };
        config.ports.push(PortConfig { name: "a".into(), entry });
        config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
        let engine = Engine::new(config).expect("it is a network");
        let (port, link) = (engine.port("a").expect("a port"), engine.link("wire").expect("a link"));
        Self { engine, link, port, sent: 0, left: BTreeMap::new() }
    }

    pub(crate) fn send(&mut self, at: u64) {
        self.send_long(at, 100);
    }

    pub(crate) fn send_long(&mut self, at: u64, length: u32) {
        let (key, body) = (FlowKey::default(), self.sent);
        let packet =
            Packet { length, link_header: 0, network_header: 0, headers: Default::default(), key, body };
        self.engine.hand_in(Time::from_nanos(at), self.port, packet);
        self.sent += 1;
    }

    pub(crate) fn feed(&mut self, at: u64, values: &[i64]) -> usize {
        self.feed_to(at, "f", values)
    }

    pub(crate) fn feed_to(&mut self, at: u64, name: &str, values: &[i64]) -> usize {
        self.engine.feed(Time::from_nanos(at), self.link, name, values)
    }

    pub(crate) fn change(&mut self, at: u64, delay: impl DelayModel + 'static) {
        self.engine.change(Time::from_nanos(at), self.link, Change::Delay(Box::new(delay)));
    }

    pub(crate) fn questions(&mut self) -> Vec<Question> {
        let mut questions = Vec::new();
        self.engine.take_questions(&mut questions);
        questions
    }

    pub(crate) fn view(&self) -> FeedView<'_> {
        self.engine.view(self.link).feeds()[0]
    }

    pub(crate) fn counters(&self) -> FeedCounters {
        self.view().counters
    }

    /// When each packet left, or nothing for one that was lost, once all have.
    pub(crate) fn left(&mut self) -> Vec<Option<u64>> {
        while let Some(event) = self.engine.poll(Time::from_nanos(u64::MAX / 2)) {
            let delivered = matches!(event.verdict, Verdict::Delivered(_));
            self.left.insert(*event.body.get(), delivered.then_some(event.at.nanos()));
        }
        assert_eq!((self.left.len(), self.engine.inside()), (self.sent, 0));
        self.left.values().copied().collect()
    }
}
