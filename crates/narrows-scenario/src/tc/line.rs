//! One command of a script: of tc, of iptables or ipset, or of a program that has no effect here.

use std::ops::Range;

use narrows_core::Duration;

use super::command::Command;
use super::netfilter;
use crate::dialect::shell::{self, Joined, Piece};
use crate::dialect::sleep::{self, SLEEP};
use crate::dialect::{Variables, as_words};
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
    /// `sleep` for a time.
    Sleep {
        time: Duration,
        span: Range<usize>,
    },
    /// A line of iptables or ipset, in this network namespace.
    Firewall {
        line: netfilter::Line,
        namespace: Option<String>,
        passed: Passed,
    },
}

/// Commands that prepare devices or print text: with them a script has the same effect on packets here.
const OTHERS: &[(&str, &str)] = &[
    ("modprobe", "There are no kernel modules here."),
    ("insmod", "There are no kernel modules here."),
    ("rmmod", "There are no kernel modules here."),
    ("ethtool", "Packets are single segments here, as if offloads were off."),
    ("ifconfig", "Devices here exist and are up."),
    ("sysctl", "Hosts here have the kernel's defaults."),
    ("echo", "It prints text."),
    ("printf", "It prints text."),
    ("set", "It configures the shell."),
    ("true", "It does nothing."),
    ("mkdir", "It makes a folder."),
    ("mount", "It makes a file system accessible."),
    ("cd", "It changes the folder of the shell."),
];

/// Objects of `ip` that prepare devices.
const OBJECTS_OF_IP: &[(&str, &str)] = &[
    ("link", "Devices here exist and are up."),
    ("address", "Hosts here have addresses."),
    ("netns", "Each host here has a network namespace."),
    ("route", "Hosts here have the routes of their links."),
    ("neighbour", "Hosts here know their neighbours."),
];
/// Their abbreviations of one letter.
const LETTERS_OF_IP: &[(&str, &str)] = &[("l", "link"), ("a", "address"), ("r", "route"), ("n", "neighbour")];

/// Reads one command; `None` if it has no effect.
pub(super) fn read(text: &str, piece: &Piece, variables: &mut Variables) -> Result<Option<Line>, Problem> {
    let span = variables.assign(text, piece.span.clone())?;
    let expanded = match piece.joined {
        Joined::After | Joined::Batch => variables.words(text, span.clone())?,
        // Most of them are not tc commands, and their expansions do not matter.
        _ => variables.words(text, span.clone()).unwrap_or_default(),
    };
    let mut words = as_words(&expanded, span.end);
    skip_prompt(&mut words);
    let namespace = entered(&mut words);
    let Some(first) = words.peek() else { return Ok(None) };
    let is_tc = is_tc(first);
    match piece.joined {
        Joined::After => {}
        // A batch has the words behind `tc`.
        Joined::Batch => {
            let command = Command::read(&mut words, span)?;
            return Ok(Some(Line::Tc(Box::new(command))));
        }
        // Commands that process output, or handle a failure, do not affect the network.
        Joined::OnFailure | Joined::Piped if !is_tc => return Ok(None),
        Joined::OnFailure => {
            return Err(first.problem("a command that depends on the failure of another").help(
                "scripts are read, not run: keep the command that applies, or use `narrows tc commands`",
            ));
        }
        Joined::Piped => {
            return Err(first
                .problem("a tc command that reads another command's output")
                .help("write the commands themselves, one per line"));
        }
    }
    if first.text == "exit" {
        return Ok(Some(Line::End));
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
            false => "Rules of `mangle` give packets marks and classes, which filters of tc see.",
        };
        let said = said.to_owned();
        return Ok(Some(Line::Firewall { line, namespace, passed: Passed { span, words: said } }));
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
        if let Some(batch) = batch(&words)? {
            return Ok(Some(Line::Other(Passed { span, words: batch.into() })));
        }
    } else if !matches!(first.text, "qdisc" | "class" | "filter") {
        return match passed_over(&mut words)? {
            Some(why) => {
                let words = format!("Not a command of tc: ignored. {why}");
                Ok(Some(Line::Other(Passed { span, words })))
            }
            None => Err(first
                .problem(format!("{} is not a command of tc", Found(first.text)))
                .help("a script has commands of tc, and those that prepare devices")
                .help("a shell in a sandbox runs any script, and says its commands of tc: narrows tc commands SCRIPT")),
        };
    }
    let command = Command::read(&mut words, span)?;
    let command = match namespace {
        Some(namespace) => command.inside(&namespace),
        None => command,
    };
    Ok(Some(Line::Tc(Box::new(command))))
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
fn batch(words: &Words<'_>) -> Result<Option<&'static str>, Problem> {
    let mut ahead = words.clone();
    while let Some(flag) = ahead.take().filter(|word| word.text.starts_with('-')) {
        if !shell::is_batch_flag(flag.text) {
            continue;
        }
        return match ahead.peek().filter(|word| !word.text.starts_with("-f")) {
            Some(file) if file.text != "-" => Err(file
                .problem(format!("commands of another file, {}", Found(file.text)))
                .help("give that file itself, or its lines as a here-document: tc -batch - <<EOF")),
            _ => Ok(Some("Executes the lines below.")),
        };
    }
    Ok(None)
}

fn is_tc(word: Word<'_>) -> bool {
    word.text == "tc" || word.text.ends_with("/tc")
}

fn is_firewall(word: Word<'_>) -> bool {
    matches!(word.text.rsplit('/').next(), Some("iptables" | "ip6tables" | "ipset"))
}

/// Takes what runs a tc command in a network namespace, and names that: `ip netns exec NAME`, `nsenter -t PID -n`,
/// `docker exec NAME`.
fn entered(words: &mut Words<'_>) -> Option<String> {
    let mut ahead = words.clone();
    let program = ahead.take()?.text;
    let namespace = match program.rsplit('/').next().unwrap_or(program) {
        "ip" if ahead.take_if("netns") && ahead.take_if("exec") => ahead.take()?.text.to_owned(),
        "nsenter" => {
            let mut namespace = "nsenter".to_owned();
            while let Some(flag) = ahead.peek().filter(|word| word.text.starts_with('-')) {
                ahead.take();
                let target = match flag.text.split_once('=') {
                    Some(("--target" | "--net", value)) => Some(value),
                    None if matches!(flag.text, "-t" | "--target") => Some(ahead.take()?.text),
                    _ => None,
                };
                let name = target.and_then(|target| target.rsplit('/').next());
                name.into_iter().for_each(|name| namespace = name.to_owned());
            }
            namespace
        }
        "docker" | "podman" if ahead.take_if("exec") => {
            while let Some(flag) = ahead.peek().filter(|word| word.text.starts_with('-')) {
                ahead.take();
                if matches!(flag.text, "-u" | "--user" | "-e" | "--env" | "-w" | "--workdir") {
                    ahead.take();
                }
            }
            ahead.take()?.text.to_owned()
        }
        _ => return None,
    };
    ahead.peek().filter(|word| is_tc(*word) || is_firewall(*word))?;
    *words = ahead;
    Some(namespace)
}

/// Why the MTU that a command gives a device has no effect: it is the one that devices have. An error for another.
fn mtu(words: &Words<'_>) -> Result<Option<&'static str>, Problem> {
    let mut ahead = words.clone();
    let Some(word) = std::iter::from_fn(|| ahead.take()).find(|word| word.text == "mtu") else {
        return Ok(None);
    };
    let bytes = ahead.expect(word, "an MTU")?.text;
    if bytes == "1500" {
        return Ok(Some("Devices have this MTU."));
    }
    Err(word.problem(format!("an MTU of {} for a device", Found(bytes))).help(format!(
        "it is a setting of the link: `mtu = {bytes}` in a scenario, and without this line in the script"
    )))
}

/// Why a command of another program has no effect here, if so.
fn passed_over(words: &mut Words<'_>) -> Result<Option<&'static str>, Problem> {
    let Some(name) = words.take() else { return Ok(None) };
    let name = name.text.rsplit('/').next().unwrap_or(name.text);
    let has = |known: &[&str]| {
        let mut ahead = words.clone();
        std::iter::from_fn(|| ahead.take()).any(|word| known.contains(&word.text))
    };
    // A device that is down passes no packet, and filters look at realms of routes.
    if has(&["down", "realm", "realms"]) && matches!(name, "ip" | "ifconfig") {
        return Ok(None);
    }
    let has_mtu = has(&["mtu"]);
    // The kind of discipline that devices have by default.
    let mut ahead = words.clone();
    if name == "sysctl" && std::iter::from_fn(|| ahead.take()).any(|word| word.text.contains("qdisc")) {
        return Ok(None);
    }
    if name == "ifconfig" && has_mtu {
        return mtu(words);
    }
    if name != "ip" {
        return Ok(OTHERS.iter().find(|(known, _)| *known == name).map(|(_, why)| *why));
    }
    while let Some(option) = words.peek().filter(|word| word.text.starts_with('-')) {
        words.take();
        if matches!(option.text, "-n" | "-net" | "-netns" | "-f" | "-family") {
            words.take();
        }
    }
    let Some(object) = words.take().map(|word| word.text) else { return Ok(None) };
    let object =
        LETTERS_OF_IP.iter().find(|(letter, _)| *letter == object).map_or(object, |(_, whole)| whole);
    // The program in a namespace could be any; another `ip` is as here.
    if object == "netns" && words.take_if("exec") {
        words.take();
        return match words.peek().and_then(|word| word.text.rsplit('/').next()) {
            Some("ip" | "ethtool" | "ifconfig" | "sysctl") => passed_over(words),
            _ => Ok(None),
        };
    }
    let known = OBJECTS_OF_IP
        .iter()
        .find(|(known, _)| object.len() > 1 && known.starts_with(object) || *known == object);
    match known {
        Some(("link", _)) if has_mtu => mtu(words),
        // Which packets exist depends on it.
        _ if has_mtu => Ok(None),
        known => Ok(known.map(|(_, why)| *why)),
    }
}
