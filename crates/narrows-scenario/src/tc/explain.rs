//! Explains commands in words.

use narrows_core::Duration;

use super::bands::Bands;
use super::command::{Body, Command, Parent};
use super::filter::{Filter, Which};
use super::stab::Stab;
use super::unit::{FRAME, rate_of};
use super::verdict::Verdict;
use super::{class, etf, hfsc, qdisc};
use crate::dialect::text_of;
use crate::netem::{self, COPIES, Verb};
use crate::node::{Table, Value};
use crate::value::Match;

/// What is said of a change of netem in place of what is said of a new one.
const UNIFORM_UNLESS_KEPT: &str = "No distribution is named: that of before stays, or the jitter is uniform.";
const OVERTAKES_UNLESS_KEPT: &str =
    "A packet with a shorter delay may overtake the one before it, unless a rate stays from before.";
const COPIES_IN_A_CLASS: &str = "Each copy has its own delay, and is sent at the rate of the class.";
/// What is said of netem in a class.
fn in_a_class(limit: u64) -> String {
    format!(
        "Below `tbf` or another `netem` alone, the two become a link of two queues; in a class of another discipline it is the kernel's single queue: its limit of {limit} packets counts those in the delay, too, correlations are by NetEm's formula, and negative delays move packets ahead."
    )
}

/// Sentences about a command.
pub(super) fn command(command: &Command) -> Vec<String> {
    let device = command.device.as_deref().unwrap_or("every device");
    let place = match command.parent {
        Some(Parent::Root) => format!("the root of {device}"),
        Some(Parent::Ingress) => format!("where packets arrive at {device}"),
        Some(Parent::Egress) => format!("where packets leave by {device}"),
        Some(Parent::Of(handle)) => format!("{handle} at {device}"),
        None => device.to_owned(),
    };
    let verb = match command.verb {
        Verb::Add => "Puts",
        Verb::Change => "Changes",
        Verb::Replace => "Puts, or changes,",
        Verb::Delete => {
            let what = match &command.body {
                Body::Qdisc(_) => "the discipline and everything in it,".to_owned(),
                Body::Class { id, .. } => {
                    format!("the class {}", id.map(|id| id.to_string()).unwrap_or_default())
                }
                Body::Filter { head, .. } if command.is_chain => {
                    format!("the filters of chain {}", head.chain)
                }
                Body::Filter { .. } => "filters".to_owned(),
            };
            return vec![format!("Deletes {what} at {place}.")];
        }
        Verb::Show => return vec![format!("Shows {place}; changes nothing.")],
    };
    match &command.body {
        Body::Qdisc(None) | Body::Qdisc(Some(qdisc::Kind::Ingress)) => {
            vec![format!(
                "{verb} a place at {device} for filters before any queue: of packets that arrive, with `clsact` also of those that leave."
            )]
        }
        Body::Qdisc(Some(kind)) => {
            let handle =
                command.handle.map_or(String::new(), |handle| format!(", called {}", handle.qdisc()));
            let mut words = vec![format!("{verb} `{}` at {place}{handle}.", kind.name())];
            words.extend(command.stab.as_ref().map(Stab::words));
            let change = match kind {
                qdisc::Kind::Managed(managed) if command.verb == Verb::Change => managed.change_words(),
                _ => None,
            };
            match (kind, command.parent) {
                _ if change.is_some() => words.extend(change),
                // The explanation of a double queue may not apply there.
                (qdisc::Kind::Netem(netem), Some(Parent::Of(_)))
                    if let netem::Kind::Netem(own) = &netem.kind =>
                {
                    let options = netem.explain().options.into_iter();
                    let said = options
                        .filter(|option| !option.text.starts_with("limit"))
                        .flat_map(|option| option.meaning);
                    words.extend(said.map(|words| words.replace(COPIES, COPIES_IN_A_CLASS)));
                    words.push(in_a_class(own.limit.unwrap_or(netem::DEFAULT_LIMIT)));
                }
                (qdisc::Kind::Netem(_), _) if command.verb != Verb::Add => {
                    // A change keeps the distribution, and the rate, with which none overtakes another.
                    let kept = |word: String| match word.as_str() {
                        netem::UNIFORM => UNIFORM_UNLESS_KEPT.to_owned(),
                        netem::OVERTAKES => OVERTAKES_UNLESS_KEPT.to_owned(),
                        _ => word,
                    };
                    words.extend(of_qdisc(kind).into_iter().map(kept));
                }
                _ => words.extend(of_qdisc(kind)),
            }
            words
        }
        Body::Class { id, kind } => {
            let id = id.map_or(String::new(), |id| format!(" {id}"));
            let mut words = vec![format!("{verb} the class{id} below {place}.")];
            words.extend(kind.as_ref().map(of_class));
            words
        }
        Body::Filter { filter: Some(filter), .. } => {
            // A hook has no classes.
            let is_hook = matches!(command.parent, Some(Parent::Ingress | Parent::Egress));
            let own = Filter { class: filter.class.filter(|_| !is_hook), ..(**filter).clone() };
            [of_filter(&own, &place)].into_iter().chain(filter.notices.iter().cloned()).collect()
        }
        Body::Filter { filter: None, .. } => Vec::new(),
    }
}

fn of_qdisc(kind: &qdisc::Kind) -> Vec<String> {
    match kind {
        qdisc::Kind::Tbf(keys) => {
            let room = match keys.get("bound") {
                Some(_) => format!("{} may wait", text_of(keys, "bound")),
                None => format!("up to {} of the rate and a burst may wait", text_of(keys, "latency")),
            };
            let peak = keys
                .get("peakrate")
                .map_or(String::new(), |_| format!(", no faster than {}", text_of(keys, "peakrate")));
            vec![format!(
                "Rate {} per second, burst {} after idle time{peak}; {room}.",
                text_of(keys, "rate"),
                text_of(keys, "burst")
            )]
        }
        qdisc::Kind::Cbs(cbs) => {
            let of = |key| text_of(&cbs.keys, key);
            let words = format!(
                "A share of {} of the port, by credit of at most {}: a transmission costs {}, down to {} below zero.",
                of("idle-slope"),
                of("hi-credit"),
                of("send-slope"),
                of("lo-credit")
            );
            vec![words]
        }
        qdisc::Kind::Htb(htb) => vec![match htb.default {
            0 => "A tree of token buckets. Unclassified packets are not shaped.".into(),
            class => format!("A tree of token buckets. Unclassified packets go to the class {class:x}, if it is there and no class is below it; otherwise they are not shaped."),
        }],
        qdisc::Kind::Hfsc(default) => vec![match default {
            0 => "A tree of service curves. Unclassified packets are dropped.".into(),
            class => format!("A tree of service curves. Unclassified packets go to the class {class:x}, if it is there; otherwise they are dropped."),
        }],
        qdisc::Kind::Cbq(keys) => vec![format!(
            "A tree of classes on a wire of {}, limited to their rates by idle time; the mean packet is {}. (Linux has had no `cbq` since 6.8.)",
            text_of(keys, "bandwidth"),
            text_of(keys, "avpkt")
        )],
        qdisc::Kind::Ets(ets) => {
            let quanta: Vec<String> = ets.quanta.iter().map(u32::to_string).collect();
            let share = match &quanta[..] {
                [] => String::new(),
                all => format!(", then turns of {} bytes", all.join(", ")),
            };
            let map = ets.bands.map;
            vec![
                format!("{} bands: {} in strict priority{share}.", ets.bands.bands, ets.strict),
                format!(
                    "Unclassified packets go by their TOS bits: band {} for neither, {} for high throughput, {} for low delay, {} for both.",
                    map[0], map[2], map[6], map[4]
                ),
            ]
        }
        qdisc::Kind::Taprio(taprio) => {
            let entry = |(lasts, gates): &(Duration, u32)| format!("{lasts} 0x{gates:x}");
            let entries: Vec<String> = taprio.entries.iter().map(entry).collect();
            vec![format!(
                "{} traffic classes in strict priority, the last one first, whose gates open by a schedule: {}.",
                taprio.bands.bands,
                entries.join(", ")
            )]
        }
        qdisc::Kind::Prio(prio) => {
            let mut words = vec![format!("{} bands in strict priority, the first one first.", prio.bands)];
            if prio.map == Bands::MAP {
                words.push(
                    "Unclassified packets go by their TOS bits: low delay first, high throughput last."
                        .into(),
                );
            } else {
                words.push(format!(
                    "Unclassified packets go by their TOS bits: band {} for neither, {} for high throughput, {} for low delay, {} for both.",
                    prio.map[0], prio.map[2], prio.map[6], prio.map[4]
                ));
            }
            words
        }
        qdisc::Kind::Hpd(hpd) => {
            let mut words = vec!["Classes with delays proportional to their `ddp`.".to_owned()];
            for (point, class) in &hpd.dscps {
                words.push(format!("Packets of the code point {point} are in the class {class}."));
            }
            words
        }
        qdisc::Kind::Drr => vec![
            "Classes that take turns of so many bytes each: deficit round robin. Unclassified packets are dropped."
                .into(),
        ],
        qdisc::Kind::Qfq => vec![
            "Classes that share in proportion to their weights: quick fair queueing. Unclassified packets are dropped."
                .into(),
        ],
        qdisc::Kind::Gred(gred) => gred.words(),
        qdisc::Kind::Multiq => {
            vec!["A queue for each transmit queue of the device. A link has one, with the discipline in class 1, or a plain queue.".into()]
        }
        qdisc::Kind::Mqprio { in_hardware, .. } => {
            let words = "Transmit queues for classes of priorities. A link has one transmit queue, which all of them share, with the discipline in its class 1.";
            let chooses = "The device's hardware would choose among its queues, by settings that are not in the script (`hw 0` leaves that to the kernel).";
            [words].into_iter().chain(in_hardware.then_some(chooses)).map(Into::into).collect()
        }
        qdisc::Kind::Mq => {
            vec!["A discipline for each transmit queue. A link has one, with the discipline in its class 1.".into()]
        }
        qdisc::Kind::Managed(managed) => {
            [managed.words()].into_iter().chain(managed.remarks.iter().cloned()).collect()
        }
        qdisc::Kind::Netem(netem) => {
            let explained = netem.explain();
            explained
                .options
                .into_iter()
                .flat_map(|option| {
                    let bare = option
                        .bare_numbers
                        .into_iter()
                        .map(|(number, as_)| format!("{number} is taken as {as_}."));
                    bare.chain(option.meaning).collect::<Vec<_>>()
                })
                .chain(explained.notes)
                .collect()
        }
        qdisc::Kind::Etf(_) => vec![etf::LAUNCHED.into()],
        qdisc::Kind::Ingress => Vec::new(),
    }
}

fn of_class(class: &class::Kind) -> String {
    let keys = &class.keys;
    let or = |key: &str, usual: &str| match keys.get(key) {
        Some(_) => text_of(keys, key),
        None => usual.to_owned(),
    };
    let is = |key: &str| keys.get(key).is_some();
    match class.of {
        class::Of::Htb => {
            let (own, ceil) = (text_of(keys, "rate"), or("ceil", ""));
            let priority = or("priority", "0");
            let (rate, limit) = (rate_of(keys, "rate"), rate_of(keys, "ceil"));
            if limit.is_none() || limit == rate {
                format!("Rate {own}, no borrowing; priority {priority}.")
            } else if limit < rate {
                format!("Up to {ceil}: `ceil` is below the rate of {own}; priority {priority}.")
            } else {
                format!("Guaranteed {own}, up to {ceil} by borrowing; priority {priority}.")
            }
        }
        class::Of::Cbq => {
            let own = or("rate", "the wire's rate");
            let borrows =
                if is("bounded") || is("isolated") { "never borrows" } else { "borrows where there is more" };
            let lends = if is("isolated") { ", never lends" } else { "" };
            format!("It has {own}, {borrows}{lends}; priority {}.", or("priority", "8"))
        }
        class::Of::Hfsc => hfsc::explained(keys),
        class::Of::Ets => match is("quantum") {
            true => format!("It sends {} per turn.", text_of(keys, "quantum")),
            false => "Nothing changes.".into(),
        },
        class::Of::Drr => format!("It sends {} per turn.", or("quantum", &FRAME.to_string())),
        class::Of::Qfq => format!(
            "Weight {}, packets of up to {} expected.",
            or("weight", "1"),
            or("longest", "1500 bytes")
        ),
        class::Of::Hpd => {
            let limit = match keys.get("limit") {
                None => "no limit".to_owned(),
                Some(_) => format!("maximum waiting time {}", text_of(keys, "limit")),
            };
            let gamma = match text_of(keys, "gamma").as_str() {
                "auto" => "by the backlog".to_owned(),
                gamma => gamma.to_owned(),
            };
            format!(
                "Its delay is in proportion to {}; {limit}; {gamma} of the newest delay and {} of the average count, in 1024ths.{}",
                text_of(keys, "ddp"),
                text_of(keys, "g"),
                if class.is_default { " Unclassified packets go to it." } else { "" }
            )
        }
    }
}

/// The keys of an edit.
fn written(keys: &Table) -> String {
    let parts = keys.iter().map(|(key, node)| {
        let name = key.name.replace('-', " ");
        match &node.value {
            Value::Integer(number) if name == "ether type" => {
                format!("{name} {:#06x}", number.parse::<u32>().unwrap_or_default())
            }
            Value::Integer(value) | Value::String(value) => format!("{name} {value}"),
            _ => match name.as_str() {
                "mark" => "a mark of congestion, if ECN-capable".into(),
                _ => "their MAC addresses swapped".into(),
            },
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn of_filter(filter: &Filter, place: &str) -> String {
    let which = match &filter.which {
        Which::Match(None) => "All packets".to_owned(),
        Which::Match(Some(matches)) => format!("Packets with {matches}"),
        Which::Any(any) => {
            let any: Vec<String> = any.iter().map(ToString::to_string).collect();
            format!("Packets with {}", any.join(", or with "))
        }
        Which::Mark(mark) => {
            let also = mark
                .also
                .as_deref()
                .filter(|also| **also != Match { families: also.families.clone(), ..Match::default() });
            let also = also.map_or(String::new(), |also| format!(", and with {also}"));
            match (mark.mask, mark.value) {
                (u32::MAX, value) => format!("Packets with the mark {value}{also}"),
                (mask, value) => format!("Packets with the mark {value:#x} under the mask {mask:#x}{also}"),
            }
        }
        Which::AnyMark => return format!("Packets go to the class that their mark names ({place})."),
        Which::Tables(table) => return table.explained(filter.class),
        Which::Flow(flow) => {
            return format!("Packets go to the queue or class that {} names ({place}).", flow.words());
        }
        Which::Nothing => return format!("A filter that decides nothing ({place})."),
    };
    if let (Some(keys), true) =
        (filter.set.as_ref().or(filter.gate.as_ref()), filter.verdict != Verdict::Drop)
    {
        let does = match (&filter.set, keys.get("schedule").map(|node| &node.value)) {
            (None, Some(Value::Array(entries))) => {
                format!("pass a gate with {} entries in its schedule", entries.len())
            }
            _ => match &filter.only {
                Some(only) => format!("with {only} get {}", written(keys)),
                None => format!("get {}", written(keys)),
            },
        };
        let then = match (filter.verdict, filter.class) {
            (Verdict::Next, _) => ", and go on to the next filters".into(),
            (Verdict::Goto(chain), _) => format!(", and go on to the filters of chain {chain}"),
            (_, Some(class)) => format!(", and go to the class {class}"),
            _ => String::new(),
        };
        return format!("{which} {does}{then} ({place}).");
    }
    match (filter.verdict, filter.class) {
        (Verdict::Drop, _) => return format!("{which} are dropped ({place})."),
        (Verdict::Goto(chain), _) if filter.police.is_none() => {
            return format!("{which} go on to the filters of chain {chain} ({place}).");
        }
        (Verdict::Next, _) if filter.police.is_none() => {
            return format!("{which} go on to the next filters ({place}).");
        }
        (Verdict::Class, None) if filter.police.is_none() && filter.redirect.is_none() => {
            return match filter.prioritizes {
                Some(value) => {
                    format!("{which} get the priority {:x}:{:x} ({place}).", value >> 16, value & 0xffff)
                }
                None => format!("{which} pass, with no class of their own ({place})."),
            };
        }
        _ => {}
    }
    match (filter.class, &filter.police) {
        (_, Some(police)) => {
            let beyond = match (text_of(police, "exceed").as_str(), &filter.exceeding) {
                (_, Some(device)) => format!("leave by {device}"),
                ("pass", _) => "pass".into(),
                ("next", _) => "go on to the next filters".into(),
                _ => "are dropped".into(),
            };
            format!(
                "{which}, {place}: packets above {} with a burst of {} {beyond}.",
                text_of(police, "rate"),
                text_of(police, "burst")
            )
        }
        (class, None) => match (&filter.redirect, class) {
            (Some(device), _) => format!("{which}, {place}, go to {device}."),
            (None, Some(class)) => format!("{which} go to the class {class} ({place})."),
            (None, None) => String::new(),
        },
    }
}
