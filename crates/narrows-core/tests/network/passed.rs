//! The links that packets have passed, and when.

use narrows_core::classify::FlowMask;
use narrows_core::model::Independent;
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::*;

use crate::common::*;

const MS: u64 = 1_000_000;

#[derive(Debug)]
struct Template;

impl LinkTemplate for Template {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::new("", Target::Port("b".into()));
        rate(&mut link, 1_000_000);
        link
    }

    fn changes(&self) -> Vec<Change> {
        Vec::new()
    }
}

/// `first`, 4 Mbit/s and 3 ms with a queue of two packets, then `second`, 1 Mbit/s: of each flow, as an instance, or of
/// all; `second` sends each packet twice.
fn network(instances: bool) -> Engine<()> {
    let mut first = LinkConfig::new("first", Target::Link { name: "second".into(), lane: 0 });
    rate(&mut first, 4_000_000);
    delay(&mut first, 3 * MS);
    first.queue = Box::new(Fifo::new(Bound::Packets(2), DropAt::Tail));
    let mut second = LinkConfig { name: "second".into(), ..Template.link() };
    second.duplication = Some(Box::new(Independent(Probability::ONE)));
    if instances {
        let idle = Duration::from_secs(1);
        second.instances =
            Some(Box::new(Instances { mask: FlowMask::ALL, most: 9, idle, template: Box::new(Template) }));
    }
    let mut config = NetworkConfig::new(Seed(1));
    config.links.extend([first, second]);
    config.ports.push(port("a", Target::Link { name: "first".into(), lane: 0 }));
    config.ports.push(port("b", Target::Port("b".into())));
    let mut engine = Engine::new(config).expect("the network is whole");
    engine.keep_passed(true);
    engine
}

/// Number, copy, and of each link its name, and in ms/8 when it was entered, the wait, and when it was left.
type Row = (u64, u16, Vec<(String, u64, u64, u64)>);

fn rows(engine: &mut Engine<()>) -> Vec<Row> {
    let names: Vec<String> = engine.links().map(|link| engine.view(link).name().to_owned()).collect();
    let mut rows = Vec::new();
    while let Some(next) = engine.next_event() {
        while let Some(event) = engine.poll(next) {
            let of = |passed: &Passed| {
                let name = names[passed.link.index() as usize].clone();
                let [entered, queued, left] =
                    [passed.entered.nanos(), passed.queued.nanos(), passed.left.nanos()].map(|at| at / MS);
                (name, entered, queued, left)
            };
            assert_eq!(event.queued, event.passed.iter().fold(Duration::ZERO, |sum, one| sum + one.queued));
            assert_eq!(event.passed.last().map(|last| last.left), Some(event.at));
            rows.push((event.id.number(), event.copy, event.passed.iter().map(of).collect()));
        }
    }
    rows.sort();
    rows
}

/// Four packets at once: one is sent at once, two wait, one is dropped. 1000 bytes take 2 ms, then 8 ms.
#[test]
fn each_link_with_its_times() {
    let mut engine = network(false);
    let a = engine.port("a").expect("it is there");
    for _ in 0..4 {
        engine.hand_in(Time::ZERO, a, packet(key(1, 1), 1000));
    }
    let first = |at: u64| ("first".to_owned(), 0, 2 * at, 2 * at + 5);
    let second = |at: u64| ("second".to_owned(), 2 * at + 5, 6 * at, 8 * at + 13);
    let mut expected: Vec<Row> = vec![(3, 0, vec![("first".to_owned(), 0, 0, 0)])];
    for number in 0..3 {
        expected.extend([0, 1].map(|copy| (number, copy, vec![first(number), second(number)])));
    }
    expected.sort();
    assert_eq!(rows(&mut engine), expected);
}

/// A slot that is used again begins anew, and instances count as the link that they were made of.
#[test]
fn instances_count_as_their_link_and_slots_are_used_again() {
    let mut engine = network(true);
    let a = engine.port("a").expect("it is there");
    for _ in 0..40 {
        engine.hand_in(engine.now() + Duration::from_secs(1), a, packet(key(1, 1), 1000));
        for (_, _, passed) in rows(&mut engine) {
            assert_eq!(
                passed.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
                ["first", "second"]
            );
        }
    }
}

#[test]
fn without_asking_there_is_nothing_and_no_verdict_differs() {
    let verdicts = |keeps: bool| {
        let mut engine = network(false);
        engine.keep_passed(keeps);
        let a = engine.port("a").expect("it is there");
        for n in 0..9 {
            engine.hand_in(at(n * MS), a, packet(key(n as u8, 1), 1000));
        }
        let mut seen = Vec::new();
        while let Some(next) = engine.next_event() {
            while let Some(event) = engine.poll(next) {
                assert_eq!(event.passed.is_empty(), !keeps);
                seen.push((event.at, event.id, event.copy, event.verdict));
            }
        }
        seen
    };
    assert_eq!(verdicts(true), verdicts(false));
}
