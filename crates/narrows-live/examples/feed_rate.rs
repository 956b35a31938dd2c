//! A feed at a million packets a second, by hand:
//!
//! ```sh
//! cargo run --release -p narrows-live --example feed_rate -- [PACKETS A SECOND] [SECONDS] [LEAD]
//! ```
//!
//! The lead must cover the pauses of this thread, the reader's and the writer's: 65,536 values are 66 ms at that rate.
//! A thread writes to the feed's socket as a program would. This thread does what the packet loop does, but for the packets
//! themselves, which come by the clock: it takes values out of the ring, hands them and the packets to an engine, and
//! polls. At the end stand the underruns, and whether each packet got the value that was meant for it. To see that it
//! makes no system call while it is under way, but for calls to a reader that was surprised by the pace:
//!
//! ```sh
//! strace -c -f target/release/examples/feed_rate 100000 3
//! ```
//!
//! or, without slowing it, `perf trace -s -t` of the thread that it names.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use narrows_core::model::{Fed, FeedConfig, OnEmpty};
use narrows_core::{
    Duration, Engine, FlowKey, LinkConfig, NetworkConfig, Order, Packet, PortConfig, Seed, Target, Verdict,
};
use narrows_live::clock::Clock;
use narrows_live::feeds::{FeedServers, Feeds, wanted};

/// Values written at once, as by a program that draws them in arrays.
const STRIDE: u64 = 1000;
/// The feed fills before the first packet.
const HEAD_START: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rate: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;

    let lead: usize = arguments.next().map_or(Ok(1 << 16), |text| text.parse())?;

    let mut link = LinkConfig::new("wire", Target::Port("b".into()));
    link.delay =
        Box::new(Fed::new(FeedConfig { on_empty: OnEmpty::Drop, lead, ..FeedConfig::new("delays") }));
    link.settings.order = Order::Allow;
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    config.ports.push(PortConfig { name: "a".into(), entry: Target::Link { name: "wire".into(), lane: 0 } });
    config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
    let mut engine: Engine<u64> = Engine::new(config)?;
    let port = engine.port("a").ok_or("it was configured")?;

    let folder = std::env::temp_dir().join(format!("narrows-feed-rate-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let mut servers = FeedServers::new(&folder)?;
    let mut feeds = Feeds::new(servers.caller().clone());
    let (inlets, failed) = servers.update(&wanted(&engine, engine.links()), |_, _| None);
    failed.map_or(Ok(()), Err)?;
    feeds.take(inlets);
    let path = servers.places().next().ok_or("it has one feed")?.path.clone();
    let writer = thread::spawn(move || write(&path));

    let task = std::fs::read_link("/proc/thread-self")?;
    println!(
        "{rate} packets a second for {seconds} s, a lead of {lead} values; this thread is {}",
        task.display()
    );
    let clock = Clock::start();
    let packet = |number| Packet {
        length: 100,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key: FlowKey::default(),
        body: number,
    };
    let begin = clock.now() + HEAD_START;
    let end = begin + Duration::from_secs(seconds);
    let instant = |number: u64| {
        begin + Duration::from_nanos((u128::from(number) * 1_000_000_000 / u128::from(rate)) as u64)
    };
    let (mut next, mut delivered, mut wrong, mut late) = (0u64, 0u64, 0u64, Duration::ZERO);
    loop {
        let watermark = clock.now();
        feeds.receive(&clock, &engine, watermark);
        let mut hand_in = |engine: &mut Engine<u64>, until| {
            while let Some(batch) = feeds.next(until) {
                let at = batch.at.max(engine.now());
                engine.feed(at, batch.link, &batch.feed, &batch.values);
                feeds.recycle(batch);
            }
        };
        while instant(next) <= watermark.min(end) {
            let at = instant(next);
            hand_in(&mut engine, at);
            late = late.max(clock.now().since(at));
            engine.hand_in(at, port, packet(next));
            next += 1;
        }
        hand_in(&mut engine, watermark);
        while let Some(at) = engine.next_event().filter(|&at| at <= watermark) {
            if let Some(event) = engine.poll(at) {
                // The values differ: of the packets that got one, the n-th has the n-th.
                if matches!(event.verdict, Verdict::Delivered(_)) {
                    wrong += u64::from(event.at != instant(*event.body.get()) + value(delivered));
                    delivered += 1;
                }
            }
        }
        feeds.tell(&clock, &mut engine);
        feeds.call();
        if watermark >= end {
            break;
        }
    }
    let view = engine.view(engine.link("wire").ok_or("it was configured")?);
    let counters = view.feeds()[0].counters;
    println!(
        "{next} packets; {} values used, {} underruns, {wrong} packets with another value",
        counters.used, counters.underruns
    );
    println!("the loop was late by {late} at most");
    drop(servers);
    let _ = writer.join();
    std::fs::remove_dir(&folder)?;
    Ok(())
}

/// The value of the packet with this number: 100 µs and a little.
fn value(number: u64) -> Duration {
    Duration::from_nanos(100_000 + number % 1000)
}

/// Writes until the run is over.
fn write(path: &Path) {
    let Ok(mut feed) = UnixStream::connect(path) else { return };
    for begin in (0..).step_by(STRIDE as usize) {
        let values = (begin..begin + STRIDE).map(|number| value(number).nanos().to_le_bytes());
        if feed.write_all(&values.flatten().collect::<Vec<u8>>()).is_err() {
            return;
        }
    }
}
