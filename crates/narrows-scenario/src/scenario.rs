//! A scenario: all that a file or the flags say, read and checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use narrows_core::{Duration, NetworkConfig, PortConfig, Seed, Target};

use crate::direction::{Direction, Site};
use crate::files::{self, Files, NamedFile};
use crate::host::{Address, Host, HostAddress};
use crate::keys::{self, Form};
use crate::link::{self, Link, Medium, Way};
use crate::node::{Key, Node, Table, Value, check_name};
use crate::problem::{Found, Problem, Problems, ScenarioError, nearest};
use crate::router::{self, Router};
use crate::rules_link::{RulesLink, RulesSite};
use crate::surroundings::Surroundings;
use crate::timeline::{ENTRY, Entry, Timeline};
use crate::topology::{self, Fault, HostRoute, Interface, Port, Topology};
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
    /// Where packets go on by their destination, in the order of the file.
    pub routers: Vec<Router>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// The traffic, in the order of the file.
    pub traffic: Vec<Traffic>,
    pub(crate) timeline: Vec<Entry>,
    pub(crate) topology: Topology,
    pub(crate) files: Files,
}

/// The keys at the top of a file.
pub(crate) const KEYS: &[&str] =
    &["seed", "duration", "hosts", "junctions", "routers", "links", "traffic", "timeline"];

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
        let (text, file) = files::read_text(path, "scenario")?;
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
        // A packet may take the longest path there is; among routers the hop limit is what ends a loop.
        let longest = match self.routers[..] {
            [] => self.ports().iter().map(|port| port.hops.len()).max().unwrap_or(0),
            _ => usize::from(u8::MAX),
        };
        config.visits = config.visits.max(u8::try_from(longest).unwrap_or(u8::MAX));
        let mut exits = self.topology.exits(&self.links, &self.routers);
        let addresses = |host: &str| self.addresses(host);
        let build = |direction: &Direction, name: &str, lanes| {
            direction.build(lanes, Site { seed: Seed(self.seed), link: name, addresses: &addresses })
        };
        for (index, link) in self.links.iter().enumerate() {
            let mut exit =
                |way| exits.remove(&(index, way)).expect("every link lies on a segment, both ways");
            let (up, down) = (exit(Way::Up), exit(Way::Down));
            match &link.medium {
                Medium::Duplex { up: upward, down: downward } => {
                    config.links.push(build(upward, &link.core_name(Way::Up), vec![up]));
                    config.links.push(build(downward, &link.core_name(Way::Down), vec![down]));
                }
                Medium::Shared(both) => config.links.push(build(both, &link.name, vec![up, down])),
                Medium::Rules(rules) => {
                    let (set, pipes) = rules.build(&link.name, self.site(link), [up, down]);
                    config.rules.push(set);
                    config.links.extend(pipes);
                }
            }
        }
        for port in self.ports() {
            let hop = port.hops[0];
            let entry = topology::entry(&self.links[hop.link], hop.way);
            config.ports.push(PortConfig { name: port.name.clone(), entry });
        }
        for router in &self.routers {
            let entry = Target::Router(router.name.clone());
            config.ports.push(PortConfig { name: router.name.clone(), entry });
        }
        config.routers = self.topology.routers(&self.links, &self.routers);
        config
    }

    /// The ends of links at routers, in the order of the routers. Each router also has a port of the engine that has its
    /// name: packets for the router itself leave there, and those that it sends enter.
    pub fn interfaces(&self) -> &[Interface] {
        &self.topology.interfaces
    }

    /// The networks that a host reaches by the router at the other end of this port, and not better by another port of its.
    /// Nothing where the other end is a host.
    pub fn routes(&self, port: &Port) -> Vec<HostRoute> {
        self.topology.host_routes(port)
    }

    /// Whether packets get from one port to another, as far as links go: over one segment, or by routers.
    pub fn joins(&self, from: &Port, to: &Port) -> bool {
        self.topology.joins(from, to)
    }

    /// The links that packets pass from one port to another, by any of their ways, each once; nothing where none gets there.
    pub fn links_between(&self, from: &Port, to: &Port) -> Vec<Target> {
        let mut hops: Vec<_> =
            self.topology.arriving(from, to).into_iter().flat_map(|way| way.hops).collect();
        hops.sort_unstable();
        hops.dedup();
        hops.iter().map(|hop| topology::entry(&self.links[hop.link], hop.way)).collect()
    }

    /// The engine's names of the links that packets pass from one port to another, in order, where there is one way only. A
    /// link with rules is named by these: which of its pipes a packet passes they decide.
    pub fn only_way(&self, from: &Port, to: &Port) -> Option<Vec<String>> {
        let ways = self.topology.arriving(from, to);
        let [way] = ways.as_slice() else { return None };
        let name = |target| match target {
            Target::Link { name, .. } | Target::Rules { name, .. } => Some(name),
            _ => None,
        };
        way.hops.iter().map(|hop| name(topology::entry(&self.links[hop.link], hop.way))).collect()
    }

    /// The mean delay from one port to another, over all packets that get there; nothing where none does, or where the mean
    /// of a link on the way is not known.
    pub fn mean_delay(&self, from: &Port, to: &Port) -> Option<Duration> {
        let ways = self.topology.arriving(from, to);
        let (mut sum, mut shares) = (0.0, 0.0);
        for way in &ways {
            let delay = way.hops.iter().try_fold(Duration::ZERO, |sum, hop| {
                Some(sum + self.links[hop.link].direction(hop.way)?.mean_delay()?)
            })?;
            if ways.len() == 1 {
                return Some(delay);
            }
            sum += way.share * delay.nanos() as f64;
            shares += way.share;
        }
        (shares > 0.0).then(|| Duration::from_nanos((sum / shares + 0.5) as u64))
    }

    /// The address that a router has where it sends packets to this address from: what it answers with. Nothing without a
    /// route, or where the address is its own.
    pub fn router_address(&self, router: &str, towards: IpAddr) -> Option<IpAddr> {
        let number = self.routers.iter().position(|other| other.name == router)?;
        self.topology.address_towards(number, towards)
    }

    /// The addresses of a host in force.
    pub(crate) fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let ports = self.ports().iter().filter(|port| port.host == host);
        ports.flat_map(|port| port.addresses.iter().map(|address| address.ip)).collect()
    }

    /// What the rules and pipes of a link depend on besides their own values.
    pub(crate) fn site(&self, link: &Link) -> RulesSite {
        let hosts = self.host_names().into_iter().map(|host| (host.clone(), self.addresses(&host)));
        // The first end is a host or a router.
        let first = &link.between[0];
        let of_router = self.interfaces().iter().filter(|interface| interface.router == *first);
        let of_router = of_router.flat_map(|interface| interface.addresses.iter().map(|address| address.ip));
        RulesSite {
            seed: Seed(self.seed),
            addresses: Arc::new(hosts.collect()),
            me: self.addresses(first).into_iter().chain(of_router).collect(),
        }
    }

    /// The names of the hosts, in the order of the file.
    pub(crate) fn host_names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Numbers the automatic addresses anew, leaving out networks that are not free: a run inside the network of another
    /// must not use that one's. Nothing else changes.
    pub fn renumber(&mut self, is_free: impl Fn(Address) -> bool) {
        self.topology.number(&self.hosts, &self.routers, &self.links, &is_free);
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
        self.topology = Topology::new(&self.hosts, &self.junctions, &self.routers, &self.links)?;
        self.topology.set_default_bounds(&mut self.links);
        Ok(())
    }
}

/// Reads a whole file. Later parts are read only where those that they need are right.
fn read(table: &Table, text: &str, file: &str, files: Files, problems: &mut Problems) -> Option<Scenario> {
    problems.extend(table.unknown_keys(KEYS));
    let seed = problems.catch(table.optional("seed", seed)).flatten().unwrap_or(DEFAULT_SEED);
    let duration = problems.catch(table.optional("duration", units::positive_time)).flatten();

    let around = Surroundings::of_files(&files);
    let mut places: Places = BTreeMap::new();
    let mut hosts = Vec::new();
    for (key, node) in section(table, "hosts", problems) {
        problems.catch(check_name(key, "host").map_err(|p| p.inside("hosts")));
        places.insert(key.name.clone(), ("host", key.span.clone()));
        let host = keys::read_named(Host::plain(&key.name), key, node, around)
            .map_err(|p| p.inside(&key.name).inside("hosts"));
        hosts.extend(problems.catch(host));
    }
    let mut junctions = Vec::new();
    for (key, node) in section(table, "junctions", problems) {
        let read = check_name(key, "junction")
            .and_then(|()| node.table("a table, which may be empty"))
            .and_then(|table| table.only(&[]).map_err(|p| p.inside(&key.name)));
        problems.catch(read.map_err(|p| p.inside("junctions")));
        if problems.catch(place(&mut places, "junction", key)).is_some() {
            junctions.push(key.name.clone());
        }
    }
    let mut routers = Vec::new();
    for (key, node) in section(table, "routers", problems) {
        problems.catch(check_name(key, "router").map_err(|p| p.inside("routers")));
        problems.catch(place(&mut places, "router", key));
        let router = Router { name: key.name.clone(), ..Router::default() };
        let router = keys::read_named(router, key, node, around);
        let router = router.map_err(|p| p.inside(&key.name).inside("routers"));
        routers.extend(problems.catch(router).map(|router| (router, node)));
    }
    // With those that could not be read: what else names them is not wrong because of that.
    let named: Vec<Host> = section(table, "hosts", &mut Problems::default())
        .into_iter()
        .map(|(key, _)| {
            let read = hosts.iter().find(|host| host.name == key.name);
            read.cloned().unwrap_or_else(|| Host::plain(&key.name))
        })
        .collect();
    let mut links: Vec<(Link, &Key, &Node)> = Vec::new();
    let mut wrong_ends = false;
    for (key, node) in section(table, "links", problems) {
        problems.catch(check_name(key, "link").map_err(|p| p.inside("links")));
        // The engine has both by their names.
        if places.get(&key.name).is_some_and(|(kind, _)| *kind == "router") {
            problems.catch(place(&mut places, "link", key));
        }
        match link::read(key, node, &named, &files) {
            Ok(link) => links.push((link, key, node)),
            Err(all) => {
                problems.extend(all.into_iter().map(|p| p.inside(&key.name).inside("links")).collect());
                wrong_ends = true;
            }
        }
    }
    for (link, _, node) in &links {
        let ends = link::places_of_ends(node);
        for (name, span) in link.between.iter().zip(&ends) {
            if !places.contains_key(name) {
                wrong_ends = true;
                let problem = no_such_host(name, &places).at(span).inside("between").inside(&link.name);
                problems.extend(vec![problem.inside("links")]);
            }
        }
        let rule = link.rules().and_then(RulesLink::says_me);
        let is_junction = places.get(&link.between[0]).is_some_and(|(kind, _)| *kind == "junction");
        if let (Some(rule), true) = (rule, is_junction) {
            let [first, _] = &link.between;
            let title = format!(
                "rule {} says `me`, and `{first}` is a junction, which has no addresses",
                rule.number
            );
            let help = "the rules are at the first end of the link: let it be a host or a router, or write addresses";
            let problem = Problem::new(title).at(&ends[0]).help(help).inside("between").inside(&link.name);
            problems.extend(vec![problem.inside("links")]);
        }
    }
    if links.is_empty() && !wrong_ends && problems.is_empty() {
        problems.extend(vec![
            Problem::new("there is no link")
                .at(&(0..text.len().min(1)))
                .help("a scenario has at least two hosts and a link: [links.access] with between = [\"client\", \"server\"]"),
        ]);
    }
    let owners = hosts.iter().map(|host| ("host", &host.name, &host.addresses));
    let owners = owners.chain(routers.iter().map(|(router, _)| ("router", &router.name, &router.addresses)));
    owners.for_each(|owner| check_addresses(table, owner, &links, problems));
    let kinds: Vec<(&str, &str)> = places.iter().map(|(name, (kind, _))| (name.as_str(), *kind)).collect();
    for (router, node) in &routers {
        let here = links_at(&router.name, &links);
        let checked = node.table("").map(|table| router::check(router, table, &kinds, &here));
        problems.extend(checked.unwrap_or_default());
    }
    if wrong_ends || !problems.is_empty() {
        return None;
    }

    let (links, keys): (_, Vec<&Key>) = links.into_iter().map(|(link, key, _)| (link, key)).unzip();
    let routers = routers.into_iter().map(|(router, _)| router).collect();
    let (traffic, timeline, topology) = Default::default();
    let file_name = file.to_string();
    let file = file_name;
    let mut scenario = Scenario {
        file,
        seed,
        duration,
        hosts,
        junctions,
        routers,
        links,
        traffic,
        timeline,
        topology,
        files,
    };
    if let Err(faults) = scenario.wire() {
        problems.extend(
            faults
                .into_iter()
                .map(|fault| match fault {
                    Fault::Junction(name, problem) => {
                        problem.at(&places[&name].1).inside(&name).inside("junctions")
                    }
                    Fault::Router(name, problem) => {
                        problem.at(&places[&name].1).inside(&name).inside("routers")
                    }
                    Fault::Link(index, problem) => problem.at(&keys[index].span).inside("links"),
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
    for (index, node) in list(table, "traffic", problems).iter().enumerate() {
        let traffic =
            traffic::read(index, node, &scenario.topology, folder, Surroundings::of_files(&scenario.files))
                .map_err(|p| p.inside("traffic"));
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
    let items = list(table, "timeline", problems);
    let files = scenario.files.clone();
    let mut all = true;
    for node in items {
        let entry = ENTRY.read(node, Surroundings::of_files(&files)).map_err(|p| p.inside("timeline"));
        match problems.catch(entry) {
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

/// The tables of a list.
fn list<'a>(table: &'a Table, name: &str, problems: &mut Problems) -> &'a [Node] {
    let items = table.optional(name, |node| {
        node.list("a list of tables").map_err(|p| p.help(format!("write [[{name}]] with two brackets")))
    });
    problems.catch(items).flatten().unwrap_or_default()
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

/// What has a name that links may end at: its kind, and where it stands.
type Places = BTreeMap<String, (&'static str, Range<usize>)>;

/// Keeps a name, unless it is taken.
fn place(places: &mut Places, kind: &'static str, key: &Key) -> Result<(), Problem> {
    if let Some((other, span)) = places.get(&key.name) {
        return Err(Problem::new(format!("a {other} and a {kind} are both called `{}`", key.name))
            .at(&key.span)
            .also(span, format!("the {other}")));
    }
    places.insert(key.name.clone(), (kind, key.span.clone()));
    Ok(())
}

fn no_such_host(name: &str, places: &Places) -> Problem {
    let problem = Problem::new(format!("no host, junction or router is called {}", Found(name)));
    match nearest(name, places.keys().map(String::as_str)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("add a line for it: [hosts.{name}]")),
    }
}

/// The names of the links that end at a host or router.
fn links_at<'a>(name: &String, links: &'a [(Link, &Key, &Node)]) -> Vec<&'a str> {
    let here = links.iter().filter(|(link, ..)| link.between.contains(name));
    here.map(|(link, ..)| link.name.as_str()).collect()
}

/// Addresses must say on which link they are where a host or router has several.
fn check_addresses(
    table: &Table,
    (kind, name, addresses): (&str, &String, &Vec<HostAddress>),
    links: &[(Link, &Key, &Node)],
    problems: &mut Problems,
) {
    let at = links_at(name, links);
    for given in addresses {
        let wrong = match &given.link {
            Some(link) => !at.contains(&link.as_str()),
            None => at.len() > 1,
        };
        if !wrong {
            continue;
        }
        let section = format!("{kind}s");
        let all = table.get(&section).and_then(|node| node.table("").ok());
        let key = all.and_then(|all| all.key(name)).map_or(0..0, |key| key.span.clone());
        let title = match &given.link {
            Some(link) => format!("the {kind} `{name}` is not on a link called {}", Found(link)),
            None => {
                format!("the {kind} `{name}` is on {} links: which of them has {}?", at.len(), given.address)
            }
        };
        let help =
            format!("write addresses = {{ {} = [\"{}\"] }}", at.first().unwrap_or(&"LINK"), given.address);
        let problem = Problem::new(title).at(&key).inside("addresses").inside(name).inside(&section);
        problems.extend(vec![problem.help(help)]);
        break;
    }
}
