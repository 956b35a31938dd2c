//! What a command does, in words.

use super::command::{Body, Command, Parent};
use super::filter::Filter;
use super::translate::kind_name;
use super::{class, qdisc};
use crate::netem::Verb;

/// Sentences about a command.
pub(super) fn command(command: &Command) -> Vec<String> {
    let device = command.device.as_deref().unwrap_or("every device");
    let place = match command.parent {
        Some(Parent::Root) => format!("the root of {device}"),
        Some(Parent::Ingress) => format!("where packets arrive at {device}"),
        Some(Parent::Of(handle)) => format!("{handle} at {device}"),
        None => device.to_owned(),
    };
    let verb = match command.verb {
        Verb::Add => "Puts",
        Verb::Change => "Changes",
        Verb::Replace => "Puts, or changes,",
        Verb::Delete => {
            let what = match &command.body {
                Body::Qdisc(_) => "the discipline, with all that is in it,".to_owned(),
                Body::Class { id, .. } => {
                    format!("the class {}", id.map(|id| id.to_string()).unwrap_or_default())
                }
                Body::Filter { .. } => "filters".to_owned(),
            };
            return vec![format!("Takes away {what} at {place}.")];
        }
        Verb::Show => return vec![format!("Shows what is at {place}, which changes nothing.")],
    };
    match &command.body {
        Body::Qdisc(None) | Body::Qdisc(Some(qdisc::Kind::Ingress)) => {
            vec![format!("{verb} a place for policers where packets arrive at {device}.")]
        }
        Body::Qdisc(Some(kind)) => {
            let handle =
                command.handle.map_or(String::new(), |handle| format!(", called {}", handle.qdisc()));
            let mut words = vec![format!("{verb} `{}` at {place}{handle}.", kind_name(kind))];
            match (kind, command.parent) {
                // What is said of a double queue may not hold there.
                (qdisc::Kind::Netem(_), Some(Parent::Of(_))) => words.push(
                    "In a class it is the kernel's single queue, exactly; with `tbf` alone it becomes a link of two queues.".into(),
                ),
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
        Body::Filter { filter, .. } => filter.iter().map(|filter| of_filter(filter, &place)).collect(),
    }
}

fn of_qdisc(kind: &qdisc::Kind) -> Vec<String> {
    match kind {
        qdisc::Kind::Tbf(tbf) => {
            let room = match tbf.room {
                qdisc::Room::Limit(limit) => format!("{limit} may wait"),
                qdisc::Room::Latency(latency) => {
                    format!("as much may wait as goes in {latency}, and a burst")
                }
            };
            let peak = tbf.peakrate.map_or(String::new(), |peak| format!(", no faster than {peak}"));
            vec![format!(
                "Packets go at {} a second, {} of them at once after idle time{peak}; {room}.",
                tbf.rate, tbf.burst
            )]
        }
        qdisc::Kind::Htb(htb) => vec![match htb.default {
            0 => "A tree of token buckets. What no filter takes goes unshaped.".into(),
            class => format!("A tree of token buckets. What no filter takes is in the class {class:x}."),
        }],
        qdisc::Kind::Cbq(cbq) => vec![format!(
            "A tree of classes on a wire of {}, kept to their rates by their idle times; packets have {} on average.",
            cbq.bandwidth, cbq.average_packet
        )],
        qdisc::Kind::Prio(prio) => {
            let mut words = vec![format!("{} bands; the first goes before all others.", prio.bands)];
            if prio.map == qdisc::Prio::MAP {
                words.push(
                    "What no filter takes goes by its TOS bits: low delay first, high throughput last."
                        .into(),
                );
            } else {
                words.push(format!(
                    "What no filter takes goes by its TOS bits: band {} for neither, {} for high throughput, {} for low delay, {} for both.",
                    prio.map[0], prio.map[2], prio.map[6], prio.map[4]
                ));
            }
            words
        }
        qdisc::Kind::Hpd(hpd) => {
            let mut words = vec!["Classes whose delays are in proportion to their `ddp`.".to_owned()];
            for (point, class) in &hpd.dscps {
                words.push(format!("Packets of the code point {point} are in the class {class}."));
            }
            words
        }
        qdisc::Kind::Fifo(fifo) => {
            let drop = if fifo.head { "the oldest" } else { "one that finds no room" };
            let limit =
                fifo.limit.map_or("as many packets as the device says".to_owned(), |limit| limit.to_string());
            vec![format!("In the order of arrival; {limit} may wait, and {drop} is dropped.")]
        }
        qdisc::Kind::Whole(whole) => vec![format!("The same as `{} = {}`.", whole.key, whole.value)],
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
        qdisc::Kind::Ingress => Vec::new(),
    }
}

fn of_class(kind: &class::Kind) -> String {
    match kind {
        class::Kind::Htb(htb) => match htb.ceil.filter(|ceil| *ceil > htb.rate) {
            Some(ceil) => {
                format!("It gets {} always, and up to {ceil} by borrowing; priority {}.", htb.rate, htb.prio)
            }
            None => format!("It gets {}, and no more; priority {}.", htb.rate, htb.prio),
        },
        class::Kind::Cbq(cbq) => {
            let rate = cbq.rate.map_or("the wire's rate".to_owned(), |rate| rate.to_string());
            let borrows =
                if cbq.bounded || cbq.isolated { "never borrows" } else { "borrows where there is more" };
            let lends = if cbq.isolated { ", never lends" } else { "" };
            format!("It has {rate}, {borrows}{lends}; priority {}.", cbq.prio.unwrap_or(8))
        }
        class::Kind::Hpd(hpd) => {
            let limit = match hpd.limit.nanos() {
                0 => "no limit".to_owned(),
                _ => format!("no packet is to wait longer than {}", hpd.limit),
            };
            let gamma = hpd.gamma.map_or("by the backlog".to_owned(), |gamma| gamma.to_string());
            format!(
                "Its delay is in proportion to {}; {limit}; {gamma} of the newest delay and {} of the average count, in 1024ths.{}",
                hpd.ddp,
                hpd.weight,
                if hpd.is_default { " What belongs to no class is in it." } else { "" }
            )
        }
    }
}

fn of_filter(filter: &Filter, place: &str) -> String {
    let which = match &filter.matches {
        None => "All packets".to_owned(),
        Some(matches) => format!("Packets with {matches}"),
    };
    match (filter.class, filter.police) {
        (_, Some(police)) => {
            let beyond = if police.passes { "passes" } else { "is dropped" };
            format!(
                "{which}, {place}: what comes faster than {} and a burst of {} {beyond}.",
                police.rate, police.burst
            )
        }
        (Some(class), None) => format!("{which} are in the class {class} ({place})."),
        (None, None) => String::new(),
    }
}
