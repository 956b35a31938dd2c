use std::fs;
use std::io::Read as _;
use std::process::Command;

use narrows_core::{Headers, Packet, PortId};
use narrows_io::frame::Frame;
use narrows_report::PACKETS_HEAD;

use super::*;

const SCENARIO: &str = "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = ['client', 'server']\nrate = '1mbit'\ndelay = '1ms'\n";

struct Network {
    scenario: Scenario,
    engine: Engine<Load>,
    client: PortId,
}

impl Network {
    fn new() -> Self {
        let scenario = Scenario::parse(SCENARIO, "a.toml").unwrap();
        let engine: Engine<Load> = Engine::new(scenario.network()).unwrap();
        let client = engine.port("client.access").unwrap();
        Self { scenario, engine, client }
    }

    /// Sends a packet of 125 bytes, which leaves after 1 ms of transmission and 1 ms of delay.
    fn send(&mut self, tap: &mut PacketTap, at: u64) {
        let (key, headers, body) = (FlowKey::default(), Headers::default(), Load::Frame(Frame::default()));
        let packet = Packet { length: 125, link_header: 14, network_header: 20, key, headers, body };
        self.engine.hand_in(Time::from_nanos(at), self.client, packet);
        while let Some(next) = self.engine.next_event() {
            if let Some(event) = self.engine.poll(next) {
                tap.note(&event, None);
            }
        }
    }
}

fn plan(name: &str, limit: u64) -> PacketsPlan {
    let file = std::env::temp_dir().join(format!("narrows-packets-{}-{name}.csv", std::process::id()));
    PacketsPlan { file, limit }
}

/// Of each row: the packet's number and when it left, in ms.
fn rows(plan: &PacketsPlan) -> Vec<(String, u64)> {
    let text = fs::read_to_string(&plan.file).unwrap();
    fs::remove_file(&plan.file).unwrap();
    let body = text.strip_prefix(PACKETS_HEAD).expect("the head comes first");
    body.lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[1].to_owned(), fields[16].parse::<u64>().unwrap() / 1_000_000)
        })
        .collect()
}

/// Two threads, of which one hands over late, and one hands over nothing for long.
#[test]
fn rows_of_several_threads_are_merged_by_time() {
    let plan = plan("merged", 1 << 20);
    let (mut one, mut two) = (Network::new(), Network::new());
    let engines = [&mut one.engine, &mut two.engine].into_iter();
    let (records, mut taps) = PacketRecords::create(&plan, &Network::new().scenario, engines).unwrap();
    let (mut second, mut first) = (taps.pop().unwrap(), taps.pop().unwrap());
    for millis in [0, 10, 20, 30] {
        one.send(&mut first, millis * 1_000_000);
    }
    assert!(first.pass_on(one.engine.now()));
    for millis in [5, 10, 25] {
        two.send(&mut second, millis * 1_000_000);
    }
    one.send(&mut first, 40_000_000);
    let reached = [(Box::new(first), one.engine.now()), (Box::new(second), two.engine.now())];
    assert_eq!(records.finish(reached, &mut Vec::new()), None);
    let expected = [(0, 2), (0, 7), (1, 12), (1, 12), (2, 22), (2, 27), (3, 32), (4, 42)];
    assert_eq!(rows(&plan), expected.map(|(number, at): (u32, u64)| (number.to_string(), at)));
}

/// A row is what virtual time writes, with the times at the link.
#[test]
fn a_row_has_the_times_at_the_link() {
    let plan = plan("row", 1 << 20);
    let mut network = Network::new();
    let (records, mut taps) =
        PacketRecords::create(&plan, &Network::new().scenario, [&mut network.engine].into_iter()).unwrap();
    let mut tap = taps.pop().unwrap();
    network.send(&mut tap, 3_000_000);
    assert_eq!(records.finish([(Box::new(tap), network.engine.now())], &mut Vec::new()), None);
    let text = fs::read_to_string(&plan.file).unwrap();
    fs::remove_file(&plan.file).unwrap();
    let expected = "client.access,0,0,,,,0,,0,0,3000000,125,delivered,server.access,,0,5000000,\
                    access.up:3000000:0:5000000\n";
    let row = text.strip_prefix(PACKETS_HEAD).unwrap();
    // Protocol and addresses of a packet that has none.
    let blank = |row: &str| {
        let fields: Vec<&str> = row.split(',').collect();
        let kept = |(number, field): (usize, &&str)| {
            if [4, 5, 7].contains(&number) { "".into() } else { field.to_string() }
        };
        fields.iter().enumerate().map(kept).collect::<Vec<String>>().join(",")
    };
    assert_eq!(blank(row), expected);
}

#[test]
fn packets_beyond_the_limit_are_counted() {
    let plan = plan("limit", PACKETS_HEAD.len() as u64 + 1);
    let mut network = Network::new();
    let (records, mut taps) =
        PacketRecords::create(&plan, &Network::new().scenario, [&mut network.engine].into_iter()).unwrap();
    let mut tap = taps.pop().unwrap();
    (0..5).for_each(|second| network.send(&mut tap, second * 1_000_000_000));
    let said = records.finish([(Box::new(tap), network.engine.now())], &mut Vec::new()).unwrap();
    assert!(said.ends_with("reached their size limit: 4 later packets were left out"), "{said}");
    assert_eq!(rows(&plan).len(), 1);
}

/// A disk that is full, and so many packets that they do not fit into the memory for those that wait: nothing waits for
/// the disk, and every packet is accounted for.
#[test]
fn a_disk_that_is_full_is_said_and_nothing_waits_for_it() {
    let full = PacketsPlan { file: "/dev/full".into(), limit: u64::MAX };
    let mut network = Network::new();
    let (records, mut taps) =
        PacketRecords::create(&full, &Network::new().scenario, [&mut network.engine].into_iter()).unwrap();
    let mut tap = taps.pop().unwrap();
    let packets = 3 * BATCH as u64;
    (0..packets).for_each(|number| network.send(&mut tap, number * 10_000_000));
    let said = records.finish([(Box::new(tap), network.engine.now())], &mut Vec::new()).unwrap();
    assert!(said.starts_with("the packet records /dev/full ARE INCOMPLETE: No space left"), "{said}");
    assert!(said.ends_with(&format!("; they lack {packets} packets")), "{said}");
    let nowhere = PacketsPlan { file: "/no/such/folder/p.csv".into(), ..full };
    assert!(PacketRecords::create(&nowhere, &network.scenario, [&mut network.engine].into_iter()).is_err());
}

/// A run that ends with an error drops its packet threads' parts, then the records.
#[test]
fn records_that_are_dropped_are_complete() {
    let plan = plan("dropped", 1 << 20);
    let mut network = Network::new();
    let (records, mut taps) =
        PacketRecords::create(&plan, &Network::new().scenario, [&mut network.engine].into_iter()).unwrap();
    network.send(&mut taps[0], 1_000_000);
    drop(taps);
    drop(records);
    assert_eq!(rows(&plan), [("0".to_owned(), 3)]);
}

/// A pipe that nobody reads until the run is over: packet threads go on, and what had no room is counted.
#[test]
fn a_slow_disk_costs_rows_and_no_time() {
    let plan = plan("slow", u64::MAX);
    assert!(Command::new("mkfifo").arg(&plan.file).status().unwrap().success());
    let (begin, begun) = mpsc::channel();
    let path = plan.file.clone();
    let reader = thread::spawn(move || {
        let mut file = fs::File::open(path).unwrap();
        begun.recv().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text.lines().count() as u64 - 1
    });
    let mut network = Network::new();
    let (records, mut taps) =
        PacketRecords::create(&plan, &Network::new().scenario, [&mut network.engine].into_iter()).unwrap();
    let mut tap = taps.pop().unwrap();
    // One batch fills the pipe, and the writer waits with it.
    let packets = (WAITING as u64 + 4) * BATCH as u64;
    (0..packets).for_each(|number| network.send(&mut tap, number * 10_000_000));
    let missing = tap.missing;
    assert!((BATCH as u64..4 * BATCH as u64).contains(&missing), "{missing}");
    begin.send(()).unwrap();
    let said = records.finish([(Box::new(tap), network.engine.now())], &mut Vec::new()).unwrap();
    assert!(said.ends_with(&format!("lack {missing} packets because the disk was too slow")), "{said}");
    assert_eq!(reader.join().unwrap(), packets - missing);
    fs::remove_file(&plan.file).unwrap();
}
