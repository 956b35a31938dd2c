//! A direction as it stands in a file.

use super::Direction;
use crate::value::{self, Delay, ExactNetem, PolicerUse, ProfileUse, Reorder, Scheduler, Slots, TraceUse};

impl Direction {
    /// The keys that differ from a link that does nothing, each with its value as it stands in a file.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let plain = Self::default();
        let mut entries = Vec::new();
        let mut differs = |differs: bool, key, text: &dyn Fn() -> String| {
            if differs {
                entries.push((key, text()));
            }
        };
        differs(self.rate != plain.rate, "rate", &|| format!("\"{}\"", self.rate));
        differs(self.delay.is_some(), "delay", &|| self.delay.as_ref().map(Delay::text).unwrap_or_default());
        differs(self.jitter.is_some(), "jitter", &|| format!("\"{}\"", self.jitter.unwrap_or_default()));
        differs(self.order != plain.order, "order", &|| "\"allow\"".into());
        differs(self.queue != plain.queue, "queue", &|| self.queue.text());
        differs(self.scheduler.is_some(), "scheduler", &|| {
            self.scheduler.as_ref().map(Scheduler::text).unwrap_or_default()
        });
        differs(self.overhead != plain.overhead, "overhead", &|| value::overhead_text(self.overhead));
        differs(self.profile.is_some(), "profile", &|| {
            self.profile.as_ref().map(ProfileUse::text).unwrap_or_default()
        });
        differs(self.burst != plain.burst, "burst", &|| format!("\"{}\"", self.burst));
        differs(self.loss != plain.loss, "loss", &|| self.loss.text());
        differs(self.duplicate != plain.duplicate, "duplicate", &|| self.duplicate.text());
        differs(self.corrupt != plain.corrupt, "corrupt", &|| self.corrupt.text());
        differs(self.reorder.is_some(), "reorder", &|| self.reorder.map(Reorder::text).unwrap_or_default());
        differs(self.slots.is_some(), "slots", &|| self.slots.as_ref().map(Slots::text).unwrap_or_default());
        differs(self.trace.is_some(), "trace", &|| {
            self.trace.as_ref().map(TraceUse::text).unwrap_or_default()
        });
        differs(self.exact_netem.is_some(), "exact-netem", &|| {
            self.exact_netem.as_ref().map(ExactNetem::text).unwrap_or_default()
        });
        differs(self.mtu.is_some(), "mtu", &|| self.mtu.map(value::mtu_text).unwrap_or_default());
        differs(self.line_limit.is_some(), "line-limit", &|| {
            format!("\"{} packets\"", self.line_limit.unwrap_or_default())
        });
        differs(self.policer.is_some(), "policer", &|| {
            self.policer.map(PolicerUse::text).unwrap_or_default()
        });
        differs(self.outage, "outage", &|| "true".into());
        entries
    }
}
