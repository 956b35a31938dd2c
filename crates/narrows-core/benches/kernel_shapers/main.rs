//! This kernel's own sch_tbf and sch_htb and ours side by side: throughput, and bytes in windows of 1, 10 and 100 ms.
//!
//! Run by hand, since it needs root's rights, `unshare`, `ip`, `tc`, Python 3 and a kernel with the two qdiscs:
//! ```text
//! cargo bench -p narrows-core --bench kernel_shapers
//! ```
//! A process in a network namespace of its own, which goes with it, sends frames through a veth pair whose near end has the
//! qdisc, and notes when it handed each in and when each came out. The same frames, at the instants at which they were
//! handed in, then go through ours.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use narrows_core::classify::Classifier;
use narrows_core::queue::{Bound, DropAt, Queue};
use narrows_core::sched::{
    Class, FlowConfig, Htb, HtbClass, Overload, Peak, Scheduled, Scheduler, Store, Tbf, TbfConfig,
};
use narrows_core::service::Overhead;
use narrows_core::{
    Bytes, Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, Rate, Seed, Target, Time, Verdict,
};

/// Bytes of a frame with its link header, which is what the kernel counts.
const LENGTH: u32 = 1_000;
const HEADER: u32 = 14;
/// How long frames are sent, in nanoseconds.
const SPAN: u64 = 4_000_000_000;
const WINDOWS: [u64; 3] = [1_000_000, 10_000_000, 100_000_000];

/// A frame: its class, when it was handed in, and when it came.
#[derive(Clone, Copy, Debug)]
struct Frame {
    class: usize,
    sent: u64,
    came: Option<u64>,
}

struct Case {
    name: &'static str,
    tc: Vec<&'static str>,
    queue: fn() -> Box<dyn Queue>,
    /// Of each class its identifier, and Mbit/s in its busy and its quiet times, which are 200 ms each.
    offered: Vec<(u32, [u64; 2])>,
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

fn queue<S: Scheduler + 'static>(scheduler: S, classes: u32, packets: u64) -> Box<dyn Queue> {
    let all = Bound::Packets(u64::MAX);
    let mut queue = Scheduled::new(scheduler, Classifier::Mark(classes), all, Overload::Arriving);
    for _ in 0..classes {
        let bound = Bound::Packets(packets);
        let flow = FlowConfig::default();
        let class = Class { flow, bound, drop_at: DropAt::Tail, store: Store::Plain };
        queue.add_class(class).expect("there are that many leaves");
    }
    Box::new(queue)
}

fn tbf(rate: u64, burst: u64, peak: Option<(u64, u64)>) -> Box<dyn Queue> {
    let peak = peak.map(|(rate, mtu)| Peak { rate: mbit(rate), mtu: Bytes::new(mtu) });
    let config = TbfConfig { rate: mbit(rate), burst: Bytes::new(burst), peak, mpu: Bytes::new(0) };
    queue(Tbf::new(config).expect("in range"), 1, 60)
}

/// Rate, ceiling, priority and quantum of each leaf below a root of 20 Mbit/s.
fn htb(leaves: &[(u64, u64, u8, u64)]) -> Box<dyn Queue> {
    let burst = Bytes::new(6_000);
    let root = HtbClass { rate: mbit(20), ceil: mbit(20), burst, cburst: burst, ..HtbClass::default() };
    let mut classes = vec![root];
    classes.extend(leaves.iter().map(|&(rate, ceil, priority, quantum)| HtbClass {
        parent: Some(0),
        rate: mbit(rate),
        ceil: mbit(ceil),
        priority,
        quantum: Bytes::new(quantum),
        ..root
    }));
    queue(Htb::new(classes).expect("in range"), leaves.len() as u32, 50)
}

const ROOT: [&str; 2] = [
    "qdisc add dev near root handle 1: htb",
    "class add dev near parent 1: classid 1:1 htb rate 20mbit ceil 20mbit burst 6000b cburst 6000b",
];
const TEN: u32 = 0x1_0010;
const TWENTY: u32 = 0x1_0020;

fn cases() -> Vec<Case> {
    let htb_of = |classes: &[&'static str]| {
        let leaves = [
            "qdisc add dev near parent 1:10 pfifo limit 50",
            "qdisc add dev near parent 1:20 pfifo limit 50",
        ];
        [&ROOT[..], classes, &leaves[..classes.len()]].concat()
    };
    vec![
        Case {
            name: "tbf rate 10mbit burst 10000",
            tc: vec!["qdisc add dev near root tbf rate 10mbit burst 10000 limit 60000"],
            queue: || tbf(10, 10_000, None),
            offered: vec![(0, [16, 6])],
        },
        Case {
            name: "tbf rate 10mbit burst 40000",
            tc: vec!["qdisc add dev near root tbf rate 10mbit burst 40000 limit 60000"],
            queue: || tbf(10, 40_000, None),
            offered: vec![(0, [25, 0])],
        },
        Case {
            name: "tbf rate 10mbit burst 40000 peakrate 20mbit mtu 3000",
            tc: vec![
                "qdisc add dev near root tbf rate 10mbit burst 40000 limit 60000 peakrate 20mbit mtu 3000",
            ],
            queue: || tbf(10, 40_000, Some((20, 3_000))),
            offered: vec![(0, [25, 0])],
        },
        Case {
            name: "htb 5 + 15 of 20mbit, both busy",
            tc: htb_of(&[
                "class add dev near parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit burst 6000b cburst 6000b quantum 2000",
                "class add dev near parent 1:1 classid 1:20 htb rate 15mbit ceil 20mbit burst 6000b cburst 6000b quantum 2000",
            ]),
            queue: || htb(&[(5, 20, 0, 2_000), (15, 20, 0, 2_000)]),
            offered: vec![(TEN, [16, 16]), (TWENTY, [20, 20])],
        },
        Case {
            name: "htb 2 + 2 of 20mbit, quanta 1 : 3",
            tc: htb_of(&[
                "class add dev near parent 1:1 classid 1:10 htb rate 2mbit ceil 20mbit burst 6000b cburst 6000b quantum 2000",
                "class add dev near parent 1:1 classid 1:20 htb rate 2mbit ceil 20mbit burst 6000b cburst 6000b quantum 6000",
            ]),
            queue: || htb(&[(2, 20, 0, 2_000), (2, 20, 0, 6_000)]),
            offered: vec![(TEN, [16, 16]), (TWENTY, [20, 20])],
        },
        Case {
            name: "htb 4 + 4 of 20mbit, prio 1 and 0, ceil 12",
            tc: htb_of(&[
                "class add dev near parent 1:1 classid 1:10 htb rate 4mbit ceil 20mbit burst 6000b cburst 6000b prio 1 quantum 2000",
                "class add dev near parent 1:1 classid 1:20 htb rate 4mbit ceil 12mbit burst 6000b cburst 6000b prio 0 quantum 2000",
            ]),
            queue: || htb(&[(4, 20, 1, 2_000), (4, 12, 0, 2_000)]),
            offered: vec![(TEN, [18, 18]), (TWENTY, [20, 2])],
        },
    ]
}

/// When frames are offered, and of which class: at gaps that vary about their mean by half of it.
fn plan(case: &Case) -> Vec<(u64, usize)> {
    let mut frames = Vec::new();
    for (class, &(_, rates)) in case.offered.iter().enumerate() {
        let stream = narrows_core::Stream::new(Seed(1), case.name, "gaps");
        let (mut at, mut number) = (0, class as u64 * 1_000_000);
        while at < SPAN {
            let busy = at / 200_000_000 % 2;
            let rate = rates[busy as usize];
            if rate == 0 {
                at = (at / 200_000_000 + 1) * 200_000_000;
                continue;
            }
            let mean = u64::from(LENGTH) * 8_000 / rate;
            frames.push((at, class));
            at += mean / 2 + stream.nth(number).below(mean);
            number += 1;
        }
    }
    frames.sort_unstable();
    frames
}

/// The frames of a case through the kernel.
fn run_kernel(case: &Case, folder: &Path) -> Result<Vec<Frame>, String> {
    let offered = plan(case);
    let (plan, output) = (folder.join("plan"), folder.join("output"));
    let lines: Vec<String> =
        offered.iter().map(|&(at, class)| format!("{at} {}\n", case.offered[class].0)).collect();
    fs::write(&plan, lines.concat()).map_err(|error| error.to_string())?;
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernel_shapers/host.py");
    let mut command = Command::new("unshare");
    command.args(["--net", "python3"]).arg(host).arg(plan).arg(&output);
    let result = command.arg(LENGTH.to_string()).arg("1").args(&case.tc).output();
    let result = result.map_err(|error| format!("unshare: {error}"))?;
    if !result.status.success() {
        return Err(String::from_utf8_lossy(&result.stderr).trim().replace('\n', "; "));
    }
    let text = fs::read_to_string(&output).map_err(|error| error.to_string())?;
    let mut frames: Vec<Frame> =
        offered.iter().map(|&(_, class)| Frame { class, sent: 0, came: None }).collect();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap_or_else(|_| panic!("no number: {line}"));
        let frame = &mut frames[number(1) as usize];
        match words[0] {
            "sent" => frame.sent = number(2),
            _ => frame.came = Some(number(2)),
        }
    }
    Ok(frames)
}

/// The same frames, at the same instants, through ours.
fn run_narrows(case: &Case, kernel: &[Frame]) -> Vec<Frame> {
    let mut link = LinkConfig::new("link", Target::Port("out".into()));
    (link.queue, link.overhead) = ((case.queue)(), Overhead::FRAME);
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    let entry = Target::Link { name: "link".into(), lane: 0 };
    config.ports.push(PortConfig { name: "in".into(), entry });
    config.ports.push(PortConfig { name: "out".into(), entry: Target::Port("out".into()) });
    let mut engine = Engine::new(config).expect("the names are there");
    let port = engine.port("in").expect("it was configured");
    let mut frames: Vec<Frame> = kernel.iter().map(|frame| Frame { came: None, ..*frame }).collect();
    for (number, frame) in kernel.iter().enumerate() {
        let key = FlowKey { mark: frame.class as u32, ..FlowKey::default() };
        let packet = Packet {
            length: LENGTH - HEADER,
            link_header: HEADER as u8,
            network_header: 0,
            headers: Default::default(),
            key,
            body: number,
        };
        engine.hand_in(Time::from_nanos(frame.sent), port, packet);
    }
    while let Some(event) = engine.poll(Time::from_nanos(u64::MAX / 2)) {
        if matches!(event.verdict, Verdict::Delivered(_)) {
            frames[*event.body.get()].came = Some(event.at.nanos());
        }
    }
    frames
}

/// Bytes of a class that came.
fn bytes(frames: &[Frame], class: usize) -> f64 {
    f64::from(LENGTH)
        * frames.iter().filter(|frame| frame.class == class && frame.came.is_some()).count() as f64
}

/// The most bytes that came in any window of that length, of all classes.
fn burst(frames: &[Frame], window: u64) -> f64 {
    let mut came: Vec<u64> = frames.iter().filter_map(|frame| frame.came).collect();
    came.sort_unstable();
    let most =
        (0..came.len()).map(|first| came[first..].partition_point(|&at| at < came[first] + window)).max();
    f64::from(LENGTH) * most.unwrap_or(0) as f64
}

fn main() {
    let folder = env::temp_dir().join(format!("narrows-kernel-shapers-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the results");
    let mut worst = 0.0f64;
    println!("| qdisc | class | kernel, Mbit/s | narrows | apart | kB in 1, 10, 100 ms: kernel | narrows |");
    println!("|---|---|---|---|---|---|---|");
    for case in cases() {
        let kernel = match run_kernel(&case, &folder) {
            Ok(frames) => frames,
            Err(why) => {
                println!("left out: {}: {why}", case.name);
                continue;
            }
        };
        let narrows = run_narrows(&case, &kernel);
        for class in 0..case.offered.len() {
            let (theirs, ours) = (bytes(&kernel, class), bytes(&narrows, class));
            let apart = (ours / theirs - 1.0) * 100.0;
            worst = worst.max(apart.abs());
            let rate = |bytes: f64| bytes * 8e3 / SPAN as f64;
            let bursts = |frames: &[Frame]| {
                let each = WINDOWS.map(|window| format!("{:.0}", burst(frames, window) / 1e3));
                each.join(", ")
            };
            let (kernel, narrows) = match class {
                0 => (bursts(&kernel), bursts(&narrows)),
                _ => Default::default(),
            };
            println!(
                "| {} | {class} | {:.3} | {:.3} | {apart:+.2} % | {kernel} | {narrows} |",
                case.name,
                rate(theirs),
                rate(ours)
            );
        }
    }
    fs::remove_dir_all(&folder).expect("it was just made");
    println!("throughputs are at most {worst:.2} % apart");
    assert!(worst <= 0.5, "more than 0.5 %");
}
