//! `narrows packets`: prints packets of a run and what happened to them.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use clap::Args;
use narrows_core::DropReason;
use narrows_live::control::{Client, ControlError, PacketRecord, PacketsSince};
use narrows_report::human;
use serde_json::json;

use crate::output::{Failure, print, say};

/// How many names an error has.
const MOST_NAMES: usize = 20;

/// Polling interval.
const EACH: Duration = Duration::from_millis(250);

/// The arguments of `narrows packets`.
#[derive(Debug, Args)]
#[command(after_help = "\
Packets are recorded from the start of this command on. Under heavy traffic only a part is shown, drops first;
the rest is counted.

Examples:
  narrows packets
  narrows packets --run dsl --drops
  narrows packets --link access.up --protocol udp --count 20
  narrows packets --drops --json | jq -r '.settings[]?'")]
pub(crate) struct ShowPackets {
    /// Show dropped packets only
    #[arg(long)]
    drops: bool,
    /// Show packets from or to this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Show packets that crossed, or were dropped by, this link, or a direction of it, as in access.up
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// Show packets dropped for this reason: "queue full", "wire loss"
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Show packets of this protocol: tcp, udp, icmp, or a number
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// Stop after this many packets [default: when the run ends]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print packets as JSON, one per line
    #[arg(long)]
    json: bool,
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long)]
    run: Option<String>,
}

pub(crate) fn packets(args: &ShowPackets) -> Result<u8, Failure> {
    let run = Client::find_or_start(args.run.as_deref())?;
    args.check(&run)?;
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut before: Option<PacketsSince> = None;
    loop {
        let after = before.as_ref().and_then(|before| before.packets.last()).map_or(0, |packet| packet.seen);
        let mut new = match run.packets(after) {
            // The end of the run is the regular end, once the run was found.
            Err(ControlError::Nobody { .. } | ControlError::Broken { .. }) if before.is_some() => {
                say(format_args!("narrows: {} has ended", args.run.as_deref().unwrap_or("the run")));
                return Ok(0);
            }
            answer => answer?,
        };
        for packet in new.packets.iter().filter(|packet| args.shows(packet)) {
            print(&if args.json { json_line(packet)? } else { line(packet) })?;
            left -= 1;
            if left == 0 {
                return Ok(0);
            }
        }
        let (delivered, dropped) = not_shown(before.as_ref(), &new);
        if args.json && delivered + dropped > 0 {
            let counts = json!({ "left_out_delivered": delivered, "left_out_dropped": dropped });
            print(&format!("{counts}\n"))?;
        } else if if args.drops { dropped > 0 } else { delivered + dropped > 0 } {
            print(&format!(
                "    (too many to show: {} delivered, {} dropped)\n",
                human::count(delivered),
                human::count(dropped)
            ))?;
        }
        // The number of the last packet stays known.
        if let Some(known) = before.filter(|_| new.packets.is_empty()) {
            new.packets = known.packets;
        }
        before = Some(new);
        thread::sleep(EACH);
    }
}

/// The names of protocols in records; others have numbers.
const PROTOCOLS: [&str; 5] = ["tcp", "udp", "icmp", "icmpv6", "sctp"];

impl ShowPackets {
    /// Fails where no packet of the run could ever match.
    fn check(&self, run: &Client) -> Result<(), Failure> {
        let known = |flag: &str, found: &Option<String>, all: &[&str]| match found {
            Some(found) if !all.contains(&found.as_str()) => {
                let names: Vec<&str> = all.iter().copied().take(MOST_NAMES).collect();
                let more = if all.len() > MOST_NAMES { ", …" } else { "" };
                Err(Failure::Other(format!(
                    "{flag} {found}: there is no such thing; known: {}{more}",
                    names.join(", ")
                )))
            }
            _ => Ok(()),
        };
        let is_number = |text: &String| text.parse::<u8>().is_ok();
        if !self.protocol.as_ref().is_some_and(is_number) {
            known("--protocol", &self.protocol, &PROTOCOLS)?;
        }
        known("--reason", &self.reason, &DropReason::ALL.map(DropReason::name))?;
        if self.host.is_none() && self.link.is_none() {
            return Ok(());
        }
        let scenario = run.scenario()?;
        let hosts: BTreeSet<&str> = scenario.ports.iter().map(|port| port.host.as_str()).collect();
        known("--host", &self.host, &hosts.into_iter().collect::<Vec<_>>())?;
        let directions = scenario.links.iter().map(|link| link.link.as_str());
        let whole = directions.clone().filter_map(|name| name.split_once('.').map(|(link, _)| link));
        // Rules, routers and switches drop packets, too; a scenario has a table for each.
        let table = |line: &'_ str| {
            let name =
                ["[links.", "[routers.", "[switches."].into_iter().find_map(|of| line.strip_prefix(of))?;
            Some(name.trim_end_matches(']').to_owned())
        };
        let tables: Vec<String> = scenario.toml.lines().filter_map(table).collect();
        let links: BTreeSet<&str> =
            directions.chain(whole).chain(tables.iter().map(String::as_str)).collect();
        known("--link", &self.link, &links.into_iter().collect::<Vec<_>>())
    }

    fn shows(&self, packet: &PacketRecord) -> bool {
        let of_host = |host: &String| packet.from == *host || packet.to == *host;
        let of_link = |link: &String| {
            let is_it = |one: &String| {
                one == link || one.strip_prefix(link.as_str()).is_some_and(|way| way.starts_with('.'))
            };
            is_it(&packet.place) || packet.path.iter().any(is_it)
        };
        (!self.drops || packet.is_dropped())
            && self.host.as_ref().is_none_or(of_host)
            && self.link.as_ref().is_none_or(of_link)
            && self.reason.as_ref().is_none_or(|reason| packet.reason == *reason)
            && self.protocol.as_ref().is_none_or(|protocol| packet.protocol == *protocol)
    }
}

/// How many packets since the last answer are in no answer: delivered and dropped.
fn not_shown(before: Option<&PacketsSince>, now: &PacketsSince) -> (u64, u64) {
    // What was counted for others before this command began is not ours.
    let Some(before) = before else { return (0, 0) };
    let same = before.since_ns == now.since_ns;
    let grown = |now: u64, then: u64| now.saturating_sub(if same { then } else { 0 });
    (
        grown(now.counts.left_out_delivered, before.counts.left_out_delivered),
        grown(now.counts.left_out_dropped, before.counts.left_out_dropped),
    )
}

fn json_line(packet: &PacketRecord) -> Result<String, Failure> {
    let text = serde_json::to_string(packet).map_err(|error| Failure::Other(error.to_string()))?;
    Ok(format!("{text}\n"))
}

/// `   1.204331 s  udp 10.1.0.1:4242 > 10.1.0.2:53, 1028 bytes, queued 3.000 ms: dropped by link.up: the queue was full (…)`.
fn line(packet: &PacketRecord) -> String {
    let at = packet.departure_ns / 1000;
    let queued = match packet.queueing_ns {
        0 => String::new(),
        waited => format!(", queued {}", human::span(waited)),
    };
    format!(
        "{:>5}.{:06} s  {}, {} bytes{queued}: {}\n",
        at / 1_000_000,
        at % 1_000_000,
        ends(packet),
        packet.length_bytes,
        packet.text
    )
}

/// `udp 10.1.0.1:4242 > 10.1.0.2:53`.
fn ends(packet: &PacketRecord) -> String {
    if packet.protocol.is_empty() {
        return format!("not IP, from {}", packet.port);
    }
    // Other protocols have no ports.
    let has_ports = matches!(packet.protocol.as_str(), "tcp" | "udp" | "sctp");
    let end = |address: &str, port: u16| match (has_ports, address.contains(':')) {
        (false, _) => address.to_owned(),
        (true, false) => format!("{address}:{port}"),
        (true, true) => format!("[{address}]:{port}"),
    };
    let (source, destination) =
        (end(&packet.source, packet.source_port), end(&packet.destination, packet.destination_port));
    format!("{} {source} > {destination}", packet.protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> PacketRecord {
        PacketRecord {
            protocol: "udp".into(),
            source: "10.1.0.1".into(),
            source_port: 4242,
            destination: "fd00::2".into(),
            destination_port: 53,
            length_bytes: 1028,
            queueing_ns: 3_000_000,
            departure_ns: 1_204_331_000,
            text: "delivered to server.link".into(),
            ..PacketRecord::default()
        }
    }

    #[test]
    fn a_line_says_who_when_and_what() {
        let wanted = "    1.204331 s  udp 10.1.0.1:4242 > [fd00::2]:53, 1028 bytes, queued 3.000 ms: \
                      delivered to server.link\n";
        assert_eq!(line(&packet()), wanted);
        let ping = PacketRecord { protocol: "icmp".into(), queueing_ns: 0, ..packet() };
        assert!(line(&ping).contains("icmp 10.1.0.1 > fd00::2, 1028 bytes: "));
    }

    #[test]
    fn what_is_not_shown_is_counted_since_the_last_answer() {
        let of = |since_ns, left_out_dropped| PacketsSince {
            since_ns,
            counts: narrows_live::control::PacketCounts { left_out_dropped, ..Default::default() },
            ..PacketsSince::default()
        };
        assert_eq!(not_shown(None, &of(1, 9)), (0, 0));
        assert_eq!(not_shown(Some(&of(1, 4)), &of(1, 9)), (0, 5));
        assert_eq!(not_shown(Some(&of(1, 9)), &of(2, 3)), (0, 3));
    }
}
