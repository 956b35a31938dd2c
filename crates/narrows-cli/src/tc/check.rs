//! `narrows tc check`: what a text of NetEm, a command or a script of tc means, in words and as a scenario.

use std::path::Path;

use narrows_scenario::Scenario;
use narrows_scenario::netem::{self, Command, Verb};
use narrows_scenario::tc::Script;

use crate::output::{Failure, print};

/// What is given: the name of a script, or a text, and whether `--exact-netem` is among the words.
pub(super) fn check_words(words: &[String]) -> Result<u8, Failure> {
    let exact = words.iter().any(|word| word == "--exact-netem");
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--exact-netem").collect();
    match words[..] {
        [path] if Path::new(path).is_file() => script(&Script::load(path)?, exact),
        _ => {
            let text = words.join(" ");
            // A command about NetEm alone is looked at option by option.
            match Script::is_meant(&text) && (Command::parse(&text).is_err() || exact) {
                true if is_netem(&text) && !exact => check(&text),
                true => script(&Script::parse(&text, "tc")?, exact),
                false => check(&text),
            }
        }
    }
}

/// Whether a text is a single command about netem, right or wrong.
fn is_netem(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    text.trim().lines().count() == 1
        && words.contains(&"qdisc")
        && words.contains(&"netem")
        && words.contains(&"root")
}

/// Each command in words, and the scenario that all of them come to.
fn script(script: &Script, exact: bool) -> Result<u8, Failure> {
    let mut text = String::new();
    for explained in script.explain()? {
        text += &format!("{}: {}\n", explained.line, explained.command);
        for sentence in explained.words {
            text += &format!("    {sentence}\n");
        }
    }
    text.push('\n');
    for placed in script.placed(exact)? {
        text += &format!("{}\n", placed.words());
        for note in placed.device.remarks(false) {
            text += &format!("    {note}\n");
        }
    }
    let scenario = script.scenario_text(exact)?;
    print(&format!("{text}\nThe same as a scenario:\n\n{scenario}"))?;
    // What is wrong is mostly a table that is not there.
    Scenario::parse(&scenario, "the scenario above")?;
    Ok(0)
}

fn check(text: &str) -> Result<u8, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::Other(
            "say what to check, as in: narrows tc check 'delay 100ms loss 1%'".into(),
        ));
    }
    let mut besides = String::new();
    let qdisc = if Command::is_meant(text) {
        let command = Command::parse(text)?;
        besides = around(&command);
        match command.qdisc {
            Some(qdisc) => qdisc,
            None => {
                print(&format!("{besides}there are no options to explain\n"))?;
                return Ok(0);
            }
        }
    } else {
        netem::parse(text)?
    };
    let scenario = qdisc.scenario_text()?;
    print(&format!(
        "{besides}{}\nThe same as a scenario, for both ways (for one way, put the keys behind `up.` or `down.`):\n\n{scenario}",
        qdisc.explain()
    ))?;
    // What is wrong is mostly a table that is not there.
    Scenario::parse(&scenario, "the scenario above")?;
    Ok(0)
}

/// What stands around the options of a whole command.
fn around(command: &Command) -> String {
    let device = command.device.as_deref().unwrap_or("a device");
    let mut text = match command.verb {
        Verb::Add => format!("puts this at {device}, where nothing was\n"),
        Verb::Change => format!(
            "changes what is at {device}: of what it does not name, distribution, rate, corrupt, slot and ecn stay as they\n\
             were, and so do correlations where it names none; delay, loss, duplicate, reorder and limit are set back\n"
        ),
        Verb::Replace => {
            format!("puts this at {device}, or changes the netem that is there as `change` does\n")
        }
        Verb::Delete => format!("takes away what is at {device}\n"),
        Verb::Show => format!("shows what is at {device}\n"),
    };
    if let Some(parent) = &command.parent {
        text += &format!(
            "in class {parent} of another discipline, which is not looked at: the options stand for themselves\n"
        );
    }
    text.push('\n');
    text
}
