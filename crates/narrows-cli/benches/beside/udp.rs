//! Packets of 64 bytes: what an iperf3 sends, and what a sender in batches does.

use std::fs;

use crate::inside::{offer, stay};
use crate::row::{Aim, head, left_out, row};
use crate::way::{Way, narrows, number, scratch};
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
    let name = "narrows, iperf3 at 180,000 a second";
    let client = format!("iperf3 -J -u -b 92.16M -l 64 -w 4M -t {} -c SERVER", effort.seconds);
    match narrows("").run("iperf3 -s -1", &client) {
        Ok(done) => {
            let offered = done.number("/directions/0/offered/packets");
            let lost = done.number("/losses/receive_ring_dropped_packets");
            let delivered = done.number("/directions/0/delivered/packets");
            let figure = format!("{:.0} a second taken", offered / f64::from(effort.seconds));
            row(name, delivered / (offered + lost), Aim::AtLeast(1.0), &figure);
        }
        Err(why) => left_out(name, &why),
    }
    Ok(())
}
