//! Builds the engine's link from a direction, and the changes that turn a running direction into another.

use std::net::IpAddr;

use narrows_core::model::{DelayModel, LostWithDelay, Selector};
use narrows_core::queue::{self, Bound};
use narrows_core::sched::ClassSettings;
use narrows_core::service::{ConstantRate, ServiceCurve};
use narrows_core::steps::Steps;
use narrows_core::{AirTime, Change, Ingress, LinkConfig, Loss, NetemAround, Policer, Seed, Target};

use super::Direction;
use crate::units::Share;
use crate::value::{Class, ExactNetem, LossModel, Plan, Queue, Reorder, Scheduler, Slots, TraceUse};

/// The engine's context of a direction, on which its queue depends.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) seed: Seed,
    /// The engine's name for the link.
    pub(crate) link: &'a str,
    /// Looks up the addresses of a host.
    pub(crate) addresses: &'a dyn Fn(&str) -> Vec<IpAddr>,
}

impl Direction {
    /// Builds the engine's queue.
    pub(crate) fn build_queue(&self, site: Site<'_>) -> Box<dyn queue::Queue> {
        let queue = self.build_inner_queue(site);
        match self.netem_around() {
            Some(netem) => Box::new(NetemAround::new(*netem.build(), site.seed, site.link, queue)),
            None => queue,
        }
    }

    fn build_inner_queue(&self, site: Site<'_>) -> Box<dyn queue::Queue> {
        let default = self.default_bound.bound();
        let Some(scheduler) = &self.scheduler else { return self.queue.build(default) };
        let Site { seed, link, addresses } = site;
        scheduler
            .build(Plan { seed, link, queue: self.queue, default, addresses })
            .unwrap_or_else(|refusal| panic!("{link}: the classes were tried when they were read: {refusal}"))
    }

    /// Builds the engine's link.
    pub(crate) fn build(&self, lanes: Vec<Target>, site: Site<'_>) -> LinkConfig {
        let target = lanes.first().cloned().unwrap_or(Target::Port(String::new()));
        LinkConfig {
            lanes,
            queue: self.build_queue(site),
            service: self.build_service(),
            overhead: self.effective_overhead(),
            air_time: self.build_air_time(),
            burst: self.burst,
            ingress_loss: self.build_ingress_loss(),
            wire_loss: self.build_wire_loss(),
            corruption: self.corrupt.build(),
            duplication: self.build_duplication(),
            delay: self.build_delay(site),
            reorder: self.reorder.and_then(Reorder::build),
            settings: self.settings,
            slots: self.slots.as_ref().map(Slots::build),
            bound_steps: self.build_bound_steps(),
            netem: self.single_netem().map(ExactNetem::build),
            ingress: self.build_ingress(site),
            policer: self.build_policer(site),
            ..LinkConfig::new(site.link, target)
        }
    }

    fn build_ingress(&self, site: Site<'_>) -> Option<Ingress> {
        let filters = self.ingress.as_ref()?;
        Some(Ingress::new(filters.iter().map(|filter| filter.build(site.addresses)).collect()))
    }

    fn build_policer(&self, site: Site<'_>) -> Option<Policer> {
        self.policer.as_ref().map(|policer| policer.build(site.addresses))
    }

    fn build_service(&self) -> Box<dyn ServiceCurve> {
        let trace = self.trace.as_ref().filter(|_| !self.outage);
        let follows = trace.and_then(|trace| trace.service(self.own_rate()));
        follows.unwrap_or_else(|| Box::new(ConstantRate(self.effective_rate())))
    }

    fn build_air_time(&self) -> Option<AirTime> {
        self.profile.as_ref().map(|used| used.profile.air_time().clone())
    }

    fn build_ingress_loss(&self) -> Option<Loss> {
        self.loss.ingress.as_ref().and_then(LossModel::build)
    }

    fn build_wire_loss(&self) -> Option<Loss> {
        let own = self.loss.wire.as_ref();
        // When a trace ends, it gives way to independent loss or no loss.
        let share = own.and_then(LossModel::independent).map_or(Share::ZERO, |chance| chance.rate);
        match self.trace.as_ref().and_then(|trace| trace.loss(share.probability())) {
            Some(steps) => Some(Loss { selector: Box::new(steps), mark: own.is_some_and(|own| own.ecn) }),
            None => own.and_then(LossModel::build),
        }
    }

    fn build_duplication(&self) -> Option<Box<dyn Selector>> {
        let trace =
            self.trace.as_ref().and_then(|trace| trace.duplication(self.duplicate.rate.probability()));
        trace.or_else(|| self.duplicate.build())
    }

    fn build_delay(&self, site: Site<'_>) -> Box<dyn DelayModel> {
        let own = self.effective_delay();
        let follows = self.trace.as_ref().and_then(|trace| trace.delay(own.mean().unwrap_or_default()));
        let model: Box<dyn DelayModel> = match follows {
            Some(steps) => Box::new(steps),
            None => own.build(site.addresses),
        };
        if self.loss.with_delay.is_empty() {
            return model;
        }
        let curve = self.loss.with_delay.iter().map(|(delay, share)| (*delay, share.probability()));
        Box::new(LostWithDelay::new(model, curve.collect()).expect("the delays of a curve rise"))
    }

    fn build_bound_steps(&self) -> Option<Steps<Bound>> {
        self.trace.as_ref().and_then(|trace| trace.bound(self.bound()))
    }

    /// The changes that turn a running link with the settings `before` into this one.
    pub(crate) fn changes_since(&self, before: &Self, site: Site<'_>) -> Vec<Change> {
        if self.single_netem() == before.single_netem() {
            return self.part_changes(before, site);
        }
        let mut changes = vec![Change::Netem(self.single_netem().map(ExactNetem::build))];
        if self.single_netem().is_some() && before.single_netem().is_some() {
            changes.extend(self.part_changes(before, site));
            return changes;
        }
        // A link that starts or stops being NetEm's single queue starts from a plain link.
        if self.single_netem().is_none() {
            changes.push(Change::Queue(self.build_queue(site)));
        }
        let plain = Self { default_bound: self.default_bound, ..Self::default() };
        changes.extend(self.part_changes(&plain, site));
        changes
    }

    /// The changes of everything except NetEm's single queue.
    fn part_changes<'a>(&'a self, before: &'a Self, site: Site<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut differs = |differs: bool, change: &dyn Fn() -> Change| {
            if differs {
                changes.push(change());
            }
        };
        let traces = |is_there: fn(&TraceUse) -> bool| {
            let of = |direction: &'a Self| direction.trace.as_ref().filter(|trace| is_there(trace));
            (of(self), of(before))
        };
        let (now, then) = traces(TraceUse::has_rate);
        differs(self.effective_rate() != before.effective_rate() || now != then, &|| {
            Change::Service(self.build_service())
        });
        let around = self.netem_around() != before.netem_around()
            || self.netem_around().is_some()
                && (&self.queue, &self.scheduler) != (&before.queue, &before.scheduler);
        let other_kind = around || !self.waits_like(before);
        differs(other_kind, &|| Change::Queue(self.build_queue(site)));
        differs(!other_kind && self.whole_bound() != before.whole_bound(), &|| {
            Change::QueueBound(self.whole_bound().unwrap_or(Scheduler::NO_BOUND))
        });
        if !other_kind {
            let classes = self.classes().into_iter().zip(before.classes()).enumerate();
            for (class, weight) in classes
                .filter(|(_, (now, then))| now.weight != then.weight)
                .filter_map(|(class, (now, _))| now.weight.map(|weight| (class, weight)))
            {
                differs(true, &|| Change::Weight { class, weight });
            }
        }
        if !other_kind && let (Some(now), Some(then)) = (&self.scheduler, &before.scheduler) {
            let classes = || now.classes().into_iter().zip(then.classes()).enumerate();
            // With weights, a change of the weight says it.
            let usual = now.quantum().filter(|_| !now.kind.about().weights);
            for (class, (now, _)) in classes().filter(|(_, (now, then))| now.quantum != then.quantum) {
                let settings = now.quantum.or(usual).map(ClassSettings::Quantum);
                settings
                    .into_iter()
                    .for_each(|settings| differs(true, &|| Change::Class { class, settings }));
            }
            for (class, (now, _)) in classes().filter(|(_, (now, then))| now.hpd != then.hpd) {
                let settings = ClassSettings::Delay(now.hpd);
                differs(true, &|| Change::Class { class, settings });
            }
            for (class, (now, _)) in
                classes().filter(|(_, (now, then))| now.station.rate != then.station.rate)
            {
                let settings = ClassSettings::StationRate(now.station.rate);
                differs(true, &|| Change::Class { class, settings });
            }
            differs(!now.sorts_like(then), &|| Change::Classifier(now.classifier(site.addresses)));
        }
        let overhead = self.effective_overhead();
        differs(overhead != before.effective_overhead(), &|| Change::Overhead(overhead));
        differs(self.profile != before.profile, &|| Change::AirTime(self.build_air_time()));
        differs(self.burst != before.burst, &|| Change::Burst(self.burst));
        differs(self.loss.ingress != before.loss.ingress, &|| Change::IngressLoss(self.build_ingress_loss()));
        let (now, then) = traces(|trace| trace.trace.loss().is_some());
        differs(self.loss.wire != before.loss.wire || now != then, &|| {
            Change::WireLoss(self.build_wire_loss())
        });
        differs(self.corrupt != before.corrupt, &|| Change::Corruption(self.corrupt.build()));
        let (now, then) = traces(|trace| trace.trace.duplicate().is_some());
        differs(self.duplicate != before.duplicate || now != then, &|| {
            Change::Duplication(self.build_duplication())
        });
        let (now, then) = traces(|trace| trace.trace.delay().is_some());
        let curve = self.loss.with_delay != before.loss.with_delay;
        differs(self.effective_delay() != before.effective_delay() || curve || now != then, &|| {
            Change::Delay(self.build_delay(site))
        });
        let (now, then) = traces(|trace| trace.trace.bound().is_some());
        let bound = now.is_some() && self.bound() != before.bound();
        differs(now != then || bound, &|| Change::BoundSteps(self.build_bound_steps()));
        differs(self.reorder != before.reorder, &|| Change::Reorder(self.reorder.and_then(Reorder::build)));
        differs(self.slots != before.slots, &|| Change::Slots(self.slots.as_ref().map(Slots::build)));
        differs(self.settings != before.settings, &|| Change::Settings(self.settings));
        differs(self.ingress != before.ingress, &|| Change::Ingress(self.build_ingress(site)));
        differs(self.policer != before.policer, &|| Change::Policer(self.build_policer(site)));
        changes
    }

    /// Whether the queue of `before` can become this one by changing only its total bound and its weights.
    fn waits_like(&self, before: &Self) -> bool {
        match (&self.scheduler, &before.scheduler) {
            (None, None) => self.queue.drop == before.queue.drop && self.queue.policy == before.queue.policy,
            (Some(now), Some(then)) => {
                let queues = |of: &Self, scheduler: &Scheduler| -> Vec<(Queue, Bound)> {
                    let one = |class: &Class| {
                        let queue = class.queue.unwrap_or(of.queue);
                        let bound = scheduler.class_bound(class, of.queue, of.default_bound.bound());
                        (Queue { bound: None, ..queue }, bound)
                    };
                    scheduler.classes().iter().map(one).collect()
                };
                now.is_tuned_like(then)
                    && queues(self, now) == queues(before, then)
                    && (!now.has_flows() || self.queue.policy == before.queue.policy)
            }
            _ => false,
        }
    }
}
