//! What does not fit; and what is shared.

use narrows_io::kernel_end::Layout;
use narrows_kernel::fit;
use narrows_kernel::load::PARTS;
use narrows_kernel::parameters::{Discipline, Loss, Parameters, Policy, Room};
use narrows_scenario::Scenario;

use super::harness::Harness;

#[test]
fn what_is_shared_lies_where_both_sides_expect_it() {
    let printed = Harness::new("layout").run(&["layout"], Vec::new());
    let printed = String::from_utf8(printed).unwrap();
    let found = |name: &str| -> usize {
        let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is not printed")).parse().unwrap()
    };
    let direction = |field: &str| found(&format!("DIRECTION({field})"));
    let record = |field: &str| found(&format!("RECORD({field})"));
    let scenario = "[hosts.a]\n[hosts.b]\n[links.x]\nbetween = [\"a\", \"b\"]";
    let parameters = fit(&Scenario::parse(scenario, "x.toml").unwrap()).unwrap().directions.remove(0);
    assert_eq!(parameters.bytes(Room::of(2)).len(), found("sizeof(struct narrows_parameters)"));
    for (ours, theirs) in [
        (Layout::DIRECTION, found("sizeof(struct narrows_direction)")),
        (Layout::NUMBER, direction("state.number")),
        (Layout::LEFT, direction("left")),
        (Layout::BEGUN, direction("begun")),
        (Layout::DONE, direction("done")),
        (Layout::READ, direction("read")),
        (Layout::SETTLED, direction("settled")),
        (Layout::FED, direction("fed")),
        (Layout::EPOCH, direction("epoch")),
        (Layout::VALUE, found("sizeof(struct narrows_fed_value)")),
        (Layout::NO_ROOM, direction("no_room")),
        (Layout::UNSUPPORTED, direction("unsupported")),
        (Layout::TRAINS, direction("trains")),
        (Layout::BYPASSED, direction("bypassed")),
        (Layout::TAGGED, direction("tagged")),
        (Layout::MTU, found("PARAMETERS(mtu)")),
        (Layout::RECORD, found("sizeof(struct narrows_record)")),
        (Layout::ARRIVAL, record("arrival")),
        (Layout::FRAME_LENGTH, record("frame_length")),
        (Layout::HEAD_LENGTH, record("head_length")),
        (Layout::HEAD, record("head")),
        (Layout::HEAD_MOST, found("NARROWS_HEAD")),
        (Layout::DECISION, found("sizeof(struct narrows_decision)")),
        (Layout::DEPARTURE, found("sizeof(struct narrows_departure)")),
        (112, found("sizeof(struct narrows_rule)")),
        (16, found("sizeof(struct narrows_range)")),
        (48, found("sizeof(struct narrows_packet)")),
        (16, found("sizeof(struct narrows_overtaking)")),
        (48, found("sizeof(struct narrows_headers)")),
        (256, found("NARROWS_BYPASS_SLOTS")),
    ] {
        assert_eq!(ours, theirs);
    }
}

/// The kernel must know how many arguments each part of the program has.
#[test]
fn the_list_of_parts_is_that_of_the_sources() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("NARROWS_PART ")) {
            let (head, arguments) = line.split_once('(').unwrap();
            let name = head.split_whitespace().last().unwrap().to_owned();
            found.push((name, arguments.split(',').count() as u32));
        }
    }
    found.sort();
    assert_eq!(found, PARTS.map(|(name, arguments)| (name.to_owned(), arguments)));
}

fn misfits(text: &str) -> (Vec<String>, String) {
    let scenario = Scenario::parse(text, "case.toml").unwrap_or_else(|error| panic!("{text}: {error}"));
    let misfits = fit(&scenario).unwrap_err();
    (misfits.all().iter().map(|misfit| misfit.key.clone()).collect(), misfits.to_string())
}

fn link(keys: &str) -> String {
    format!("[hosts.a]\n[hosts.b]\n[links.wire]\nbetween = [\"a\", \"b\"]\n{keys}")
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let class = |filter: &str| {
        format!(
            "up = {{ rate = \"1mbit\", scheduler = {{ type = \"prio\", classes = [{{ name = \"x\", match = {filter} }}, {{ name = \"y\" }}] }} }}"
        )
    };
    for (keys, found) in [
        (
            "up = { delay = { uniform = { low = \"5ms\", high = \"6ms\" }, correlation = \"20%\" } }",
            &["wire.up.delay"][..],
        ),
        (
            "up = { delay = { normal = { mean = \"5ms\", sd = \"1ms\" }, correlation = \"20ms\" } }",
            &["wire.up.delay"],
        ),
        ("up = { delay = { feed = \"x\", ask = \"1ms\" } }", &["wire.up.delay"]),
        ("up = { duplicate = \"1%\" }", &["wire.up.duplicate"]),
        (
            "up = { corrupt = { bit-errors = \"1e-6\" }, reorder = \"5%\", delay = \"1ms\" }",
            &["wire.up.reorder", "wire.up.corrupt"],
        ),
        ("queue = { drop = \"head\" }", &["wire.up.queue", "wire.down.queue"]),
        ("up = { queue = { type = \"red\", adaptive = true } }", &["wire.up.queue"]),
        ("up = { queue = { type = \"pie\", departure-rate = true } }", &["wire.up.queue"]),
        ("up = { queue = \"choke\" }", &["wire.up.queue"]),
        ("up = { rate = \"1mbit\", scheduler = \"sfq\" }", &["wire.up.queue"]),
        ("up = { loss = { rate = \"1%\", correlation = \"20%\" } }", &["wire.up.loss"]),
        ("up = { loss = { rate = \"1%\", ecn = true } }", &["wire.up.loss"]),
        (&class("{ fragment = \"first\" }"), &["wire.up.queue"]),
        (
            "up = { overhead = { bytes = 65536, cells = { payload = 1, size = 65536 } } }",
            &["wire.up.overhead"],
        ),
        ("shared = true\nrate = \"1mbit\"", &["wire.shared"]),
    ] {
        let (keys_found, text) = misfits(&link(keys));
        assert_eq!(keys_found, found, "{keys}");
        assert!(found.iter().all(|key| text.contains(key)) && text.contains("af_packet"), "{text}");
    }
    let three = "[hosts.a]\n[hosts.b]\n[routers.r]\n[links.x]\nbetween = [\"a\", \"r\"]\n[links.y]\nbetween = [\"r\", \"b\"]";
    assert_eq!(misfits(three).0, ["routers"]);
    let changing = link("") + "\n[[timeline]]\nat = \"1s\"\nset = { \"wire.up.delay\" = \"1ms\" }";
    assert_eq!(misfits(&changing).0, ["timeline"]);
}

#[test]
fn several_links_fit() {
    let text = "[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.x]\nbetween = [\"a\", \"b\"]\ndelay = \"1ms\"\n[links.y]\nbetween = [\"c\", \"b\"]\nrate = \"5mbit\"";
    let scenario = Scenario::parse(text, "case.toml").unwrap();
    let fitting = fit(&scenario).unwrap();
    let hosts = fitting.links.iter().map(|ports| ports.map(|port| scenario.ports()[port].host.as_str()));
    assert_eq!(hosts.collect::<Vec<_>>(), [["a", "b"], ["b", "c"]]);
    assert_eq!(fitting.directions.len(), 4);
    let none = |Parameters { losses, queue, .. }: &Parameters| {
        losses.iter().all(|loss| *loss == Loss::default())
            && queue.discipline == Discipline::InOrder
            && queue.rules.is_empty()
            && queue.classes.iter().all(|(_, policy)| *policy == Policy::default())
    };
    assert!(fitting.directions.iter().all(none));
}
