//! `narrows ipfw`: explains ipfw commands and scripts, or applies them to a run.

use std::fs;
use std::path::Path;

use clap::{Args, Subcommand, ValueHint};
use narrows_live::control::Client;
use narrows_scenario::ipfw::Script;
use narrows_scenario::{Interfaces, Start, read_script};

use serde::Serialize;

use crate::commands::{Commands, System, commands};
use crate::json::Json;
use crate::output::{Failure, print};
use crate::outputs;
use crate::surroundings::Surroundings;

/// The command as it follows `narrows ipfw`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows ipfw check scenarios/ipfw/adsl.conf
  narrows run --ipfw scenarios/ipfw/adsl.conf -- sh -c 'ping -c 5 $NARROWS_SERVER'
  narrows ipfw add 100 pipe 1 ip from any to any out
  narrows ipfw pipe 1 config bw 3Mbit/s delay 32ms
  narrows ipfw -a list
  narrows ipfw pipe show
  narrows ipfw script.conf

Inside a run, commands apply to the link that has rules; --link selects one of several.")]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Ipfw {
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long)]
    run: Option<String>,
    /// Link of the rules [default: the only one with rules]
    #[arg(long)]
    link: Option<String>,
    /// ipfw command (add, delete, list, show, pipe, queue, table, …), or a script file
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    words: Vec<String>,
    #[command(subcommand)]
    explained: Option<Explained>,
}

#[derive(Debug, Subcommand)]
enum Explained {
    /// Explain ipfw scripts line by line, and print the equivalent scenario
    Check(Check),
    /// Let a shell run a script in a sandbox, and print its commands of ipfw and the like
    Commands(Commands),
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows ipfw check scenarios/ipfw/adsl.conf
  narrows ipfw check shape.sh -- 3mbit 40ms
  narrows ipfw check shape.sh --env fwcmd=ipfw
  narrows ipfw check a.conf b.conf --json")]
struct Check {
    /// Script files
    #[arg(required = true, value_name = "SCRIPT", value_hint = ValueHint::FilePath)]
    files: Vec<String>,
    /// Arguments that the scripts are started with
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
    #[command(flatten)]
    surroundings: Surroundings,
    /// Map an interface that rules name (`recv`, `xmit`, `via`) to its host: em0=client [default: a single one is the client's]
    #[arg(long = "interface", value_name = "NAME=HOST")]
    interfaces: Vec<String>,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn ipfw(args: &Ipfw) -> Result<u8, Failure> {
    match &args.explained {
        Some(Explained::Check(args)) => return check(args),
        Some(Explained::Commands(args)) => return commands(args, System::FreeBsd),
        None => {}
    }
    let (file, commands) = match &args.words[..] {
        [file] if fs::metadata(file).is_ok_and(|data| data.is_file()) => {
            let (text, file) = read_script(file.as_ref())?;
            (file, text)
        }
        words => ("ipfw".into(), words.join(" ")),
    };
    let changed = Client::find_or_start(args.run.as_deref())?.ipfw(args.link.clone(), file, commands)?;
    print(&changed.text)?;
    Ok(0)
}

/// Version of the JSON output.
const SCHEMA: u32 = 1;

/// JSON output.
#[derive(Serialize)]
struct Found<'a> {
    scripts: Vec<Explanation<'a>>,
}

/// Explanation of one script.
#[derive(Serialize)]
struct Explanation<'a> {
    file: &'a str,
    /// In words, line by line.
    explanation: Vec<String>,
    /// The equivalent scenario.
    scenario: String,
}

/// Explains scripts, each with the equivalent scenario. Scripts before an invalid one are still explained.
/// Whose packets the rules see.
const WHOSE: &str = "The rules are at the client's end of a link: `out` is what it sends to the server, `in` what it receives.";

fn check(args: &Check) -> Result<u8, Failure> {
    args.json.probe()?;
    let interfaces = interfaces(&args.interfaces)?;
    let (mut scripts, mut wrong) = (Vec::new(), None);
    for file in &args.files {
        match explained(file, args, &interfaces) {
            Ok(one) => scripts.push(one),
            Err(error) => {
                wrong = Some(error);
                break;
            }
        }
    }
    let text = || {
        let several = args.files.len() > 1;
        let one = |one: &Explanation<'_>| {
            let title = match several {
                true => format!("{}\n{}\n\n", one.file, "=".repeat(one.file.chars().count())),
                false => String::new(),
            };
            let lines: String = one.explanation.iter().map(|line| format!("{line}\n")).collect();
            format!("{title}{lines}\n{WHOSE}\n\nThe same as a scenario:\n\n{}", one.scenario)
        };
        scripts.iter().map(one).collect::<Vec<_>>().join("\n")
    };
    let text = text();
    if !text.is_empty() {
        args.json.put(SCHEMA, &Found { scripts }, || text)?;
    }
    wrong.map_or(Ok(0), Err)
}

fn explained<'a>(file: &'a str, args: &Check, interfaces: &Interfaces) -> Result<Explanation<'a>, Failure> {
    let arguments = (!args.arguments.is_empty()).then_some(&args.arguments[..]);
    let variables = args.surroundings.variables()?;
    let start = Start { arguments, variables: &variables, path: None };
    let script = Script::load(file, start, interfaces)?;
    let scenario = script.scenario(file)?;
    outputs::check_scenario(&[("--json", args.json.path())], &scenario, Some(Path::new(file)))?;
    let lines = script.lines.iter().map(ToString::to_string);
    Ok(Explanation { file, explanation: lines.collect(), scenario: scenario.to_toml() })
}

/// The interfaces of all `--interface` options.
pub(crate) fn interfaces(given: &[String]) -> Result<Interfaces, Failure> {
    let mut interfaces = Interfaces::default();
    for text in given {
        interfaces.add(text).map_err(|error| Failure::Other(format!("--interface: {error}")))?;
    }
    Ok(interfaces)
}
