//! One command of a script: of tc, of iptables or ipset, or of a program that has no effect here.

use std::ops::Range;

use narrows_core::Duration;

use super::action::Shared;
use super::command::Command;
use super::netfilter;
use super::programs::{self, Given, is_firewall, is_tc};
use crate::dialect::shell::{Call, Expanded, Role, as_words, is_batch_flag};
use crate::dialect::sleep::{self, SLEEP};
use crate::dialect::{Word, Words};
use crate::netem::skip_prompt;
use crate::problem::{Found, Problem};

/// A command of another program.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub(super) span: Range<usize>,
    pub(super) words: String,
}

/// One command of a script.
pub(super) enum Line {
    Tc(Box<Command>),
    /// `exit`: no later command runs.
    End,
    Other(Passed),
    /// A device is taken down, or up again.
    State {
        device: String,
        is_up: bool,
        passed: Passed,
    },
    /// A device gets an MTU, or a queue length.
    /// The discipline that devices have by default.
    Default(Passed),
    /// A device gets no queue.
    NoQueue {
        device: String,
        span: Range<usize>,
    },
    Device {
        given: Given,
        passed: Passed,
    },
    /// `sleep` for a time.
    Sleep {
        time: Duration,
        span: Range<usize>,
    },
    /// A line of iptables or ipset, in this network namespace.
    Firewall {
        line: Box<netfilter::Line>,
        namespace: Option<String>,
        passed: Passed,
    },
}

/// Reads one command; `None` if it has no effect.
pub(super) fn read(call: &Call<'_>, shared: &mut Shared) -> Result<Option<Line>, Problem> {
    let mut line = understood(call, shared)?;
    if let Some(Line::Tc(command)) = &mut line {
        command.ends_script = call.ends_on_failure;
    }
    Ok(line)
}

fn understood(call: &Call<'_>, shared: &mut Shared) -> Result<Option<Line>, Problem> {
    let Some(unknown) = call.words.iter().find(|word| word.problem().is_some()) else {
        // Where a variable is not set, that is why words are missing.
        let unset = || call.unset.first().and_then(|word| word.problem().cloned());
        return of_words(call, None, shared).map_err(|problem| unset().unwrap_or(problem));
    };
    let problem = unknown.problem();
    let unnamed = call.words.iter().find(|word| !word.is_named());
    // What is not in the script may be the name of a device.
    if let Some(unnamed) = unnamed.filter(|_| !is_printed(call)) {
        return Err(unnamed
            .problem()
            .or(problem)
            .cloned()
            .unwrap_or_else(|| Problem::new("a value that is not known")));
    }
    of_words(call, problem, shared).map_err(|inner| {
        let words = as_words(call.words, call.span.end);
        let other = not_a_device(&words).map(Word::span);
        let of_other = |span: &Range<usize>| {
            call.words.iter().find(|word| word.span() == *span).and_then(|word| word.problem().cloned())
        };
        match other {
            None => inner,
            Some(span) => of_other(&span).or(problem.cloned()).unwrap_or(inner),
        }
    })
}

/// Whether the command only prints its words, or is of a program that is not known here, whatever they are.
fn is_printed(call: &Call<'_>) -> bool {
    let Some(first) = call.words.first() else { return false };
    let is_unknown = || programs::unknown(&as_words(call.words, call.span.end)).is_some();
    matches!(first.text(), "echo" | "printf" | "logger" | "cat") || first.problem().is_none() && is_unknown()
}

/// The first value that is not in the script where no name of a device stands.
fn not_a_device<'a>(words: &Words<'a>) -> Option<Word<'a>> {
    const BEFORE: [&str; 6] = ["dev", "name", "-i", "-o", "--in-interface", "--out-interface"];
    let mut ahead = words.clone();
    let mut before = "";
    std::iter::from_fn(|| ahead.take()).find(|word| {
        let before = std::mem::replace(&mut before, word.text);
        word.text.contains('$') && !BEFORE.contains(&before)
    })
}

/// Reads the words of a command. `unknown` is the problem if some words are not in the script, but names of variables.
fn of_words(
    call: &Call<'_>,
    unknown: Option<&Problem>,
    shared: &mut Shared,
) -> Result<Option<Line>, Problem> {
    let span = call.span.clone();
    let mut words = as_words(call.words, span.end);
    skip_prompt(&mut words);
    let namespace = programs::entered(&mut words);
    shared.enter(namespace.as_deref());
    let Some(first) = words.peek() else { return Ok(None) };
    let is_tc = is_tc(first);
    let is_read = is_tc
        || is_firewall(first)
        || matches!(first.text, "qdisc" | "class" | "filter" | "chain" | "actions");
    if let Some(problem) = unknown
        && (first.text.contains('$') || is_read && not_a_device(&words).is_some())
    {
        return Err(problem.clone());
    }
    match call.role {
        Role::Command | Role::Repeats(_) => {}
        // A batch has the words behind `tc`.
        Role::Line => return command(words, span, None, shared).map(Some),
        // Commands that process output do not affect the network.
        Role::Piped if !is_tc => return Ok(None),
        Role::Piped => {
            return Err(first
                .problem("a tc command that reads another command's output")
                .help("write the commands themselves, one per line"));
        }
    }
    if programs::replaces_the_shell(&words) {
        let words = "Not a command of tc: ignored. It takes the place of the shell, and what it does to devices or packets is not known here.";
        return Ok(Some(Line::Other(Passed { span, words: words.into() })));
    }
    if first.text.rsplit('/').next() == Some(SLEEP) {
        words.take();
        return Ok(Some(match slept(first, &mut words)? {
            Some(time) => Line::Sleep { time, span },
            None => Line::End,
        }));
    }
    if is_firewall(first) {
        let name = words.take().unwrap_or(first);
        let line = netfilter::read(name, &mut words)?;
        let said = match name.text.ends_with("ipset") {
            true => "Rules of iptables look packets up in sets.",
            false if line.does_nothing() => "Not a command of tc: ignored. It gives packets no marks.",
            false if line.translates().is_some() => {
                "Not a command of tc: ignored. Packets keep the addresses of their hosts here."
            }
            false if line.is_of_connections() => {
                "Connections keep marks: from its start, a connection has the mark that the rules give to packets of its two directions. It is opened by packets that leave by a device if a rule for addresses or ports decides about those, otherwise by packets that arrive."
            }
            false if line.removes() => "Rules of iptables are taken away.",
            false if line.drops() => {
                "Rules of iptables drop packets: of those that leave a device before its disciplines, of those that arrive behind its filters. Packets of the host itself and those that it forwards are not told apart here: the rules of both apply to all."
            }
            false if line.writes() => {
                "Rules of iptables change headers of packets: of those that leave a device before its disciplines and their filters, of those that arrive behind its filters. Packets of the host itself and those that it forwards are not told apart here: the rules of both apply to all."
            }
            false if line.is_for_some() => {
                "Rules of iptables give packets marks and classes, which filters of tc see. Packets of the host itself and those that it forwards are not told apart here: all that leave pass the rules of both."
            }
            false => "Rules of iptables give packets marks and classes, which filters of tc see.",
        };
        let mut said = said.to_owned();
        if line.is_of_established() {
            said += " The first packet of a connection counts as one of an established connection, too.";
        }
        return Ok(Some(Line::Firewall {
            line: Box::new(line),
            namespace,
            passed: Passed { span, words: said },
        }));
    }
    if programs::sets_default_qdisc(&words) {
        let words =
            "Not a command of tc: ignored. Devices here have the disciplines that the script gives them.";
        return Ok(Some(Line::Default(Passed { span, words: words.into() })));
    }
    if let Some((device, is_up)) = state(&words) {
        let words = match is_up {
            true => "Not a command of tc: ignored. Devices here exist and are up.",
            false => "Not a command of tc: ignored. The device is up again before anything is sent.",
        };
        let passed = Passed { span, words: words.into() };
        return Ok(Some(Line::State { device: device.to_owned(), is_up, passed }));
    }
    if is_tc {
        words.take();
        if let Some(batch) = batch(&words, call.reads_lines)? {
            return Ok(Some(Line::Other(Passed { span, words: batch.into() })));
        }
    } else if !matches!(first.text, "qdisc" | "class" | "filter" | "chain" | "actions") {
        if let Some(given) = programs::given(&words)? {
            let of = &given.device;
            let mut said = String::from("Not a command of tc.");
            if given.mtu.is_some() {
                said += &format!(
                    " The link of {of}, if the script configures it, has this MTU: longer packets are fragmented or answered."
                );
            }
            if given.length.is_some() {
                said += &format!(
                    " Queues of {of} hold as many packets, unless their discipline says another number."
                );
            }
            return Ok(Some(Line::Device { given, passed: Passed { span, words: said } }));
        }
        if let Some(problem) = programs::sourced(&words) {
            return Err(problem);
        }
        if let Some(script) = call.missing {
            return missing(script, call.ends_on_failure, span).map(Some);
        }
        let unknown = programs::unknown(&words);
        return match (programs::passed_over(&mut words), unknown) {
            (Some(why), _) => {
                let words = format!("Not a command of tc: ignored. {why}");
                Ok(Some(Line::Other(Passed { span, words })))
            }
            (None, Some(name)) => {
                let words = format!("Not a command of tc: ignored. What {} does to devices or packets is not known here.", Found(name));
                Ok(Some(Line::Other(Passed { span, words })))
            }
            (None, None) if first.text.rsplit('/').next() == Some(programs::NFT) => Err(first
                .problem("rules of nftables are not read")
                .help("leave them out if they neither mark nor drop packets, or write them as rules of iptables")),
            (None, None) => Err(first
                .problem(format!("{} is not a command of tc", Found(first.text)))
                .help("a script has commands of tc, and those that prepare devices")
                .help("a shell in a sandbox runs any script, and says its commands of tc: narrows tc commands SCRIPT")),
        };
    }
    if let Some(device) = without_queue(&words) {
        let device = namespace.map_or(device.to_owned(), |namespace| format!("{namespace}/{device}"));
        return Ok(Some(Line::NoQueue { device, span }));
    }
    command(words, span, namespace, shared).map(Some)
}

/// A command that runs a script which is not there.
fn missing(script: &Expanded, ends: bool, span: Range<usize>) -> Result<Line, Problem> {
    let name = Found(script.text());
    if ends {
        return Err(Problem::new(format!(
            "there is no {name} beside the script, which ends here (`set -e`)"
        ))
        .put_at(&script.span())
        .help("put it there, or leave the line out"));
    }
    let words = format!(
        "Not a command of tc: ignored. There is no {name} beside the script: what it does where it is there is not known here."
    );
    Ok(Line::Other(Passed { span, words }))
}

/// The device of `qdisc replace dev X root noqueue`.
fn without_queue<'a>(words: &Words<'a>) -> Option<&'a str> {
    let mut ahead = words.clone();
    let (object, verb) = (ahead.take()?.text, ahead.take()?.text);
    let rest: Vec<&str> = std::iter::from_fn(|| ahead.take()).map(|word| word.text).collect();
    let device = rest.iter().position(|word| *word == "dev").and_then(|at| rest.get(at + 1));
    let is_one = object == "qdisc" && matches!(verb, "add" | "replace") && rest.contains(&"root");
    device.copied().filter(|_| is_one && rest.last() == Some(&"noqueue"))
}

/// A command of tc, in this network namespace.
fn command(
    mut words: Words<'_>,
    span: Range<usize>,
    namespace: Option<String>,
    shared: &mut Shared,
) -> Result<Line, Problem> {
    if shared.begins(&mut words) {
        let words = shared.command(&mut words)?;
        return Ok(Line::Other(Passed { span, words }));
    }
    let command = Command::read(&mut words, span, shared)?;
    Ok(Line::Tc(Box::new(match namespace {
        Some(namespace) => command.inside(&namespace),
        None => command,
    })))
}

/// The device that `ip link set dev X up` or `ifconfig X down` takes up or down, if it does nothing else.
fn state<'a>(words: &Words<'a>) -> Option<(&'a str, bool)> {
    let mut ahead = words.clone();
    match ahead.take()?.text.rsplit('/').next()? {
        "ip" => {
            let object = ahead.take()?.text;
            if !(object.len() > 1 && "link".starts_with(object) && ahead.take_if("set")) {
                return None;
            }
            ahead.take_if("dev");
        }
        "ifconfig" => {}
        _ => return None,
    }
    let device = ahead.take()?.text;
    let is_up = match ahead.take()?.text {
        "up" => true,
        "down" => false,
        _ => return None,
    };
    ahead.take().is_none().then_some((device, is_up))
}

/// How long `sleep` takes, the sum of its times; `None` for ever.
fn slept(after: Word<'_>, words: &mut Words<'_>) -> Result<Option<Duration>, Problem> {
    let mut word = words.expect(after, "a time, such as 5, 0.5 or 2m")?;
    let mut all = Duration::ZERO;
    loop {
        if matches!(word.text, "infinity" | "inf") {
            return Ok(None);
        }
        all += sleep::time(word)?;
        match words.take() {
            Some(next) => word = next,
            None => return Ok(Some(all)),
        }
    }
}

/// `tc -batch -` executes the lines of a here-document: what is to be said about it.
fn batch(words: &Words<'_>, reads_below: bool) -> Result<Option<&'static str>, Problem> {
    let mut ahead = words.clone();
    while let Some(flag) = ahead.take().filter(|word| word.text.starts_with('-')) {
        if !is_batch_flag(flag.text) {
            continue;
        }
        return match ahead.peek().filter(|word| !word.text.starts_with("-f")) {
            Some(file) if file.text != "-" && reads_below => Ok(Some("Executes the lines of the file.")),
            Some(file) if file.text != "-" => Err(file
                .problem(format!("commands of a file that is not beside the script, {}", Found(file.text)))
                .help("give that file itself, or its lines as a here-document: tc -batch - <<EOF")),
            None if reads_below => Ok(Some(
                "Executes the lines below. tc of iproute2 6.1 does so only with the name of a file: `tc -batch -`.",
            )),
            _ if reads_below => Ok(Some("Executes the lines below.")),
            _ => Err(flag
                .problem("a batch whose lines are not read here")
                .help("write `tc -batch - <<EOF`, with tc as the first word, or its commands themselves")),
        };
    }
    Ok(None)
}
