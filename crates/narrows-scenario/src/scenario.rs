//! A scenario: all that a file or the flags say, read and checked.

mod assign;
mod difference;
mod ipfw;
mod ipfw_commands;
mod me;
mod offer;
mod read;
mod rows;
mod write;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use narrows_core::{Duration, NetworkConfig, PortConfig, Seed, Target};

use crate::direction::{Direction, Site};
use crate::files::{self, Files, NamedFile};
use crate::host::{Address, Host};
use crate::link::{Link, Medium, Way};
use crate::node::Node;
use crate::problem::{Problems, ScenarioError};
use crate::router::Router;
use crate::rules_link::RulesSite;
use crate::timeline::{Entry, Timeline};
use crate::topology::{self, Fault, HostRoute, Interface, Port, Topology};
use crate::traffic::Traffic;

/// Hosts have interfaces of at least this MTU, so that what a smaller one of a link does is seen.
const ETHERNET_MTU: u32 = 1500;

pub use difference::{Difference, Differing};
pub use ipfw::IpfwChange;
pub use ipfw_commands::CommandsAt;
pub(crate) use rows::{DEFAULT_SEED, seed};

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
            .and_then(|table| read::read(&table, text, file, &files, &mut problems));
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

    /// The folder of its file.
    fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
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

    /// The MTU of the host's interface at this port: the smallest of the links up to the peer, the larger of both ways, and at
    /// least Ethernet's 1500. Links without an MTU take any length, so that where the whole way has none, it is the largest
    /// of the scenario's.
    pub fn interface_mtu(&self, port: &Port) -> u32 {
        let smallest = |back: bool| {
            let hops = port.hops.iter().map(move |&hop| if back { hop.back() } else { hop });
            hops.filter_map(|hop| self.links[hop.link].mtu(Some(hop.way))).min()
        };
        let largest = || self.links.iter().filter_map(|link| link.mtu(None)).max();
        smallest(false).max(smallest(true)).or_else(largest).unwrap_or(ETHERNET_MTU).max(ETHERNET_MTU)
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

    /// Gives queues without a bound the default that they had before that got its floor for senders that bunch: input logs up
    /// to version 2 were recorded so.
    pub fn forget_floor_of_default_bounds(&mut self) {
        for link in &mut self.links {
            for direction in link.directions_mut(None) {
                direction.default_bound = direction.default_bound.without_floor();
            }
            if let Medium::Rules(rules) = &mut link.medium {
                rules.default_bounds_mut().for_each(|bound| *bound = bound.without_floor());
            }
        }
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
