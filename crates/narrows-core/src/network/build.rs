//! Building a network, and adding to it later.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::classified::{Classified, RulesCounters};
use super::config::{
    BuildError, NetworkConfig, PipeConfig, RouterConfig, RulesConfig, SwitchConfig, SwitchPort,
};
use super::exits::Exits;
use super::names::{self, Named, Names};
use super::router::{self, Router, RouterCounters, Ways};
use super::switch::{self, Switch, SwitchCounters, Table};
use super::{Hop, Later, Network, Port, PortCounters, find_pipe};
use crate::agenda::Agenda;
use crate::id::{LinkId, PortId, RouterId, RulesId, SwitchId};
use crate::known::Known;
use crate::link::Target;
use crate::link::instances::Made;
use crate::link::{Link, LinkConfig};
use crate::pool::Pool;
use crate::queue::Drops;
use crate::random::{Seed, Stream};
use crate::rules::{Lpm, RuleSet, RuleSetConfig};
use crate::time::Time;

impl Network {
    pub(crate) fn new(mut config: NetworkConfig) -> Result<Self, BuildError> {
        config.links.sort_by(|a, b| a.name.cmp(&b.name));
        config.ports.sort_by(|a, b| a.name.cmp(&b.name));
        config.rules.sort_by(|a, b| a.name.cmp(&b.name));
        config.routers.sort_by(|a, b| a.name.cmp(&b.name));
        config.switches.sort_by(|a, b| a.name.cmp(&b.name));
        let seed = config.seed;
        let sets: Vec<_> = config.rules.iter_mut().map(|rules| core::mem::take(&mut rules.rules)).collect();
        let mut makers = 0..;
        let named = config.links.iter().zip(0..).map(|(link, element)| {
            let made = link.instances.as_ref().and_then(|_| makers.next());
            (link.name.as_str(), Named { element, lanes: link.lanes.len(), made })
        });
        let names = Names::new(
            config.ports.iter().map(|port| port.name.as_str()),
            named,
            config.rules.iter().map(|rules| rules.name.as_str()),
            config.routers.iter().map(|router| router.name.as_str()),
            config.switches.iter().map(|switch| (switch.name.as_str(), switch.ports.len())),
        )?;
        let mut pool = Pool::new(config.memory);
        pool.origins = names::origins(config.ports.iter().map(|port| port.name.as_str()))?;
        if !config.rules.is_empty()
            || !config.routers.is_empty()
            || !config.switches.is_empty()
            || config.links.iter().any(LinkConfig::needs_headers)
        {
            pool.keep_headers();
        }
        if sets.iter().any(|set| !set.nats.is_empty()) {
            pool.keep_quoted();
        }
        if config.links.iter().any(|link| link.queue.looks_at_tcp_options()) {
            pool.keep_tcp_options();
        }
        let mut ports = Vec::with_capacity(config.ports.len());
        for port in &config.ports {
            let (name, entry) = (port.name.clone(), names.hop(&port.name, &port.entry)?);
            ports.push(Port { name, entry, arrivals: 0, counters: PortCounters::default() });
        }
        let mut exits = Vec::with_capacity(config.links.len());
        for link in &config.links {
            let hops = link.lanes.iter().map(|target| names.hop(&link.name, target));
            exits.push(hops.collect::<Result<Vec<_>, _>>()?);
        }
        let rules = config.rules.iter().zip(sets).map(|(rules, set)| classified(rules, set, seed, &names));
        let rules = rules.collect::<Result<Vec<_>, _>>()?;
        let routers = config.routers.iter().map(|config| router(config, seed, &names));
        let routers = routers.collect::<Result<Vec<_>, _>>()?;
        let mut destinations = Lpm::default();
        for &(prefix, number) in &config.destinations {
            destinations.insert(prefix, Known { number, bits: prefix.bits() });
        }
        let switches = config.switches.iter().map(|config| switch(config, seed, &names));
        let switches = switches.collect::<Result<Vec<_>, _>>()?;
        drop(names);
        for (number, port) in (0..).zip(&mut ports) {
            if let Hop::Router(router) = port.entry
                && routers[router as usize].is_own(PortId::new(number))
            {
                port.entry = Hop::OfRouter(router);
            }
        }
        let mut network = Self {
            pool,
            seed,
            asking: Vec::new(),
            agenda: Agenda::new(0),
            links: Vec::with_capacity(exits.len()),
            configured: exits.len() as u32,
            exits: Exits::default(),
            later: Vec::new(),
            added: Vec::new(),
            added_names: BTreeMap::new(),
            made: Vec::new(),
            rules,
            routers,
            destinations,
            switches,
            outs: Vec::new(),
            ports,
            decided: VecDeque::new(),
            visits: config.visits,
            now: Time::ZERO,
            drops: Drops::default(),
            has_new_ways: false,
            divided: None,
        };
        for (link, exits) in config.links.into_iter().zip(exits) {
            network.put_link(link, &exits);
        }
        network.find_cycles();
        Ok(network)
    }

    /// Appends a link.
    fn put_link(&mut self, mut config: LinkConfig, exits: &[Hop]) {
        let element = self.links.len() as u32;
        if let Some(instances) = config.instances.take() {
            self.made.push(Made::new(element, *instances, config.lanes.len(), self.seed, &config.name));
        }
        let link = Link::new(config, self.seed, None, self.now);
        if link.asks() {
            self.asking.push(element);
        }
        self.put(link, exits);
    }

    pub(super) fn put(&mut self, link: Link, exits: &[Hop]) {
        self.links.push(link);
        self.exits.add(exits);
        self.agenda.add();
    }

    /// Adds a link to the running network.
    pub(crate) fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, BuildError> {
        if self.has_element(&config.name) {
            return Err(BuildError::NameTaken(config.name));
        }
        if self.links().len() + self.rules.len() + self.routers.len() + self.switches.len()
            >= names::MOST_ELEMENTS
        {
            return Err(BuildError::TooMany("links"));
        }
        if !(1..=usize::from(u8::MAX)).contains(&config.lanes.len()) {
            return Err(BuildError::TooMany("lanes"));
        }
        let hops = config.lanes.iter().map(|target| self.hop(&config.name, target));
        let hops = hops.collect::<Result<Vec<_>, _>>()?;
        if config.needs_headers() {
            self.pool.keep_headers();
        }
        if config.queue.looks_at_tcp_options() {
            self.pool.keep_tcp_options();
        }
        let link = LinkId(self.configured + self.added.len() as u32);
        self.added_names.insert(config.name.clone(), self.added.len() as u32);
        self.added.push(self.links.len() as u32);
        self.later.push(Later::Added(link));
        // No packet goes there before a rule set gets a pipe to it, and cycles are searched then.
        self.put_link(config, &hops);
        Ok(link)
    }

    fn has_element(&self, name: &str) -> bool {
        self.link_id(name).is_some()
            || self.rules_id(name).is_some()
            || self.router_id(name).is_some()
            || self.switch_id(name).is_some()
    }

    /// Where a name currently leads.
    fn hop(&self, from: &str, target: &Target) -> Result<Hop, BuildError> {
        let rules = |name: &str| self.rules_id(name).map(|RulesId(rules)| rules);
        let hop = match target {
            Target::Port(name) => self.port_id(name).map(Hop::Port),
            Target::Link { name, lane } => {
                let named = self.link_id(name).map(|link| self.named(link));
                named.filter(|named| usize::from(*lane) < named.lanes).map(|named| named.hop(*lane))
            }
            &Target::Rules { ref name, incoming } => rules(name).map(|rules| Hop::Rules { rules, incoming }),
            &Target::FromPipe { rules: ref name, incoming } => {
                rules(name).map(|rules| Hop::FromPipe { rules, incoming })
            }
            Target::Router(name) => self.router_id(name).map(|RouterId(router)| Hop::Router(router)),
            &Target::Switch { ref name, port } => {
                let ports = |switch: u32| self.switches[switch as usize].ports.len();
                let found = self.switch_id(name).filter(|&SwitchId(at)| usize::from(port) < ports(at));
                found.map(|SwitchId(switch)| Hop::Switch { switch, port })
            }
        };
        hop.ok_or_else(|| BuildError::NoSuchTarget { from: from.into(), target: target.clone() })
    }
}

fn classified(
    config: &RulesConfig,
    set: RuleSetConfig,
    seed: Seed,
    names: &Names<'_>,
) -> Result<Classified, BuildError> {
    let RulesConfig { name, pipes, queues, one_pass, exits, .. } = config;
    let find = |numbers: &[(u32, PipeConfig)]| {
        let found = numbers.iter().map(|(number, pipe)| {
            let link = names.links.get(pipe.link.as_str()).copied();
            Ok((*number, find_pipe(name, pipe, link)?))
        });
        found.collect::<Result<BTreeMap<_, _>, BuildError>>()
    };
    let (pipes, queues) = (find(pipes)?, find(queues)?);
    let exits = [names.hop(name, &exits[0])?, names.hop(name, &exits[1])?];
    let rules = RuleSet::new(seed, name, set);
    let rules = rules.map_err(|error| BuildError::Rules(name.clone(), error))?;
    let (name, one_pass) = (name.clone(), *one_pass);
    let counters = RulesCounters::default();
    Ok(Classified { name, rules, pipes, queues, one_pass, exits, counters, revisited: false })
}

fn router(config: &RouterConfig, seed: Seed, names: &Names<'_>) -> Result<Router, BuildError> {
    let mut router = Router {
        counters: RouterCounters::default(),
        table: router::Table {
            routes: Vec::with_capacity(config.routes.len() + config.ways.len()),
            own: Lpm::default(),
            groups: Arc::clone(&config.groups),
            first_of_groups: config.routes.len(),
        },
        draws: Stream::new(seed, &config.name, "path"),
        name: config.name.clone(),
        link_addresses: config.link_addresses.clone(),
        revisited: false,
    };
    for ((prefix, _), number) in config.routes.iter().zip(0..) {
        router.table.own.insert(*prefix, Known { number, bits: prefix.bits() });
    }
    for route in config.routes.iter().map(|(_, route)| route).chain(&config.ways) {
        let hops = route.ways.iter().map(|(way, weight)| Ok((names.hop(&router.name, way)?, *weight)));
        let hops = hops.collect::<Result<Vec<_>, BuildError>>()?;
        router.table.routes.push(Ways::new(seed, &router.name, hops, route));
    }
    Ok(router)
}

fn switch(config: &SwitchConfig, seed: Seed, names: &Names<'_>) -> Result<Switch, BuildError> {
    let SwitchConfig { name, ports, known, ageing, room } = config;
    let port = |port: &SwitchPort| {
        let (untagged, tagged) = (port.untagged, port.tagged.clone());
        Ok(switch::Port { exit: names.hop(name, &port.exit)?, untagged, tagged })
    };
    let ports = ports.iter().map(port).collect::<Result<Vec<_>, BuildError>>()?;
    let mut table = Table::new(*ageing, *room);
    for &(vlan, address, port) in known {
        if usize::from(port) >= ports.len() {
            let target = Target::Switch { name: name.clone(), port };
            return Err(BuildError::NoSuchTarget { from: name.clone(), target });
        }
        table.know(vlan, address, port);
    }
    let copies = Stream::new(seed, name, "flooding");
    Ok(Switch {
        name: name.clone(),
        ports,
        table,
        counters: SwitchCounters::default(),
        copies,
        revisited: false,
    })
}
