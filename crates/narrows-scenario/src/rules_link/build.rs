//! Builds the engine's rules and links from rules and pipes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use narrows_core::classify::FlowMask;
use narrows_core::queue;
use narrows_core::rules::{Masked, RuleSetConfig};
use narrows_core::sched::{
    self, Drr, Fifo, FlowConfig, FlowSet, FlowSets, Gfq, Kps, Priority, Qfq, Refused, Wf2q,
};
use narrows_core::{Change, Instances, LinkConfig, LinkTemplate, PipeConfig, RulesConfig, Seed, Target};

use super::pipe::Pipe;
use super::sharing::Sharing;
use super::{PipeQueue, RulesLink};
use crate::direction::Site;
use crate::problem::Problem;
use crate::value::{LossModel, SchedulerKind};

/// What the rules and pipes of a link depend on besides their own settings.
#[derive(Clone, Debug)]
pub(crate) struct RulesSite {
    pub(crate) seed: Seed,
    /// The addresses of each host.
    pub(crate) addresses: Arc<BTreeMap<String, Vec<IpAddr>>>,
    /// The addresses of the host at the rules.
    pub(crate) me: Vec<IpAddr>,
    /// Its IPv4 address at the link.
    pub(crate) here: Option<Ipv4Addr>,
}

impl RulesSite {
    /// A site without any addresses.
    fn nowhere() -> Self {
        Self { seed: Seed(0), addresses: Arc::default(), me: Vec::new(), here: None }
    }

    /// The meaning of `me`.
    pub(crate) fn me(&self) -> Vec<Masked> {
        let bits = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        self.me.iter().map(|ip| Masked { address: bits(ip), mask: u128::MAX }).collect()
    }
}

/// A pipe with its queues: the input for its engine link.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) pipe: Pipe,
    /// The engine's name for the link.
    pub(super) name: String,
    /// The flow sets of its queue after the first one: the number and settings of each queue.
    pub(super) sets: Vec<(u32, PipeQueue)>,
}

impl RulesLink {
    /// Builds the engine's rules `name`, and the links of the pipes. `exits` are the targets of accepted
    /// packets, up and down.
    pub(crate) fn build(
        &self,
        name: &str,
        site: RulesSite,
        exits: [Target; 2],
    ) -> (RulesConfig, Vec<LinkConfig>) {
        let rules = RulesConfig {
            name: name.into(),
            rules: RuleSetConfig {
                tables: self.tables.iter().map(|(name, table)| (name.clone(), table.clone())).collect(),
                nats: self.nats.iter().map(|(&number, nat)| (number, site.nat(nat))).collect(),
                ..self.rules_alone(&site)
            },
            pipes: self
                .pipes
                .keys()
                .filter_map(|pipe| Some((*pipe, self.pipe_target(name, *pipe)?)))
                .collect(),
            queues: self
                .queues
                .keys()
                .filter_map(|queue| Some((*queue, self.queue_target(name, *queue)?)))
                .collect(),
            one_pass: self.one_pass,
            exits,
        };
        let links = self.pipes.keys().filter_map(|pipe| Some(self.plan(name, *pipe)?.link(name, &site)));
        (rules, links.collect())
    }

    /// The engine's rules without tables.
    pub(super) fn rules_alone(&self, site: &RulesSite) -> RuleSetConfig {
        RuleSetConfig {
            rules: self.rules.clone(),
            me: site.me(),
            disabled_sets: self.disabled_sets,
            ..RuleSetConfig::default()
        }
    }

    /// The target of a pipe number.
    pub(super) fn pipe_target(&self, name: &str, number: u32) -> Option<PipeConfig> {
        // The first set of its queue, if it has sets, takes packets that rules send to the pipe itself.
        Some(PipeConfig { link: self.pipes.get(&number)?.core_name(name, number), mark: 0 })
    }

    /// The target of a queue number.
    pub(super) fn queue_target(&self, name: &str, number: u32) -> Option<PipeConfig> {
        let of = self.queues.get(&number)?.pipe;
        let pipe = self.pipes.get(&of)?;
        let place = pipe.run.places.of(number).or_else(|| {
            let known = pipe.run.places.iter().count();
            self.queues_without_place(of).position(|other| other == number).map(|place| known + place)
        })?;
        let mark = if pipe.shares_by().is_some() { place as u32 + 1 } else { 0 };
        Some(PipeConfig { mark, ..self.pipe_target(name, of)? })
    }

    /// The flow sets of a pipe's queue after the first one. Sets of deleted queues only drain their
    /// backlog.
    fn sets(&self, pipe: u32) -> Vec<(u32, PipeQueue)> {
        let places = self.pipes.get(&pipe).into_iter().flat_map(|pipe| pipe.run.places.iter());
        let numbers = places.map(|(number, _)| number).chain(self.queues_without_place(pipe));
        numbers.filter_map(|number| Some((number, self.set_of(pipe, number)?))).collect()
    }

    /// The flow set of a queue of this pipe, existing or deleted.
    pub(super) fn set_of(&self, pipe: u32, number: u32) -> Option<PipeQueue> {
        if let Some(gone) = self.pipes.get(&pipe)?.run.places.gone(number) {
            return Some(PipeQueue { mask: Some(gone.mask.unwrap_or(ONE_ON_FIRST_USE)), ..gone.clone() });
        }
        self.queues.get(&number).filter(|queue| queue.pipe == pipe).cloned()
    }

    /// Queues of a pipe without a place: they follow the others in the order of their numbers.
    fn queues_without_place(&self, pipe: u32) -> impl Iterator<Item = u32> {
        let places = self.pipes.get(&pipe).map(|pipe| &pipe.run.places);
        let all_have = places.is_some_and(|places| places.present() == self.queues.count_of(pipe));
        let numbers = (!all_have).then(|| self.queues.of_pipe(pipe)).into_iter().flatten();
        numbers
            .map(|(number, _)| number)
            .filter(move |number| places.is_none_or(|places| places.of(*number).is_none()))
    }

    /// Assigns a place to every queue of a pipe.
    pub(super) fn settle_places(&mut self, pipe: u32) {
        let new: Vec<u32> = self.queues_without_place(pipe).collect();
        if let Some(pipe) = self.pipes.get_mut(&pipe) {
            new.into_iter().for_each(|number| pipe.run.places.join(number));
        }
    }

    /// A pipe with its queues.
    pub(super) fn plan(&self, name: &str, number: u32) -> Option<Plan> {
        let pipe = self.pipes.get(&number)?;
        let sets = match pipe.shares_by() {
            Some(_) => self.sets(number),
            None => Vec::new(),
        };
        Some(Plan { pipe: pipe.clone(), name: pipe.core_name(name, number), sets })
    }

    /// Removes settings that a pipe does not use from its queues.
    pub(super) fn tidy_queues(&mut self, number: u32, pipe: &Pipe) {
        let all: Vec<_> = self.queues_of(number).map(|(number, queue)| (number, queue.clone())).collect();
        for (number, queue) in all {
            self.queues.insert(number, queue.tidied(pipe.shares_by()));
        }
    }

    /// The first queue that this pipe's scheduler rejects, and why.
    pub(crate) fn refused_queue(&self, pipe: u32) -> Option<(u32, Problem)> {
        let plan = self.plan("", pipe).filter(Plan::has_sets)?;
        if plan.pipe.direction.exact_netem.is_some() {
            let problem = Problem::new(format!("a queue of pipe {pipe}, which is NetEm's single queue"));
            let help = "describe the pipe with link keys: `netem` maps to those";
            return Some((plan.sets[0].0, problem.help(help)));
        }
        plan.refused(pipe)
    }

    /// Same for one new or changed queue, if the others were accepted.
    pub(super) fn refused_change(&self, pipe: u32, number: u32) -> Option<Problem> {
        let of = self.pipes.get(&pipe)?;
        // These schedulers limit the sum of all weights, the others each queue separately.
        let bounds_all = of
            .shares_by()
            .is_none_or(|by| matches!(by.kind, SchedulerKind::Qfq | SchedulerKind::Gfq | SchedulerKind::Kps));
        if bounds_all || of.direction.exact_netem.is_some() {
            return self.refused_queue(pipe).map(|(_, problem)| problem);
        }
        let sets = vec![(number, self.set_of(pipe, number)?)];
        Plan { pipe: of.without_memory(), name: String::new(), sets }
            .refused(pipe)
            .map(|(_, problem)| problem)
    }
}

/// A single flow, which exists while it has packets.
const ONE_ON_FIRST_USE: FlowMask = FlowMask { queue: true, ..FlowMask::NONE };

impl Plan {
    /// Whether packets are queued in flow sets.
    pub(super) fn has_sets(&self) -> bool {
        !self.sets.is_empty()
    }

    /// The first set that the scheduler rejects: the number of its queue, and why. `pipe` is the number of
    /// the pipe.
    fn refused(&self, pipe: u32) -> Option<(u32, Problem)> {
        let sharing = self.pipe.shares_by()?;
        let (place, refused) = self.try_queue(&RulesSite::nowhere()).err()?;
        // Every scheduler accepts the first set, which has weight 1.
        let queue = self.sets[place.saturating_sub(1)].0;
        let name = sharing.kind.name();
        Some((queue, Problem::new(format!("`{name}` of pipe {pipe} does not take this queue: {refused}"))))
    }

    /// The engine's link, whose packets return to the rules.
    pub(super) fn link(&self, rules: &str, site: &RulesSite) -> LinkConfig {
        let mut config = self.plain_link(site);
        config.lanes =
            [false, true].map(|incoming| Target::FromPipe { rules: rules.into(), incoming }).into();
        config.instances = self.pipe.mask.map(|mask| {
            let template = Box::new(self.template(None, site));
            Box::new(Instances { mask, most: self.pipe.most, idle: self.pipe.idle, template })
        });
        config
    }

    /// The template of links created on first use, and that of the existing ones.
    pub(super) fn template(&self, before: Option<Self>, site: &RulesSite) -> Template {
        Template { plan: self.clone(), before, site: site.clone() }
    }

    /// The link without lanes and instances.
    fn plain_link(&self, site: &RulesSite) -> LinkConfig {
        let addresses = |host: &str| site.addresses_of(host);
        let place = Site { seed: site.seed, link: &self.name, addresses: &addresses };
        let mut config = self.pipe.direction.build(Vec::new(), place);
        if self.has_sets() {
            config.queue = self.queue(site);
        }
        config
    }

    /// The engine's queue, if packets are queued in flow sets.
    pub(super) fn queue(&self, site: &RulesSite) -> Box<dyn queue::Queue> {
        self.try_queue(site).unwrap_or_else(|(place, refused)| {
            panic!("{}: queue {place} was tried when it was read: {refused}", self.name)
        })
    }

    fn try_queue(&self, site: &RulesSite) -> Result<Box<dyn queue::Queue>, (usize, Refused)> {
        let sharing = self.pipe.sharing.unwrap_or_default();
        match sharing.kind {
            SchedulerKind::Prio => self.assemble(Priority::default(), sharing, site),
            SchedulerKind::Drr => {
                self.assemble(Drr::new(sharing.quantum().unwrap_or_default()), sharing, site)
            }
            SchedulerKind::Wf2q => self.assemble(Wf2q::default(), sharing, site),
            SchedulerKind::Qfq => self.assemble(Qfq::default(), sharing, site),
            SchedulerKind::Gfq => self.assemble(Gfq::default(), sharing, site),
            SchedulerKind::Kps => self.assemble(Kps::default(), sharing, site),
            _ => self.assemble(Fifo::default(), sharing, site),
        }
    }

    fn assemble<S: sched::Scheduler + 'static>(
        &self,
        algorithm: S,
        sharing: Sharing,
        site: &RulesSite,
    ) -> Result<Box<dyn queue::Queue>, (usize, Refused)> {
        let mut sets = FlowSets::new(algorithm, self.pipe.idle, site.seed, &self.name);
        // Packets that rules send to the pipe itself: one more queue of weight 1, after all priorities.
        let direct =
            PipeQueue { priority: PipeQueue::LAST + 1, mask: Some(ONE_ON_FIRST_USE), ..PipeQueue::of(0) };
        let all = std::iter::once(&(0, direct)).chain(&self.sets).enumerate().try_for_each(
            |(place, (number, queue))| {
                sets.add_set(self.flow_set(*number, queue, sharing)).map_err(|refused| (place, refused))
            },
        );
        all.map(|()| Box::new(sets) as Box<dyn queue::Queue>)
    }

    fn flow_set(&self, number: u32, queue: &PipeQueue, sharing: Sharing) -> FlowSet {
        let waits = queue.queue.unwrap_or(self.pipe.direction.queue);
        let flow = FlowConfig {
            weight: if sharing.has_weights() { queue.weight() } else { sched::Weight::ONE },
            longest: queue.longest.unwrap_or(PipeQueue::LONGEST).get() as u32, // at most 65,535
            band: queue.priority,
            quantum: None,
        };
        FlowSet {
            bound: waits.bound.unwrap_or(self.pipe.direction.bound()),
            drop_at: waits.drop,
            policy: waits.per_flow(),
            loss: queue.loss.as_ref().and_then(LossModel::build),
            most: queue.most,
            ..FlowSet::new(number, queue.mask.unwrap_or(FlowMask::NONE), flow)
        }
    }
}

impl RulesSite {
    pub(super) fn addresses_of(&self, host: &str) -> Vec<IpAddr> {
        self.addresses.get(host).cloned().unwrap_or_default()
    }
}

/// Template for the links of a pipe with a mask.
#[derive(Debug)]
pub(super) struct Template {
    plan: Plan,
    before: Option<Plan>,
    site: RulesSite,
}

impl LinkTemplate for Template {
    fn link(&self) -> LinkConfig {
        self.plan.plain_link(&self.site)
    }

    fn changes(&self) -> Vec<Change> {
        self.before.as_ref().map_or_else(Vec::new, |before| self.plan.changes_since(before, &self.site))
    }
}
