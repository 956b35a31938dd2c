//! What requests on the control socket cost: lateness with and without them, in rounds that alternate.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use narrows_io::clock::clock_monotonic;

use crate::row::{Aim, head, row};
use crate::way::{narrows, number, scratch};
use crate::{Effort, Outcome};

/// Points of the trace that is set again and again.
const POINTS: u32 = 1_000_000;

/// What a run is asked meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    Nothing,
    /// `stats` and `set` of a rate, ten times a second.
    Often,
    /// `packets`, by three clients, each as often as a page asks.
    Packets,
    /// `set` of a trace of a million points, once a second.
    Traces,
}

/// The command inside of a run that sends a request to the control socket again and again, for so many seconds.
pub(crate) fn ask(pause: &str, seconds: &str, requests: &[&str]) -> Outcome<()> {
    let pause = Duration::from_millis(pause.parse()?);
    let end = clock_monotonic().as_nanos() + 1_000_000_000 * seconds.parse::<u64>()?;
    let mut socket = UnixStream::connect(std::env::var("NARROWS_CONTROL")?)?;
    let mut answers = BufReader::new(socket.try_clone()?);
    let mut turn = 0;
    while clock_monotonic().as_nanos() < end {
        let began = clock_monotonic().as_nanos();
        for request in requests {
            // Another value each time.
            let request = request.replace("TURN", &(turn % 2).to_string());
            socket.write_all(format!("{request}\n").as_bytes())?;
            let mut answer = String::new();
            answers.read_line(&mut answer)?;
            if !answer.starts_with("{\"ok\"") {
                return Err(answer.into());
            }
        }
        turn += 1;
        sleep(pause.saturating_sub(Duration::from_nanos(clock_monotonic().as_nanos() - began)));
    }
    Ok(())
}

fn client(asked: Asked, seconds: u32, trace: &Path) -> Outcome<String> {
    let this = std::env::current_exe()?;
    let set = |assignment: &str| format!("'{{\"command\":\"set\",\"assignments\":[\"{assignment}\"]}}'");
    Ok(match asked {
        Asked::Nothing => format!("sleep {seconds}"),
        Asked::Often => {
            let rate = set("link.up.rate=10TURNmbit");
            format!("{} --ask 100 {seconds} '{{\"command\":\"stats\"}}' {rate}", this.display())
        }
        Asked::Packets => {
            let one = format!("{} --ask 250 {seconds} '{{\"command\":\"packets\"}}'", this.display());
            format!("{one} & {one} & {one} & wait")
        }
        Asked::Traces => {
            let trace = set(&format!("link.up.trace={}", trace.display()));
            format!("{} --ask 1000 {seconds} {trace}", this.display())
        }
    })
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn control(effort: Effort) -> Outcome<()> {
    let (rounds, seconds) = (if effort.seconds > 3 { 11 } else { 5 }, 2 * effort.seconds);
    let trace = scratch("trace.csv");
    let row_of = |i: u32| format!("{}.{:03},0.{}\n", i / 1000, i % 1000, i % 2);
    fs::write(&trace, "time_s,loss_percent\n".to_owned() + &(0..POINTS).map(row_of).collect::<String>())?;
    head(
        &format!(
            "Lateness of 2,000 probes a second with requests on the control socket: {rounds} rounds of {seconds} s, medians"
        ),
        "to quiet",
        "99.9 % (least to most), 99 %",
    );
    let kinds = [
        ("quiet", Asked::Nothing),
        ("`stats` and `set`, each 10 times a second", Asked::Often),
        ("`packets` by three clients, each 4 times a second", Asked::Packets),
        ("quiet again", Asked::Nothing),
        ("`set` of a trace of a million points, once a second", Asked::Traces),
    ];
    let mut late: Vec<Vec<(f64, f64)>> = vec![Vec::new(); kinds.len()];
    for _ in 0..rounds {
        for ((_, asked), late) in kinds.iter().zip(&mut late) {
            let way = narrows("--rate 100mbit --delay 1ms --probe=2000");
            let done = way.run("sleep 600", &client(*asked, seconds, &trace)?)?;
            let of = |quantile| number(&done.report, &format!("/lateness/{quantile}")) / 1e3;
            late.push((of("p999_ns"), of("p99_ns")));
        }
    }
    let _ = fs::remove_file(&trace);
    let p999 = |late: &[(f64, f64)]| median(late.iter().map(|(p999, _)| *p999).collect());
    // What two rows of quiet rounds differ by is noise.
    let quiet = kinds.iter().zip(&late).filter(|((_, asked), _)| *asked == Asked::Nothing);
    let quiet: Vec<f64> = quiet.map(|(_, late)| p999(late)).collect();
    let (least_quiet, noise) = (quiet[0].min(quiet[1]), quiet[0].max(quiet[1]) / quiet[0].min(quiet[1]));
    for ((name, asked), late) in kinds.iter().zip(&late) {
        let all = || late.iter().map(|(p999, _)| *p999);
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let p99 = median(late.iter().map(|(_, p99)| *p99).collect());
        let figure = format!("{:.0} µs ({least:.0} to {most:.0}), {p99:.0} µs", p999(late));
        let aim =
            if *asked == Asked::Nothing { Aim::None } else { Aim::AtMost((noise * 100.0).ceil() / 100.0) };
        row(name, p999(late) / least_quiet, aim, &figure);
    }
    Ok(())
}
