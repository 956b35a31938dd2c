//! What `ipfw list`, `ipfw show`, `ipfw pipe show`, `queue show` and `sched show` print, read as the commands that make it.
//!
//! ```text
//! 00100   12   4711 pipe 1 ip from any to any out
//! 00001:  10.000 Mbit/s   20 ms burst 0
//! q131073  50 sl. 0 flows (1 buckets) sched 65537 weight 0 lmax 0 pri 0 droptail
//!  sched 65537 type FIFO flags 0x1 256 buckets 0 active
//!     mask:  0x00 0x00000000/0x0000 -> 0xffffffff/0x0000
//! ```
//!
//! Source: ipfw2.c and `list_pipes` of dummynet.c, FreeBSD 14. A pipe has a queue of its own, whose number is 2¹⁷ more, and a
//! scheduler, whose number is 2¹⁶ more.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Line, Word, physical};
use super::verbs::{VERBS, is_command, is_program};

/// The difference between the number of a pipe and that of its own scheduler, and of its own queue.
const OWN_SCHEDULER: u32 = 1 << 16;
const OWN_QUEUE: u32 = 1 << 17;
/// The number of the rule that is always there.
const LAST: u32 = 65_535;

/// An object of dummynet, in the order of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Pipe(u32),
    Scheduler(u32),
    Queue(u32),
}

/// The commands that make what a text shows; `None` if it shows nothing, or gives commands itself.
pub(super) fn commands(text: &str) -> Option<Vec<Line>> {
    let mut rules = Vec::new();
    let mut objects: BTreeMap<Object, Line> = BTreeMap::new();
    let mut said = BTreeSet::new();
    let mut last = None;
    let mut start = 0;
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let at = start;
        start += raw.len();
        if !matters(raw) {
            continue;
        }
        let line = physical(raw, at, index + 1);
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        if gives_a_command(&line.words, &words) {
            return None;
        }
        if let Some(rule) = rule(&line, &words) {
            rules.push(rule);
            continue;
        }
        if let Some((object, options)) = object(&words) {
            last = Some(object);
            let config = objects.entry(object).or_insert_with(|| begun(object, &line));
            // What another command shows again is the same.
            for option in options.chunks(2).filter(|option| said.insert((object, option[0].clone()))) {
                option.iter().for_each(|word| config.take(word, line.span.clone()));
            }
        } else if let (Some(["mask:", rest @ ..]), Some(object)) = (Some(&words[..]), last) {
            let config = objects.entry(object).or_insert_with(|| begun(object, &line));
            if said.insert((object, "mask".into())) {
                mask(rest).iter().for_each(|word| config.take(word, line.span.clone()));
            }
        }
    }
    let found: Vec<Line> = objects.into_values().chain(rules).collect();
    (!found.is_empty()).then_some(found)
}

/// Whether a line may be one that is printed, or a command.
fn matters(raw: &str) -> bool {
    let first = raw.split_whitespace().next().unwrap_or_default();
    first.starts_with(|c: char| c.is_ascii_digit() || c == 'q')
        || first == "mask:"
        || VERBS.contains(&first)
        || raw.contains("ipfw")
        || raw.contains("dnctl")
}

/// Whether a line is a command that changes something, also one of a file of rules.
fn gives_a_command(line: &[Word], words: &[&str]) -> bool {
    const CHANGES: [&str; 6] = ["add", "config", "flush", "delete", "set", "table"];
    let mut behind = words.iter().skip_while(|word| !is_program(word));
    match behind.next() {
        Some(_) => behind.any(|word| CHANGES.contains(word)),
        None => is_command(line),
    }
}

fn number(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// `00100 allow ip from any to any`, also with counters.
fn rule(line: &Line, words: &[&str]) -> Option<Line> {
    let own = number(words.first()?)?;
    let counters = words[1..].iter().take_while(|word| number(word).is_some()).count();
    // Numbers of rules have five digits; flows stand with their protocols behind the numbers of buckets.
    let action = words.get(1 + counters)?;
    let is_shown = words[0].len() == 5 && matches!(counters, 0 | 2) && !matches!(*action, "ip" | "ip6");
    if !is_shown || !action.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let mut found = Line { words: Vec::new(), ..line.clone() };
    let first = &line.words[0];
    let mut behind = line.words[1 + counters..].iter();
    // What the last rule does to packets is that of a rule before it; that it accepts them goes without saying.
    let number = match own {
        LAST if matches!(words[1 + counters], "deny" | "drop") => "65534",
        LAST => return None,
        _ => words[0],
    };
    for text in ["add", number] {
        found.words.push(Word { text: text.into(), span: first.span.clone() });
    }
    // `00100 set 3 allow …` is typed as it is printed.
    found.words.extend(behind.by_ref().cloned());
    Some(found)
}

/// `pipe 1 config`, at a line.
fn begun(object: Object, line: &Line) -> Line {
    let (word, number) = match object {
        Object::Pipe(number) => ("pipe", number),
        Object::Scheduler(number) => ("sched", number),
        Object::Queue(number) => ("queue", number),
    };
    let mut begun = Line { words: Vec::new(), comment: None, ..line.clone() };
    for text in [word, &number.to_string(), "config"] {
        begun.take(text, line.span.clone());
    }
    begun
}

/// What a line says of an object: `00001:  10.000 Mbit/s   20 ms burst 0`, `q00001  50 sl. …`, `sched 1 type WF2Q+ …`.
fn object(words: &[&str]) -> Option<(Object, Vec<String>)> {
    let first = *words.first()?;
    if let Some(pipe) = first.strip_suffix(':').and_then(number) {
        return Some((Object::Pipe(pipe), of_pipe(&words[1..])?));
    }
    if let ["sched", own, "type", kind, ..] = words {
        let number = number(own)?;
        return Some(match number.checked_sub(OWN_SCHEDULER) {
            Some(pipe) => (Object::Pipe(pipe), Vec::new()),
            None => (Object::Scheduler(number), vec!["type".into(), kind.to_ascii_lowercase()]),
        });
    }
    let own = first.strip_prefix('q').and_then(number)?;
    let mut options = of_queue(&words[1..])?;
    Some(match own.checked_sub(OWN_QUEUE) {
        Some(pipe) => (Object::Pipe(pipe), options),
        None => {
            let behind = |name: &str| {
                let at = words.iter().position(|word| *word == name)?;
                words.get(at + 1).copied()
            };
            let scheduler = behind("sched").and_then(number)?;
            let pipe = scheduler.checked_sub(OWN_SCHEDULER).unwrap_or(scheduler);
            options.extend(["sched".into(), pipe.to_string()]);
            if let Some(weight) = behind("weight").filter(|weight| *weight != "0") {
                options.extend(["weight".into(), weight.into()]);
            }
            (Object::Queue(own), options)
        }
    })
}

/// A rate, a delay, a burst, and what older versions print there of the queue.
fn of_pipe(words: &[&str]) -> Option<Vec<String>> {
    let (mut options, rest) = match words {
        ["unlimited", rest @ ..] => (Vec::new(), rest),
        [rate, unit, rest @ ..] if unit.ends_with("bit/s") => {
            (vec!["bw".into(), bandwidth(rate, unit)], rest)
        }
        _ => return None,
    };
    let ["0", "ms", rest @ ..] = rest else {
        let [delay, "ms", rest @ ..] = rest else { return None };
        options.extend(["delay".into(), (*delay).into()]);
        return Some([options, of_rest(rest)].concat());
    };
    Some([options, of_rest(rest)].concat())
}

/// `10.500` and `Mbit/s` as ipfw reads them, which knows whole numbers only.
fn bandwidth(rate: &str, unit: &str) -> String {
    let Some((whole, thousandths)) = rate.split_once('.').filter(|(_, digits)| digits.len() == 3) else {
        return format!("{rate}{unit}");
    };
    let smaller = match unit {
        _ if thousandths == "000" => return format!("{whole}{unit}"),
        "Gbit/s" => "Mbit/s",
        "Mbit/s" => "Kbit/s",
        "Kbit/s" => "bit/s",
        _ => return format!("{rate}{unit}"),
    };
    format!("{}{smaller}", format!("{whole}{thousandths}").trim_start_matches('0'))
}

fn of_rest(words: &[&str]) -> Vec<String> {
    match words {
        ["burst", "0", ..] => Vec::new(),
        ["burst", burst, ..] => vec!["burst".into(), (*burst).into()],
        words => of_queue(words).unwrap_or_default(),
    }
}

/// `50 sl.`, `100 KB`, `50 sl.plr 0.01`; also of the line of an old pipe.
fn of_queue(words: &[&str]) -> Option<Vec<String>> {
    let mut options = match words {
        [slots, unit, ..] if unit.starts_with("sl.") && number(slots).is_some() => {
            vec!["queue".into(), (*slots).into()]
        }
        [size, unit, ..] if matches!(*unit, "KB" | "B") && number(size).is_some() => {
            vec!["queue".into(), format!("{size}{}", if *unit == "KB" { "KBytes" } else { "bytes" })]
        }
        _ => return None,
    };
    if let Some(at) = words.iter().position(|word| word.ends_with("plr")) {
        options.extend(["plr".into(), (*words.get(at + 1)?).into()]);
    }
    Some(options)
}

/// `0x00 0x00000000/0x0000 -> 0xffffffff/0x0000`: the bits of protocol, source and destination that tell flows apart.
fn mask(words: &[&str]) -> Vec<String> {
    let [protocol, source, "->", destination, ..] = words else { return Vec::new() };
    let mut parts = vec![("proto", *protocol)];
    for (end, [address, port]) in [(source, ["src-ip", "src-port"]), (destination, ["dst-ip", "dst-port"])] {
        if let Some((ip, number)) = end.split_once('/') {
            parts.extend([(address, ip), (port, number)]);
        }
    }
    let is_some = |bits: &str| bits.trim_start_matches("0x").bytes().any(|byte| byte != b'0');
    let said: Vec<String> = parts
        .into_iter()
        .filter(|(_, bits)| is_some(bits))
        .flat_map(|(name, bits)| [name.to_owned(), bits.to_owned()])
        .collect();
    if said.is_empty() { said } else { [vec!["mask".to_owned()], said].concat() }
}
