//! One look at a container: what its interfaces are, and what is missing there.

use std::fs;
use std::path::Path;

use narrows_io::clock::clock_monotonic;
use narrows_io::detour::is_cable;
use narrows_io::link::Interface;
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::namespace_identity::NamespaceIdentity;
use narrows_io::route_socket::RouteSocket;
use narrows_live::block::block;
use narrows_live::run_record::Membership;

use super::attachment::{Attachment, Start};
use super::member::{Demand, Member};
use super::place::Place;
use super::{Asked, Blocked, Watched};
use crate::container::Container;
use crate::lab::LabLink;
use crate::labels::{Pick, Wish};
use crate::plan::Plan;
use crate::run_names::run_name;

/// Where a container's interfaces are.
struct Ground {
    namespace: Namespace,
    identity: NamespaceIdentity,
    /// The flag of `narrows attach`, and its value.
    at: (&'static str, String),
    /// What the namespace was opened by.
    reference: String,
}

impl Watched<'_> {
    /// Starts what is missing at a container's interfaces.
    pub(super) fn look(&mut self, id: &str) {
        let Some(member) = self.members.get(id) else { return };
        let container = member.container().clone();
        let looked = self.try_look(&container);
        let now = clock_monotonic();
        let Some(member) = self.members.get_mut(id) else { return };
        let said = match looked {
            Ok(true) => {
                member.is_settled();
                None
            }
            Ok(false) if member.look_again(now) => None,
            // A container that was created and not started, or has no network.
            Ok(false) => None,
            Err(why) => {
                member.is_settled();
                member.says(&why).then_some(why)
            }
        };
        if let Some(why) = said {
            self.say(format!("{}: not attached: {why}", container.name));
        }
    }

    /// Whether all of its interfaces are there and have their networks, or none is to have one.
    fn try_look(&mut self, container: &Container) -> Result<bool, String> {
        let demands = self.members.get(&container.id).map_or(Ok(Vec::new()), Member::demands)?;
        if demands.is_empty() {
            return Ok(true);
        }
        if container.shares.as_deref() == Some("host") {
            return Err("it uses the network of the host, where a network would be for everything".into());
        }
        let Some(ground) = self.ground(container)? else { return Ok(false) };
        let interfaces = interfaces(&ground.namespace).map_err(|error| error.to_string())?;
        let mut is_whole = true;
        for demand in demands {
            is_whole &= self.meet_demand(container, &ground, &interfaces, &demand)?;
        }
        Ok(is_whole)
    }

    /// Starts what is missing of a demand; whether all of its interfaces are there and have their networks.
    fn meet_demand(
        &mut self,
        container: &Container,
        ground: &Ground,
        interfaces: &[Interface],
        demand: &Demand,
    ) -> Result<bool, String> {
        let wish = &demand.wish;
        let all = picked(container, &wish.at, interfaces)?;
        let mut up = 0;
        for interface in all {
            let place = Place { namespace: ground.identity.clone(), index: interface.index };
            if self.options.fails_closed && !self.is_taken(&place) {
                self.block(&container.id, &place, ground, &interface, wish)?;
            }
            if interface.up {
                up += 1;
                if !self.is_taken(&place) {
                    self.start(container, place, ground, &interface, demand)?;
                }
            }
        }
        let expected = match wish.at == Pick::default() {
            true => container.networks.len().max(1),
            false => 1,
        };
        Ok(up >= expected)
    }

    /// The namespace of a container: that of its process, or, before that starts, the one that has an interface with an
    /// address of the container. `None` if there is none yet, or none any more.
    fn ground(&self, container: &Container) -> Result<Option<Ground>, String> {
        if let Some(process) = container.process {
            return opened("--pid", process.to_string(), format!("pid:{process}"));
        }
        let macs: Vec<_> = container.networks.values().filter_map(|joined| joined.mac.as_ref()).collect();
        let is_its = |ground: &Ground| {
            let all = interfaces(&ground.namespace).unwrap_or_default();
            all.iter().any(|one| one.mac.is_some_and(|mac| macs.contains(&&mac.to_string())))
        };
        // Without the folder, as of Podman, it is found when it has started.
        let files = fs::read_dir(&self.namespaces).into_iter().flatten().flatten().map(|file| file.path());
        for path in files.filter(|_| !macs.is_empty()) {
            let path = path.display().to_string();
            // Others may be on their way in or out.
            if let Ok(Some(ground)) = opened("--netns", path.clone(), path)
                && is_its(&ground)
            {
                return Ok(Some(ground));
            }
        }
        Ok(None)
    }

    /// Whether a network is at this interface, or just about to be.
    fn is_taken(&self, place: &Place) -> bool {
        self.attachments.values().any(|attachment| attachment.place == *place)
    }

    /// What file and labels say of a container: the networks that it gets.
    pub(super) fn demands(&self, container: &Container) -> Result<Vec<Demand>, String> {
        let files = match &self.options.asked {
            Asked::Labels(files) => files,
            Asked::Project(project) => &project.files,
            Asked::Lab(lab) => {
                let demand = |link: &LabLink| Demand {
                    wish: link.wish.clone(),
                    title: lab.title(link),
                    membership: Some(lab.membership(link)),
                };
                return Ok(lab.at(container).map(demand).collect());
            }
        };
        let own = Wish::of_labels(&format!("labels of {}", container.name), &container.labels, files)
            .map_err(|error| error.to_string())?;
        let wish = match (self.options.asked.project(), container.service()) {
            (None, _) => own.filter(|wish| !wish.keys.is_empty()),
            (Some(_), None) => None,
            (Some(project), Some(service)) => {
                let wish = own.unwrap_or_default().over(project.own_wish(service));
                Plan::is_needed(project, service, &wish).then_some(wish)
            }
        };
        let demand = |wish| Demand { wish, title: container.name.clone(), membership: None };
        Ok(wish.map(demand).into_iter().collect())
    }

    /// The plan for a container that gets something, as it is now.
    fn plan(&self, container: &Container, wish: &Wish) -> Result<Plan, String> {
        let plan = match (&self.options.asked, container.service()) {
            (Asked::Project(project), Some(service)) => {
                let elapsed = clock_monotonic().as_nanos().saturating_sub(self.started.as_nanos());
                Plan::of_service(project, service, wish, &self.addresses(), elapsed)
            }
            (Asked::Project(project), None) => Plan::of_labels(wish, &project.files).map(Some),
            (Asked::Labels(files), _) => Plan::of_labels(wish, files).map(Some),
            (Asked::Lab(lab), _) => Plan::of_labels(wish, &lab.files).map(Some),
        };
        plan.map_err(|error| error.to_string())?.ok_or_else(|| "nothing is to be done there".into())
    }

    /// Blocks an interface until its network is there, once.
    fn block(
        &mut self,
        container: &str,
        place: &Place,
        ground: &Ground,
        interface: &Interface,
        wish: &Wish,
    ) -> Result<(), String> {
        if self.blocked.iter().any(|blocked| blocked.place == *place) {
            return Ok(());
        }
        let folder = &self.options.run_folder;
        let diverted = wish.direction.diverted();
        block(&ground.namespace, Some(&ground.reference), interface, diverted, folder)
            .map_err(|error| error.to_string())?;
        let namespace = ground.namespace.try_clone().map_err(|error| error.to_string())?;
        let (container, place, interface) = (container.into(), place.clone(), interface.clone());
        self.blocked.push(Blocked { container, place, namespace, interface });
        Ok(())
    }

    fn start(
        &mut self,
        container: &Container,
        place: Place,
        ground: &Ground,
        interface: &Interface,
        demand: &Demand,
    ) -> Result<(), String> {
        let plan = self.plan(container, &demand.wish)?;
        let addresses = self.addresses();
        let since = self.members.get(&container.id).map_or_else(clock_monotonic, |member| member.since());
        let run = self.run_name(&container.name, &interface.name);
        let number = self.next_number;
        let start = self.command(run, container, interface, ground, demand);
        let about = ((container.id.clone(), container.name.clone()), place, since);
        let started = Attachment::start(&start, &plan, &addresses, about, number, self.to.clone());
        let program = self.options.program.display();
        let started = started.map_err(|error| format!("cannot start {program}: {error}"))?;
        self.next_number += 1;
        self.attachments.insert(number, started);
        Ok(())
    }

    fn command<'a>(
        &'a self,
        run: String,
        container: &Container,
        interface: &Interface,
        ground: &Ground,
        demand: &Demand,
    ) -> Start<'a> {
        let folder = match &self.options.asked {
            Asked::Labels(_) => Path::new("."),
            Asked::Project(project) => &project.folder,
            Asked::Lab(lab) => &lab.folder,
        };
        Start {
            program: &self.options.program,
            folder,
            run,
            title: demand.title.clone(),
            interface: interface.name.clone(),
            membership: demand.membership.clone().or_else(|| in_project(container, interface)),
            at: ground.at.clone(),
            direction: demand.wish.direction,
            fails_closed: self.options.fails_closed,
        }
    }

    /// A name for the run at this interface that no other of ours has.
    fn run_name(&self, container: &str, interface: &str) -> String {
        let tail = if interface == "eth0" { String::new() } else { format!("-{interface}") };
        let is_free = |name: &String| self.attachments.values().all(|attachment| attachment.run != *name);
        let numbered = (2_u32..).map(|number| run_name(container, &format!("{tail}-{number}")));
        let mut names = std::iter::once(run_name(container, &tail)).chain(numbered);
        // There are more numbers than networks.
        names.find(is_free).unwrap_or_default()
    }

    /// Says what would be done to these containers.
    pub(super) fn describe(&mut self, all: Vec<Container>) {
        let now = clock_monotonic();
        for container in all {
            let (id, demands) = (container.id.clone(), self.demands(&container));
            self.members.insert(id, Member::new(container, demands, now));
        }
        let all: Vec<_> =
            self.members.values().map(|member| (member.container().clone(), member.demands())).collect();
        for (container, demands) in all {
            let text = demands
                .and_then(|demands| self.description(&container, &demands))
                .unwrap_or_else(|why| format!("not attached: {why}"));
            self.say(format!("{}: {text}", container.name));
        }
    }

    fn description(&self, container: &Container, demands: &[Demand]) -> Result<String, String> {
        if demands.is_empty() {
            return Ok("nothing to attach".into());
        }
        if container.shares.as_deref() == Some("host") {
            return Err("it uses the network of the host, where a network would be for everything".into());
        }
        let Some(ground) = self.ground(container)? else {
            return Err("its network namespace is not there".into());
        };
        let interfaces = interfaces(&ground.namespace).map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        for demand in demands {
            let plan = self.plan(container, &demand.wish)?;
            let all = picked(container, &demand.wish.at, &interfaces)?;
            if let (true, Some(name)) = (all.is_empty(), &demand.wish.at.interface) {
                lines.push(format!("it has no interface {name} yet"));
            }
            for interface in all {
                let run = self.run_name(&container.name, &interface.name);
                let start = self.command(run, container, &interface, &ground, demand);
                let words = start.arguments().into_iter().map(quoted).collect::<Vec<_>>().join(" ");
                lines.push(format!("narrows {words} <<END\n{}END", plan.scenario));
            }
        }
        if lines.is_empty() { Err("it has no Ethernet interface".into()) } else { Ok(lines.join("\n")) }
    }
}

/// The place of an interface in the graph of its project: the container's link to a network.
fn in_project(container: &Container, interface: &Interface) -> Option<Membership> {
    let group = container.project()?.to_owned();
    let mac = interface.mac?.to_string();
    let mut networks = container.networks.iter();
    let (network, _) = networks.find(|(_, joined)| joined.mac.as_deref() == Some(mac.as_str()))?;
    Some(Membership { group, ends: [format!("{}:{}", container.name, interface.name), network.clone()] })
}

/// A word as a shell reads it.
fn quoted(word: String) -> String {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=./:,".contains(&byte));
    if is_plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The namespace that this refers to; `None` if there is none yet, or none any more.
fn opened(at: &'static str, value: String, reference: String) -> Result<Option<Ground>, String> {
    let opened = Namespace::open(&reference).and_then(|namespace| {
        let identity = NamespaceIdentity::of(&namespace)?;
        Ok((NamespaceIdentity::of(&Namespace::current()?)?, identity, namespace))
    });
    match opened {
        Ok((ours, identity, _)) if ours == identity => {
            Err("it is in the network namespace of narrows itself".into())
        }
        Ok((_, identity, namespace)) => Ok(Some(Ground { namespace, identity, at: (at, value), reference })),
        // Its file is made first, and the namespace bound to it later; or the process has just ended.
        Err(NamespaceError::NotFound { .. } | NamespaceError::NotANamespace { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The interfaces that can have a network.
fn interfaces(namespace: &Namespace) -> Result<Vec<Interface>, narrows_io::route_socket::NetlinkError> {
    let all = RouteSocket::open(namespace)?.interfaces()?;
    let is_meant = |one: &Interface| one.ethernet && !one.loopback && !is_cable(&one.name);
    Ok(all.into_iter().filter(is_meant).collect())
}

/// Those of the interfaces that labels pick.
fn picked(container: &Container, pick: &Pick, all: &[Interface]) -> Result<Vec<Interface>, String> {
    let mac = match &pick.network {
        None => None,
        Some(network) => match container.networks.get(network) {
            Some(joined) => joined.mac.clone(),
            None => {
                let known: Vec<_> = container.networks.keys().map(String::as_str).collect();
                return Err(format!(
                    "it is not in the network `{network}`; its networks: {}",
                    known.join(", ")
                ));
            }
        },
    };
    let is_picked = |one: &Interface| {
        let has_name = pick.interface.as_ref().is_none_or(|name| one.name == *name);
        let has_mac = mac.as_ref().is_none_or(|mac| one.mac.is_some_and(|own| own.to_string() == *mac));
        has_name && has_mac
    };
    Ok(all.iter().filter(|one| is_picked(one)).cloned().collect())
}
