//! Packets of 64 bytes: what an iperf3 sends, and what a sender in batches does.

use std::fs;

use crate::inside::{offer, stay};
use crate::row::{Aim, head, left_out, row};
use crate::way::{Done, Way, narrows, number, scratch};
use crate::{Effort, Outcome};

/// Frames of so many bytes.
pub(crate) const SMALL: usize = 64;

/// What became of frames that were offered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    /// Sent a second.
    pub(crate) sent: f64,
    /// Arrived a second.
    pub(crate) came: f64,
}

/// Offers frames through a way; with the report where there is one.
pub(crate) fn offered(
    way: &Way,
    seconds: u32,
    rate: u32,
    length: usize,
) -> Outcome<(Offered, serde_json::Value)> {
    let file = scratch("server");
    let done = way.run(&stay(&file)?, &offer(&file, seconds, rate, length)?);
    let _ = fs::remove_file(&file);
    let done = done?;
    let json = done.json()?;
    let seconds = number(&json, "/seconds");
    let offered = Offered { sent: number(&json, "/sent") / seconds, came: number(&json, "/came") / seconds };
    Ok((offered, done.report))
}

pub(crate) fn small_packets(effort: Effort) -> Outcome<()> {
    head(
        &format!(
            "UDP, frames of {SMALL} bytes by a sender in batches, as many as it can, {} s each",
            effort.seconds
        ),
        "ratio",
        "delivered of offered a second",
    );
    let ways: [(&str, &'static [&'static str]); 2] = [
        ("--backend af_packet", &["--backend", "af_packet"]),
        ("--backend af_xdp", &["--backend", "af_xdp"]),
    ];
    let figure = |seen: Offered| format!("{:.0} of {:.0}", seen.came, seen.sent);
    for (flags, bare) in ways {
        let (mut base, name) = (f64::NAN, format!("bare forwarder {flags}"));
        match offered(&Way::Forwarder(bare), effort.seconds, 0, SMALL) {
            Ok((seen, _)) => {
                base = seen.came;
                row(&name, f64::NAN, Aim::None, &figure(seen));
            }
            Err(why) => left_out(&name, &why),
        }
        let name = format!("narrows {flags}");
        match offered(&narrows(flags), effort.seconds, 0, SMALL) {
            Ok((seen, _)) => row(&name, seen.came / base, Aim::AtLeast(0.8), &figure(seen)),
            Err(why) => left_out(&name, &why),
        }
    }
    Ok(())
}

/// The share of iperf3's datagrams that its server did not get, in percent; with the report where there is one.
fn lost(way: &Way, seconds: u32) -> Outcome<(f64, Done)> {
    let done = way.run(
        "iperf3 -s -1 --logfile /dev/null",
        &format!("iperf3 -J -u -b 92.16M -l 64 -t {seconds} -c SERVER"),
    )?;
    let json = done.json()?;
    match json["error"].as_str() {
        Some(why) => Err(why.into()),
        None => Ok((number(&json, "/end/sum/lost_percent"), done)),
    }
}

/// With the buffers that users have: what a socket of 208 KiB loses while its program waits for a processor.
pub(crate) fn default_buffers(effort: Effort) -> Outcome<()> {
    let seconds = effort.seconds.max(10);
    let title = format!(
        "UDP, iperf3's 180,000 datagrams of 64 bytes a second with default buffers, {seconds} s each"
    );
    head(&title, "% lost", "packet threads");
    let bare = [
        ("the kernel routes", Way::Router(None)),
        ("bare forwarder --backend af_packet", Way::Forwarder(&["--backend", "af_packet"])),
        ("bare forwarder --backend af_xdp", Way::Forwarder(&["--backend", "af_xdp"])),
    ];
    for (name, way) in bare {
        match lost(&way, seconds) {
            Ok((lost, _)) => row(name, lost, Aim::None, ""),
            Err(why) => left_out(name, &why),
        }
    }
    for flags in ["", "--delay 1ms", "--delay 1ms --backend af_packet", "--delay 1ms --wait spin"] {
        let name = format!("narrows {flags}");
        match lost(&narrows(flags), seconds) {
            Ok((lost, done)) => {
                let share = 100.0 * done.number("/host/loop_processor_share");
                let late = done.number("/sent_lateness/p99_ns") / 1e3;
                let figure = format!("{share:.0} % of a processor, p99 {late:.0} µs late");
                row(&name, lost, Aim::AtMost(1.0), &figure);
            }
            Err(why) => left_out(&name, &why),
        }
    }
    Ok(())
}
