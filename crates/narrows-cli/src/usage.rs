//! Guesses what a user meant by an unknown command or flag. Makes no suggestion if there is no good guess.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, Error, FromArgMatches};
use narrows_scenario::printable;

use crate::args::Arguments;
use crate::help::command;
use crate::output::{Failure, say};
use crate::outputs;

/// Words of other programs, and their names here.
const FLAGS: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("bw", "rate"),
    ("throughput", "rate"),
    ("speed", "rate"),
    ("latency", "delay"),
    ("lag", "delay"),
    ("packet-loss", "loss"),
    ("plr", "loss"),
    ("drop", "loss"),
    ("reordering", "reorder"),
    ("duplication", "duplicate"),
    ("dup", "duplicate"),
    ("corruption", "corrupt"),
    ("buffer", "queue"),
    ("limit", "queue"),
    ("qdisc", "scheduler"),
    ("time", "duration"),
    ("out", "output"),
    ("save", "output"),
    ("figure", "plot"),
    ("svg", "plot"),
    ("silent", "quiet"),
];
const COMMANDS: &[(&str, &str)] = &[
    ("list", "ls"),
    ("ps", "ls"),
    ("status", "stats"),
    ("show", "stats"),
    ("start", "up"),
    ("deploy", "up"),
    ("enter", "exec"),
    ("stop", "down"),
    ("kill", "down"),
    ("destroy", "down"),
    ("simulate", "sim"),
    ("replay", "sim"),
    ("validate", "check"),
    ("lint", "check"),
    ("explain", "check"),
    ("change", "set"),
    ("reports", "report"),
    ("cleanup", "clean"),
    ("netem", "tc"),
    ("dummynet", "ipfw"),
    ("completion", "completions"),
    ("version", "--version"),
];

/// Parses the command line; prints an error and exits if it is invalid.
///
/// # Errors
/// If an output would overwrite an input or another output.
pub(crate) fn arguments() -> Result<Arguments, Failure> {
    let given: Vec<OsString> = env::args_os().collect();
    match parse_and(&given, outputs::check_line) {
        Ok((arguments, checked)) => checked.map(|()| arguments),
        Err(error) => {
            if error.kind() == ErrorKind::UnknownArgument
                && let Some(line) = forgotten_dashes(&given)
            {
                say(format!("narrows: {line}"));
                process::exit(i32::from(crate::TROUBLE));
            }
            refuse(&better(error, &given))
        }
    }
}

/// The error may quote the command line: drop clap's colours, as the quote could control the terminal.
fn refuse(error: &Error) -> ! {
    let text = error.to_string();
    if error.use_stderr() && printable(&text) != text {
        say(text.trim_end());
        process::exit(error.exit_code());
    }
    error.exit()
}

pub(crate) fn parse(given: &[OsString]) -> Result<Arguments, Error> {
    parse_and(given, |_, _| ()).map(|(arguments, ())| arguments)
}

/// Parses a command line, and lets `look` see it as clap does.
fn parse_and<T>(
    given: &[OsString],
    look: impl FnOnce(&Command, &ArgMatches) -> T,
) -> Result<(Arguments, T), Error> {
    let mut command = command();
    let mut matches = command.try_get_matches_from_mut(given)?;
    let seen = look(&command, &matches);
    let parsed = Arguments::from_arg_matches_mut(&mut matches);
    Ok((parsed.map_err(|error| error.format(&mut command))?, seen))
}

/// Adds better help to the error.
fn better(mut error: Error, given: &[OsString]) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let whole = command();
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let found = text(ContextKind::InvalidArg).unwrap_or_default();
            for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::Suggested]
            {
                error.remove(kind);
            }
            let meant = meant(&whole, given);
            if let Some(name) = found.strip_prefix("--").and_then(|name| flag(meant, name)) {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{name}")));
            } else if let Some(tip) = naming(meant, &found) {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
        }
        ErrorKind::InvalidSubcommand => {
            let found = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::Suggested);
            let within = meant(&whole, given);
            let names = within.get_subcommands().filter(|command| !command.is_hide_set());
            let names: Vec<&str> = names.map(Command::get_name).collect();
            let is_whole = within.get_name() == whole.get_name();
            let known = COMMANDS.iter().filter(|_| is_whole).find(|(other, _)| *other == found);
            if let Some((_, name)) = known {
                let tip = vec![format!("'{name}' does that here").into()];
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tip));
            } else if let Some(name) = nearest(&found, &names) {
                let names = ContextValue::Strings(vec![name.to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, names);
            }
        }
        _ => {}
    }
    error
}

/// How a run is named, for who names it in the other way.
fn naming(command: &Command, found: &str) -> Option<String> {
    let by_flag = command.get_arguments().any(|arg| arg.get_long() == Some("run"));
    let of_run = |arg: &&clap::Arg| matches!(arg.get_id().as_str(), "run" | "runs" | "name");
    let name = command.get_name();
    if found == "--run" && !by_flag {
        let place = command.get_positionals().find(of_run)?;
        return Some(format!(
            "name the run without a flag: narrows {name} {}",
            place.get_id().as_str().to_uppercase()
        ));
    }
    (by_flag && !found.starts_with('-')).then(|| format!("to name the run: narrows {name} --run {found}"))
}

/// The command that was meant, as far as it is named.
fn meant<'a>(whole: &'a Command, given: &[OsString]) -> &'a Command {
    let mut command = whole;
    for word in given.iter().skip(1) {
        match word.to_str().and_then(|word| command.find_subcommand(word)) {
            Some(within) => command = within,
            None => break,
        }
    }
    command
}

fn flag(command: &Command, found: &str) -> Option<String> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let names: Vec<&str> = shown.filter_map(clap::Arg::get_long).collect();
    let found = found.split('=').next().unwrap_or(found);
    let known = FLAGS.iter().find(|(other, name)| *other == found && names.contains(name));
    known.map(|(_, name)| *name).or_else(|| nearest(found, &names)).map(Into::into)
}

/// The one of `names` within a typing error: one letter in a short word, two in a long one. `None` if two
/// are equally near.
fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    let allowed = match found.chars().count() {
        0..=1 => return None,
        2..=5 => 1,
        _ => 2,
    };
    let mut near: Vec<_> = names
        .iter()
        .map(|name| (strsim::osa_distance(found, name), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    near.sort_unstable();
    match near[..] {
        [(_, name)] => Some(name),
        [(first, name), (second, _), ..] if first < second => Some(name),
        _ => None,
    }
}

/// The message for a missing `--` before the command of `run`: a program is named, and the command line is
/// valid with `--` before it.
pub(crate) fn forgotten_dashes(given: &[OsString]) -> Option<String> {
    if given.get(1)? != "run" || given.iter().any(|word| word == "--") {
        return None;
    }
    let corrected = |at: usize| {
        let mut words = given.to_vec();
        words.insert(at, "--".into());
        words
    };
    let is_it = |at: &usize| is_program(&given[*at]) && parse(&corrected(*at)).is_ok();
    let at = (2..given.len()).find(is_it)?;
    let words: Vec<_> = corrected(at).iter().skip(1).map(|word| quoted(&word.to_string_lossy())).collect();
    Some(format!(
        "`{}` is the command to run, and `--` is missing before it:\n\n    narrows {}",
        given[at].to_string_lossy(),
        words.join(" ")
    ))
}

fn is_program(word: &OsStr) -> bool {
    let path = Path::new(word);
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    match path.components().count() {
        0 => false,
        1 => env::var_os("PATH")
            .is_some_and(|all| env::split_paths(&all).any(|folder| runs(&folder.join(path)))),
        _ => runs(path),
    }
}

/// Quoted for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_a_flag_or_without() {
        let said = |line: &str| {
            let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            better(parse(&given).expect_err("it is wrong"), &given).to_string()
        };
        for (line, tip) in [
            ("narrows events --run dsl", "name the run without a flag: narrows events RUN"),
            ("narrows down --run dsl", "name the run without a flag: narrows down RUNS"),
            ("narrows stats dsl", "to name the run: narrows stats --run dsl"),
            ("narrows packets dsl", "to name the run: narrows packets --run dsl"),
        ] {
            assert!(said(line).contains(tip), "{}", said(line));
        }
        assert!(!said("narrows sim x.toml y.toml").contains("to name the run"));
    }

    #[test]
    fn what_is_no_typing_mistake_gets_no_guess() {
        let names = ["run", "report", "kernel", "rate", "delay", "sim", "set"];
        for (found, near) in [
            ("rn", Some("run")),
            ("rum", Some("run")),
            ("kernle", Some("kernel")),
            ("reprt", Some("report")),
            ("delya", Some("delay")),
            ("sit", None),
            ("bandwidth", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, &names), near, "{found}");
        }
    }

    #[test]
    fn words_of_other_programs_are_known_where_the_flag_is() {
        let whole = command();
        let of = |name: &str, found: &str| flag(whole.find_subcommand(name).unwrap(), found);
        for (found, name) in [("latency", "delay"), ("bandwidth", "rate"), ("bw=5", "rate"), ("rte", "rate")]
        {
            assert_eq!(of("run", found).as_deref(), Some(name));
            assert_eq!(of("sim", found).as_deref(), Some(name));
            assert_eq!(of("doctor", found), None);
        }
        for (other, name) in COMMANDS {
            assert!(*name == "--version" || whole.find_subcommand(name).is_some(), "{name}");
            assert!(whole.find_subcommand(other).is_none(), "{other} is a command by now");
        }
    }
}
