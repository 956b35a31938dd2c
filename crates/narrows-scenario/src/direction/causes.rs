//! The settings behind a drop: the keys of a direction that can make it drop a packet for a given reason.

use narrows_core::DropReason;

use super::Direction;
use crate::keys;
use crate::node::Node;

impl Direction {
    /// The keys that can drop packets for this reason, each with its value as written after `=`: `("loss", "2%")`.
    /// Of several keys it is not known which one selected a packet. A queue bound is in the list even if it is the
    /// default. Empty if no key of the direction causes such drops.
    pub fn causes(&self, reason: DropReason) -> Vec<(&'static str, String)> {
        let candidates = candidates(reason);
        let set = keys::differing(self).into_iter().filter(|(name, _)| candidates.contains(name));
        let set = set.filter(|(name, _)| *name != "trace" || self.trace_drops(reason));
        let mut all: Vec<_> = set.map(|(name, value)| (name, Node::new(value).typed_text())).collect();
        let is_bound_shown = self.queue.bound.is_some() || self.exact_netem.is_some();
        if reason == DropReason::QueueFull && !is_bound_shown {
            let bound = format!("{} (default)", self.whole_bound().unwrap_or(self.bound()));
            all.retain(|(name, _)| *name != "queue");
            all.insert(0, ("queue", bound));
        }
        all
    }

    /// Whether its trace can drop packets for a reason.
    fn trace_drops(&self, reason: DropReason) -> bool {
        let Some(of) = &self.trace else { return false };
        match reason {
            DropReason::WireLoss => of.trace.loss().is_some(),
            DropReason::QueueFull => of.trace.bound().is_some(),
            _ => true,
        }
    }
}

/// The names of all keys that can cause a drop for this reason.
fn candidates(reason: DropReason) -> &'static [&'static str] {
    match reason {
        DropReason::IngressLoss => &["loss", "exact-netem"],
        DropReason::WireLoss => &["loss", "trace", "profile"],
        DropReason::QueueFull => &["queue", "scheduler", "trace", "exact-netem"],
        DropReason::QueueManagement => &["queue", "scheduler"],
        DropReason::DelayModel => &["delay", "loss", "trace"],
        DropReason::LineFull => &["line-limit"],
        DropReason::TooLong => &["mtu"],
        DropReason::BlackHole => &["mtu", "scheduler"],
        DropReason::Policed => &["policer", "ingress"],
        DropReason::NoClass
        | DropReason::RetryLimit
        | DropReason::Collisions
        | DropReason::TooLate
        | DropReason::RedundantAck => &["scheduler"],
        DropReason::Loop
        | DropReason::Memory
        | DropReason::Denied
        | DropReason::NoPipe
        | DropReason::NoRoute
        | DropReason::HopLimit
        | DropReason::Filtered => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn causes(keys: &str, reason: DropReason) -> Vec<String> {
        let text =
            format!("[hosts.a]\n[hosts.b]\n[links.wire]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\n{keys}");
        let scenario = Scenario::parse(&text, "causes.toml").unwrap();
        let links = scenario.links[0].directions();
        links[0].1.causes(reason).into_iter().map(|(key, value)| format!("{key} = {value}")).collect()
    }

    #[test]
    fn a_drop_is_traced_to_the_keys_that_can_cause_it() {
        let cases = [
            ("loss = \"2%\"", DropReason::WireLoss, vec!["loss = 2%"]),
            ("loss = { ingress = \"1%\" }", DropReason::IngressLoss, vec!["loss = { ingress = \"1%\" }"]),
            ("queue = \"50 packets\"", DropReason::QueueFull, vec!["queue = 50 packets"]),
            ("queue = \"64kB\"", DropReason::QueueFull, vec!["queue = 64000 bytes"]),
            ("", DropReason::QueueFull, vec!["queue = 9 packets (default)"]),
            ("mtu = 1400", DropReason::TooLong, vec!["mtu = 1400"]),
            ("loss = \"2%\"", DropReason::QueueFull, vec!["queue = 9 packets (default)"]),
            ("loss = \"2%\"", DropReason::HopLimit, vec![]),
        ];
        for (keys, reason, expected) in cases {
            assert_eq!(causes(keys, reason), expected, "{keys}, {}", reason.name());
        }
    }

    /// A key that is renamed must be renamed here.
    #[test]
    fn every_candidate_is_a_key() {
        for reason in DropReason::ALL {
            for name in candidates(reason) {
                assert!(keys::named::<Direction>(name).is_some(), "{name}");
            }
        }
    }
}
