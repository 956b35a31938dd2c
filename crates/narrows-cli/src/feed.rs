//! `narrows feed`: sends values from standard input to a feed of a run.

mod device;
mod text;

use std::io::{self, Read, Stdin};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use narrows_io::process::OtherProcess;
use narrows_io::wait::{Waiting, wait};
use narrows_live::control;
use narrows_live::feeds::Place;
use narrows_live::feeds::client::{Client, ClientError};
use narrows_live::feeds::device::DeviceConfig;
use serde::Serialize;

use crate::json::Json;
use crate::output::{Failure, say};
use text::Lines;

/// Bytes per read.
const CHUNK: usize = 8192;
/// Maximum number of values that `--repeat` keeps: 128 MiB.
const MOST_REPEATED: usize = 1 << 24;

/// Description of the input format, at the end of the help.
const INPUT_HELP: &str = "\
Input: one value per line and packet: a time with a unit (200us, 12.5ms), a bare number in --unit, or \
`-` or `lose` to drop the packet. Empty lines and comments after # are ignored.

Examples:
  narrows feed access.up < delays.txt
  seq 1 1000 | awk '{ print 200 + 50 * sin($1 / 20) \"us\" }' | narrows feed access.up --repeat
  python3 random_walk.py | narrows feed access.up/radio
  narrows feed access.up --device /dev/sch_delay/eth0 -- python3 sch_delay.py /dev/sch_delay/eth0";

#[derive(Debug, Args)]
#[command(after_help = INPUT_HELP)]
pub(crate) struct Feed {
    /// Link, direction and name of the feed, as far as needed to tell feeds apart
    #[arg(value_name = "LINK[.DIRECTION][/NAME]")]
    feed: Option<String>,
    /// Unit of bare numbers
    #[arg(long, value_enum, default_value = "ns")]
    unit: Unit,
    /// Read little-endian signed 64-bit integers: nanoseconds, or -1 for a loss
    #[arg(long, conflicts_with = "unit")]
    binary: bool,
    /// Repeat the input until the run ends
    #[arg(long)]
    repeat: bool,
    /// List the feeds of the run and their sockets
    #[arg(long, conflicts_with_all = ["feed", "unit", "binary", "repeat"])]
    list: bool,
    /// Serve the feed as a device file at PATH, as `/dev/sch_delay/IF` of the qdisc `delay`, while CMD runs
    #[arg(long, value_name = "PATH", conflicts_with_all = ["unit", "binary", "repeat", "list"])]
    device: Option<PathBuf>,
    /// What to do with values written to the device while it is full
    #[arg(long, value_enum, default_value = "wait", requires = "device")]
    when_full: device::Full,
    /// Free room at which `poll` on the device returns [default: half of the lead]
    #[arg(long, value_name = "VALUES", requires = "device", value_parser = clap::value_parser!(u64).range(1..))]
    wake_level: Option<u64>,
    /// Program that uses the device; without it, serve until Ctrl-C or the end of the run
    #[arg(last = true, value_name = "CMD", requires = "device")]
    command: Vec<String>,
    #[command(flatten)]
    json: Json,
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long)]
    run: Option<String>,
}

/// What a bare number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

impl Unit {
    fn nanos(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
        }
    }
}

pub(crate) fn feed(args: &Feed) -> Result<u8, Failure> {
    let run = control::Client::find_or_start(args.run.as_deref())?;
    let places = run.feeds()?;
    if args.list {
        return list(&places, &args.json);
    }
    if args.json.path().is_some() {
        return Err(Failure::Other("--json requires --list".into()));
    }
    let place = chosen(&places, args.feed.as_deref())?;
    if place.two_way {
        return Err(Failure::Other(format!(
            "the feed {} is interactive: it needs a program that answers on {}",
            label(place),
            place.path.display()
        )));
    }
    if let Some(path) = &args.device {
        let config = DeviceConfig { when_full: args.when_full.into(), wake_level: args.wake_level };
        let number = run.process()?;
        let run = number.and_then(|number| OtherProcess::open(number).ok());
        return device::device(run.as_ref(), place, path, config, &args.command);
    }
    let mut client = Client::connect(&place.path).map_err(|error| failed(place, &error))?;
    let mut input = Input { stdin: io::stdin(), parser: Parser::of(args), repeated: Vec::new() };
    let end = input.pass_on(&mut client, args.repeat);
    let how = match end {
        Ok(()) => "",
        Err(Ended::Connection(ClientError::Over)) => "; the run has ended, or no longer has this feed",
        Err(Ended::Connection(error)) => return Err(failed(place, &error)),
        Err(Ended::Input(message)) => {
            let went = values(client.sent());
            return Err(Failure::Other(format!("{message}\n{went} went before it to {}", label(place))));
        }
    };
    // If nobody reads this message, the values were sent nevertheless.
    say(format_args!("narrows: {} went to {}{how}", values(client.sent()), label(place)));
    Ok(0)
}

fn values(count: u64) -> String {
    if count == 1 { "1 value".into() } else { format!("{count} values") }
}

fn label(place: &Place) -> String {
    format!("{}/{}", place.link, place.name)
}

fn failed(place: &Place, error: &ClientError) -> Failure {
    Failure::Other(format!("{}: {error}", label(place)))
}

/// Version of the JSON output of `--list`.
const SCHEMA: u32 = 1;

/// A feed in JSON.
#[derive(Serialize)]
struct Entry<'a> {
    link: &'a str,
    name: &'a str,
    two_way: bool,
    path: &'a Path,
}

#[derive(Serialize)]
struct All<'a> {
    feeds: Vec<Entry<'a>>,
}

fn list(places: &[Place], json: &Json) -> Result<u8, Failure> {
    json.probe()?;
    fn entry(place: &Place) -> Entry<'_> {
        Entry { link: &place.link, name: &place.name, two_way: place.two_way, path: &place.path }
    }
    let line = |place: &Place| {
        let form = if place.two_way { ", two-way" } else { "" };
        format!("{}{form}: {}\n", label(place), place.path.display())
    };
    json.put(SCHEMA, &All { feeds: places.iter().map(entry).collect() }, || match places {
        [] => "the run has no feeds\n".into(),
        places => places.iter().map(line).collect(),
    })?;
    Ok(0)
}

/// Selects the feed.
fn chosen<'a>(places: &'a [Place], wanted: Option<&str>) -> Result<&'a Place, Failure> {
    let (link, name) = match wanted {
        None => ("", None),
        Some(wanted) => match wanted.split_once('/') {
            Some((link, name)) => (link, Some(name)),
            None => (wanted, None),
        },
    };
    let is_meant = |place: &&Place| {
        let of_link =
            place.link.strip_prefix(link).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        (link.is_empty() || of_link) && name.is_none_or(|name| place.name == name)
    };
    let mut found: Vec<_> = places.iter().filter(is_meant).collect();
    if found.is_empty() {
        // The name alone matches if no link has it.
        found = places.iter().filter(|place| Some(place.name.as_str()) == wanted).collect();
    }
    let names = |places: &mut dyn Iterator<Item = &Place>| places.map(label).collect::<Vec<_>>().join(", ");
    match (found.as_slice(), wanted) {
        ([place], _) => Ok(place),
        ([], _) if places.is_empty() => {
            let help = "set delay = { feed = \"NAME\" } in a link";
            Err(Failure::Other(format!("the run has no feeds: {help}")))
        }
        ([], wanted) => {
            let all = names(&mut places.iter());
            Err(Failure::Other(format!("no feed `{}`; feeds: {all}", wanted.unwrap_or_default())))
        }
        (several, _) => {
            let all = names(&mut several.iter().copied());
            Err(Failure::Other(format!("several feeds: name one of {all}")))
        }
    }
}

/// Why no more values are sent.
enum Ended {
    /// The run or the connection ended.
    Connection(ClientError),
    /// The input ended, with the reason.
    Input(String),
}

impl From<ClientError> for Ended {
    fn from(error: ClientError) -> Self {
        Self::Connection(error)
    }
}

/// Converts bytes to values.
enum Parser {
    Binary(Vec<u8>),
    Text(Lines),
}

impl Parser {
    fn of(args: &Feed) -> Self {
        if args.binary { Self::Binary(Vec::new()) } else { Self::Text(Lines::new(args.unit.nanos())) }
    }

    /// The values in the next bytes, up to the first error, and that error.
    fn parse(&mut self, bytes: &[u8]) -> (Vec<i64>, Result<(), String>) {
        match self {
            Self::Text(lines) => lines.parse(bytes),
            Self::Binary(part) => {
                part.extend_from_slice(bytes);
                let (whole, rest) = part.as_chunks();
                let values: Vec<i64> = whole.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
                let rest = rest.to_vec();
                *part = rest;
                match values.iter().position(|&value| value < -1) {
                    None => (values, Ok(())),
                    Some(at) => {
                        let found = values[at];
                        let what = "a value is a delay in nanoseconds, or -1 for a loss";
                        (values[..at].to_vec(), Err(format!("{found} is not a value: {what}")))
                    }
                }
            }
        }
    }

    /// The values at the end of the input.
    fn finish(&mut self) -> (Vec<i64>, Result<(), String>) {
        match self {
            Self::Text(lines) => lines.finish(),
            Self::Binary(part) if part.is_empty() => (Vec::new(), Ok(())),
            Self::Binary(part) => {
                (Vec::new(), Err(format!("the input ends with {} bytes of an incomplete value", part.len())))
            }
        }
    }
}

struct Input {
    stdin: Stdin,
    parser: Parser,
    /// All values so far, if they are repeated.
    repeated: Vec<i64>,
}

impl Input {
    fn pass_on(&mut self, client: &mut Client, repeat: bool) -> Result<(), Ended> {
        let mut buffer = [0; CHUNK];
        loop {
            // Waits for both: the generator may be slow, and the run may end before the next value.
            let mut waiting = [Waiting::readable(&self.stdin), Waiting::readable(&*client)];
            wait(&mut waiting, None).map_err(cannot_read)?;
            let has_input = waiting[0].is_ready();
            client.look()?;
            if !has_input {
                continue;
            }
            let length = self.stdin.lock().read(&mut buffer).map_err(cannot_read)?;
            let (values, result) =
                if length == 0 { self.parser.finish() } else { self.parser.parse(&buffer[..length]) };
            client.send(&values)?;
            result.map_err(Ended::Input)?;
            if repeat {
                self.keep(&values)?;
            }
            if length == 0 {
                break;
            }
        }
        while repeat && !self.repeated.is_empty() {
            client.send(&self.repeated)?;
        }
        client.finish()?;
        Ok(())
    }

    fn keep(&mut self, values: &[i64]) -> Result<(), Ended> {
        self.repeated.extend_from_slice(values);
        if self.repeated.len() > MOST_REPEATED {
            return Err(Ended::Input(format!(
                "--repeat keeps at most {MOST_REPEATED} values, but there are more"
            )));
        }
        Ok(())
    }
}

fn cannot_read(error: io::Error) -> Ended {
    Ended::Input(format!("cannot read the standard input: {error}"))
}
