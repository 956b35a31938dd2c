//! TCP: as fast as it goes, and at a rate both ways at once.

use serde_json::Value;

use crate::row::{Aim, head, left_out, row};
use crate::way::{Done, Way, narrows, number};
use crate::{Effort, Outcome};

const SERVER: &str = "iperf3 -s -1";

/// Each way for frames in and out: what narrows calls it, the bare forwarder's flags for the same, and the aim. TAP has no
/// bare one.
const WAYS: [(&str, Option<&'static [&'static str]>); 4] = [
    ("--backend af_packet", Some(&["--backend", "af_packet"])),
    ("--backend af_xdp", Some(&["--backend", "af_xdp"])),
    ("--trains", Some(&["--trains"])),
    ("--backend tap", None),
];

/// Gbit/s that arrived.
fn received(way: &Way, seconds: u32) -> Outcome<f64> {
    let done = way.run(SERVER, &format!("iperf3 -J -t {seconds} -c SERVER"))?;
    let json = done.json()?;
    if let Some(why) = json["error"].as_str() {
        return Err(why.into());
    }
    Ok(number(&json, "/end/sum_received/bits_per_second") / 1e9)
}

pub(crate) fn unlimited(effort: Effort) -> Outcome<()> {
    let title =
        format!("TCP, {} s each: narrows with 1 ms and no limit, beside a bare forwarder", effort.seconds);
    head(&title, "ratio", "");
    let gigabits = |value: f64| format!("{value:.3} Gbit/s");
    let kernel =
        [("the kernel routes", None), ("and shapes, TBF", Some("rate 10gbit burst 2mb latency 50ms"))];
    for (name, tbf) in kernel {
        match received(&Way::Router(tbf), effort.seconds) {
            Ok(value) => row(name, f64::NAN, Aim::None, &gigabits(value)),
            Err(why) => left_out(name, &why),
        }
    }
    let mut bare_xdp = f64::NAN;
    for (flags, bare) in WAYS {
        let mut base = f64::NAN;
        if let Some(bare) = bare {
            let name = format!("bare forwarder {}", bare.join(" "));
            match received(&Way::Forwarder(bare), effort.seconds) {
                Ok(value) => {
                    base = value;
                    row(&name, f64::NAN, Aim::None, &gigabits(value));
                }
                Err(why) => left_out(&name, &why),
            }
        }
        if flags.ends_with("af_xdp") {
            bare_xdp = base;
        }
        let name = format!("narrows --delay 1ms {flags}");
        match received(&narrows(&format!("--delay 1ms {flags}")), effort.seconds) {
            Ok(value) if base.is_nan() => row(&name, f64::NAN, Aim::None, &gigabits(value)),
            Ok(value) => row(&name, value / base, Aim::AtLeast(0.8), &gigabits(value)),
            Err(why) => left_out(&name, &why),
        }
    }
    // Whatever narrows takes by itself, packet by packet, beside the fastest bare forwarder that does so.
    match received(&narrows("--delay 1ms"), effort.seconds) {
        Ok(value) => {
            row("narrows --delay 1ms / bare af_xdp", value / bare_xdp, Aim::AtLeast(0.8), &gigabits(value))
        }
        Err(why) => left_out("narrows --delay 1ms", &why),
    }
    Ok(())
}

/// A full packet, as the rate counts it, and what of it is the program's: TCP with time stamps over IPv4.
const FULL: f64 = 1500.0;
const GOODPUT: f64 = 1448.0;

pub(crate) fn at_a_rate(effort: Effort) -> Outcome<()> {
    let seconds = effort.seconds.max(5);
    head(&format!("TCP at 1 Gbit/s, both ways at once, {seconds} s: % of what the headers leave"), "%", "");
    for flags in ["", "--backend af_packet", "--backend af_xdp", "--trains"] {
        let name = format!("narrows --rate 1gbit --delay 1ms {flags}");
        let way = narrows(&format!("--rate 1gbit --delay 1ms --queue 1000000B {flags}"));
        // The first second is slow start.
        match way.run(SERVER, &format!("iperf3 -J -O 1 --bidir -t {seconds} -c SERVER")) {
            Ok(done) => match done.json() {
                Ok(json) => both_ways(&name, &json, &done),
                Err(why) => left_out(&name, &why),
            },
            Err(why) => left_out(&name, &why),
        }
    }
    Ok(())
}

fn both_ways(name: &str, json: &Value, done: &Done) {
    let ways = [("up", "sum_received"), ("down", "sum_received_bidir_reverse")];
    for (number_of_way, (direction, key)) in ways.into_iter().enumerate() {
        let delivered = |what| done.number(&format!("/directions/{number_of_way}/delivered/{what}"));
        let (packets, bytes) = (delivered("packets"), delivered("bytes"));
        // Packets are full, or acknowledgements of the other way's, which are headers alone and count as such.
        let acknowledgements = (FULL * packets - bytes) / GOODPUT;
        let left = (1.0 - acknowledgements * (FULL - GOODPUT) / bytes) * GOODPUT / FULL;
        let goodput = number(json, &format!("/end/{key}/bits_per_second")) / 1e9;
        let figure = format!("{direction} {goodput:.4} of {left:.4} Gbit/s");
        row(name, 100.0 * goodput / left, Aim::AtLeast(98.0), &figure);
    }
}
