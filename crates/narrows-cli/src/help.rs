//! The whole command line as clap knows it: commands by task, the version, man pages, completions.

use std::fs;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, Command, CommandFactory, ValueEnum, ValueHint};
use narrows_scenario::LinkFlags;

use crate::args::Arguments;
use crate::output::{Failure, columns, print};

/// Commands by what one wants to do, with an example of each.
pub(crate) const TASKS: &[(&str, &[&str], &str)] = &[
    (
        "Put programs behind a network",
        &["run", "shell", "bridge", "attach"],
        "narrows run --rate 10mbit --delay 25ms --loss 1% -- sh -c 'ping -c 5 $NARROWS_SERVER'",
    ),
    (
        "Describe a network, and run it in virtual time",
        &["check", "sim"],
        "narrows sim --rate 10mbit --delay 25ms --loss 1%",
    ),
    (
        "Look at a run and change it, while it goes on and after it",
        &["stats", "set", "feed", "tc", "ipfw", "report"],
        "narrows set link.down.rate=2mbit",
    ),
    (
        "Measure paths; make and draw traces, patterns, profiles, distributions",
        &["probe", "trace", "pattern", "profile", "dist"],
        "narrows trace plot cell.csv --plot cell.svg",
    ),
    ("Compare schedulers", &["sched"], "narrows sched compare --algorithms fifo,drr,qfq,fq_codel"),
    (
        "Look after this host and this program",
        &["doctor", "calibrate", "kernel", "clean", "man", "completions"],
        "narrows doctor",
    ),
];

/// How wide help is at most, as of the commands' own.
const WIDTH: usize = 100;
/// Where what a command does begins.
const INDENT: usize = 16;

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

const AFTER: &str = "`narrows COMMAND --help` says all of a command, with examples. What exit statuses mean: docs/running.md.";

/// The command line.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let tasks = tasks(&command);
    command.long_version(LONG_VERSION).help_template(TEMPLATE).before_help(tasks).after_help(AFTER)
}

/// What is in it, whatever the host lets it do: `narrows doctor` says that.
macro_rules! features {
    () => {
        concat!(
            "\nfor ", env!("NARROWS_TARGET"),
            "\nfeatures: af_packet, af_xdp, tap, bridge, attach, user namespaces, virtual time, exact virtual time"
        )
    };
}

/// The version, and the commit that it is made of.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NARROWS_COMMIT"), ")");

/// The same with what is in it.
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

/// The arguments of `narrows man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows man | man -l -
  narrows man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder to write narrows.1 and the page of each command to [default: print narrows.1]
    #[arg(value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
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

/// The arguments of `narrows completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows completions bash > ~/.local/share/bash-completion/completions/narrows
  narrows completions zsh > ~/.zfunc/_narrows
  narrows completions fish > ~/.config/fish/completions/narrows.fish")]
pub(crate) struct Completions {
    /// For which shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn completions(args: &Completions) -> Result<u8, Failure> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "narrows", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

/// Any text, with some that completions offer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offered {
    /// The hosts of a network that flags describe.
    Hosts,
    /// What can be changed of its link.
    Keys,
}

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        match self {
            Self::Hosts => Some(Box::new(["client", "server"].into_iter().map(PossibleValue::new))),
            Self::Keys => {
                let keys = LinkFlags::known().into_iter().filter(|flag| !flag.name.starts_with("netem"));
                Some(Box::new(keys.map(|flag| PossibleValue::new(format!("link.{}", flag.name)))))
            }
        }
    }
}
