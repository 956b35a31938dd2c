//! The whole command line as clap sees it: commands by task, the version, man pages, completions.

use std::fs;

use clap::{Command, CommandFactory};

use crate::args::{Arguments, Man};
use crate::output::{Failure, columns, print};

/// Commands by task, with an example of each.
pub(crate) const TASKS: &[(&str, &[&str], &str)] = &[
    (
        "Run programs behind an emulated network",
        &["run", "shell", "bridge", "route", "attach", "interop"],
        "narrows run --rate 10mbit --delay 25ms --loss 1% -- sh -c 'ping -c 5 $NARROWS_SERVER'",
    ),
    (
        "Keep a network up and work in it",
        &["up", "ls", "exec", "down"],
        "narrows up scenarios/adsl.toml --name dsl --detach",
    ),
    (
        "Attach networks to containers as they start",
        &["docker", "compose", "clab", "cni"],
        "narrows compose -f docker-compose.yml",
    ),
    (
        "Describe networks and simulate them",
        &["check", "sim", "sweep", "preset", "topology"],
        "narrows sim --rate 10mbit --delay 25ms --loss 1%",
    ),
    (
        "Observe and change a run",
        &[
            "top", "web", "stats", "set", "diff", "events", "packets", "feed", "tc", "ipfw", "report",
            "plot", "compare",
        ],
        "narrows set link.down.rate=2mbit",
    ),
    (
        "Measure paths; make traces, patterns, profiles, distributions",
        &["probe", "trace", "pattern", "profile", "dist"],
        "narrows trace plot cell.csv --plot cell.svg",
    ),
    ("Run test suites written for Toxiproxy", &["toxi"], "narrows toxi --config proxies.json"),
    ("Compare schedulers", &["sched"], "narrows sched compare --algorithms fifo,drr,qfq,fq_codel"),
    (
        "Host and installation",
        &["doctor", "calibrate", "kernel", "clean", "man", "completions"],
        "narrows doctor",
    ),
];

/// Maximum width of help, as for the commands' own help.
const WIDTH: usize = 100;
/// Column of the commands' descriptions.
const INDENT: usize = 16;

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

const AFTER: &str =
    "See `narrows COMMAND --help` for all options and examples. Exit statuses: docs/running.md.";

/// The command line.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let tasks = tasks(&command);
    command.long_version(LONG_VERSION).help_template(TEMPLATE).before_help(tasks).after_help(AFTER)
}

/// Compiled features, whether or not the host supports them: that is what `narrows doctor` checks.
macro_rules! features {
    () => {
        concat!(
            "\nfor ", env!("NARROWS_TARGET"),
            "\nfeatures: af_packet, af_xdp, tap, bridge, route, attach, user namespaces, virtual time, exact virtual time"
        )
    };
}

/// The version with the compiled features.
const LONG_VERSION: &str = if cfg!(debug_assertions) {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("NARROWS_COMMIT"), ", not optimized)", features!())
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("NARROWS_COMMIT"), ")", features!())
};

fn tasks(command: &Command) -> String {
    let mut text = String::new();
    for (task, names, example) in TASKS {
        text += &format!("{task}:\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &columns(INDENT, WIDTH, &format!("  {name}"), &about);
        }
        text += &format!("  $ {example}\n\n");
    }
    text
}

pub(crate) fn man(args: &Man) -> Result<u8, Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command()).render(&mut page);
        rendered.map_err(|cause| Failure::Other(format!("cannot make the page: {cause}")))?;
        print(&String::from_utf8_lossy(&page))?;
        return Ok(0);
    };
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command(), folder));
    written.map_err(|cause| Failure::Write { path: folder.clone(), cause })?;
    Ok(0)
}

#[cfg(test)]
#[path = "../tests/program/book/markdown.rs"]
mod markdown;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use clap::error::ErrorKind;

    use super::*;
    use crate::args::{ShellName, VERSION};
    use crate::completions::script;

    /// The commands that help shows, each with all the words that name it.
    fn shown(command: &Command, path: &[String]) -> Vec<(Vec<String>, Command)> {
        let mut all = Vec::new();
        for within in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            let path = [path, &[within.get_name().to_owned()]].concat();
            all.extend(shown(within, &path));
            all.push((path, within.clone()));
        }
        all
    }

    fn all() -> Vec<(Vec<String>, Command)> {
        let mut command = command();
        command.build();
        shown(&command, &["narrows".into()])
    }

    /// Every command of ours in a shell's text is one that we take. Returns how many there are.
    fn parses(place: &str, text: &str) -> usize {
        let mut seen = 0;
        for words in commands(text) {
            let Some(start) = words.iter().position(|word| word == "narrows") else { continue };
            // Elsewhere it is about the file: `install narrows …`.
            let may_come_before = |word: &String| {
                word.contains('=')
                    || ["$", "do", "then", "if", "!", "time", "sudo", "exec"].contains(&word.as_str())
            };
            if !words[..start].iter().all(may_come_before) {
                continue;
            }
            let arguments: Vec<OsString> = words[start..].iter().map(Into::into).collect();
            match crate::usage::parse(&arguments).map_err(|error| (error.kind(), error)) {
                Ok(_) | Err((ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _)) => seen += 1,
                Err((_, error)) => panic!("{place}: {}\n{error}", words.join(" ")),
            }
        }
        seen
    }

    #[test]
    fn each_command_belongs_to_one_task() {
        let command = command();
        let named: Vec<&str> = TASKS.iter().flat_map(|(_, names, _)| names.iter().copied()).collect();
        let once: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(once.len(), named.len(), "{named:?}");
        let known = command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
        assert_eq!(known.collect::<BTreeSet<_>>(), once);
        for (task, _, example) in TASKS {
            assert!(parses(task, example) > 0, "{example}");
        }
    }

    #[test]
    fn each_command_has_help_with_examples_that_parse() {
        for (path, command) in all() {
            let asked = [path.clone(), vec!["--help".into()]].concat();
            let asked: Vec<OsString> = asked.iter().map(OsString::from).collect();
            let kind = crate::usage::parse(&asked).map_err(|error| error.kind()).unwrap_err();
            assert_eq!(kind, ErrorKind::DisplayHelp, "{path:?}");
            if command.get_subcommands().any(|one| !["help", "check", "commands"].contains(&one.get_name())) {
                continue;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) =
                help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path:?}: no examples"));
            let examples = examples.split("\n\n").next().unwrap_or_default();
            assert!(examples.contains(&path.join(" ")), "{path:?}: {examples}");
            assert!(parses(&path.join(" "), examples) > 0, "{examples}");
        }
    }

    /// A shell's text as commands, each with its words: of what is in `$(…)` and of what `sh -c` gets, too. Redirections are left out.
    fn commands(text: &str) -> Vec<Vec<String>> {
        let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                (c, Some('\'')) => word.get_or_insert_default().push(c),
                ('$', _) if rest.peek() == Some(&'(') => {
                    let (mut depth, mut within) = (0, String::new());
                    for c in rest.by_ref() {
                        depth += i32::from(c == '(') - i32::from(c == ')');
                        within.push(c);
                        if depth == 0 {
                            break;
                        }
                    }
                    all.extend(commands(&within[1..within.len() - 1]));
                    word.get_or_insert_default().push('1');
                }
                ('\\', _) => match rest.next() {
                    Some('\n') | None => {}
                    Some(c) => word.get_or_insert_default().push(c),
                },
                (c, Some(_)) => word.get_or_insert_default().push(c),
                ('\'' | '"', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                ('#', None) if word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
                (';' | '|' | '&' | '\n' | '(' | ')' | '<' | '>', None) => {
                    words.extend(word.take());
                    all.push(std::mem::take(&mut words));
                    if c == '>' || c == '<' {
                        // Where to; what stands behind that is rare, and no word of ours.
                        while rest.next_if(|c| !";|&\n".contains(*c) || *c == '&').is_some() {}
                    }
                }
                (c, None) if c.is_whitespace() => words.extend(word.take()),
                (c, None) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        all.push(words);
        let inner: Vec<Vec<String>> = all
            .iter()
            .flat_map(|words| {
                words.windows(3).filter(|of| of[0] == "sh" && of[1].starts_with('-') && of[1].ends_with('c'))
            })
            .flat_map(|of| commands(&of[2]))
            .collect();
        all.into_iter().chain(inner).filter(|words| !words.is_empty()).collect()
    }

    #[test]
    fn a_shells_text_is_taken_apart() {
        let text =
            "a=1 x 'y z' \\\n  \"w $(narrows ls -q)\" | b >f # no\nfor i in 1 2; do sh -c 'c d; e'; done";
        let words: Vec<String> = commands(text).iter().map(|words| words.join("/")).collect();
        assert_eq!(
            words,
            ["narrows/ls/-q", "a=1/x/y z/w 1", "b", "for/i/in/1/2", "do/sh/-c/c d; e", "done", "c/d", "e"]
        );
    }

    /// Whether or not tests run it: what the documentation shows is a command line of ours.
    #[test]
    fn each_command_of_the_documentation_parses() {
        let mut seen = 0;
        for page in markdown::pages() {
            let blocks = markdown::blocks(&markdown::read(&page));
            for block in &blocks {
                let known: &[&str] = match block.language.as_str() {
                    "sh" => &["needs", "norun", "status"],
                    "rust" => &["ignore", "no_run"],
                    "python" => &["needs", "test"],
                    _ => &["file"],
                };
                for name in block.attributes.keys() {
                    assert!(
                        known.contains(&name.as_str()),
                        "{page}:{}: `{name}` is none of {known:?}",
                        block.line
                    );
                }
            }
            for block in blocks.iter().filter(|block| block.language == "sh") {
                seen += parses(&format!("{page}:{}", block.line), &block.text);
            }
        }
        assert!(seen > 150, "only {seen} commands were found");
    }

    #[test]
    fn each_command_has_a_page_of_the_manual_and_completions() {
        let folder = std::env::temp_dir().join(format!("narrows-man-{}", std::process::id()));
        man(&Man { folder: Some(folder.clone()) }).unwrap();
        let scripts = [ShellName::Bash, ShellName::Zsh, ShellName::Fish].map(script);
        for (path, command) in all() {
            let page = fs::read_to_string(folder.join(format!("{}.1", path.join("-")))).unwrap();
            assert!(page.contains(".SH NAME"), "{path:?}");
            for script in &scripts {
                assert!(script.contains(command.get_name()), "{path:?}");
            }
        }
        assert!(fs::read_to_string(folder.join("narrows.1")).unwrap().contains("narrows"));
        fs::remove_dir_all(folder).unwrap();
        // fish offers no values where there is no flag.
        assert!(scripts[..2].iter().all(|script| script.contains("link.rate")));
        assert!(scripts.iter().all(|script| script.contains("server")));
    }

    #[test]
    fn the_version_names_a_commit() {
        assert!(VERSION.starts_with(concat!(env!("CARGO_PKG_VERSION"), " (")), "{VERSION}");
        assert!(LONG_VERSION.starts_with(env!("CARGO_PKG_VERSION")) && LONG_VERSION.contains("af_packet"));
    }
}
