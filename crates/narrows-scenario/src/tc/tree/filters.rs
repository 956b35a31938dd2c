//! The filters of a tree: adding and deleting them, and where they send packets.

use narrows_core::classify::Families;

use super::{Tree, no_band};
use crate::netem::Verb;
use crate::problem::Problem;
use crate::tc::action::PRIORITY_COMES_LATE;
use crate::tc::command::{Command, Parent};
use crate::tc::filter::{Filter, Head, Which};
use crate::tc::filters::{Filters, Placed};
use crate::tc::verdict::{To, Verdict};
use crate::tc::{Handle, protocol, qdisc};
use crate::value::Match;

impl Tree {
    pub(super) fn apply_filter(
        &mut self,
        command: &Command,
        head: &Head,
        filter: Option<&Filter>,
    ) -> Result<(), Problem> {
        let leaves = command.parent == Some(Parent::Egress);
        // At a hook rather than at a discipline.
        let arrives = leaves || command.parent == Some(Parent::Ingress);
        let parent = match command.parent {
            Some(Parent::Of(parent)) => parent,
            Some(Parent::Ingress | Parent::Egress) => Handle { major: 0xffff, minor: 0 },
            _ => self
                .root()
                .map(|qdisc| qdisc.handle)
                .ok_or_else(|| self.no_qdisc(Handle { major: 1, minor: 0 }))?,
        };
        if arrives && self.ingress.is_none() && command.verb != Verb::Delete {
            return Err(
                Problem::new("there is no ingress discipline").help("begin with: tc qdisc add dev X ingress")
            );
        }
        match self.qdisc(parent) {
            None if !arrives => return Err(self.no_qdisc(parent)),
            Some(qdisc) if qdisc.kind.is_by_queue() => {
                return Err(Problem::new(format!(
                    "a filter of `{}`: it would choose a transmit queue",
                    qdisc.kind.name()
                ))
                .help(format!("filter in the discipline of {}", Handle { minor: 1, ..parent })));
            }
            _ => {}
        }
        if !arrives && parent.minor > 0 && !self.classes.has(parent) {
            return Err(self.no_class(parent));
        }
        if command.verb == Verb::Delete {
            return self.filters_of(arrives, leaves).delete(parent, head, !arrives);
        }
        let Some(filter) = filter else { return Ok(()) };
        let is_flow = matches!(filter.which, Which::Flow(_));
        if is_flow && !arrives {
            self.check_flow(parent, filter)?;
        }
        if let Some(qdisc) = self.qdisc(parent).filter(|_| !arrives)
            && let qdisc::Kind::Managed(managed) = &qdisc.kind
            && !managed.is_cake()
            && !(managed.hashes_flows() && is_flow)
        {
            return Err(Problem::new(format!("a filter of `{}`", managed.of.name))
                .also(&qdisc.span, "put there")
                .help("it has no classes: put it into a class of `prio` or `htb`, and the filter there"));
        }
        if self.is_run
            && !arrives
            && let Some(device) = &filter.redirect
        {
            return Err(Problem::new(format!("outgoing packets are redirected to {device}"))
                .help("put the disciplines at the device itself"));
        }
        let mut filter = filter.clone();
        match &filter.came_by {
            // Packets that arrive there have come by that device, and by no other.
            Some(device) if arrives && !leaves && command.device.as_ref() == Some(device) => {}
            Some(device) if arrives && !leaves => {
                return Err(Problem::new(format!(
                    "no packet matches: what arrives there has not come by {device}"
                ))
                .help("leave the filter out"));
            }
            Some(_) => {
                return Err(Problem::new("`indev` of packets that leave")
                    .help("where a packet came in is not known there: match the addresses"));
            }
            None => {}
        }
        if is_flow && arrives {
            // A hook has no classes.
            let families = protocol::written(filter.families);
            filter.which = Which::of(Match { families, ..Match::default() });
        }
        let is_of_cake = !arrives && self.is_cake(parent);
        if is_of_cake && filter.prioritizes.is_some() {
            if filter.class.is_some() {
                return Err(Problem::new("a class and a priority in one filter of `cake`")
                    .help("the class chooses host and flow, the priority the tin: leave one of them out"));
            }
            filter.notices.retain(|notice| notice != PRIORITY_COMES_LATE);
        }
        if let Some(class) = filter.class.as_mut().filter(|_| !arrives && !is_of_cake) {
            if class.major == 0 {
                class.major = parent.major;
            }
            let class = *class;
            self.check_target(parent, class)?;
        }
        self.filters_of(arrives, leaves)
            .add(command.verb, Placed { parent, filter, span: command.span.clone() })
    }

    /// Checks a filter `flow` at a discipline.
    fn check_flow(&self, parent: Handle, filter: &Filter) -> Result<(), Problem> {
        let kind = self.qdisc(parent).map(|qdisc| &qdisc.kind);
        let hashes = matches!(kind, Some(qdisc::Kind::Managed(managed)) if managed.hashes_flows());
        if !hashes || self.is_run {
            return Err(Problem::new(
                "`flow` computes classes, which only queues of `sfq` and `fq_codel` of a script are here",
            )
            .help("let a scheduler of flows tell them apart: `by = \"source\"` in a scenario"));
        }
        if filter.families != Families::ALL {
            return Err(Problem::new(
                "`flow` for packets of one protocol: the kernel drops all others there",
            )
            .help("write: protocol all"));
        }
        if filter.class.is_some() || filter.verdict != Verdict::Class || filter.police.is_some() {
            return Err(Problem::new("`flow` with a class of its own, or with an action")
                .help("as in: flow hash keys src divisor 1024"));
        }
        Ok(())
    }

    fn filters_of(&mut self, hook: bool, leaves: bool) -> &mut Filters {
        match (hook, leaves) {
            (false, _) => &mut self.filters,
            (true, false) => &mut self.arriving,
            (true, true) => &mut self.leaving,
        }
    }

    /// Checks the class of a filter. In a script, a filter may name a class that is missing, as in the kernel.
    fn check_target(&self, parent: Handle, class: Handle) -> Result<(), Problem> {
        let kind = self.qdisc(parent).map(|qdisc| &qdisc.kind);
        let is_exact = self.is_run
            || class.minor == 0 && matches!(kind, Some(qdisc::Kind::Cbq(_)))
            || !kind.is_some_and(|kind| {
                kind.bands().is_some()
                    || matches!(
                        kind,
                        qdisc::Kind::Htb(_)
                            | qdisc::Kind::Hfsc(_)
                            | qdisc::Kind::Cbq(_)
                            | qdisc::Kind::Drr
                            | qdisc::Kind::Qfq
                    )
            });
        if !is_exact {
            return Ok(());
        }
        if class.major != parent.major {
            return Err(Problem::new(format!(
                "the class {class} is in another discipline than the filter, {}",
                parent.qdisc()
            ))
            .help("use a filter of that discipline"));
        }
        if self.is_class(class) { Ok(()) } else { Err(self.no_class(class)) }
    }

    /// Where the kernel sends packets of a filter at `parent` with this class, which may be missing. `prio` and `ets` look
    /// at the minor number alone, and use the band of priority 0 where there is no such band.
    pub(in crate::tc) fn target(&self, parent: Handle, class: Handle) -> To {
        let Some(qdisc) = self.qdisc(parent) else { return To::Class(class) };
        if self.is_cake(parent) {
            return To::Flow(class);
        }
        match (qdisc.kind.bands(), &qdisc.kind) {
            (Some(bands), _) => {
                let own = Handle { minor: class.minor, ..qdisc.handle };
                let usual = Handle { minor: u16::from(bands.map[0]) + 1, ..qdisc.handle };
                To::Class(if no_band(qdisc, own).is_none() { own } else { usual })
            }
            _ if self.is_class(class) && class.major == qdisc.handle.major => To::Class(class),
            (_, qdisc::Kind::Drr | qdisc::Kind::Qfq) => To::Drop,
            (_, qdisc::Kind::Htb(_)) if class == qdisc.handle => To::Direct,
            (_, qdisc::Kind::Htb(_) | qdisc::Kind::Hfsc(_) | qdisc::Kind::Cbq(_)) => To::Rest,
            _ => To::Class(class),
        }
    }

    /// Whether the discipline with this handle is CAKE.
    pub(in crate::tc) fn is_cake(&self, of: Handle) -> bool {
        let kind = self.qdisc(of).map(|qdisc| &qdisc.kind);
        matches!(kind, Some(qdisc::Kind::Managed(managed)) if managed.is_cake())
    }

    /// Whether filters can send packets there.
    pub(in crate::tc) fn is_class(&self, class: Handle) -> bool {
        match self.qdisc(class) {
            Some(qdisc) if qdisc.kind.bands().is_some() => no_band(qdisc, class).is_none(),
            Some(qdisc) if qdisc.kind.has_classes() => self.classes.has(class),
            Some(_) => true,
            None => false,
        }
    }
}
