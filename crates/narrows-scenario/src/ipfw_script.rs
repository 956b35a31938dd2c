//! Scenarios from ipfw scripts: two hosts, and the rules between them.

use std::net::IpAddr;
use std::path::Path;

use narrows_core::Time;
use narrows_core::rules::{Action, Field, Literal, Rule, Test};

use crate::dialect::shell::Start;
use crate::files;
use crate::flags::LinkFlags;
use crate::ipfw::{Context, LaterCommand, Named, Script, TableKey, Written, fits};
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::scenario::{Scenario, TRIED_RULES};

/// Names of the two hosts, as in a scenario from flags.
const HOSTS: [&str; 2] = ["client", "server"];
/// The link with the rules, which is also the interface name that the rules see.
const LINK: &str = "net";

/// Which ports the rules of the short form apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports<'a> {
    /// Traffic between the client's programs and these ports of other hosts.
    Client(&'a str),
    /// Traffic between other hosts and these ports of the client.
    Server(&'a str),
}

/// Which host owns each interface that rules name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// The client's interfaces: what the client sends leaves by them.
    pub client: Vec<String>,
    /// The server's interfaces.
    pub server: Vec<String>,
    /// Interfaces that nothing between the two passes.
    pub neither: Vec<String>,
}

impl Interfaces {
    /// Adds an interface, as in `em0=client`.
    ///
    /// # Errors
    /// The error says what is allowed.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let (name, host) = text.split_once('=').ok_or_else(|| {
            format!("`{text}` names no host: write {text}=client, {text}=server or {text}=neither")
        })?;
        if name.is_empty() || name.chars().any(char::is_whitespace) {
            return Err(format!("`{text}` names no interface: write em0={host}"));
        }
        if self.client.iter().chain(&self.server).chain(&self.neither).any(|known| known == name) {
            return Err(format!("the interface `{name}` is given twice"));
        }
        match host {
            "client" => self.client.push(name.into()),
            "server" => self.server.push(name.into()),
            "neither" => self.neither.push(name.into()),
            _ => return Err(format!("found `{host}`, expected `client`, `server` or `neither`")),
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.client.is_empty() && self.server.is_empty() && self.neither.is_empty()
    }
}

/// Whose an interface is assumed to be.
enum Guess {
    Client,
    /// The client's, because a translator uses its address.
    Translated,
    /// A router's, towards the client.
    Router,
    /// The same, and this one is towards the server.
    Between(String),
}

impl Script {
    /// Parses a script for the scenario that [`Script::scenario`] builds from it. In its rules, `client`
    /// and `server` are the addresses of the two hosts, and the only interface is `net`.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn for_two_hosts(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::at_interfaces(text, file, &Interfaces::default())
    }

    /// Same for rules that name interfaces. If `interfaces` is empty and the rules name a single unknown
    /// interface, it belongs to the client.
    ///
    /// # Errors
    /// As [`Script::parse`], and if no remaining rule leads to a pipe because all of them name unknown
    /// interfaces.
    pub fn at_interfaces(text: &str, file: &str, interfaces: &Interfaces) -> Result<Self, ScenarioError> {
        Self::started(text, file, interfaces, Start::default())
    }

    /// The same for a script that is started like this.
    fn started(
        text: &str,
        file: &str,
        interfaces: &Interfaces,
        start: Start<'_>,
    ) -> Result<Self, ScenarioError> {
        let plain = Scenario::from_flags(&LinkFlags::default())?;
        let addresses = |host: &&str| {
            let ports = plain.ports().iter().filter(|port| port.host == **host);
            let addresses: Vec<IpAddr> =
                ports.flat_map(|port| port.addresses.iter().map(|address| address.ip)).collect();
            (String::from(*host), addresses)
        };
        let hosts: Vec<_> = HOSTS.iter().map(addresses).collect();
        let mut inside = vec![LINK];
        inside.extend(interfaces.client.iter().map(String::as_str));
        let mut outside: Vec<&str> = interfaces.server.iter().map(String::as_str).collect();
        let named = Named::of(text, start);
        let elsewhere: Vec<&str> = interfaces.neither.iter().map(String::as_str).collect();
        let known = [&inside[..], &outside[..], &elsewhere[..]].concat();
        let unknown =
            |known: &[&str]| named.all.iter().find(|(name, ..)| !known.iter().any(|known| fits(name, known)));
        let mut guess = None;
        let mut translated =
            named.translated.iter().filter(|(name, _)| !known.iter().any(|known| fits(name, known)));
        let of_translator = translated.next().filter(|(name, _)| translated.all(|(other, _)| other == name));
        if interfaces.is_empty()
            && let Some((name, line)) = of_translator
        {
            inside.push(name);
            guess = Some((name, *line, Guess::Translated));
        } else if interfaces.is_empty()
            && let Some((name, _, line)) = unknown(&known)
            && named
                .all
                .iter()
                .all(|(other, ..)| other == name || known.iter().any(|known| fits(other, known)))
        {
            if named.is_router {
                outside.push(name)
            } else {
                inside.push(name)
            };
            let is = if named.is_router { Guess::Router } else { Guess::Client };
            guess = Some((name, *line, is));
        } else if interfaces.is_empty()
            && named.is_router
            && let Some((name, other, line)) = named.two(|name| known.iter().any(|known| fits(name, known)))
        {
            // A link has two ends: which one is the client's makes no difference but for the names.
            outside.push(name);
            inside.push(other);
            guess = Some((name, line, Guess::Between(other.to_owned())));
        }
        let context = Context {
            interfaces: &inside,
            outside: &outside,
            elsewhere: &elsewhere,
            hosts: &hosts,
            is_end: true,
            no_router: true,
            start,
            ..Context::default()
        };
        let mut script = Self::parse(text, file, &context)?;
        if let Some((name, line, is)) = guess
            && let Some(explained) = script.lines.iter_mut().find(|explained| explained.number == line)
        {
            explained.remarks.push(match is {
                Guess::Router => format!(
                    "{name} is assumed to be a router's interface towards the client, which receives what the client sends; --interface {name}=client turns this round"
                ),
                Guess::Between(other) => format!(
                    "{name} is assumed to be a router's interface towards the client, and {other} that towards the server; --interface {name}=client --interface {other}=server turns this round"
                ),
                Guess::Translated => {
                    format!("{name} is assumed to be the client's interface, whose address a translator uses")
                }
                Guess::Client => format!(
                    "{name} is assumed to be the client's interface; --interface {name}=server makes it the server's, {name}=neither that of other traffic"
                ),
            });
        }
        let (no_pipe, nothing) = (script.no_pipe_is_reached(), script.nothing_passes());
        if (no_pipe || nothing)
            && let Some((name, span, _)) = unknown(&[&inside[..], &outside[..], &elsewhere[..]].concat())
        {
            let mut others: Vec<&str> = named.all.iter().map(|(other, ..)| other.as_str()).collect();
            others.retain(|other| other != name && !known.iter().any(|known| fits(other, known)));
            others.sort_unstable();
            others.dedup();
            let assign = match &others[..] {
                [] => format!("assign it: --interface {name}=client, {name}=server or {name}=neither"),
                others => format!(
                    "assign it: --interface {name}=client, {name}=server or {name}=neither; and each of the others in the same way: {}",
                    one_of(others)
                ),
            };
            let (what, all) = match script.nats.is_empty() {
                true => ("pipe", "pipes"),
                false => ("pipe or translator", "pipes and translators"),
            };
            let name = Found(name);
            if no_pipe {
                let title = format!(
                    "no packet can reach a {what}: there is no interface {name}, and all rules of {all} name one"
                );
                let known = format!("known: {}", one_of(&[&inside[..], &outside[..]].concat()));
                let problem = Problem::new(title).at(span).help(known).help(assign);
                return Err(ScenarioError::new(file, text, vec![problem]));
            }
            script.lines.last_mut().into_iter().for_each(|last| {
                last.remarks.push(format!(
                    "NO PACKET PASSES: there is no interface {name} here, and all rules that allow packets name one; {assign}"
                ));
            });
        }
        script.check_later(text, file)?;
        let lists_what_passes = script.rules.iter().any(|rule| rule.action == Action::Allow)
            && !script.rules.iter().any(|rule| {
                rule.terms.is_empty()
                    && matches!(
                        rule.action,
                        Action::Allow | Action::Deny | Action::Reject(_) | Action::Pipe(_) | Action::Queue(_)
                    )
            });
        if let Some(last) = script.lines.last_mut().filter(|_| lists_what_passes) {
            last.remarks.push(
                "packets that no rule decides pass, as rule 65535 is `allow` here; in most kernels of FreeBSD it is `deny`: to have that, add 65534 deny ip from any to any"
                    .into(),
            );
        }
        Ok(script)
    }

    /// Tries what follows a `sleep` on the scenario, at the places of the script: all of it, or as much as of a timeline.
    fn check_later(&self, text: &str, file: &str) -> Result<(), ScenarioError> {
        // A problem of the start, such as a missing file, is that of the scenario.
        let Ok(mut scenario) = Scenario::parse(&self.start_toml(LINK, HOSTS), file) else { return Ok(()) };
        let mut rules = 0;
        for step in self.later_commands().chunk_by(|one, other| one.at == other.at) {
            rules += scenario.count_of_rules();
            if rules > TRIED_RULES {
                break;
            }
            let written = |command: &LaterCommand| command.written(LINK);
            let commands: Vec<Written> = step.iter().map(written).collect();
            scenario.try_commands(Time::ZERO + step[0].at, &commands).map_err(|problem| {
                let problem = problem.outside(LINK).help("it follows a `sleep`, so a run executes it");
                ScenarioError::new(file, text, vec![problem])
            })?;
        }
        Ok(())
    }

    /// Whether there are rules that allow packets, but none of them matches any packet, and the rest is denied.
    fn nothing_passes(&self) -> bool {
        let of = |action: Action| self.rules.iter().filter(move |rule| rule.action == action);
        let is_never = |literal: &Literal| !literal.not && self.is_never(&literal.test);
        let never = |rule: &&Rule| rule.terms.iter().any(|term| term.0.iter().all(is_never));
        of(Action::Deny).any(|rule| rule.terms.is_empty())
            && of(Action::Allow).next().is_some()
            && of(Action::Allow).all(|rule| never(&rule))
    }

    /// Whether there are rules that lead to pipes or translators, but none of them matches any packet.
    fn no_pipe_is_reached(&self) -> bool {
        let mut leading = self
            .rules
            .iter()
            .filter(|rule| matches!(rule.action, Action::Pipe(_) | Action::Queue(_) | Action::Nat(_)))
            .peekable();
        let is_never = |literal: &Literal| !literal.not && self.is_never(&literal.test);
        leading.peek().is_some()
            && leading.all(|rule| rule.terms.iter().any(|term| term.0.iter().all(is_never)))
    }

    /// Whether a condition is that of an unknown interface, or of a table that contains only such.
    fn is_never(&self, test: &Test) -> bool {
        match test {
            Test::Never => true,
            Test::Lookup { field: Field::Received | Field::Sent | Field::Via, table, .. } => {
                self.tables.get(&table.table).is_some_and(|rows| rows.keys().all(TableKey::is_elsewhere))
            }
            _ => false,
        }
    }

    /// Reads a script from a file, which is started with these arguments and variables.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`Script::parse`].
    pub fn load(
        path: impl AsRef<Path>,
        start: Start<'_>,
        interfaces: &Interfaces,
    ) -> Result<Self, ScenarioError> {
        let (text, file) = files::read_script(path.as_ref())?;
        Self::started(&text, &file, interfaces, Start { path: Some(path.as_ref()), ..start })
    }

    /// Builds a scenario of a client and a server with these rules between them: `out` is from the client
    /// to the server. Files that the script names are relative to the folder of `file`.
    ///
    /// # Errors
    /// If the script names a file that cannot be read or is invalid. Line numbers refer to the generated
    /// scenario.
    pub fn scenario(&self, file: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.to_toml(LINK, HOSTS), file)
            .map_err(|error| error.of(&format!("{file}, as a scenario")))
    }

    /// The short form of Dummynet's `netconfig`: only packets from or to these ports cross a pipe, one for
    /// each direction that is given. A pipe is a rate, or what follows `pipe N config`: `6mbit`, `bw
    /// 6Mbit/s delay 10ms queue 20`.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn of_ports(
        ports: Ports<'_>,
        incoming: Option<&str>,
        outgoing: Option<&str>,
    ) -> Result<Self, ScenarioError> {
        let (list, out_by, in_by) = match ports {
            Ports::Client(list) => (list, "dst-port", "src-port"),
            Ports::Server(list) => (list, "src-port", "dst-port"),
        };
        let mut text = String::new();
        for (number, way, by, pipe) in [(1, "out", out_by, outgoing), (2, "in", in_by, incoming)] {
            let Some(pipe) = pipe else { continue };
            let bare = pipe.trim_start().starts_with(|first: char| first.is_ascii_digit());
            let config = if bare { format!("bw {pipe}") } else { pipe.into() };
            text += &format!("pipe {number} config {config}\n");
            text += &format!("add {number}00 pipe {number} ip from any to any {way} {by} {list}\n");
        }
        Self::for_two_hosts(&text, "the short form")
    }
}
