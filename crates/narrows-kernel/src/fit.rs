//! Which scenarios fit into the kernel, and what their directions' parameters are.

use std::fmt;

use narrows_core::queue::Queue;
use narrows_core::{LinkConfig, LinkSettings, Order, Probability, Seed, Stream, Target, port_origin};
use narrows_scenario::Scenario;

use crate::parameters::{Loss, MOST_OVERHEAD, Parameters};

/// What a scenario has that the kernel's program does not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Misfits(Vec<Misfit>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The key, with the link's name, or what else it is.
    pub key: String,
    /// What the kernel does instead.
    pub why: &'static str,
}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--backend kernel does not support this scenario; --backend af_packet and af_xdp do:")?;
        self.0.iter().try_for_each(|Misfit { key, why }| write!(f, "\n  {key}: {why}"))
    }
}

impl Misfits {
    /// All of them.
    pub fn all(&self) -> &[Misfit] {
        &self.0
    }
}

const ONE_LINK: &str = "the kernel has one link between two hosts";

/// The parameters of the directions of a scenario's only link, in the order of its ports: each belongs to the packets that
/// enter there.
///
/// # Errors
/// Everything that does not fit, by name.
pub fn fit(scenario: &Scenario) -> Result<[Parameters; 2], Misfits> {
    let mut misfits = Vec::new();
    let mut no = |key: String, why| misfits.push(Misfit { key, why });
    for (name, count) in [
        ("routers", scenario.routers.len()),
        ("switches", scenario.switches.len()),
        ("junctions", scenario.junctions.len()),
    ] {
        if count > 0 {
            no(name.into(), ONE_LINK);
        }
    }
    if scenario.links.len() != 1 || scenario.hosts.len() != 2 {
        no(format!("{} hosts, {} links", scenario.hosts.len(), scenario.links.len()), ONE_LINK);
    }
    if !scenario.traffic.is_empty() {
        no("traffic".into(), "the kernel generates none");
    }
    if scenario.timeline().peek().is_some() || scenario.timeline().awaits_first_packet() {
        no("timeline".into(), "a link in the kernel does not change");
    }
    for host in &scenario.hosts {
        if host.place != narrows_scenario::Place::New {
            no(format!("host {}", host.name), "the kernel's link joins hosts that narrows creates");
        }
    }
    if !misfits.is_empty() {
        return Err(Misfits(misfits));
    }
    let network = scenario.network();
    if !network.rules.is_empty() {
        return Err(Misfits(vec![Misfit { key: "rules".into(), why: "the kernel's link has none" }]));
    }
    let (seed, mut links) = (network.seed, network.links);
    let mut found = Vec::new();
    for (port, place) in network.ports.iter().zip(scenario.ports()) {
        let entered = match &port.entry {
            Target::Link { name, lane: 0 } => links.iter().position(|link| link.name == *name),
            _ => None,
        };
        match entered.map(|at| links.swap_remove(at)) {
            Some(link) if link.lanes.len() == 1 => {
                let mtu = scenario.interface_mtu(place);
                found.extend(direction(link, seed, &port.name, mtu, &mut misfits));
            }
            _ => misfits.push(Misfit {
                key: "shared".into(),
                why: "the kernel's link has a wire for each direction",
            }),
        }
    }
    match <[Parameters; 2]>::try_from(found) {
        Ok(both) if misfits.is_empty() => Ok(both),
        _ => Err(Misfits(misfits)),
    }
}

/// The parameters of one direction. Each part of a link's configuration is looked at: a part added later must be decided on here.
fn direction(
    config: LinkConfig,
    seed: Seed,
    port: &str,
    mtu: u32,
    misfits: &mut Vec<Misfit>,
) -> Option<Parameters> {
    let LinkConfig {
        name,
        lanes: _,
        mut queue,
        bound_steps,
        service,
        overhead,
        air_time,
        burst,
        ingress_loss,
        ingress,
        policer,
        wire_loss,
        corruption,
        duplication,
        delay,
        reorder,
        slots,
        netem,
        settings: LinkSettings { order, line_limit, mtu: link_mtu },
        instances,
    } = config;
    let before = misfits.len();
    let mut no = |is_there: bool, key: &str, why| {
        if is_there {
            misfits.push(Misfit { key: format!("{name}.{key}"), why });
        }
    };
    let varies = "it does not vary in the kernel";
    no(bound_steps.is_some(), "trace", varies);
    no(air_time.is_some(), "profile", "the kernel counts bits, not air time");
    no(burst.get() > 0, "burst", "the kernel saves nothing up");
    no(ingress.is_some(), "ingress", "the kernel's link has no filters");
    no(policer.is_some(), "policer", "the kernel's link has none");
    no(corruption.is_some(), "corrupt", "a BPF qdisc cannot change a packet");
    no(duplication.is_some(), "duplicate", "a BPF qdisc cannot copy a packet");
    no(reorder.is_some(), "reorder", "packets keep their order in the kernel");
    no(slots.is_some(), "slots", "the kernel's link has none");
    no(netem.is_some(), "netem", "the kernel's link is no exact sch_netem");
    no(line_limit.is_some(), "line_limit", "the kernel's link has none");
    no(link_mtu.is_some(), "mtu", "the kernel's link does not fragment");
    no(instances.is_some(), "instances", "the kernel's link has none");
    // With a constant delay nothing overtakes anything anyway.
    let (Order::Keep | Order::Allow) = order;
    let rate = service.constant();
    no(rate.is_none(), "rate", varies);
    let delay = delay.constant();
    no(delay.is_none(), "delay", "the kernel's link has a constant delay");
    let is_netem = netem.is_some();
    let bound = match queue.take_fifo() {
        Some(fifo) if fifo.is_plain_drop_tail() => Some(fifo.bound()),
        _ => None,
    };
    no(bound.is_none() && !is_netem, "queue", "the kernel's queue is a FIFO that drops arriving packets");
    let most = overhead.minimum.max(overhead.extra.unsigned_abs());
    let cells = overhead.cells.map_or(0, |cells| cells.payload.max(cells.size));
    no(most.max(cells) > MOST_OVERHEAD, "overhead", "it is too large for the kernel's arithmetic");
    let mut loss = |loss: Option<narrows_core::Loss>, purpose: &str| -> Loss {
        let Some(loss) = loss else { return Loss::default() };
        let chance = loss.selector.independent().filter(|_| !loss.mark);
        no(chance.is_none(), "loss", "the kernel loses packets independently, and marks none");
        Loss { chance: chance.unwrap_or(Probability::ZERO), key: Stream::new(seed, &name, purpose).key() }
    };
    let ingress_loss = loss(ingress_loss, "ingress loss");
    let wire_loss = loss(wire_loss, "wire loss");
    if misfits.len() > before {
        return None;
    }
    Some(Parameters {
        rate: rate?,
        delay: delay?,
        bound: bound?,
        overhead,
        ingress_loss,
        wire_loss,
        origin: port_origin(port),
        mtu,
    })
}
