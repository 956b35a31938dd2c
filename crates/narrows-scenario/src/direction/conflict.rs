//! Conflicting settings of a direction.

use narrows_core::{Duration, Rate};

use super::Direction;
use crate::problem::Problem;
use crate::trace::Then;
use crate::value::{self, Delay, DelaySource, LossModel, Policy, SchedulerKind, TraceUse};

/// The key to report for a conflict, and the problem.
type Conflict = (&'static str, Problem);

impl Direction {
    /// Returns the first conflict among the settings.
    pub(crate) fn conflict(&self) -> Option<Conflict> {
        self.jitter_twice()
            .or_else(|| self.beside_exact_netem())
            .or_else(|| self.beside_trace())
            .or_else(|| self.scheduler_conflict())
            .or_else(|| self.feed_twice())
    }

    /// Values of a feed go to one place.
    fn feed_twice(&self) -> Option<Conflict> {
        let mut names: Vec<&str> = self.feeds().iter().map(|feed| feed.name.as_str()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1])?[0];
        let problem = Problem::new(format!("the feed `{twice}` is used twice"));
        Some(("scheduler", problem.help("give each feed of a link a unique name")))
    }

    /// A jitter applies to a constant delay only. It conflicts with a delay that already varies.
    fn jitter_twice(&self) -> Option<Conflict> {
        let (delay, sd) = (self.delay.as_ref()?, self.jitter?);
        if let DelaySource::Constant(mean) = delay.source {
            let longest = Delay::LONGEST_DRAWN;
            let problem = || Problem::new(format!("a jitter of {sd} on a delay of {mean}"));
            return (mean > longest || sd > longest).then(|| {
                ("jitter", problem().help(format!("a varying delay is at most {longest}, or 104 days")))
            });
        }
        let problem = Problem::new(format!("a jitter of {sd} on a delay that already varies ({delay})"));
        Some(("jitter", problem.help("`jitter` turns a constant delay into a normal distribution; remove one of the two, or set `jitter = \"0ms\"`")))
    }

    /// NetEm's single queue replaces everything else on a link.
    fn beside_exact_netem(&self) -> Option<Conflict> {
        self.exact_netem.as_ref()?;
        let beside: &[&str] = if self.netem_around().is_some() {
            &["mtu", "outage", "queue", "scheduler", "overhead"]
        } else {
            &["mtu", "outage"]
        };
        let plain = Self::default();
        let alone = Self { exact_netem: None, default_bound: plain.default_bound, ..self.clone() };
        let (key, _) = alone.entries().into_iter().find(|(key, _)| !beside.contains(key))?;
        let problem =
            Problem::new(format!("`{key}` with `exact-netem`, which replaces all other keys of the link"));
        Some((key, problem.help("use the NetEm option, or `netem` instead, which combines with other keys")))
    }

    /// A value that a trace supplies may be given elsewhere only as the value after the trace ends.
    fn beside_trace(&self) -> Option<Conflict> {
        let used = self.trace.as_ref()?;
        let (trace, name) = (&used.trace, &used.file.name);
        let gives = |key: &'static str, what: &str| {
            let problem = Problem::new(format!("both the trace {name} and `{key}` set the {what}"));
            let help = format!("remove `{key}`, or set `then = \"end\"` to use it after the trace");
            Some((key, problem.help(help)))
        };
        if used.then != Then::End {
            // A zero delay counts as none: a running link can get a delay trace once its own delay is 0.
            let says_delay =
                self.delay.as_ref().is_some_and(|delay| *delay != Delay::constant(Duration::ZERO));
            let delay = if says_delay { "delay" } else { "jitter" };
            return match () {
                () if used.has_rate() && self.rate != Rate::UNLIMITED => gives("rate", "rate"),
                () if trace.delay().is_some() && (says_delay || self.jitter.is_some()) => {
                    gives(delay, "delay")
                }
                () if trace.loss().is_some() && self.loss.wire.is_some() => gives("loss", "loss on the wire"),
                () if trace.duplicate().is_some() && !self.duplicate.is_never() => {
                    gives("duplicate", "duplicates")
                }
                () if trace.bound().is_some() && self.queue.bound.is_some() => {
                    gives("queue", "bound of the queue")
                }
                () if used.then == Then::Hold && trace.opportunities().is_some() => Some((
                    "trace",
                    Problem::new(format!(
                        "the trace {name} consists of opportunities; it has no last value to hold"
                    ))
                    .help("set `then = \"loop\"` or `then = \"end\"`"),
                )),
                () => None,
            };
        }
        // The value after the trace must be constant, not a model.
        let simple = |key: &'static str, what: &str| {
            let problem = Problem::new(format!("`{key}` cannot apply after the trace {name}: {what}"));
            Some((key, problem.help("use a plain value, or none")))
        };
        if trace.delay().is_some() && !matches!(self.effective_delay().source, DelaySource::Constant(_)) {
            return simple(if self.jitter.is_some() { "jitter" } else { "delay" }, "it varies");
        }
        let wire = self.loss.wire.as_ref();
        if trace.loss().is_some() && wire.is_some_and(|model| LossModel::independent(model).is_none()) {
            return simple("loss", "its losses are correlated");
        }
        if trace.duplicate().is_some() && !self.duplicate.correlation.is_zero() {
            return simple("duplicate", "its draws are correlated");
        }
        None
    }

    fn scheduler_conflict(&self) -> Option<Conflict> {
        let scheduler = self.scheduler.as_ref()?;
        let name = scheduler.kind.name();
        let has_own_queues = scheduler.policy != Policy::Fifo
            || matches!(scheduler.kind, SchedulerKind::Fq | SchedulerKind::Hhf);
        if has_own_queues && self.queue.policy != Policy::Fifo {
            return Some((
                "queue",
                Problem::new(format!(
                    "`{name}` manages its own queues, but the link's queue is `{}`",
                    self.queue.policy.name()
                ))
                .help(format!("remove the queue's type, or use a scheduler other than `{name}`")),
            ));
        }
        if let Some(profile) = self.profile.as_ref().filter(|_| scheduler.kind.is_medium_access()) {
            let file = &profile.file.name;
            let problem =
                Problem::new(format!("the profile {file} with `{name}`, which computes the air time itself"));
            return Some(("profile", problem.help("remove one of the two")));
        }
        if scheduler.kind == SchedulerKind::Dcf && !value::DCF_RATES.contains(&self.rate) {
            return Some(("scheduler", Problem::new(format!("`dcf` does not support the link's rate, {}", self.rate)).help(
                "802.11b has the rates 1, 2, 5.5 and 11 Mbit/s: rate = \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\"",
            )));
        }
        if let Some((station, rate)) = scheduler.faster_station(self.rate) {
            let problem = Problem::new(format!(
                "the station `{station}` of `{name}` is faster than the link: {rate}, and the link's rate is {}",
                self.rate
            ));
            return Some(("scheduler", problem.help("the link's rate is that of its fastest station")));
        }
        if scheduler.kind == SchedulerKind::CsmaCd
            && self.rate == Rate::UNLIMITED
            && !self.trace.as_ref().is_some_and(TraceUse::has_rate)
        {
            let problem = Problem::new("`csma-cd` on a link without a rate".to_owned());
            return Some((
                "scheduler",
                problem.help("half-duplex Ethernet needs one: rate = \"10mbit\" or \"100mbit\""),
            ));
        }
        None
    }
}
