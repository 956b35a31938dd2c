//! A scenario: the content of a file or of flags, parsed and checked.

mod assign;
mod difference;
mod ipfw;
mod ipfw_commands;
mod me;
mod offer;
mod on_machine;
mod read;
mod rows;
mod write;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use narrows_core::{Bytes, Duration, LinkAddress, NetworkConfig, PortConfig, Seed, Target};

use crate::assign::Assignment;
use crate::direction::{Direction, Site};
use crate::files::{self, Files, NamedFile};
use crate::host::{Address, Host};
use crate::link::{Link, Medium, Way};
use crate::node::Node;
use crate::part::Part;
use crate::problem::{Problems, ScenarioError};
use crate::router::Router;
use crate::rules_link::RulesSite;
use crate::switch::Switch;
use crate::timeline::{Entry, Timeline};
use crate::topology::{self, Fault, HostRoute, Interface, Neighbour, Port, Topology};
use crate::traffic::Traffic;

/// Minimum MTU of hosts' interfaces, so that the effect of a link's smaller MTU is visible.
const ETHERNET_MTU: u32 = 1500;
/// The longest name of an interface that Linux allows.
const LONGEST_INTERFACE: usize = 15;

pub use difference::{Difference, Differing};
pub use ipfw::IpfwChange;
pub use ipfw_commands::CommandsAt;
pub(crate) use read::TRIED_RULES;
pub(crate) use rows::{DEFAULT_SEED, seed};

/// A network, and the changes and traffic in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file it was read from, for display.
    pub file: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// Duration of a run, if given.
    pub duration: Option<Duration>,
    /// What packets inside the network take at most, counting each frame plus 128 bytes.
    pub memory: Bytes,
    /// The hosts, in the order of the file.
    pub hosts: Vec<Host>,
    /// Names of junctions, where two links are joined in series.
    pub junctions: Vec<String>,
    /// Routers, which forward packets by destination, in the order of the file.
    pub routers: Vec<Router>,
    /// Switches, which forward packets by link address, in the order of the file.
    pub switches: Vec<Switch>,
    /// Links, in the order of the file.
    pub links: Vec<Link>,
    /// Traffic, in the order of the file.
    pub traffic: Vec<Traffic>,
    pub(crate) timeline: Vec<Entry>,
    pub(crate) topology: Topology,
    pub(crate) files: Files,
    /// The part of it that is here, if it runs across several machines.
    pub(crate) part: Option<Part>,
}

impl Scenario {
    /// Parses a scenario. `file` is its name, for errors and as the base of relative file names.
    ///
    /// # Errors
    /// All problems found, with their places.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, Files::beside(file))
    }

    /// Parses a scenario with its files taken from `files`.
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
    /// If the file cannot be read, and as [`Scenario::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let (text, file) = files::read_text(path, "scenario")?;
        Self::parse(&text, &file)
    }

    /// Whether changes may open files that have not been read before; at first they may. Without, they name files read
    /// before or are refused, so that nothing of another file shows in an error, not even whether it exists.
    pub fn open_files(&mut self, may: bool) {
        self.files.open(may);
    }

    /// The files that its values name and that were read so far, in the order of their first use: those of
    /// the scenario and its timeline, then those of changes. A replay needs all of them, under their names
    /// ([`Files::given`], [`Scenario::add_file`]). Captures are not included: their packets are in the log.
    pub fn files(&self) -> Vec<NamedFile> {
        self.files.all()
    }

    /// Sets the contents of a file that a later change may name. If the name already has contents, they
    /// stay.
    pub fn add_file(&self, name: &str, contents: &[u8]) {
        self.files.add(name, contents);
    }

    /// Folder of its file.
    fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }

    /// The ports, in the order of the hosts.
    pub fn ports(&self) -> &[Port] {
        &self.topology.ports
    }

    /// The engine's configuration, with the current values of the links.
    pub fn network(&self) -> NetworkConfig {
        let mut config = NetworkConfig::new(Seed(self.seed));
        config.memory = self.memory;
        // A packet may take the longest path. With routers, the hop limit ends a loop.
        let longest = match (&self.routers[..], &self.switches[..]) {
            ([], []) => {
                let visits =
                    |port: &Port| port.hops.iter().map(|hop| self.links[hop.link].most_visits()).sum();
                self.ports().iter().map(visits).max().unwrap_or(0usize)
            }
            _ => usize::from(u8::MAX),
        };
        config.visits = config.visits.max(u8::try_from(longest).unwrap_or(u8::MAX));
        let mut exits = self.topology.exits(&self.links, &self.routers, &self.switches);
        let addresses = |host: &str| self.addresses(host);
        let build = |direction: &Direction, name: &str, lanes| {
            direction.build(lanes, Site { seed: Seed(self.seed), link: name, addresses: &addresses })
        };
        let mut exit = |index| {
            [Way::Up, Way::Down]
                .map(|way| exits.remove(&(index, way)).expect("every link lies on a segment, both ways"))
        };
        for (index, link) in self.links.iter().enumerate() {
            if let Medium::Joined(_) = link.medium {
                continue;
            }
            let [up, down] = exit(index);
            match &link.medium {
                Medium::Duplex { up: upward, down: downward } => {
                    config.links.push(build(upward, &link.core_name(Way::Up), vec![up]));
                    config.links.push(build(downward, &link.core_name(Way::Down), vec![down]));
                }
                Medium::Shared(both) => {
                    let joined = self.links_on(&link.name).flat_map(&mut exit);
                    let lanes = [up, down].into_iter().chain(joined).collect();
                    config.links.push(build(both, &link.name, lanes));
                }
                Medium::Joined(_) => {}
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
        config.destinations = self.topology.destinations();
        config.switches = self.topology.switches(&self.links, &self.switches);
        if let Some(part) = &self.part {
            part.cut(&self.links, &mut config);
        }
        config
    }

    /// The links on the medium of this one, in the order of their stations.
    fn links_on(&self, medium: &str) -> impl Iterator<Item = usize> {
        let joined = self.links.iter().enumerate().filter_map(|(index, link)| match &link.medium {
            Medium::Joined(joined) if joined.medium == medium => Some((joined.station, index)),
            _ => None,
        });
        let joined: BTreeMap<u8, usize> = joined.collect();
        joined.into_values()
    }

    /// Gives links on the medium of another its current settings.
    pub(crate) fn copy_media(&mut self) {
        let of = |link: &Link| match &link.medium {
            Medium::Shared(both) if !link.stations.is_empty() => Some((link.name.clone(), both.clone())),
            _ => None,
        };
        let media: BTreeMap<String, Box<Direction>> = self.links.iter().filter_map(of).collect();
        for link in &mut self.links {
            if let Medium::Joined(joined) = &mut link.medium
                && let Some(direction) = media.get(&joined.medium)
            {
                joined.direction = (**direction).clone();
            }
        }
    }

    /// The router ends of links, in the order of the routers. Each router also has an engine port with the
    /// router's name: packets to the router itself leave there, and packets that it sends enter there.
    pub fn interfaces(&self) -> &[Interface] {
        &self.topology.interfaces
    }

    /// The MTU of the host's interface at this port: the smallest MTU of the links up to the peer, the
    /// larger of both directions, and at least 1500. Links without an MTU accept any length: if no link of
    /// the path has an MTU, the result is the largest MTU in the scenario.
    pub fn interface_mtu(&self, port: &Port) -> u32 {
        let smallest = |back: bool| {
            let hops = port.hops.iter().map(move |&hop| if back { hop.back() } else { hop });
            hops.filter_map(|hop| self.links[hop.link].mtu(Some(hop.way))).min()
        };
        let largest = || self.links.iter().filter_map(|link| link.mtu(None)).max();
        smallest(false).max(smallest(true)).or_else(largest).unwrap_or(ETHERNET_MTU).max(ETHERNET_MTU)
    }

    /// The name of the host's interface at this port: that of the link, cut to the 15 characters that Linux allows. A name that
    /// Linux or another interface of the host has gets a number at its end.
    pub fn interface_name(&self, port: &Port) -> String {
        let mut taken: Vec<String> = ["lo", "all", "default"].map(String::from).into();
        for other in self.ports().iter().filter(|other| other.host == port.host) {
            let cut =
                |end: &str| other.link.chars().take(LONGEST_INTERFACE - end.len()).collect::<String>() + end;
            let numbered = (2..).map(|number: usize| cut(&format!("-{number}")));
            let name = std::iter::once(cut("")).chain(numbered).find(|name| !taken.contains(name));
            taken.extend(name);
            if other.name == port.name {
                break;
            }
        }
        taken.pop().unwrap_or_default()
    }

    /// The networks that a host reaches by the routers that are neighbours at this port, without those that
    /// another of its ports reaches better.
    pub fn routes(&self, port: &Port) -> Vec<HostRoute> {
        self.topology.host_routes(port)
    }

    /// What a port reaches without a router: the other end of its segment, or all that the switch there
    /// connects it to. Hosts come first, then routers.
    pub fn neighbours(&self, port: &Port) -> Vec<Neighbour> {
        self.topology.neighbours(port)
    }

    /// The port that measurements of this port's link go to: the other end of its segment or, on a switch, the
    /// next host's. `None` if only routers are there.
    pub fn opposite(&self, port: &Port) -> Option<&Port> {
        let number = |port: &Port| self.ports().iter().position(|other| other.name == port.name);
        let own = number(port)?;
        let hosts = self.ports().iter().enumerate();
        let near: Vec<_> = hosts.filter(|(_, other)| self.topology.are_neighbours(port, other)).collect();
        near.iter().find(|(number, _)| *number > own).or(near.first()).map(|(_, port)| *port)
    }

    /// Whether a switch is at the other end of this port's segment: hosts then resolve each other's link
    /// addresses over the network.
    pub fn is_switched(&self, port: &Port) -> bool {
        self.topology.is_switched(port)
    }

    /// At a port on a switch, the link addresses of packets to this address: destination and source.
    pub fn link_addresses(&self, port: &Port, destination: IpAddr) -> Option<[LinkAddress; 2]> {
        if !self.is_switched(port) {
            return None;
        }
        let to = match destination {
            IpAddr::V4(ip) if ip.is_broadcast() => Some([0xff; 6]),
            // RFC 1112, section 6.4; RFC 2464, section 7.
            IpAddr::V4(ip) if ip.is_multicast() => {
                let [_, a, b, c] = ip.octets();
                Some([0x01, 0x00, 0x5e, a & 0x7f, b, c])
            }
            IpAddr::V6(ip) if ip.is_multicast() => {
                let [.., a, b, c, d] = ip.octets();
                Some([0x33, 0x33, a, b, c, d])
            }
            _ => self.topology.first_link_address(port, destination),
        };
        Some([to?, port.link_address])
    }

    /// Whether the links connect one port to another, over one segment or through routers.
    pub fn joins(&self, from: &Port, to: &Port) -> bool {
        self.topology.joins(from, to)
    }

    /// The links on any path from one port to another, each once; empty if there is no path.
    pub fn links_between(&self, from: &Port, to: &Port) -> Vec<Target> {
        let mut hops: Vec<_> =
            self.topology.arriving(from, to).into_iter().flat_map(|way| way.hops).collect();
        hops.sort_unstable();
        hops.dedup();
        hops.iter().map(|hop| topology::entry(&self.links[hop.link], hop.way)).collect()
    }

    /// The engine's names for the links on the path from one port to another, in order; `None` if there are
    /// several paths. For a link with rules this is the name of the rules, which choose the pipe for each
    /// packet.
    pub fn only_way(&self, from: &Port, to: &Port) -> Option<Vec<String>> {
        self.links_of_only(&self.topology.arriving(from, to))
    }

    /// As [`Scenario::only_way`], for packets from a port to an address, as far as they get, with the port where
    /// they leave; `None` if they leave at none.
    pub fn only_way_to(&self, from: &Port, destination: IpAddr) -> Option<(Vec<String>, Option<&Port>)> {
        let ways = self.topology.ways(from, destination);
        let links = self.links_of_only(&ways)?;
        let to = ways.first().and_then(|way| match &way.outcome {
            topology::Outcome::Port(name) => self.ports().iter().find(|port| port.name == *name),
            _ => None,
        });
        Some((links, to))
    }

    /// The engine's names for the links of a path, if it is the only one.
    fn links_of_only(&self, ways: &[topology::WayThrough]) -> Option<Vec<String>> {
        let [way] = ways else { return None };
        let name = |target| match target {
            Target::Link { name, .. } | Target::Rules { name, .. } => Some(name),
            _ => None,
        };
        way.hops.iter().map(|hop| name(topology::entry(&self.links[hop.link], hop.way))).collect()
    }

    /// The mean delay from one port to another, over all packets that arrive; `None` if none arrives, or if
    /// the mean of a link on the path is unknown.
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

    /// The address of the interface from which a router sends packets to this address; it is the source of
    /// the router's replies. `None` without a route, or if the address is the router's own.
    pub fn router_address(&self, router: &str, towards: IpAddr) -> Option<IpAddr> {
        let number = self.routers.iter().position(|other| other.name == router)?;
        self.topology.address_towards(number, towards)
    }

    /// The effective addresses of a host.
    pub(crate) fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let ports = self.ports().iter().filter(|port| port.host == host);
        ports.flat_map(|port| port.addresses.iter().map(|address| address.ip)).collect()
    }

    /// What the rules and pipes of a link depend on besides their own settings.
    pub(crate) fn site(&self, link: &Link) -> RulesSite {
        let mut addresses: BTreeMap<&str, Vec<IpAddr>> = BTreeMap::new();
        for port in self.ports() {
            addresses.entry(&port.host).or_default().extend(port.addresses.iter().map(|address| address.ip));
        }
        let hosts = self.host_names().into_iter().map(|host| {
            let own = addresses.remove(host.as_str()).unwrap_or_default();
            (host, own)
        });
        // The first end is a host or a router.
        let first = &link.between[0];
        let of_router = self.interfaces().iter().filter(|interface| interface.router == *first);
        let of_router = of_router.flat_map(|interface| interface.addresses.iter().map(|address| address.ip));
        RulesSite {
            seed: Seed(self.seed),
            addresses: Arc::new(hosts.collect()),
            me: self.addresses(first).into_iter().chain(of_router).collect(),
            here: self.topology.first_address(&link.name, first),
        }
    }

    /// The names of the hosts, in the order of the file.
    pub(crate) fn host_names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Reassigns the automatic addresses, skipping networks that are not free: a run nested in the network
    /// of another must not reuse its network. Changes nothing else.
    pub fn renumber(&mut self, is_free: impl Fn(Address) -> bool) {
        self.topology.number(&self.hosts, &self.routers, &self.links, &is_free);
    }

    /// Changes settings before a run, by assignments as in [`Scenario::assign_all`]. The result is as if
    /// the file had these settings: unlike with a change during a run, default bounds are recomputed. The
    /// scenario's name lists the assignments.
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
    /// As [`Scenario::assign_all`], or if a link of a large network then needs a queue; the scenario is then unchanged.
    pub fn set<T: AsRef<str>>(&mut self, texts: &[T]) -> Result<(), ScenarioError> {
        if texts.is_empty() {
            return Ok(());
        }
        let before = self.links.clone();
        self.assign_all(texts)?;
        if let Err(faults) = self.topology.check_queues(&self.links) {
            self.links = before;
            let problems = faults.into_iter().map(Fault::problem).collect();
            return Err(ScenarioError::new(&self.file, "", problems));
        }
        self.topology.set_default_bounds(&mut self.links);
        self.copy_media();
        for text in texts.iter().map(AsRef::as_ref) {
            let quote = if text.contains(' ') { "'" } else { "" };
            self.file += &format!(" --set {quote}{text}{quote}");
        }
        Ok(())
    }

    /// Adds changes at a time after the start to the timeline, by assignments as in [`Scenario::assign_all`].
    ///
    /// # Errors
    /// If an assignment names no key of a link.
    pub fn schedule<T: AsRef<str>>(
        &mut self,
        at: Duration,
        every: Option<Duration>,
        texts: &[T],
    ) -> Result<(), ScenarioError> {
        let read = |text: &T| {
            let text = text.as_ref();
            Assignment::parse(text, 0).map_err(|problem| ScenarioError::new("timeline", text, vec![problem]))
        };
        let set = texts.iter().map(read).collect::<Result<_, _>>()?;
        self.timeline.push(Entry { at, every, set, ..Entry::default() });
        Ok(())
    }

    /// Recomputes default bounds without the floor for bursty senders, as earlier versions did: needed for
    /// input logs up to version 2.
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

    /// The scheduled changes.
    pub fn timeline(&self) -> Timeline {
        Timeline::new(self.timeline.clone())
    }

    /// Connects the links and computes default bounds.
    pub(crate) fn wire(&mut self) -> Result<(), Vec<Fault>> {
        self.copy_media();
        self.topology =
            Topology::new(&self.hosts, &self.junctions, &self.routers, &self.switches, &self.links)?;
        self.topology.set_default_bounds(&mut self.links);
        self.copy_media();
        Ok(())
    }
}
