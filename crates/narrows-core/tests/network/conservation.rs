//! What comes in and is made leaves, is dropped or is inside, at every instant, for each reason and in each element, while
//! links are made and given up and rules and links change.

use std::collections::BTreeMap;

use narrows_core::classify::{FlowMask, Prefix};
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::rules::{Action, Argument, RuleChange, RuleSetConfig, Test};
use narrows_core::sched::Weight;
use narrows_core::service::ConstantRate;
use narrows_core::*;
use proptest::prelude::*;

use crate::common::*;
use crate::rules::rule;

/// A link on which everything happens that drops packets or makes more of them.
#[derive(Debug)]
struct Rough {
    bits: u64,
}

fn one_in(count: u64) -> model::Independent {
    model::Independent(Probability::from_ratio(1, count).expect("it is one"))
}

impl LinkTemplate for Rough {
    fn link(&self) -> LinkConfig {
        let back = |incoming| Target::FromPipe { rules: "rules".into(), incoming };
        let mut link = LinkConfig::new("", back(false));
        link.lanes.push(back(true));
        rate(&mut link, self.bits);
        delay(&mut link, 3_000_000);
        link.queue = Box::new(Fifo::new(Bound::Packets(3), DropAt::Head));
        link.settings.mtu = Some(Mtu { bytes: 700, policy: MtuPolicy::Fragment });
        link.ingress_loss = Some(Loss::of(one_in(9)));
        link.wire_loss = Some(Loss::of(one_in(7)));
        link.duplication = Some(Box::new(one_in(5)));
        link
    }

    fn changes(&self) -> Vec<Change> {
        let bits = Rate::from_bits_per_second(self.bits);
        vec![Change::Service(Box::new(ConstantRate(bits))), Change::IngressLoss(Some(Loss::of(one_in(3))))]
    }
}

/// `a` → rules with a pipe for each source, twice → router → link → rules of the same packets again, or `b`.
fn network(most: u32, idle: u64) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(1));
    config.visits = 9;
    let mut pipe = LinkConfig { name: "pipe".into(), ..Rough { bits: 2_000_000 }.link() };
    let mask = FlowMask { source_v4: 0xff, ..FlowMask::NONE };
    let (idle, template) = (Duration::from_nanos(idle), Box::new(Rough { bits: 2_000_000 }));
    pipe.instances = Some(Box::new(Instances { mask, most, idle, template }));
    config.links.push(pipe);
    config.links.push(LinkConfig::new("again", Target::Rules { name: "rules".into(), incoming: false }));
    let half = |rule| rules::Rule { probability: Probability::from_ratio(1, 2), ..rule };
    let to_pipe = Action::Pipe(Argument::Number(1));
    let rules = vec![
        rule(100, to_pipe, &[]),
        half(rule(200, Action::Deny, &[Test::Fragment])),
        half(rule(300, to_pipe, &[])),
        half(rule(400, Action::Pipe(Argument::Number(2)), &[Test::Length(vec![0..=99])])),
    ];
    config.rules.push(RulesConfig {
        name: "rules".into(),
        rules: RuleSetConfig { rules, ..RuleSetConfig::default() },
        pipes: vec![(1, PipeConfig { link: "pipe".into(), mark: 0 })],
        queues: Vec::new(),
        one_pass: false,
        exits: [Target::Router("router".into()), Target::Port("a".into())],
    });
    let way = |target| Route {
        ways: vec![(target, Weight::ONE)],
        spread: Spread::Flow,
        local: false,
        ..Route::default()
    };
    let again = Target::Link { name: "again".into(), lane: 0 };
    let routes = vec![
        (Prefix::new(address(2, 1), 128), way(again)),
        (Prefix::new(address(2, 2), 128), way(Target::Port("b".into()))),
    ];
    config.routers.push(RouterConfig { name: "router".into(), routes, ..RouterConfig::default() });
    config.ports.push(port("a", Target::Rules { name: "rules".into(), incoming: false }));
    config.ports.push(port("b", Target::Port("b".into())));
    Engine::new(config).expect("the network is whole")
}

#[derive(Clone, Debug)]
enum Input {
    Packet { from: u8, to: u8, length: u32, hop_limit: u8 },
    Template(u64),
    OnePass(bool),
    Late,
}

fn input() -> impl Strategy<Value = Input> {
    let packet = (0u8..6, 0u8..4, 40u32..1500, 0u8..9);
    prop_oneof![
        12 => packet.prop_map(|(from, to, length, hop_limit)| Input::Packet { from, to, length, hop_limit }),
        1 => (1u64..9).prop_map(|megabits| Input::Template(megabits * 1_000_000)),
        1 => any::<bool>().prop_map(Input::OnePass),
        1 => Just(Input::Late),
    ]
}

/// What was dropped, by element and reason.
type Drops = BTreeMap<(u32, DropReason), Tally>;

struct Books {
    engine: Engine<()>,
    came: u64,
    left: u64,
    drops: Drops,
}

impl Books {
    fn hand_in(&mut self, now: Time, input: &Input) {
        let engine = &mut self.engine;
        let rules = engine.rules_of("rules").expect("they are there");
        match *input {
            Input::Packet { from, to, length, hop_limit } => {
                let mut packet = packet(key(from, to), length);
                packet.headers.hop_limit = hop_limit;
                engine.hand_in(now, engine.port("a").expect("it is there"), packet);
                self.came += 1;
            }
            Input::Template(bits) => {
                let pipe = engine.link("pipe").expect("it is there");
                engine.change(now, pipe, Change::Template(Box::new(Rough { bits })));
            }
            Input::OnePass(one_pass) => {
                engine.change_rules(now, rules, RulesChange::OnePass(one_pass)).expect("it may be");
            }
            Input::Late => {
                let name = format!("late {}", engine.links().len());
                let link = LinkConfig { name: name.clone(), ..Rough { bits: 5_000_000 }.link() };
                engine.add_link(now, link).expect("the name is free");
                let to = RulesChange::Pipe(2, Some(PipeConfig { link: name, mark: 0 }));
                engine.change_rules(now, rules, to).expect("the link is there");
                let more = rule(0, Action::Pipe(Argument::Number(2)), &[Test::Fragment]);
                engine
                    .change_rules(now, rules, RulesChange::Rules(RuleChange::Add(more)))
                    .expect("it is right");
            }
        }
    }

    fn poll(&mut self, now: Time) {
        while let Some(event) = self.engine.poll(now) {
            let Verdict::Dropped { at, reason } = event.verdict else {
                self.left += 1;
                continue;
            };
            let at = at.expect("there is memory enough");
            self.drops.entry((at.number(), reason)).or_default().add(event.length);
        }
    }

    /// After all that is due was polled.
    fn check(&self) -> Result<(), TestCaseError> {
        let engine = &self.engine;
        let (mut made, mut inside) = (0, 0);
        for link in engine.links() {
            let view = engine.view(link);
            let (counters, mut own) = (view.counters(), 0);
            for lane in counters.iter() {
                made += lane.duplicated.packets;
                own += lane.inside();
            }
            let sending = own - view.backlog().packets - view.in_flight();
            prop_assert!(sending <= view.instances(engine.now()).len() as u64 + 1);
            inside += own;
            for reason in DropReason::ALL {
                let counted = counters.iter().map(|lane| lane.dropped(reason));
                let counted = counted.fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.bytes));
                let seen =
                    self.drops.get(&(Element::Link(link).number(), reason)).copied().unwrap_or_default();
                prop_assert_eq!(counted, (seen.packets, seen.bytes), "{} {:?}", view.name(), reason);
            }
        }
        prop_assert_eq!(inside, engine.inside());
        let dropped: u64 = self.drops.values().map(|tally| tally.packets).sum();
        prop_assert_eq!(self.came + made, self.left + dropped + inside);

        let id = engine.rules_of("rules").expect("they are there");
        let c = engine.rules_counters(id);
        let dropped = |element: Element, reason| {
            self.drops.get(&(element.number(), reason)).copied().unwrap_or_default()
        };
        let of = |tallies: &[Tally]| {
            tallies.iter().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.bytes))
        };
        prop_assert_eq!(
            of(&[c.arrived[0], c.arrived[1], c.returned]),
            of(&[c.passed, c.piped, c.denied, c.no_pipe, c.looped])
        );
        let rules = Element::Rules(id);
        prop_assert_eq!(c.denied, dropped(rules, DropReason::Denied));
        prop_assert_eq!(c.no_pipe, dropped(rules, DropReason::NoPipe));
        prop_assert_eq!(c.looped, dropped(rules, DropReason::Loop));
        let id = engine.router("router").expect("it is there");
        let c = engine.router_counters(id);
        prop_assert_eq!(of(&[c.arrived]), of(&[c.forwarded, c.local, c.no_route, c.hop_limit]));
        prop_assert_eq!(c.no_route, dropped(Element::Router(id), DropReason::NoRoute));
        prop_assert_eq!(c.hop_limit, dropped(Element::Router(id), DropReason::HopLimit));
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_counted_twice(
        inputs in proptest::collection::vec((0u64..9_000_000, input()), 1..120),
        most in 0u32..4,
        idle in 0u64..20_000_000,
    ) {
        let engine = network(most, idle);
        let mut books = Books { engine, came: 0, left: 0, drops: Drops::new() };
        let mut now = 0;
        for (gap, input) in &inputs {
            now += gap;
            books.hand_in(at(now), input);
            books.poll(at(now));
            books.check()?;
        }
        while let Some(next) = books.engine.next_event() {
            books.poll(next);
        }
        prop_assert_eq!(books.engine.inside(), 0);
        books.check()?;
    }
}
