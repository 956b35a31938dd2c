//! `narrows ipfw`: ipfw's commands and scripts, explained, or at work on a run.

use std::fmt::Write;
use std::fs;

use clap::{Args, Command};
use narrows_live::control::Client;
use narrows_scenario::ipfw::Script;
use narrows_scenario::read_text;

use crate::output::{Failure, print};

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

Inside a run its rules are those of the link that has some; --link says which where several have.")]
pub(crate) struct Ipfw {
    /// Which run, by the number that it prints [default: the only one, or the one that this shell is inside of]
    #[arg(long)]
    run: Option<String>,
    /// The link at which the rules are [default: the only one that has rules]
    #[arg(long)]
    link: Option<String>,
    /// `check` and scripts, or a command of ipfw, or the file of a script for a run
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    words: Vec<String>,
}

pub(crate) fn ipfw(args: &Ipfw) -> Result<u8, Failure> {
    if let Some(("check", files)) = args.words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return check(files);
    }
    let (file, commands) = match &args.words[..] {
        [file] if fs::metadata(file).is_ok_and(|data| data.is_file()) => {
            let (text, file) = read_text(file.as_ref(), "script")?;
            (file, text)
        }
        words => ("ipfw".into(), words.join(" ")),
    };
    let changed = Client::find(args.run.as_deref())?.ipfw(args.link.clone(), file, commands)?;
    print(&changed.text)?;
    Ok(0)
}

/// Explains scripts, each with the scenario that it equals.
fn check(files: &[String]) -> Result<u8, Failure> {
    if let [word] = files
        && ["-h", "--help"].contains(&word.as_str())
    {
        let about = "ipfw's commands and scripts: explained (check), or at work on a run";
        let mut command = Ipfw::augment_args(Command::new("narrows ipfw")).about(about);
        print(&command.render_help().to_string())?;
        return Ok(0);
    }
    if files.is_empty() {
        let usage = "say which scripts to check, as in: narrows ipfw check scenarios/ipfw/adsl.conf";
        return Err(Failure::Other(usage.into()));
    }
    for (number, file) in files.iter().enumerate() {
        let script = Script::load(file)?;
        let mut text = String::new();
        if files.len() > 1 {
            let gap = if number > 0 { "\n" } else { "" };
            text = format!("{gap}{file}\n{}\n", "=".repeat(file.chars().count()));
        }
        for line in &script.lines {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        }
        let scenario = script.scenario(file)?;
        let _ = write!(text, "\nThe same as a scenario:\n\n{}", scenario.to_toml());
        print(&text)?;
    }
    Ok(0)
}
