//! Modules that do what no scheduler may do: it is said what, and packets go on in order of arrival, each once.

use narrows_core::sched::{ClassState, Fault, FlowConfig, FlowId, Served, Server};
use narrows_core::{PacketRef, Time};
use narrows_plugin::{Loaded, abi};

use crate::support::{module, scheduler};

fn ns(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Packets that came to the flows 1, 0, 1, 0, … before the transmitter was free, of which the first one of flow 0 was
/// dropped meanwhile; and how they were sent.
fn order(scheduler: Loaded) -> (Vec<u32>, Server<Loaded>) {
    let mut server = Server::new(scheduler);
    for _ in 0..2 {
        server.join(FlowConfig::default()).unwrap();
    }
    for packet in 0..8 {
        server.enqueue(ns(5), FlowId::new(1 - packet % 2), PacketRef::from_number(packet), 100);
    }
    server.drop_first(ns(6), FlowId::new(0));
    let mut sent = Vec::new();
    for at in 10.. {
        match server.dequeue(ns(at)) {
            Served::Packet(_, waits) => sent.push(waits.packet.number()),
            Served::Empty => break,
            Served::NotBefore(_) => {}
            Served::GivenUp(..) => panic!("it drops nothing"),
        }
    }
    assert_eq!(server.flows().waiting(), 0);
    (sent, server)
}

const BY_ARRIVAL: [u32; 7] = [0, 2, 3, 4, 5, 6, 7];

/// It fails in this call at this instant, and all packets go in order of arrival.
#[track_caller]
fn fails(others: &[(&str, &str)], at: u64, call: &str, why: Fault) {
    let (sent, server) = order(scheduler(others));
    assert_eq!(sent, BY_ARRIVAL);
    let [ClassState::Failed(failure)] = server.states(ns(99))[..] else { panic!("it has failed") };
    assert_eq!((failure.at, failure.call, failure.why), (ns(at), call, why), "{failure}");
}

#[test]
fn one_that_is_right() {
    let (sent, server) = order(scheduler(&[]));
    assert_eq!((sent, server.states(ns(99))), (vec![3, 5, 7, 0, 2, 4, 6], vec![]));
}

#[test]
fn it_traps() {
    let trap = |what| Fault::Trap(what);
    fails(
        &[("select", "(param i64) (result i64) unreachable")],
        10,
        "select",
        trap("it gave up (`unreachable`)"),
    );
    fails(
        &[("enqueue", "(param i64 i32 i32 i32) unreachable")],
        5,
        "enqueue",
        trap("it gave up (`unreachable`)"),
    );
    fails(
        &[("dropped", "(param i64 i32 i32 i32) unreachable")],
        6,
        "dropped",
        trap("it gave up (`unreachable`)"),
    );
    fails(
        &[("select", "(param i64) (result i64) (i64.div_u (i64.const 1) (i64.const 0))")],
        10,
        "select",
        trap("a division by zero"),
    );
    fails(
        &[("select", "(param i64) (result i64) (i64.load (i32.const 70000))")],
        10,
        "select",
        trap("a memory access out of bounds"),
    );
    let deep = "(param i64) (result i64) (call $deep (local.get 0))";
    let text = crate::support::text("", &[("select", deep)])
        .replace("(func (export \"select\")", "(func $deep (export \"select\")");
    let module = crate::support::load(&text).unwrap();
    let (sent, server) = order(module.scheduler(&[], abi::MOST_FUEL).unwrap());
    assert_eq!(sent, BY_ARRIVAL);
    let [ClassState::Failed(failure)] = server.states(ns(99))[..] else { panic!("it has failed") };
    assert_eq!(failure.to_string(), "`select` failed at 0.00000001 s: it trapped: a stack overflow");
}

#[test]
fn it_never_returns() {
    let forever = "(param i64) (result i64) (loop $again (br $again)) (i64.const 0)";
    fails(&[("select", forever)], 10, "select", Fault::OutOfFuel(abi::FUEL));
    // What is enough for one call is there at the next one.
    let some = "(param i64) (result i64) (local i32)
        (loop $again (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 1000))))
        (if (i32.load (i32.const 0)) (then (return (i64.const 0))))
        (if (i32.load (i32.const 4)) (then (return (i64.const 1))))
        (i64.const -1)";
    let (_, server) = order(module(&[("select", some)]).scheduler(&[], 10_000).unwrap());
    assert_eq!(server.states(ns(99)), vec![]);
    let (sent, server) = order(module(&[("select", some)]).scheduler(&[], 100).unwrap());
    assert_eq!(sent, BY_ARRIVAL);
    let [ClassState::Failed(failure)] = server.states(ns(99))[..] else { panic!("it has failed") };
    assert_eq!(failure.why, Fault::OutOfFuel(100));
}

#[test]
fn it_answers_nonsense() {
    let answer = |value: &str| format!("(param i64) (result i64) (i64.const {value})");
    let fails = |value: &str, why| fails(&[("select", &answer(value))], 10, "select", why);
    fails("2", Fault::NoFlow(2));
    fails("4294967296", Fault::NoFlow(1 << 32));
    fails("9223372036854775807", Fault::NoFlow(i64::MAX as u64));
    fails("-1", Fault::Forgets(7));
    // Instants that are not in the future.
    fails("-11", Fault::Past(ns(10)));
    fails("-2", Fault::Past(ns(1)));
}

/// Flow 0 without end: its last packet is asked for twice.
#[test]
fn it_sends_a_packet_twice() {
    let (sent, server) = order(scheduler(&[("select", "(param i64) (result i64) (i64.const 0)")]));
    assert_eq!(sent, [3, 5, 7, 0, 2, 4, 6]);
    let [ClassState::Failed(failure)] = server.states(ns(99))[..] else { panic!("it has failed") };
    assert_eq!((failure.at, failure.why), (ns(13), Fault::IdleFlow(0)));
}

#[test]
fn it_puts_packets_off_for_ever() {
    // Until the next nanosecond, each time.
    let later = "(param i64) (result i64) (i64.sub (i64.const -2) (local.get 0))";
    fails(&[("select", later)], 10 + u64::from(abi::PUT_OFFS), "select", Fault::PutsOff(abi::PUT_OFFS));
    // One that holds packets back for a while is in its rights: one packet every 2000 ns, 200 ns after the last call.
    let paced = "(param i64) (result i64)
        (if (i64.lt_u (i64.rem_u (local.get 0) (i64.const 900)) (i64.const 899))
            (then (return (i64.sub (i64.const -2) (local.get 0)))))
        (if (i32.load (i32.const 0)) (then (return (i64.const 0))))
        (if (i32.load (i32.const 4)) (then (return (i64.const 1))))
        (i64.const -1)";
    let (sent, server) = order(scheduler(&[("select", paced)]));
    assert_eq!((sent, server.states(ns(99))), (vec![3, 5, 7, 0, 2, 4, 6], vec![]));
}

/// At one instant the module is asked once.
#[test]
fn an_answer_holds_while_nothing_changes() {
    let counts = "(param i64) (result i64)
        (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
        (if (i32.gt_u (i32.load (i32.const 64)) (i32.const 1)) (then unreachable))
        (i64.const -101)";
    let mut server = Server::new(scheduler(&[("select", counts)]));
    server.join(FlowConfig::default()).unwrap();
    server.enqueue(ns(5), FlowId::new(0), PacketRef::from_number(0), 100);
    for _ in 0..3 {
        assert_eq!(server.dequeue(ns(5)), Served::NotBefore(ns(100)));
    }
    assert!(matches!(server.dequeue(ns(100)), Served::Packet(..)));
    assert!(matches!(server.states(ns(100))[..], [ClassState::Failed(_)]));
}
