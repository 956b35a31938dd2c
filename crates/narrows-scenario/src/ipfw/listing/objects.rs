//! Output of `pipe show`, `queue show` and `sched show`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use narrows_core::classify::{Flow, FlowMask};
use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate};

use super::address;
use crate::dialect::{number_of, text_of};
use crate::ipfw::config::{AQMS, COMMON, Config, Object, SCHEDULERS, SchedulerType, or_usual, threshold};
use crate::ipfw::text::protocol;
use crate::node::Table;
use crate::units::{self, Share};

/// A flow of a mask, with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedFlow {
    /// The packet fields that the mask keeps.
    pub flow: Flow,
    /// Whether the mask distinguishes queues.
    pub by_queue: bool,
    /// Arrived packets.
    pub packets: u64,
    /// Arrived bytes.
    pub bytes: u64,
    /// Backlog in packets.
    pub waiting: u64,
    /// Backlog in bytes.
    pub waiting_bytes: u64,
    /// Dropped packets.
    pub dropped: u64,
}

/// The lines of `pipe show`, `queue show` or `sched show`, for these numbers or for all. `flows` returns
/// the flows of an object.
pub fn object_lines(
    objects: &BTreeMap<(Object, u32), Config>,
    object: Object,
    numbers: &[RangeInclusive<u32>],
    flows: impl Fn(Object, u32) -> Vec<ListedFlow>,
) -> String {
    let mut text = String::new();
    let mut header = false;
    let wanted = |number: u32| numbers.is_empty() || numbers.iter().any(|range| range.contains(&number));
    for config in objects.values().filter(|config| config.object == object && wanted(config.number)) {
        let own = flows(object, config.number);
        match object {
            Object::Pipe => {
                link_line(&mut text, config);
                // The internal objects of a pipe have numbers above its own.
                const BEYOND: u32 = 65_536;
                queue_line(&mut text, config, config.number + 2 * BEYOND, config.number + BEYOND, own.len());
                let inside = (&SCHEDULERS[0], &Table::default());
                scheduler_line(&mut text, config.number + BEYOND, inside, config.mask, own.len());
                mask_line(&mut text, config.mask);
            }
            Object::Queue => {
                queue_line(&mut text, config, config.number, config.parent().unwrap_or(0), own.len());
                mask_line(&mut text, config.mask);
            }
            Object::Scheduler => {
                let unlimited = Config::new(Object::Pipe, config.number);
                link_line(&mut text, objects.get(&(Object::Pipe, config.number)).unwrap_or(&unlimited));
                let kind = config.scheduler().unwrap_or((&SCHEDULERS[1], &config.keys));
                scheduler_line(&mut text, config.number, kind, config.mask, own.len());
                mask_line(&mut text, config.mask);
                let children: Vec<String> = objects
                    .values()
                    .filter(|child| child.object == Object::Queue && child.parent() == Some(config.number))
                    .map(|child| child.number.to_string())
                    .collect();
                if !children.is_empty() {
                    text += &format!("   Children flowsets: {}\n", children.join(" "));
                }
            }
        }
        for (index, flow) in own.iter().enumerate() {
            if !header {
                text += flow_header(flow);
                header = true;
            }
            flow_line(&mut text, index, flow);
        }
    }
    text
}

fn link_line(text: &mut String, config: &Config) {
    let rate = match config.rate() {
        Rate::UNLIMITED => "unlimited     ".into(),
        rate => {
            let bits = rate.bits_per_second() as f64;
            match rate.bits_per_second() {
                0..1_000 => format!("{bits:7.3} bit/s "),
                1_000..1_000_000 => format!("{:7.3} Kbit/s", bits / 1e3),
                1_000_000..1_000_000_000 => format!("{:7.3} Mbit/s", bits / 1e6),
                _ => format!("{:7.3} Gbit/s", bits / 1e9),
            }
        }
    };
    let delay = config.keys.get("delay").and_then(|node| units::time(node).ok()).unwrap_or_default();
    let delay = milliseconds(delay);
    let burst = config.keys.get("burst").and_then(|node| units::size(node).ok()).unwrap_or_default().get();
    *text += &format!("{:05}: {rate} {delay:>4} ms burst {burst}\n", config.number);
    if config.says("profile") {
        *text += &format!("\t profile: name \"{}\"\n", text_of(&config.keys, "profile"));
    }
}

/// Milliseconds without trailing zeros.
fn milliseconds(time: Duration) -> String {
    let (whole, part) = (time.nanos() / 1_000_000, time.nanos() % 1_000_000);
    match part {
        0 => whole.to_string(),
        _ => format!("{whole}.{}", format!("{part:06}").trim_end_matches('0')),
    }
}

fn queue_line(text: &mut String, config: &Config, number: u32, scheduler: u32, flows: usize) {
    let bound = match config.bound() {
        Some(Bound::Bytes(bytes)) if bytes.get() >= 8192 => format!("{} KB", bytes.get() / 1024),
        Some(Bound::Bytes(bytes)) => format!("{} B", bytes.get()),
        Some(Bound::Packets(packets)) => format!("{packets:>3} sl."),
        None => " 50 sl.".into(),
    };
    let mut before = Table::default();
    config.keys.get("loss").into_iter().for_each(|loss| before.set("loss", loss.clone()));
    let loss = COMMON.show(&before).unwrap_or_default();
    let managed = config.managed().map_or("droptail".into(), managed);
    let [weight, longest, priority] =
        ["weight", "longest", "priority"].map(|key| number_of::<u32>(&config.keys, key).unwrap_or(0));
    *text += &format!(
        "q{number:05} {bound}{loss} {flows} flows (1 buckets) sched {scheduler} weight {weight} lmax {longest} pri {priority} {managed}\n"
    );
}

/// The AQM of a queue.
fn managed(keys: &Table) -> String {
    let name = text_of(keys, "type");
    if let Some(aqm) = AQMS.iter().find(|aqm| aqm.name == name) {
        let words = aqm.options.show(&or_usual(keys, &[aqm.usual, aqm.own]));
        return format!(" AQM {} {}", aqm.printed, words.unwrap_or_default());
    }
    let number = |key| keys.get(key).and_then(|node| Share::read_of_several(node).ok());
    let number = |key| number(key).map_or(0.0, Share::as_f64);
    format!(
        "\n\t {}RED w_q {:.6} min_th {} max_th {} max_p {:.6}{}",
        if name == "gred" { 'G' } else { ' ' },
        number("weight"),
        threshold(keys, "min"),
        threshold(keys, "max"),
        number("probability"),
        if text_of(keys, "ecn") == "true" { " (ecn)" } else { "" }
    )
}

fn scheduler_line(
    text: &mut String,
    number: u32,
    (kind, keys): (&SchedulerType, &Table),
    mask: Option<FlowMask>,
    active: usize,
) {
    let flags = u8::from(mask.is_some());
    let buckets = if mask.is_some() { 64 } else { 0 };
    *text += &format!(
        " sched {number} type {} flags 0x{flags:x} {buckets} buckets {active} active\n",
        kind.printed
    );
    if kind.manages() {
        let words = kind.options.show(&or_usual(keys, &[&[kind.own], kind.usual].concat()));
        *text += &format!(" {} {}\n", kind.printed, words.unwrap_or_default());
    }
}

fn mask_line(text: &mut String, mask: Option<FlowMask>) {
    let Some(mask) = mask else { return };
    let queue = if mask.queue { "queue," } else { "" };
    let is_v6 = mask.source_v6 | mask.destination_v6 != 0 || mask.flow_label != 0;
    if is_v6 {
        let v6 = |bits: u128| std::net::Ipv6Addr::from(bits);
        *text += &format!(
            "        mask: {queue}proto: 0x{:02x}, flow_id: 0x{:08x},  {}/0x{:04x} -> {}/0x{:04x}\n",
            mask.protocol,
            mask.flow_label,
            v6(mask.source_v6),
            mask.source_port,
            v6(mask.destination_v6),
            mask.destination_port
        );
    }
    if !is_v6 || mask.source_v4 | mask.destination_v4 != 0 {
        *text += &format!(
            "    mask: {queue} 0x{:02x} 0x{:08x}/0x{:04x} -> 0x{:08x}/0x{:04x}\n",
            mask.protocol, mask.source_v4, mask.source_port, mask.destination_v4, mask.destination_port
        );
    }
}

fn is_v6(flow: &Flow) -> bool {
    let v6 = |bits: u128| bits != 0 && address(bits).is_ipv6();
    flow.flow_label != 0 || v6(flow.source) || v6(flow.destination)
}

fn flow_header(flow: &ListedFlow) -> &'static str {
    if is_v6(&flow.flow) {
        "BKT ___Prot___ _flow-id_ ______________Source IPv6/port_______________ _______________Dest. IPv6/port_______________ Tot_pkt/bytes Pkt/Byte Drp\n"
    } else {
        "BKT Prot ___Source IP/port____ ____Dest. IP/port____ Tot_pkt/bytes Pkt/Byte Drp\n"
    }
}

fn flow_line(text: &mut String, index: usize, listed: &ListedFlow) {
    let flow = &listed.flow;
    let mark = if listed.by_queue { '*' } else { ' ' };
    // The mask keeps nothing of it: ipfw calls protocol 0 `ip`.
    let name = if flow.protocol == 0 { "ip".into() } else { protocol(flow.protocol) };
    write!(text, "{:>3}{mark}", index & 0xff).expect("writing to a string does not fail");
    let v4 = |bits: u128| std::net::Ipv4Addr::from(bits as u32); // the last four bytes
    *text += &if is_v6(flow) {
        let v6 = |bits: u128| std::net::Ipv6Addr::from(bits).to_string();
        format!(
            "{name:>9} {:>7}  {:>39}/{:<5}  {:>39}/{:<5} ",
            flow.flow_label,
            v6(flow.source),
            flow.source_port,
            v6(flow.destination),
            flow.destination_port
        )
    } else {
        format!(
            "{name:<4} {:>15}/{:<5} {:>15}/{:<5} ",
            v4(flow.source).to_string(),
            flow.source_port,
            v4(flow.destination).to_string(),
            flow.destination_port
        )
    };
    *text += &format!(
        "{:>4} {:>8} {:>2} {:>4} {:>3}\n",
        listed.packets, listed.bytes, listed.waiting, listed.waiting_bytes, listed.dropped
    );
}
