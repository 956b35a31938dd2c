//! The kernel's own sch_netem and the single queue side by side, on loss, duplication, corruption, reordering and delay.
//!
//! Run by hand, since it needs a kernel to boot:
//! ```text
//! NARROWS_IN_UML=COMMAND cargo bench -p narrows-core --bench kernel_netem
//! ```
//! `COMMAND SCRIPT` runs a bash script as root in a user-mode Linux that has sch_netem, veth, tc, Python 3 and this host's
//! file system. The frames sent there go through the single queue at the very instants at which they were sent there.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use narrows_core::model::builtin_table;
use narrows_core::netem::{Chance, Loss, Netem, Rate, Share, Table};
use narrows_core::{
    Duration, Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, Seed, Target, Time, Verdict,
};

const PACKETS: usize = 20_000;
const LENGTH: u32 = 500;
const GAP: Duration = Duration::from_micros(100);
const BATCHES: usize = 20;

/// What became of one frame: when it was sent, and each time that it came when, and whether it was changed.
#[derive(Clone, Debug, Default)]
struct Frame {
    sent: u64,
    came: Vec<(u64, bool)>,
}

struct Case {
    tc: &'static str,
    netem: Netem,
    statistics: &'static [&'static str],
}

fn share(percent: f64) -> Share {
    Share::from_percent(percent).expect("a percentage")
}

fn chance(percent: f64, correlation: f64) -> Chance {
    Chance { share: share(percent), correlation: share(correlation) }
}

fn milliseconds(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn cases() -> Vec<Case> {
    let plain = Netem::default;
    let case = |tc, netem, statistics| Case { tc, netem, statistics };
    let table =
        || Table::new(builtin_table("normal").expect("it is built in")).expect("as many as netem takes");
    vec![
        // The first shows how late the guest is by itself.
        case("delay 20ms", Netem { delay: milliseconds(20), ..plain() }, &[]),
        case("loss 10%", Netem { loss: Loss::Random(chance(10.0, 0.0)), ..plain() }, &["lost", "burst"]),
        // Much less than 20 %, and in bursts: the correlation draws the random numbers to the middle.
        case("loss 20% 40%", Netem { loss: Loss::Random(chance(20.0, 40.0)), ..plain() }, &["lost", "burst"]),
        case(
            "loss state 3% 30% 20% 60% 1%",
            Netem {
                loss: Loss::States {
                    p13: share(3.0),
                    p31: share(30.0),
                    p32: share(20.0),
                    p23: share(60.0),
                    p14: share(1.0),
                },
                ..plain()
            },
            &["lost", "burst"],
        ),
        case(
            "loss gemodel 3% 20% 70% 1%",
            Netem {
                loss: Loss::GilbertElliott {
                    p: share(3.0),
                    r: share(20.0),
                    h: share(70.0).complement(),
                    loss_in_good: share(1.0),
                },
                ..plain()
            },
            &["lost", "burst"],
        ),
        // tc hands a correlation of duplication to the kernel only beside one of loss, delay, reordering or corruption.
        case(
            "loss 10% 10% duplicate 20% 30%",
            Netem { loss: Loss::Random(chance(10.0, 10.0)), duplication: chance(20.0, 30.0), ..plain() },
            &["lost", "twice"],
        ),
        case("corrupt 15%", Netem { corruption: chance(15.0, 0.0), ..plain() }, &["lost", "changed"]),
        case(
            "delay 20ms reorder 40% 50% gap 4",
            Netem { delay: milliseconds(20), reorder: chance(40.0, 50.0), gap: 4, ..plain() },
            &["early", "overtaken"],
        ),
        case(
            "delay 30ms 5ms distribution normal",
            Netem { delay: milliseconds(30), jitter: milliseconds(5), table: Some(table()), ..plain() },
            &["delay", "spread", "overtaken"],
        ),
        // Of the correlation nothing is left: the remainder of the random number does away with it.
        case(
            "delay 30ms 10ms 60%",
            Netem {
                delay: milliseconds(30),
                jitter: milliseconds(10),
                delay_correlation: share(60.0),
                ..plain()
            },
            &["delay", "spread", "alike", "overtaken"],
        ),
        case(
            "delay 10ms limit 50 rate 8mbit",
            Netem {
                delay: milliseconds(10),
                limit: 50,
                rate: Some(Rate {
                    bytes_per_second: 1_000_000,
                    packet_overhead: 0,
                    cell_size: 0,
                    cell_overhead: 0,
                }),
                ..plain()
            },
            &["lost", "delay"],
        ),
    ]
}

/// All cases in one boot of the kernel.
fn run_kernel(command: &str, cases: &[Case]) -> Vec<Vec<Frame>> {
    let folder = env::temp_dir().join(format!("narrows-side-by-side-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the results");
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernel_netem/guest.py");
    let mut script = String::from("set -e\n");
    for (number, case) in cases.iter().enumerate() {
        let output = folder.join(number.to_string());
        let tc =
            if case.tc.contains("limit") { case.tc.to_owned() } else { format!("limit 100000 {}", case.tc) };
        writeln!(
            script,
            "python3 {} {} {PACKETS} {} {LENGTH} {tc}",
            guest.display(),
            output.display(),
            GAP.nanos()
        )
        .expect("a string takes all");
    }
    let file = folder.join("script");
    fs::write(&file, script).expect("the script");
    let status = Command::new(command).arg(&file).status().expect("the command in NARROWS_IN_UML starts");
    assert!(status.success(), "the guest: {status}");
    let frames = (0..cases.len()).map(|number| {
        let text = fs::read_to_string(folder.join(number.to_string())).expect("the guest wrote it");
        let mut frames = vec![Frame::default(); PACKETS];
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["sent", number, at] => frames[parse(number) as usize].sent = parse(at),
                ["came", number, at, changed] => {
                    frames[parse(number) as usize].came.push((parse(at), changed == "1"));
                }
                _ => panic!("{line}"),
            }
        }
        frames
    });
    let frames = frames.collect();
    fs::remove_dir_all(&folder).expect("it was just made");
    frames
}

fn parse(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// The same frames, at the same instants, through the single queue.
fn run_narrows(netem: &Netem, kernel: &[Frame]) -> Vec<Frame> {
    let mut link = LinkConfig::new("link", Target::Port("out".into()));
    let limit = if netem.rate.is_some() { netem.limit } else { 100_000 };
    link.netem = Some(Box::new(Netem { limit, ..netem.clone() }));
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    let entry = Target::Link { name: "link".into(), lane: 0 };
    config.ports.push(PortConfig { name: "in".into(), entry });
    config.ports.push(PortConfig { name: "out".into(), entry: Target::Port("out".into()) });
    let mut engine = Engine::new(config).expect("the names are there");
    let port = engine.port("in").expect("it was configured");
    let mut frames: Vec<Frame> = kernel.iter().map(|frame| Frame { came: vec![], ..*frame }).collect();
    for (number, frame) in kernel.iter().enumerate() {
        let key = FlowKey::default();
        let packet = Packet {
            length: LENGTH - 14,
            link_header: 14,
            network_header: 0,
            headers: Default::default(),
            key,
            body: number,
        };
        engine.hand_in(Time::from_nanos(frame.sent), port, packet);
    }
    while let Some(event) = engine.poll(Time::from_nanos(u64::MAX / 2)) {
        if matches!(event.verdict, Verdict::Delivered(_)) {
            frames[*event.body.get()].came.push((event.at.nanos(), !event.flips.is_empty()));
        }
    }
    frames
}

/// What can be said of a row of frames.
fn measure(which: &str, frames: &[Frame]) -> f64 {
    let share = |count: usize, of: usize| count as f64 / of as f64;
    let came: Vec<(u64, u64, usize)> = {
        let each = |(number, frame): (usize, &Frame)| -> Vec<_> {
            frame.came.iter().map(|&(at, _)| (at, at - frame.sent.min(at), number)).collect()
        };
        frames.iter().enumerate().flat_map(each).collect()
    };
    let delays: Vec<f64> = came.iter().map(|&(_, delay, _)| delay as f64 / 1e6).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let spread = |values: &[f64]| {
        let middle = mean(values);
        mean(&values.iter().map(|value| libm::pow(value - middle, 2.0)).collect::<Vec<_>>()).sqrt()
    };
    match which {
        "lost" => share(frames.iter().filter(|frame| frame.came.is_empty()).count(), frames.len()),
        "twice" => share(frames.iter().filter(|frame| frame.came.len() == 2).count(), frames.len()),
        "changed" => {
            share(frames.iter().flat_map(|frame| &frame.came).filter(|came| came.1).count(), came.len())
        }
        "burst" => {
            let lost: Vec<bool> = frames.iter().map(|frame| frame.came.is_empty()).collect();
            let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
            share(lost.iter().filter(|&&lost| lost).count(), bursts)
        }
        // Less than half of the delay.
        "early" => share(delays.iter().filter(|&&delay| delay < 10.0).count(), delays.len()),
        "overtaken" => {
            let mut order: Vec<(u64, usize)> = came.iter().map(|&(at, _, number)| (at, number)).collect();
            order.sort_unstable();
            let mut latest = 0;
            let behind = |&&(_, number): &&(u64, usize)| {
                latest = latest.max(number);
                number < latest
            };
            share(order.iter().filter(behind).count(), order.len())
        }
        "delay" => mean(&delays),
        "spread" => spread(&delays),
        "alike" => {
            let middle = mean(&delays);
            let products: Vec<f64> = delays.windows(2).map(|d| (d[0] - middle) * (d[1] - middle)).collect();
            mean(&products) / libm::pow(spread(&delays), 2.0)
        }
        other => panic!("no statistic {other}"),
    }
}

/// The mean of a statistic over batches, and its standard error.
fn estimate(which: &str, frames: &[Frame]) -> (f64, f64) {
    let values: Vec<f64> =
        frames.chunks_exact(frames.len() / BATCHES).map(|batch| measure(which, batch)).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| libm::pow(value - mean, 2.0)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn main() {
    let Ok(command) = env::var("NARROWS_IN_UML") else {
        println!("left out: NARROWS_IN_UML names no command that runs a script in a kernel with sch_netem");
        return;
    };
    let cases = cases();
    let kernel = run_kernel(&command, &cases);
    // How late the guest itself is, from the constant delay, and how much that varies: real time has no standard error.
    let late = estimate("delay", &kernel[0]).0 - 20.0;
    let varies = measure("spread", &kernel[0]);
    println!("the guest is {late:.3} ms late, give or take {varies:.3} ms");
    let mut off = BTreeMap::new();
    for (case, kernel) in cases.iter().zip(&kernel) {
        let narrows = run_narrows(&case.netem, kernel);
        for which in case.statistics {
            let ((theirs, error), (ours, other)) = (estimate(which, kernel), estimate(which, &narrows));
            let (theirs, slack) = match *which {
                "delay" => (theirs - late, varies),
                "spread" => ((theirs * theirs - varies * varies).max(0.0).sqrt(), varies),
                _ => (theirs, 0.0),
            };
            let error = (error * error + other * other).sqrt();
            let (by, allowed) = ((theirs - ours).abs(), 4.0 * error + slack);
            println!(
                "{:<36} {which:<10} kernel {theirs:9.4}  narrows {ours:9.4}  apart by {by:7.4}, standard error {error:.4}",
                case.tc
            );
            if by > allowed {
                off.insert((case.tc, which), (theirs, ours, allowed));
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}
