//! `narrows events`: prints the events of a run as they happen.

use std::thread;
use std::time::Duration;

use clap::Args;
use narrows_live::control::{Client, ControlError, Event};
use serde_json::json;

use crate::output::{Failure, print};

/// Polling interval.
const EACH: Duration = Duration::from_millis(200);

/// The arguments of `narrows events`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows events dsl
  narrows events dsl --json | jq 'select(.what == \"changed\")'")]
pub(crate) struct ShowEvents {
    /// Run, by name or number
    #[arg(value_name = "NAME")]
    run: String,
    /// Print events as JSON, one per line
    #[arg(long)]
    json: bool,
    /// Print past events and exit
    #[arg(long)]
    no_follow: bool,
}

pub(crate) fn events(args: &ShowEvents) -> Result<u8, Failure> {
    let run = Client::find_or_start(Some(&args.run))?;
    let (mut after, mut is_first) = (0, true);
    loop {
        let new = match run.events(after) {
            Err(ControlError::Nobody { .. } | ControlError::Broken { .. }) if !is_first => {
                print(&if args.json {
                    format!("{}\n", json!({ "what": "ended" }))
                } else {
                    "ended\n".into()
                })?;
                return Ok(0);
            }
            answer => answer?,
        };
        if new.missed > 0 && !args.json {
            print(&format!("({} earlier ones were discarded)\n", new.missed))?;
        }
        for event in new.events {
            after = event.number;
            print(&if args.json { json_line(&event)? } else { line(&event) })?;
        }
        if args.no_follow {
            return Ok(0);
        }
        is_first = false;
        thread::sleep(EACH);
    }
}

fn json_line(event: &Event) -> Result<String, Failure> {
    let text = serde_json::to_string(event).map_err(|error| Failure::Other(error.to_string()))?;
    Ok(format!("{text}\n"))
}

/// `   1.204 s  changed  generation 1: changed at 1.2s: link.delay=9ms (narrows set link.delay=9ms)`.
fn line(event: &Event) -> String {
    let what = serde_json::to_value(event.what).unwrap_or_default();
    let what = what.as_str().unwrap_or_default();
    let by = event.by.as_ref().map_or(String::new(), |by| format!(" ({by})"));
    let (seconds, milliseconds) = (event.at_ns / 1_000_000_000, event.at_ns / 1_000_000 % 1000);
    let generation = match what {
        "changed" | "timeline" => format!("generation {}: ", event.generation),
        _ => String::new(),
    };
    // One line whatever a program is called.
    let rest = format!("{generation}{}{by}", event.text).replace('\n', "\\n");
    format!("{seconds:>6}.{milliseconds:03} s  {what:<14}  {rest}\n")
}
