//! A scenario: all that a file or the flags say, read and checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;

use narrows_core::{Duration, NetworkConfig, PortConfig, Seed};

use crate::direction::{Direction, Site};
use crate::files::{Files, NamedFile};
use crate::host::{self, Address, Host};
use crate::link::{self, Link, Medium, Placed, Way};
use crate::node::{Key, Node, Table, Value, check_name};
use crate::problem::{Found, Problem, Problems, ScenarioError, nearest};
use crate::timeline::{self, Entry, Timeline};
use crate::topology::{self, Fault, Port, Topology};
use crate::traffic::{self, Traffic};
use crate::units;

/// A network and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file that it comes from, for people.
    pub file: String,
    /// The seed of every random draw.
    pub seed: u64,
    /// How long a run lasts, if that is said.
    pub duration: Option<Duration>,
    /// The hosts, in the order of the file.
    pub hosts: Vec<Host>,
    /// Where two links are joined in series, by name.
    pub junctions: Vec<String>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// The traffic, in the order of the file.
    pub traffic: Vec<Traffic>,
    pub(crate) timeline: Vec<Entry>,
    pub(crate) topology: Topology,
    pub(crate) files: Files,
}

/// The keys at the top of a file.
pub(crate) const KEYS: &[&str] = &["seed", "duration", "hosts", "junctions", "links", "traffic", "timeline"];

/// The seed where none is given.
pub(crate) const DEFAULT_SEED: u64 = 1;

/// Steps of the timeline that are tried when a scenario is read; a longer one repeats itself by then.
const TRIED_STEPS: usize = 1000;

impl Scenario {
    /// Reads a scenario. `file` is its name, for errors and for finding the files that it names.
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, Files::beside(file))
    }

    /// Reads a scenario whose files come from elsewhere than the folder of `file`.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_with(text: &str, file: &str, files: Files) -> Result<Self, ScenarioError> {
        let mut problems = Problems::default();
        let scenario = problems
            .catch(Node::document(text))
            .and_then(|table| read(&table, text, file, files, &mut problems));
        match scenario {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            _ => Err(problems.into_error(file, text)),
        }
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`Scenario::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".into(),
                std::io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
                _ => error.to_string(),
            };
            let problem = Problem::new(format!("the scenario `{file}` cannot be read: {why}"));
            ScenarioError::new(&file, "", vec![problem])
        })?;
        Self::parse(&text, &file)
    }

    /// The files that its values name and that have been read so far, in the order in which they first were: those of
    /// the scenario itself and of its timeline, then those that changes brought. A replay needs them, each under its name
    /// ([`Files::given`], [`Scenario::add_file`]). Captures are not among them: their packets are in the log.
    pub fn files(&self) -> Vec<NamedFile> {
        self.files.all()
    }

    /// Says what is in a file that a later change may name. Where the name is known already, what it meant stays.
    pub fn add_file(&self, name: &str, contents: &[u8]) {
        self.files.add(name, contents);
    }

    /// The ports, in the order of the hosts.
    pub fn ports(&self) -> &[Port] {
        &self.topology.ports
    }

    /// The engine's configuration, with the links' present values.
    pub fn network(&self) -> NetworkConfig {
        let mut config = NetworkConfig::new(Seed(self.seed));
        // A packet may take the longest path there is.
        let longest = self.ports().iter().map(|port| port.hops.len()).max().unwrap_or(0);
        config.visits = config.visits.max(u8::try_from(longest).unwrap_or(u8::MAX));
        let mut exits = self.topology.exits(&self.links);
        let addresses = |host: &str| self.addresses(host);
        let build = |direction: &Direction, name: &str, lanes| {
            direction.build(lanes, Site { seed: Seed(self.seed), link: name, addresses: &addresses })
        };
        for (index, link) in self.links.iter().enumerate() {
            let mut exit = |way| exits.remove(&(index, way)).expect("every link lies on a path, both ways");
            let (up, down) = (exit(Way::Up), exit(Way::Down));
            match &link.medium {
                Medium::Duplex { up: upward, down: downward } => {
                    config.links.push(build(upward, &link.core_name(Way::Up), vec![up]));
                    config.links.push(build(downward, &link.core_name(Way::Down), vec![down]));
                }
                Medium::Shared(both) => config.links.push(build(both, &link.name, vec![up, down])),
            }
        }
        for port in self.ports() {
            let hop = port.hops[0];
            let entry = topology::entry(&self.links[hop.link], hop.way);
            config.ports.push(PortConfig { name: port.name.clone(), entry });
        }
        config
    }

    /// The addresses of a host in force.
    pub(crate) fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let ports = self.ports().iter().filter(|port| port.host == host);
        ports.flat_map(|port| port.addresses.iter().map(|address| address.ip)).collect()
    }

    /// The names of the hosts, in the order of the file.
    pub(crate) fn host_names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Numbers the automatic addresses anew, leaving out networks that are not free: a run inside the network of another
    /// must not use that one's. Nothing else changes.
    pub fn renumber(&mut self, is_free: impl Fn(Address) -> bool) {
        topology::address(&mut self.topology.ports, &self.hosts, &is_free);
    }

    /// Changes values before anything runs, by assignments as [`Scenario::assign_all`] takes them. Unlike a change while
    /// the network runs it is as if the file had said so: default bounds follow. The name of the scenario tells of it.
    ///
    /// ```
    /// # use narrows_scenario::{LinkFlags, Scenario};
    /// let mut scenario = Scenario::from_flags(&LinkFlags::default())?;
    /// scenario.set(&["link.down.rate=10mbit", "link.delay=25ms"])?;
    /// assert_eq!(scenario.links[0].directions()[1].1.bound().to_string(), "42 packets");
    /// assert_eq!(scenario.file, "a plain wire --set link.down.rate=10mbit --set link.delay=25ms");
    /// # Ok::<(), narrows_scenario::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Scenario::assign_all`]; then nothing has changed.
    pub fn set<T: AsRef<str>>(&mut self, texts: &[T]) -> Result<(), ScenarioError> {
        self.assign_all(texts)?;
        self.topology.set_default_bounds(&mut self.links);
        for text in texts.iter().map(AsRef::as_ref) {
            let quote = if text.contains(' ') { "'" } else { "" };
            self.file += &format!(" --set {quote}{text}{quote}");
        }
        Ok(())
    }

    /// What changes when.
    pub fn timeline(&self) -> Timeline {
        Timeline::new(self.timeline.clone())
    }

    /// Joins the links and works out default bounds.
    pub(crate) fn wire(&mut self) -> Result<(), Vec<Fault>> {
        self.topology = Topology::new(&self.hosts, &self.junctions, &self.links)?;
        self.topology.set_default_bounds(&mut self.links);
        Ok(())
    }
}

/// Reads a whole file. Later parts are read only where those that they need are right.
fn read(table: &Table, text: &str, file: &str, files: Files, problems: &mut Problems) -> Option<Scenario> {
    problems.extend(table.unknown_keys(KEYS));
    let seed = problems.catch(table.optional("seed", seed)).flatten().unwrap_or(DEFAULT_SEED);
    let duration = problems.catch(table.optional("duration", units::positive_time)).flatten();

    let mut places: BTreeMap<String, Range<usize>> = BTreeMap::new();
    let mut hosts = Vec::new();
    for (key, node) in section(table, "hosts", problems) {
        problems.catch(check_name(key, "host").map_err(|p| p.inside("hosts")));
        places.insert(key.name.clone(), key.span.clone());
        let host = host::read(key, node).map_err(|p| p.inside(&key.name).inside("hosts"));
        hosts.extend(problems.catch(host));
    }
    let mut junctions = Vec::new();
    for (key, node) in section(table, "junctions", problems) {
        let read = check_name(key, "junction")
            .and_then(|()| node.table("a table, which may be empty"))
            .and_then(|table| table.only(&[]).map_err(|p| p.inside(&key.name)));
        problems.catch(read.map_err(|p| p.inside("junctions")));
        match places.insert(key.name.clone(), key.span.clone()) {
            Some(other) => problems.extend(vec![
                Problem::new(format!("a host and a junction are both called `{}`", key.name))
                    .at(&key.span)
                    .also(&other, "the host"),
            ]),
            None => junctions.push(key.name.clone()),
        }
    }
    let host_names: Vec<String> = section(table, "hosts", &mut Problems::default())
        .into_iter()
        .map(|(key, _)| key.name.clone())
        .collect();
    let mut links: Vec<Placed> = Vec::new();
    let mut wrong_ends = false;
    for (key, node) in section(table, "links", problems) {
        problems.catch(check_name(key, "link").map_err(|p| p.inside("links")));
        match link::read(key, node, &host_names, &files) {
            Ok(placed) => links.push(placed),
            Err(all) => {
                problems.extend(all.into_iter().map(|p| p.inside(&key.name).inside("links")).collect());
                wrong_ends = true;
            }
        }
    }
    for Placed { link, ends, .. } in &links {
        for (name, span) in link.between.iter().zip(ends) {
            if !places.contains_key(name) {
                wrong_ends = true;
                let problem = no_such_host(name, &places).at(span).inside("between").inside(&link.name);
                problems.extend(vec![problem.inside("links")]);
            }
        }
    }
    if links.is_empty() && !wrong_ends && problems.is_empty() {
        problems.extend(vec![
            Problem::new("there is no link")
                .at(&(0..text.len().min(1)))
                .help("a scenario has at least two hosts and a link: [links.access] with between = [\"client\", \"server\"]"),
        ]);
    }
    check_addresses(table, &hosts, &links, problems);
    if wrong_ends || !problems.is_empty() {
        return None;
    }

    let keys: Vec<Range<usize>> = links.iter().map(|placed| placed.key.clone()).collect();
    let links = links.into_iter().map(|placed| placed.link).collect();
    let (traffic, timeline, topology) = Default::default();
    let file_name = file.to_string();
    let file = file_name;
    let mut scenario =
        Scenario { file, seed, duration, hosts, junctions, links, traffic, timeline, topology, files };
    if let Err(faults) = scenario.wire() {
        problems.extend(
            faults
                .into_iter()
                .map(|fault| match fault {
                    Fault::Junction(name, problem) => {
                        problem.at(&places[&name]).inside(&name).inside("junctions")
                    }
                    Fault::Link(index, problem) => problem.at(&keys[index]).inside("links"),
                })
                .collect(),
        );
        return None;
    }
    let folder = scenario.file.clone();
    read_traffic(table, &folder, &mut scenario, problems);
    read_timeline(table, &mut scenario, problems);
    Some(scenario)
}

fn read_traffic(table: &Table, file: &str, scenario: &mut Scenario, problems: &mut Problems) {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let items = problems.catch(table.optional("traffic", |node| {
        node.list("a list of tables")
            .map(<[Node]>::to_vec)
            .map_err(|p| p.help("write [[traffic]] with two brackets"))
    }));
    for (index, node) in items.flatten().unwrap_or_default().iter().enumerate() {
        let traffic = traffic::read(index, node, scenario.ports(), folder).map_err(|p| p.inside("traffic"));
        let Some(traffic) = problems.catch(traffic) else { continue };
        if scenario.traffic.iter().any(|other| other.name == traffic.name) {
            problems.extend(vec![
                Problem::new(format!("two sources of traffic are called `{}`", traffic.name))
                    .at(&node.span)
                    .help("give each a `name` of its own"),
            ]);
        }
        scenario.traffic.push(traffic);
    }
}

fn read_timeline(table: &Table, scenario: &mut Scenario, problems: &mut Problems) {
    let items = problems.catch(table.optional("timeline", |node| timeline::list(node).map(<[Node]>::to_vec)));
    let items = items.flatten().unwrap_or_default();
    let mut all = true;
    for node in &items {
        match problems.catch(timeline::read(node).map_err(|p| p.inside("timeline"))) {
            Some(entry) => scenario.timeline.push(entry),
            None => all = false,
        }
    }
    if !all {
        return;
    }
    // Try it: that a value is right may depend on what was set before.
    let mut copy = scenario.clone();
    let mut steps = scenario.timeline();
    steps.first_packet(narrows_core::Time::ZERO);
    let mut wrong = vec![false; items.len()];
    let most = TRIED_STEPS.max(2 * items.len());
    for (at, index) in std::iter::from_fn(|| steps.pop()).take(most) {
        if wrong[index] {
            continue;
        }
        let entry = &scenario.timeline[index];
        if let Err(problem) = copy.apply(&entry.set, at) {
            wrong[index] = true;
            let place = entry.set[0].place();
            problems.extend(vec![problem.at(place).inside("set").inside("timeline")]);
        }
    }
}

/// The entries of a table of named things.
fn section<'a>(table: &'a Table, name: &str, problems: &mut Problems) -> Vec<(&'a Key, &'a Node)> {
    let Some(node) = table.get(name) else { return Vec::new() };
    let one = name.trim_end_matches('s');
    let inner = node
        .table("a table of tables")
        .map_err(|p| p.help(format!("write [{name}.NAME] for each {one}")).inside(name));
    problems.catch(inner).map(|table| table.iter().collect()).unwrap_or_default()
}

pub(crate) fn seed(node: &Node) -> Result<u64, Problem> {
    let text = match &node.value {
        Value::Integer(text) | Value::String(text) => text.trim(),
        _ => "",
    };
    text.parse().map_err(|_| node.expected("a whole number from 0 to 18446744073709551615"))
}

fn no_such_host(name: &str, places: &BTreeMap<String, Range<usize>>) -> Problem {
    let problem = Problem::new(format!("no host or junction is called {}", Found(name)));
    match nearest(name, places.keys().map(String::as_str)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("add a line for it: [hosts.{name}]")),
    }
}

/// Addresses must say on which link they are where a host has several.
fn check_addresses(table: &Table, hosts: &[Host], links: &[Placed], problems: &mut Problems) {
    for host in hosts {
        let ends_here = |placed: &&Placed| placed.link.between.contains(&host.name);
        let at: Vec<&str> = links.iter().filter(ends_here).map(|placed| placed.link.name.as_str()).collect();
        for given in &host.addresses {
            let wrong = match &given.link {
                Some(link) => !at.contains(&link.as_str()),
                None => at.len() > 1,
            };
            if !wrong {
                continue;
            }
            let hosts = table.get("hosts").and_then(|node| node.table("").ok());
            let key = hosts.and_then(|hosts| hosts.key(&host.name)).map_or(0..0, |key| key.span.clone());
            let title = match &given.link {
                Some(link) => format!("the host `{}` is not on a link called {}", host.name, Found(link)),
                None => format!(
                    "the host `{}` is on {} links: which of them has {}?",
                    host.name,
                    at.len(),
                    given.address
                ),
            };
            problems.extend(vec![
                Problem::new(title).at(&key).inside("addresses").inside(&host.name).inside("hosts").help(
                    format!(
                        "write addresses = {{ {} = [\"{}\"] }}",
                        at.first().unwrap_or(&"LINK"),
                        given.address
                    ),
                ),
            ]);
            break;
        }
    }
}
