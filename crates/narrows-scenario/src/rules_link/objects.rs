//! Pipes, queues and schedulers as far as ipfw has words for them: for its `pipe show` and the like.

use std::collections::BTreeMap;

use narrows_core::aqm::{CodelConfig, PieConfig};
use narrows_core::classify::Prefix;
use narrows_core::queue::Bound;
use narrows_core::rules::Table;
use narrows_core::sched::Weight;

use super::{Pipe, PipeQueue, RulesLink};
use crate::ipfw::{self, Config, Hashed, Management, Network, Object, SchedulerType};
use crate::units::{Number, Share};
use crate::value::{Division, GilbertElliott, LossModel, Losses, Policy, Queue, Scheduler, SchedulerKind};

impl RulesLink {
    /// What ipfw would list: a pipe for each, and a scheduler where queues share it.
    pub fn objects(&self) -> BTreeMap<(Object, u32), Config> {
        let mut objects = BTreeMap::new();
        for (&number, pipe) in &self.pipes {
            let config = link(number, pipe);
            if let Some(kind) = scheduler(pipe, self.queues_of(number).next().is_some()) {
                let shared = Config {
                    scheduler: Some(kind),
                    mask: pipe.mask,
                    ..Config::new(Object::Scheduler, number)
                };
                objects.insert((Object::Scheduler, number), shared);
            }
            objects.insert((Object::Pipe, number), config);
        }
        for (&number, queue) in &self.queues {
            let of = self.pipes.get(&queue.pipe).map(|pipe| pipe.direction.queue);
            objects.insert((Object::Queue, number), flow_set(number, queue, of.unwrap_or_default()));
        }
        objects
    }

    /// The tables, as `table list` prints them.
    pub fn networks(&self) -> BTreeMap<String, BTreeMap<Network, u32>> {
        let entries = |table: &Table| {
            let entry = |(prefix, value): (Prefix, u32)| {
                (Network { address: u128::from_be_bytes(prefix.address()), bits: prefix.bits() }, value)
            };
            table.iter().map(entry).collect()
        };
        self.tables.iter().map(|(name, table)| (name.clone(), entries(table))).collect()
    }

    /// The engine's link of a pipe of the rules `name`.
    pub fn link_of_pipe(&self, name: &str, number: u32) -> Option<String> {
        Some(self.pipes.get(&number)?.core_name(name, number))
    }
}

fn link(number: u32, pipe: &Pipe) -> Config {
    let direction = &pipe.direction;
    Config {
        rate: Some(direction.rate),
        delay: direction.mean_delay(),
        burst: Some(direction.burst),
        profile: direction.profile.as_ref().map(|profile| (*profile.file.name).into()),
        bound: Some(direction.bound()),
        loss: direction.loss.ingress.as_ref().and_then(loss),
        management: Some(management(&direction.queue)),
        mask: pipe.mask,
        ..Config::new(Object::Pipe, number)
    }
}

fn flow_set(number: u32, queue: &PipeQueue, of: Queue) -> Config {
    let waits = queue.queue.unwrap_or(of);
    Config {
        parent: Some(queue.pipe),
        weight: queue.weight.map(Weight::get),
        priority: Some(queue.priority),
        longest: queue.longest.map(|longest| u32::try_from(longest.get()).unwrap_or(u32::MAX)),
        bound: waits.bound,
        loss: queue.loss.as_ref().and_then(loss),
        management: Some(management(&waits)),
        mask: queue.mask,
        ..Config::new(Object::Queue, number)
    }
}

fn scheduler(pipe: &Pipe, has_queues: bool) -> Option<SchedulerType> {
    if let Some(own) = &pipe.direction.scheduler {
        return match own.policy {
            Policy::Codel(policy) => Some(SchedulerType::FqCodel(hashed(own), codel(policy))),
            Policy::Pie(policy) => Some(SchedulerType::FqPie(hashed(own), pie(policy))),
            _ => None,
        };
    }
    if pipe.sharing.is_none() && !has_queues {
        return None;
    }
    Some(match pipe.sharing.unwrap_or_default().kind {
        SchedulerKind::Fifo => SchedulerType::Fifo,
        SchedulerKind::Prio => SchedulerType::Priority,
        SchedulerKind::Drr => SchedulerType::RoundRobin,
        SchedulerKind::Qfq => SchedulerType::Qfq,
        _ => SchedulerType::Wf2q,
    })
}

fn hashed(own: &Scheduler) -> Hashed {
    let limit = match own.bound {
        Some(Bound::Packets(packets)) => u32::try_from(packets).ok(),
        _ => None,
    };
    let flows = match own.serves {
        Division::Flows { count, .. } => Some(count),
        _ => None,
    };
    Hashed { quantum: own.quantum.and_then(|quantum| u32::try_from(quantum.get()).ok()), limit, flows }
}

fn loss(model: &LossModel) -> Option<ipfw::Loss> {
    match &model.losses {
        Losses::Chance(chance) => Some(ipfw::Loss::Independent(chance.rate)),
        &Losses::GilbertElliott(GilbertElliott { p, r, loss_bad, loss_good }) => {
            Some(ipfw::Loss::GilbertElliott { loss_good, p, loss_bad, r })
        }
        _ => None,
    }
}

fn management(queue: &Queue) -> Management {
    match queue.policy {
        Policy::Codel(own) => Management::Codel(codel(own)),
        Policy::Pie(own) => Management::Pie(pie(own)),
        _ => Management::DropTail,
    }
}

fn codel(own: CodelConfig) -> ipfw::Codel {
    ipfw::Codel { target: Some(own.target), interval: Some(own.interval), ecn: Some(own.ecn) }
}

fn pie(own: PieConfig) -> ipfw::Pie {
    ipfw::Pie {
        target: Some(own.target),
        update: Some(own.update),
        alpha: Some(Number::nearest(own.alpha)),
        beta: Some(Number::nearest(own.beta)),
        burst: Some(own.burst),
        mark_below: Some(Share::shortest(own.mark_below)),
        ecn: Some(own.ecn),
        derandomize: Some(own.derandomize),
        cap_drop: Some(own.cap_drop),
    }
}
