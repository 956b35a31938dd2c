use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use narrows_core::model::{Fed, FeedConfig, OnEmpty};
use narrows_core::{
    Change, Duration, FlowKey, LinkConfig, NetworkConfig, Order, Packet, PortConfig, PortId, Seed, Target,
    Verdict,
};

use super::*;

/// Looked at this often, so far apart: a test that hangs ends after a minute, under any load.
const LOOKS: u32 = 30_000;
const LOOK: std::time::Duration = std::time::Duration::from_millis(2);

/// A link from `a` to `b` whose delays are fed, and what the packet loop does with it.
struct Run {
    folder: PathBuf,
    servers: FeedServers,
    feeds: Feeds,
    engine: Engine<u32>,
    clock: Clock,
    port: PortId,
    link: LinkId,
    /// The delay of each packet that was delivered, in the order of their numbers; nothing for a lost one.
    delays: Vec<Option<u64>>,
    begins: Vec<Time>,
}

impl Run {
    fn new(feed: FeedConfig) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("narrows-feeds-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut link = LinkConfig::new("wire", Target::Port("b".into()));
        link.delay = Box::new(Fed::new(feed));
        link.settings.order = Order::Allow;
        let mut config = NetworkConfig::new(Seed(1));
        config.links.push(link);
        let entry = Target::Link { name: "wire".into(), lane: 0 };
        config.ports.push(PortConfig { name: "a".into(), entry });
        config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
        let engine = Engine::new(config).unwrap();
        let (port, link) = (engine.port("a").unwrap(), engine.link("wire").unwrap());
        let servers = FeedServers::new(&folder).unwrap();
        let feeds = Feeds::new(servers.caller().clone());
        let clock = Clock::start();
        let mut run = Self {
            folder,
            servers,
            feeds,
            engine,
            clock,
            port,
            link,
            delays: Vec::new(),
            begins: Vec::new(),
        };
        run.update_feeds();
        run
    }

    /// What happens when the links of the run have changed.
    fn update_feeds(&mut self) {
        let (inlets, failed) = self.servers.update(&wanted(&self.engine, self.engine.links()), |_, _| None);
        assert!(failed.is_none(), "{failed:?}");
        self.feeds.take(inlets);
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.servers.places().next().unwrap().path).unwrap()
    }

    /// A turn of the loop in which this many packets have come, all at `at`.
    fn turn(&mut self, at: Time, packets: usize) {
        let watermark = self.clock.now();
        self.feeds.receive(&self.clock, &self.engine, watermark);
        for _ in 0..packets {
            self.hand_in_values(at);
            let body = self.begins.len() as u32;
            self.begins.push(at);
            self.delays.push(None);
            let key = FlowKey { transport: 17, destination_port: 53, ..FlowKey::default() };
            let packet = Packet {
                length: 100 + body,
                link_header: 14,
                network_header: 20,
                headers: Default::default(),
                key,
                body,
            };
            self.engine.hand_in(at, self.port, packet);
        }
        self.hand_in_values(watermark);
        while let Some(at) = self.engine.next_event().filter(|&at| at <= watermark) {
            let Some(event) = self.engine.poll(at) else { continue };
            let number = *event.body.get() as usize;
            if matches!(event.verdict, Verdict::Delivered(_)) {
                self.delays[number] = Some(event.at.since(self.begins[number]).nanos());
            }
        }
        self.feeds.tell(&self.clock, &mut self.engine);
        self.feeds.call();
    }

    fn hand_in_values(&mut self, until: Time) {
        while let Some(batch) = self.feeds.next(until) {
            let at = batch.at.max(self.engine.now());
            self.engine.feed(at, batch.link, &batch.feed, &batch.values);
            self.feeds.recycle(batch);
        }
    }

    fn counters(&self) -> narrows_core::model::FeedCounters {
        self.engine.view(self.link).feeds()[0].counters
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        for _ in 0..LOOKS {
            self.turn(Time::ZERO, 0);
            if holds(self) {
                return;
            }
            thread::sleep(LOOK);
        }
        panic!("a minute later still not: {what}");
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.servers.update(&[], |_, _| None);
        let left: Vec<_> = fs::read_dir(&self.folder).unwrap().collect();
        let _ = fs::remove_dir_all(&self.folder);
        if !thread::panicking() {
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// Writes values and waits until all are taken.
fn write(stream: &mut UnixStream, values: &[i64]) {
    let bytes: Vec<u8> = values.iter().chain(&[-2]).flat_map(|value| value.to_le_bytes()).collect();
    stream.write_all(&bytes).unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
}

fn drop_on_empty() -> FeedConfig {
    FeedConfig { on_empty: OnEmpty::Drop, ..FeedConfig::new("delays") }
}

#[test]
fn a_packet_sees_the_values_that_came_before_it_however_late_the_loop_looks() {
    let mut run = Run::new(drop_on_empty());
    let mut writer = run.connect();
    let before = run.clock.now();
    write(&mut writer, &[100]);
    // It is in the ring by now, and the packet is handed in with the instant at which it had come.
    run.turn(before, 1);
    assert_eq!(run.counters().underruns, 1, "it came before the first value");

    let mut run = Run::new(drop_on_empty());
    let mut writer = run.connect();
    write(&mut writer, &[100, 200]);
    let at = run.clock.now();
    write(&mut writer, &[300]);
    run.turn(at, 3);
    run.until("two are out", |run| run.engine.inside() == 0);
    assert_eq!(run.delays, [Some(100), Some(200), None], "the third packet came before the third value");
    assert_eq!(run.engine.view(run.link).feeds()[0].waiting, 1);
}

#[test]
fn values_beyond_the_lead_wait_in_the_socket_and_come_in_order() {
    let mut run = Run::new(FeedConfig { lead: 10, ..drop_on_empty() });
    let mut writer = run.connect();
    let values: Vec<i64> = (0..1000).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let written = thread::spawn(move || writer.write_all(&bytes).map(|()| writer));
    while run.delays.len() < 1000 {
        run.until("there is a value", |run| run.engine.view(run.link).feeds()[0].waiting > 0);
        let waiting = run.engine.view(run.link).feeds()[0].waiting;
        assert!(waiting <= 10, "{waiting}");
        let now = run.clock.now();
        run.turn(now, waiting as usize);
    }
    written.join().unwrap().unwrap();
    run.until("all are out", |run| run.engine.inside() == 0);
    assert_eq!(run.delays, (0..1000).map(Some).collect::<Vec<_>>());
    assert_eq!(run.counters().underruns, 0);
}

#[test]
fn feeds_that_stay_keep_their_writer_and_others_get_a_socket_of_their_own() {
    let mut run = Run::new(drop_on_empty());
    let mut writer = run.connect();
    write(&mut writer, &[1, 2]);
    let now = run.clock.now();
    run.turn(now, 0);
    let change = |run: &mut Run, feed: FeedConfig| {
        let now = run.clock.now();
        run.engine.change(now, run.link, Change::Delay(Box::new(Fed::new(feed))));
        run.update_feeds();
    };
    change(&mut run, FeedConfig { lead: 100, ..drop_on_empty() });
    write(&mut writer, &[3]);
    let now = run.clock.now();
    run.turn(now, 3);
    run.until("they are out", |run| run.engine.inside() == 0);
    assert_eq!(run.delays, [Some(1), Some(2), Some(3)]);
    let first = run.servers.places().next().unwrap().path.clone();
    change(&mut run, FeedConfig::new("another"));
    let mut last = [0; 8];
    writer.read_exact(&mut last).unwrap();
    assert_eq!(i64::from_le_bytes(last), -3, "that feed is no more");
    assert!(!first.exists());
    assert_eq!(run.servers.places().map(|place| place.name.as_str()).collect::<Vec<_>>(), ["another"]);
    // One that becomes two-way is another feed to its writer.
    change(&mut run, FeedConfig { ask: Some(Duration::from_secs(1)), ..FeedConfig::new("another") });
    assert!(run.servers.places().all(|place| place.two_way && place.path.exists()));
}

#[test]
fn a_question_is_the_packets_and_its_answer_is_in_time_however_late_the_loop_looks() {
    let patience = Duration::from_secs(3600);
    let mut run = Run::new(FeedConfig { ask: Some(patience), ..drop_on_empty() });
    let mut writer = run.connect();
    let at = run.clock.now();
    run.turn(at, 2);
    let mut record = [0; protocol::QUESTION];
    for number in 0..2u64 {
        writer.read_exact(&mut record).unwrap();
        let long = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        let short = |at: usize| u16::from_le_bytes(record[at..at + 2].try_into().unwrap());
        assert_eq!((long(0) as i64, long(8)), (protocol::QUESTION_MARKER, number));
        assert_eq!(long(16), run.clock.reading(at).as_nanos());
        assert_eq!(long(24), run.clock.reading(at + patience).as_nanos());
        assert_eq!((u64::from(short(64)), short(68), record[70]), (100 + number, 53, 17));
    }
    // Longer than it takes this machine to come back: an answer that comes within its delay is exact.
    let delay = 50_000_000_i64;
    write(&mut writer, &[delay, -1]);
    run.until("both have their verdict", |run| run.engine.inside() == 0);
    assert_eq!(run.delays[1], None);
    assert!(run.delays[0] >= Some(delay as u64), "{:?}", run.delays);
    let counters = run.counters();
    assert_eq!((counters.asked, counters.used, counters.lost, counters.late), (2, 2, 1, 0));
}

#[test]
fn programs_find_feeds_by_their_names() {
    let run = Run::new(FeedConfig::new("far-away_2"));
    let environment: Vec<_> = environment(&run.servers.places().cloned().collect::<Vec<_>>())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(environment, ["NARROWS_FEED_WIRE_FAR_AWAY_2", "NARROWS_FEED"]);
}
