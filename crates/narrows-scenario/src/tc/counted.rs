//! What a packet counts at the rates of a tree: the `overhead` of the link.

use super::stab::Stab;
use super::translate::{Draft, Keys};
use super::tree::{Qdisc, Tree};
use super::{bucket, qdisc};
use crate::keys::kind::text;
use crate::node::Value;
use crate::problem::Problem;

impl Tree {
    /// Makes the link count packets by the root's size table.
    pub(super) fn count_by(
        &self,
        stab: &Stab,
        root: &Qdisc,
        exact: bool,
        draft: &mut Draft,
    ) -> Result<(), Problem> {
        let mut has_rate = false;
        for qdisc in &self.qdiscs {
            has_rate |= match &qdisc.kind {
                qdisc::Kind::Managed(managed) if managed.of.name == "cake" => {
                    return Err(Problem::new("both `stab` and `cake`")
                        .also(&qdisc.span, "cake")
                        .help("cake counts packets by words of its own, as in: cake bandwidth 10mbit overhead 20 atm"));
                }
                qdisc::Kind::Netem(netem) if netem.has_a_rate() => {
                    let first = matches!(
                        root.kind,
                        qdisc::Kind::Tbf(_)
                            | qdisc::Kind::Mq
                            | qdisc::Kind::Mqprio { .. }
                            | qdisc::Kind::Multiq
                    );
                    let is_link = match qdisc.parent {
                        None => !exact,
                        Some(parent) => !exact && first && parent.qdisc() == root.handle,
                    };
                    if !is_link {
                        return Err(Problem::new("both `stab` and a rate of NetEm's single queue")
                            .also(&qdisc.span, "netem")
                            .help("NetEm's rate has numbers for that: rate 1mbit PACKETOVERHEAD CELLSIZE CELLOVERHEAD"));
                    }
                    true
                }
                qdisc::Kind::Managed(managed) => managed.has_a_rate(),
                kind => matches!(
                    kind,
                    qdisc::Kind::Tbf(_)
                        | qdisc::Kind::Cbs(_)
                        | qdisc::Kind::Htb(_)
                        | qdisc::Kind::Cbq(_)
                        | qdisc::Kind::Hfsc(_)
                ),
            };
        }
        if self.counts_by_class(root) {
            return Err(Problem::new("both `stab` and an overhead of some classes")
                .help("say all of it in `stab`, and leave out `overhead` and `linklayer` of the classes"));
        }
        if !has_rate {
            draft.notes.push("`stab` has no effect: there is no rate in the disciplines, and limits and quanta count IP packets.".into());
            return Ok(());
        }
        match draft.keys.iter_mut().find(|(key, _)| *key == "overhead") {
            Some((_, value)) if *value == text("frame") => *value = stab.value(),
            Some(_) => {
                return Err(Problem::new("both `stab` and an overhead of the discipline")
                    .help("say all of it in `stab`, and leave out `overhead` and `linklayer` of tbf, or those of netem's rate"));
            }
            None => draft.keys.push(("overhead", stab.value())),
        }
        Ok(())
    }

    /// Whether the classes of `htb` count packets differently, each as it says.
    pub(super) fn counts_by_class(&self, qdisc: &Qdisc) -> bool {
        let classes = self.in_order(qdisc);
        let counted = |class: &&super::tree::Class| bucket::overhead(&class.kind.keys, "frame");
        matches!(qdisc.kind, qdisc::Kind::Htb(_))
            && classes.iter().skip(1).any(|class| counted(class) != counted(&classes[0]))
    }

    /// What a packet counts in the classes of a qdisc: the same in all of them, or those of the link.
    pub(super) fn overhead(&self, qdisc: &Qdisc) -> Result<Value, Problem> {
        let mut classes = self.in_order(qdisc).into_iter();
        let Some(first) = classes.next().filter(|_| !self.counts_by_class(qdisc)) else {
            return Ok(text("frame"));
        };
        let counted = bucket::overhead(&first.kind.keys, "frame");
        match classes.find(|class| bucket::overhead(&class.kind.keys, "frame") != counted) {
            None => Ok(counted),
            Some(other) => Err(Problem::new("`overhead` or `linklayer` differ between classes")
                .put_at(&other.span)
                .also(&first.span, "another class")
                .help("here they apply to the whole link: give all classes the same, or the root a `stab`")),
        }
    }
}

/// Names of devices whose packets have no link header when a discipline counts them: PPP adds its own behind it, tunnels theirs.
const WITHOUT_LINK_HEADER: &[&str] = &[
    "ppp",
    "pppoe-",
    "wg",
    "tun",
    "sit",
    "gre",
    "ipip",
    "ip6tnl",
    "vti",
    "wwan",
    "rmnet",
    "tailscale",
    "utun",
];

/// The queue length of a device that Linux makes with another one than 1000 (`ppp_setup` of `ppp_generic.c`, `tun_net_initialize`
/// of `tun.c`).
pub(super) fn queue_length(device: &str) -> Option<u32> {
    let name = device.rsplit('/').next().unwrap_or(device);
    match name {
        _ if name.starts_with("ppp") => Some(3),
        _ if name.starts_with("tun") || name.starts_with("tap") => Some(500),
        _ => None,
    }
}

/// Makes lengths those of IP packets, for a device that has no link header.
pub(super) fn without_link_header(device: &str, keys: &mut Keys) {
    let name = device.rsplit('/').next().unwrap_or(device);
    let is_one = WITHOUT_LINK_HEADER.iter().any(|start| name.starts_with(start));
    let counts = |text: &str| text == "\"frame\"" || text.contains("= \"frame\"");
    if !(is_one && keys.keys.iter().any(|(_, value)| counts(value))) || name.starts_with("gretap") {
        return;
    }
    keys.keys.retain(|(key, value)| (*key, value.as_str()) != ("overhead", "\"frame\""));
    for (_, value) in &mut keys.keys {
        *value = value.replace("= \"frame\"", "= \"ip\"");
    }
    keys.notes.push(format!("Packets of {name} have no link header there: rates count IP packets."));
}
