//! A read-only view of a network: what its names refer to, and the counters of its elements.

use super::names::Named;
use super::{Network, PortCounters, RouterCounters, RulesCounters, SwitchCounters};
use crate::id::{LinkId, PortId, RouterId, RulesId, SwitchId};
use crate::link::LinkView;
use crate::rules::RuleSet;

impl Network {
    pub(crate) fn link_id(&self, name: &str) -> Option<LinkId> {
        let configured = &self.links[..self.configured as usize];
        if let Ok(place) = configured.binary_search_by(|link| link.name.as_str().cmp(name)) {
            return Some(LinkId(place as u32));
        }
        self.added_names.get(name).map(|added| LinkId(self.configured + added))
    }

    pub(crate) fn port_id(&self, name: &str) -> Option<PortId> {
        self.ports.binary_search_by(|port| port.name.as_str().cmp(name)).ok().map(|at| PortId::new(at as u16))
    }

    pub(crate) fn rules_id(&self, name: &str) -> Option<RulesId> {
        self.rules.binary_search_by(|rules| rules.name.as_str().cmp(name)).ok().map(|at| RulesId(at as u32))
    }

    pub(crate) fn router_id(&self, name: &str) -> Option<RouterId> {
        let found = self.routers.binary_search_by(|router| router.name.as_str().cmp(name));
        found.ok().map(|at| RouterId(at as u32))
    }

    pub(crate) fn switch_id(&self, name: &str) -> Option<SwitchId> {
        let found = self.switches.binary_search_by(|switch| switch.name.as_str().cmp(name));
        found.ok().map(|at| SwitchId(at as u32))
    }

    pub(crate) fn link(&self, link: LinkId) -> LinkView<'_> {
        let Named { element, made, .. } = self.named(link);
        let made = made.map(|made| &self.made[made as usize]);
        LinkView::new(&self.links[element as usize], made, &self.links)
    }

    pub(crate) fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.configured + self.added.len() as u32).map(LinkId)
    }

    pub(crate) fn ports(&self) -> impl ExactSizeIterator<Item = PortId> + use<> {
        (0..self.ports.len() as u16).map(PortId::new)
    }

    pub(crate) fn rules(&self) -> impl ExactSizeIterator<Item = RulesId> + use<> {
        (0..self.rules.len() as u32).map(RulesId)
    }

    pub(crate) fn routers(&self) -> impl ExactSizeIterator<Item = RouterId> + use<> {
        (0..self.routers.len() as u32).map(RouterId)
    }

    pub(crate) fn switches(&self) -> impl ExactSizeIterator<Item = SwitchId> + use<> {
        (0..self.switches.len() as u32).map(SwitchId)
    }

    pub(crate) fn port(&self, port: PortId) -> (&str, PortCounters) {
        let port = &self.ports[usize::from(port.index())];
        (&port.name, port.counters)
    }

    pub(crate) fn rule_set(&self, rules: RulesId) -> (&str, &RuleSet, RulesCounters) {
        let set = &self.rules[rules.0 as usize];
        (&set.name, &set.rules, set.counters)
    }

    pub(crate) fn router(&self, router: RouterId) -> (&str, RouterCounters) {
        let router = &self.routers[router.0 as usize];
        (&router.name, router.counters)
    }

    pub(crate) fn switch(&self, switch: SwitchId) -> (&str, SwitchCounters, usize) {
        let switch = &self.switches[switch.0 as usize];
        (&switch.name, switch.counters, switch.table.known(self.now))
    }
}
