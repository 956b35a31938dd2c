//! `narrows tc check`: explains NetEm options, a tc command or a tc script, in words and as a scenario.

use std::path::Path;

use clap::{Args, ValueHint};
use narrows_scenario::netem::{self, Command, Verb};
use narrows_scenario::tc::Script;
use narrows_scenario::{Scenario, Start};

use serde::Serialize;

use crate::json::Json;
use crate::output::Failure;
use crate::outputs;
use crate::surroundings::Surroundings;

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows tc check shape.sh
  narrows tc check shape.sh eth0 10mbit
  narrows tc check shape.sh -- --dev eth0
  narrows tc check shape.sh --env DEV=eth0 --env RATE=10mbit
  narrows tc check 'delay 100ms 20ms 25% distribution normal loss 0.3% rate 1mbit limit 50'
  narrows tc check 'tc qdisc add dev eth0 root netem delay 10ms reorder 25% 50%' --json")]
pub(crate) struct Check {
    /// tc script file with its arguments (behind `--` if one begins with `-`), NetEm options, or a command, as one word or several
    #[arg(required = true, value_name = "SCRIPT|WORDS", value_hint = ValueHint::FilePath)]
    words: Vec<String>,
    /// Use the kernel's single queue instead of two queues
    #[arg(long)]
    exact_netem: bool,
    #[command(flatten)]
    surroundings: Surroundings,
    #[command(flatten)]
    json: Json,
}

/// Version of the JSON output.
const SCHEMA: u32 = 1;

/// JSON output.
#[derive(Serialize)]
struct Found<'a> {
    /// In words, line by line.
    explanation: Vec<&'a str>,
    /// The equivalent scenario, if there is one.
    scenario: Option<&'a str>,
}

/// Explains the argument: the name of a script, or a text.
pub(super) fn check(args: &Check) -> Result<u8, Failure> {
    args.json.probe()?;
    let exact = args.exact_netem;
    let variables = args.surroundings.variables()?;
    let start = Start { variables: &variables, ..Start::default() };
    let (explanation, between, scenario) = match &args.words[..] {
        [path, arguments @ ..] if Path::new(path).is_file() => {
            let arguments = (!arguments.is_empty()).then_some(arguments);
            script(&Script::load_with(path, Start { arguments, ..start })?, exact)?
        }
        words => {
            let text = words.join(" ");
            // A single NetEm command is explained option by option.
            let several = Script::is_several(&text);
            match Script::is_meant(&text) && (several || Command::parse(&text).is_err() || exact) {
                true if !several && is_netem(&text) && !exact => text_of_netem(&text, exact)?,
                true => script(&Script::parse_with(&text, "tc", start)?, exact)?,
                false => text_of_netem(&text, exact)?,
            }
        }
    };
    let found = Found { explanation: explanation.lines().collect(), scenario: scenario.as_deref() };
    // The usual error is a missing table, and comes after the explanation.
    let parsed = scenario.as_deref().map(|text| Scenario::parse(text, "the scenario above")).transpose();
    if let Ok(Some(scenario)) = &parsed {
        outputs::check_scenario(&[("--json", args.json.path())], scenario, None)?;
    }
    let whole = || format!("{explanation}{between}{}", scenario.as_deref().unwrap_or_default());
    args.json.put(SCHEMA, &found, whole)?;
    parsed?;
    Ok(0)
}

/// An explanation, the separator, and the scenario.
type Explained = (String, &'static str, Option<String>);

/// Whether a text is a single netem command, valid or not.
fn is_netem(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    text.trim().lines().count() == 1
        && words.contains(&"qdisc")
        && words.contains(&"netem")
        && words.contains(&"root")
}

/// Each command in words, and the equivalent scenario of all of them.
fn script(script: &Script, exact: bool) -> Result<Explained, Failure> {
    let mut text = String::new();
    for explained in script.explain()? {
        text += &format!("{}: {}\n", explained.line, explained.command);
        for sentence in explained.words {
            text += &format!("    {sentence}\n");
        }
    }
    if script.leaves_nothing(exact)? {
        text += "\nNothing is left in the end: the last commands take away what the ones before configure.\n";
    }
    text.push('\n');
    for placed in script.placed(exact)? {
        text += &format!("{}\n", placed.words());
        for note in placed.device.remarks(false) {
            text += &format!("    {note}\n");
        }
    }
    Ok((text, "\nThe same as a scenario:\n\n", Some(script.scenario_text(exact)?)))
}

fn text_of_netem(text: &str, exact: bool) -> Result<Explained, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::Other("nothing to check; as in: narrows tc check 'delay 100ms loss 1%'".into()));
    }
    let mut besides = String::new();
    let qdisc = if Command::is_meant(text) {
        let command = Command::parse(text)?;
        besides = around(&command, text);
        match command.qdisc {
            Some(qdisc) => qdisc,
            None => {
                return Ok((format!("{besides}there are no options to explain\n"), "", None));
            }
        }
    } else {
        netem::parse(text)?
    };
    const SAME: &str =
        "\nThe same as a scenario, for both ways (for one way, put the keys behind `up.` or `down.`):\n\n";
    Ok((format!("{besides}{}", qdisc.explain()), SAME, Some(qdisc.scenario_text(exact)?)))
}

/// Explains what surrounds the options in a complete command.
fn around(command: &Command, whole: &str) -> String {
    let device = command.device.as_deref().unwrap_or("a device");
    let mut text = match command.verb {
        Verb::Add => format!("adds this at {device}\n"),
        Verb::Change => format!(
            "changes {device}: distribution, rate, corrupt, slot and ecn that are not named stay, and so do correlations;\ndelay, loss, duplicate, reorder and limit that are not named are reset\n"
        ),
        Verb::Replace => {
            format!("adds this at {device}, or changes its netem as `change` does\n")
        }
        Verb::Delete => format!("deletes the discipline at {device}\n"),
        Verb::Show => format!("shows the discipline at {device}\n"),
    };
    if let Some(parent) = &command.parent {
        text += &format!("in class {parent} of another discipline, which is ignored here\n");
    }
    // For a single published command, the options are usually of interest; in a script, the device counts.
    if command.parent.is_none()
        && let Ok(placed) = Script::parse(whole, "tc").and_then(|script| script.placed(false))
        && let [placed] = &placed[..]
    {
        text += &format!("in a script (--tc FILE) it shapes one way alone: {}\n", placed.words());
    }
    text.push('\n');
    text
}
