//! The examples as they are in the repository, and as their sources build now.

use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_core::sched::{Drr, FlowConfig, FlowId, Scheduler, Served, Server, Weight};
use narrows_core::{Bytes, PacketRef, Time};
use narrows_plugin::{Loaded, Module, abi};
use proptest::prelude::*;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn module(file: &Path) -> Module {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Module::new(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn drr(module: &Module, quantum: i64) -> Loaded {
    module.scheduler(&[("quantum".into(), quantum)], abi::FUEL).unwrap()
}

/// What happens to flows that are there from the beginning.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue(u32, u32),
    Dequeue,
    DropFirst(u32),
    SetWeight(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..5u32, 1..1500u32).prop_map(|(flow, length)| Step::Enqueue(flow, length)),
        5 => Just(Step::Dequeue),
        1 => (0..5u32).prop_map(Step::DropFirst),
        1 => (0..5u32, 1..9u32).prop_map(|(flow, weight)| Step::SetWeight(flow, weight)),
    ]
}

/// The order of service.
fn order<S: Scheduler>(scheduler: S, steps: &[Step]) -> (Vec<u32>, Server<S>) {
    let mut server = Server::new(scheduler);
    for weight in 1..=5 {
        let weight = Weight::new(weight).unwrap();
        server.join(FlowConfig { weight, ..FlowConfig::default() }).unwrap();
    }
    let mut sent = Vec::new();
    let mut dequeue = |server: &mut Server<S>| match server.dequeue(Time::ZERO) {
        Served::Packet(_, waits) => sent.push(waits.packet.number()),
        other => assert_eq!(other, Served::Empty),
    };
    for (number, step) in (0..).zip(steps) {
        match *step {
            Step::Enqueue(flow, length) => {
                server.enqueue(Time::ZERO, FlowId::new(flow), PacketRef::from_number(number), length);
            }
            Step::Dequeue => dequeue(&mut server),
            Step::DropFirst(flow) => drop(server.drop_first(Time::ZERO, FlowId::new(flow))),
            Step::SetWeight(flow, weight) => {
                server.set_weight(Time::ZERO, FlowId::new(flow), Weight::new(weight).unwrap()).unwrap();
            }
        }
    }
    while server.flows().waiting() > 0 {
        dequeue(&mut server);
    }
    (sent, server)
}

proptest! {
    /// The example in Rust does what the scheduler of narrows does that has the same algorithm.
    #[test]
    fn the_example_in_rust_is_deficit_round_robin(steps in proptest::collection::vec(step(), 0..300), quantum in 1500..4000i64) {
        let module = module(&examples().join("scheduler-rust/drr.wasm"));
        let (sent, server) = order(drr(&module, quantum), &steps);
        prop_assert_eq!(server.states(Time::ZERO), vec![]);
        prop_assert_eq!(sent, order(Drr::new(Bytes::new(quantum as u64)), &steps).0);
    }
}

/// Ten packets to each of three flows, and the flows that are served in turn.
fn turns(module: &Module, parameters: &[(String, i64)]) -> Vec<u32> {
    let mut server = Server::new(module.scheduler(parameters, abi::FUEL).unwrap());
    for weight in [1, 2, 3] {
        let weight = Weight::new(weight).unwrap();
        let flow = server.join(FlowConfig { weight, ..FlowConfig::default() }).unwrap();
        for number in 0..10 {
            server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
        }
    }
    let flow = |_| match server.dequeue(Time::ZERO) {
        Served::Packet(flow, _) => flow.number(),
        other => panic!("{other:?}"),
    };
    let turns = (0..12).map(flow).collect();
    assert_eq!(server.states(Time::ZERO), vec![]);
    turns
}

#[test]
fn the_example_in_c_takes_turns_by_weight() {
    let module = module(&examples().join("scheduler-c/alternate.wasm"));
    assert_eq!(module.parameters(), ["burst"]);
    assert_eq!(turns(&module, &[]), [1, 1, 2, 2, 2, 0, 1, 1, 2, 2, 2, 0]);
    assert_eq!(turns(&module, &[("burst".into(), 2)]), [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0, 0]);
    let error = module.scheduler(&[("burst".into(), 0)], abi::FUEL).unwrap_err();
    assert_eq!(error.to_string(), "the module refuses `burst = 0`, with code 1");
}

/// The page has the one in C in whole, and what it shows of the other one and of the interface is there.
#[test]
fn the_page_quotes_the_examples() {
    const PAGE: &str = include_str!("../../../../docs/writing-a-scheduler.md");
    const INTERFACE: &str = include_str!("../../src/abi.rs");
    const RUST: &str = include_str!("../../../../examples/scheduler-rust/src/lib.rs");
    const C: &str = include_str!("../../../../examples/scheduler-c/alternate.c");
    assert!(PAGE.contains(&format!("```c\n{C}```")));
    let (_, block) = PAGE.split_once("```rust,ignore\n").unwrap();
    assert!(RUST.contains(block.split_once("```").unwrap().0));
    for row in INTERFACE.lines().filter_map(|line| line.strip_prefix("//! |")) {
        assert!(PAGE.contains(&format!("\n|{row}\n")), "{row}");
    }
}

/// Runs a command that has to succeed.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// As the page says; the module that is kept does the same.
#[test]
#[ignore = "needs clang, wasm-ld"]
fn the_example_in_c_builds() {
    let built = scratch("scheduler-c").join("alternate.wasm");
    let words = [
        "--target=wasm32",
        "-O2",
        "-nostdlib",
        "-Wl,--no-entry",
        "-Wall",
        "-Werror",
        "-Wno-unused-parameter",
    ];
    run(Command::new("clang")
        .args(words)
        .arg("-o")
        .arg(&built)
        .arg(examples().join("scheduler-c/alternate.c")));
    let kept = module(&examples().join("scheduler-c/alternate.wasm"));
    for burst in 1..4 {
        let parameters = [("burst".to_string(), burst)];
        assert_eq!(turns(&module(&built), &parameters), turns(&kept, &parameters));
    }
}

/// The same of the other one. The compiler is that of the tool chain, so the bytes are the same, too.
#[test]
#[ignore = "needs wasm32-unknown-unknown"]
fn the_example_in_rust_builds() {
    let target = scratch("scheduler-rust");
    let words = ["build", "--release", "--locked", "--offline", "--target", "wasm32-unknown-unknown"];
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(words).env("CARGO_TARGET_DIR", &target).current_dir(examples().join("scheduler-rust"));
    // Profiles of whoever tests change the bytes.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"CARGO_PROFILE_"))
    {
        build.env_remove(name);
    }
    run(&mut build);
    let built = std::fs::read(target.join("wasm32-unknown-unknown/release/scheduler_rust.wasm")).unwrap();
    let kept = std::fs::read(examples().join("scheduler-rust/drr.wasm")).unwrap();
    assert!(built == kept, "drr.wasm is not what its source builds into: copy {} over it", target.display());
}
