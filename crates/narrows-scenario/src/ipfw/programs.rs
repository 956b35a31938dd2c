//! Programs other than ipfw in scripts: those that have no effect here, and those that would have one that
//! narrows cannot reproduce.

use super::lexer::Word;
use super::verbs::is_command;
use crate::dialect::shell::raises_rights;
use crate::problem::nearest;

const NO_MODULES: &str = "there are no kernel modules here";
const PRINTS: &str = "it prints text";
const SHELL: &str = "it configures the shell";

/// Programs without an effect on packets, each with the reason.
const IGNORED: &[(&str, &str)] = &[
    ("kldload", NO_MODULES),
    ("kldunload", NO_MODULES),
    ("kldstat", NO_MODULES),
    ("modprobe", NO_MODULES),
    ("insmod", NO_MODULES),
    ("rmmod", NO_MODULES),
    ("echo", PRINTS),
    ("printf", PRINTS),
    ("date", PRINTS),
    ("logger", PRINTS),
    ("pause", "it waits for a key, which takes no time here"),
    ("read", "it waits for input, which takes no time here"),
    ("set", SHELL),
    ("alias", SHELL),
    ("unset", SHELL),
    ("setlocal", SHELL),
    ("rem", "it is a comment"),
    ("true", "it does nothing"),
    (":", "it does nothing"),
    ("sysrc", "it changes how a FreeBSD host starts"),
    ("ifconfig", "interfaces are those of a scenario's hosts, and exist"),
    ("route", "hosts have the routes of their links"),
    ("cat", PRINTS),
    ("clear", PRINTS),
    ("tail", PRINTS),
    ("ping", "it sends a few packets"),
    ("killall", "programs are not those of this host"),
    ("kill", "programs are not those of this host"),
    ("mkdir", "it makes a folder"),
    ("rm", "it removes files"),
    ("touch", "it makes a file"),
    ("chmod", "it changes a file"),
    ("wait", "it waits for other programs"),
    ("pfctl", "of pf, the rules that lead to a pipe are read"),
];

const OTHER_FILE: &str = "narrows reads one script: write its commands here";
const RUNS: &str = "narrows does not start programs of a script: write what it does as ipfw commands";

/// Programs whose effect is missing here, each with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (".", OTHER_FILE),
    ("source", OTHER_FILE),
    ("sh", OTHER_FILE),
    (
        "natd",
        "the translator of the rules themselves does the same: ipfw nat 1 config if em0, and rules of nat 1",
    ),
    ("service", RUNS),
];

/// The name of a program, without the folders before it.
fn name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// Why a program has no effect here, if so.
pub(super) fn ignored(program: &str) -> Option<&'static str> {
    IGNORED.iter().find(|(known, _)| *known == name(program)).map(|(_, why)| *why)
}

/// Whether `set` with this argument is that of a shell rather than ipfw's: `set -e`, `set NAME=VALUE`.
pub(super) fn is_set_of_shell(argument: &str) -> bool {
    argument.starts_with(['-', '+']) || argument.contains('=')
}

/// What to do instead of a program that is refused.
pub(super) fn refused(program: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(known, _)| *known == name(program)).map(|(_, why)| *why)
}

pub(super) fn is_ignored(program: &str) -> bool {
    ignored(program).is_some()
}

pub(super) fn is_refused(program: &str) -> bool {
    refused(program).is_some()
}

/// Whether a command is one of a program that is not known here, as far as its words say: none of them is one of ipfw's, or
/// runs ipfw.
pub(super) fn is_unknown(words: &[Word]) -> bool {
    const OF_IPFW: &[&str] = &[
        "add",
        "delete",
        "pipe",
        "queue",
        "sched",
        "table",
        "config",
        "flush",
        "list",
        "show",
        "nat",
        "set",
        "zero",
        "enable",
        "disable",
        "allow",
        "deny",
        "ipfw",
        "dnctl",
        "nptv6",
        "nat64lsn",
        "nat64stl",
        "nat64clat",
        "internal",
    ];
    let Some(first) = words.iter().find(|word| !raises_rights(&word.text)) else { return false };
    let own = name(&first.text);
    let is_name = own.starts_with(|c: char| c.is_ascii_alphabetic())
        && own.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
        && !own.ends_with(".sh");
    let of_ipfw = |word: &Word| word.text.split_whitespace().any(|word| OF_IPFW.contains(&name(word)));
    // It may be a mistyped one.
    let is_near = nearest(own, OF_IPFW.iter().copied()).is_some();
    is_name
        && !is_near
        && !is_known(own)
        && !is_command(words)
        && words.len() > 1
        && !words.iter().any(of_ipfw)
        && !is_refused(&first.text)
}

/// Whether it only prints what follows.
pub(super) fn prints(program: &str) -> bool {
    ignored(program) == Some(PRINTS)
}

/// Whether a word is a program rather than a command of ipfw.
pub(super) fn is_known(program: &str) -> bool {
    is_ignored(program) || is_refused(program) || matches!(name(program), "sleep" | "sysctl")
}
