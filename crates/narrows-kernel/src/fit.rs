//! Which scenarios fit into the kernel, and what their directions' parameters are.

use std::fmt;

use narrows_core::{Corruption, LinkConfig, LinkSettings, Order, Seed, Stream, Target, port_origin};
use narrows_scenario::Scenario;

use crate::parameters::{
    Correlated, Delay, Drawn, Loss, MOST_LEAD, MOST_OVERHEAD, MOST_RANGES, Parameters, QueueParameters,
};

/// The longest packet, a train of segments; and the most bits that one may have on the wire, so that times 10⁹ fits into 64.
const LONGEST_PACKET: u32 = 1 << 16;
const MOST_BITS: u64 = 1 << 34;

/// The most directions of links.
const MOST_DIRECTIONS: usize = 64;

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

const HOSTS_AND_LINKS: &str = "links inside the kernel join two hosts each";

/// What a direction of a link, by the index of the port where packets enter it, is in the kernel; and the links.
#[derive(Debug)]
pub struct Fitting {
    /// In the order of the scenario's ports.
    pub directions: Vec<Parameters>,
    /// The two ports of each link, the first end first.
    pub links: Vec<[usize; 2]>,
}

impl Fitting {
    /// Whether delays come from another process.
    pub fn is_fed(&self) -> bool {
        self.directions.iter().any(Parameters::is_fed)
    }
}

/// The parameters of the directions of a scenario's links.
///
/// # Errors
/// Everything that does not fit, by name.
pub fn fit(scenario: &Scenario) -> Result<Fitting, Misfits> {
    let mut misfits = Vec::new();
    let mut no = |key: String, why| misfits.push(Misfit { key, why });
    for (name, count) in [
        ("routers", scenario.routers.len()),
        ("switches", scenario.switches.len()),
        ("junctions", scenario.junctions.len()),
    ] {
        if count > 0 {
            no(name.into(), HOSTS_AND_LINKS);
        }
    }
    if scenario.ports().len() > MOST_DIRECTIONS {
        no(format!("{} links", scenario.links.len()), "the kernel has at most 32 of them");
    }
    if !scenario.traffic.is_empty() {
        no("traffic".into(), "the kernel generates none");
    }
    if scenario.timeline().peek().is_some() || scenario.timeline().awaits_first_packet() {
        no("timeline".into(), "a link in the kernel does not change");
    }
    for host in &scenario.hosts {
        if host.place != narrows_scenario::Place::New {
            no(format!("host {}", host.name), "links inside the kernel join hosts that narrows creates");
        }
    }
    if !misfits.is_empty() {
        return Err(Misfits(misfits));
    }
    let network = scenario.network();
    if !network.rules.is_empty() {
        return Err(Misfits(vec![Misfit { key: "rules".into(), why: "links inside the kernel have none" }]));
    }
    let (seed, mut links) = (network.seed, network.links);
    let (mut directions, mut pairs) = (Vec::new(), Vec::new());
    for (number, (port, place)) in network.ports.iter().zip(scenario.ports()).enumerate() {
        let entered = match &port.entry {
            Target::Link { name, lane: 0 } => links.iter().position(|link| link.name == *name),
            _ => None,
        };
        match entered.map(|at| links.swap_remove(at)) {
            Some(link) if link.lanes.len() == 1 => {
                let mtu = scenario.interface_mtu(place);
                directions.extend(direction(link, seed, &port.name, mtu, &mut misfits));
            }
            _ => {
                let shared = Misfit {
                    key: format!("{}.shared", place.link),
                    why: "a link inside the kernel has a wire for each direction",
                };
                if !misfits.contains(&shared) {
                    misfits.push(shared);
                }
            }
        }
        let peer = scenario.ports().iter().position(|other| other.name == place.peer);
        pairs.extend(peer.filter(|peer| number < *peer).map(|peer| [number, peer]));
    }
    match misfits.is_empty() {
        true => Ok(Fitting { directions, links: pairs }),
        false => Err(Misfits(misfits)),
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
    no(ingress.is_some(), "ingress", "links inside the kernel have no filters");
    no(policer.is_some(), "policer", "links inside the kernel have none");
    no(duplication.is_some(), "duplicate", "a BPF qdisc cannot copy a packet");
    no(reorder.is_some(), "reorder", "no packet skips the delay in the kernel");
    no(slots.is_some(), "slots", "links inside the kernel have none");
    no(netem.is_some(), "netem", "a link inside the kernel is no exact sch_netem");
    no(line_limit.is_some(), "line_limit", "links inside the kernel have none");
    no(link_mtu.is_some(), "mtu", "links inside the kernel do not fragment");
    no(instances.is_some(), "instances", "links inside the kernel have none");
    let rate = service.constant();
    no(rate.is_none(), "rate", varies);
    let origin = port_origin(port);
    let feed = delay.fed().map(|feed| (feed.on_empty, feed.lead.max(1), feed.ask));
    let delay = match (delay.constant(), feed) {
        (Some(delay), _) => Some(Delay::Constant(delay)),
        (_, Some((on_empty, lead, None))) if lead <= MOST_LEAD => {
            Some(Delay::Fed { on_empty, lead: lead as u32 })
        }
        (_, Some(_)) => None,
        _ if let Some(plan) = delay.correlated() => {
            Some(Delay::Correlated(Correlated::new(plan, Stream::new(seed, &name, "delay"), origin)))
        }
        _ => Drawn::new(delay, Stream::new(seed, &name, "delay"), origin).map(Delay::Drawn),
    };
    let delays = match feed {
        Some((_, _, Some(_))) => "the kernel asks nobody",
        Some(_) => "the kernel holds at most 65536 values of a feed",
        None => {
            "in the kernel it is constant, drawn for each packet alone, normal with a correlation of neighbours, or fed"
        }
    };
    no(delay.is_none(), "delay", delays);
    let queues = "the kernel has FIFOs that drop at the tail, or by codel, pie or red, alone or as classes of prio, drr, wf2q+ and hpd";
    let key = Stream::new(seed, &name, "queue arrival").key();
    let queue = match queue.take_fifo() {
        Some(fifo) => {
            fifo.plan().ok_or(queues).and_then(|plan| QueueParameters::managed(&plan, key, overhead))
        }
        None => queue.plan().ok_or(queues).and_then(|plan| QueueParameters::new(plan, key, overhead)),
    };
    if let (Err(why), None) = (&queue, &netem) {
        no(true, "queue", why);
    }
    let most = overhead.minimum.max(overhead.extra.unsigned_abs());
    let is_too_large = most > MOST_OVERHEAD || overhead.bits(LONGEST_PACKET, 14) > MOST_BITS;
    no(is_too_large, "overhead", "it is too large for the kernel's arithmetic");
    let corruption = corruption.map(|corruption| match corruption {
        Corruption::Packets(selector) => selector.independent(),
        _ => None,
    });
    no(
        corruption == Some(None),
        "corrupt",
        "in the kernel one bit is flipped, of packets that are hit independently",
    );
    let key = Stream::new(seed, &name, "corruption").key();
    let corruption = corruption.flatten().map(|chance| (chance, key));
    let mut loss = |loss: Option<narrows_core::Loss>, purpose: &str| -> Loss {
        let Some(loss) = loss else { return Loss::default() };
        no(loss.mark, "loss", "in the kernel it does not mark packets instead");
        let model = loss.selector.plan();
        let losses = "in the kernel it is independent, of Gilbert and Elliott, or a pattern of packets";
        no(model.is_none(), "loss", losses);
        let loss = Loss { model, key: Stream::new(seed, &name, purpose).key() };
        no(loss.ranges().len() > MOST_RANGES, "loss", "the kernel has room for 4096 ranges of a pattern");
        loss
    };
    let losses = [loss(ingress_loss, "ingress loss"), loss(wire_loss, "wire loss")];
    if misfits.len() > before {
        return None;
    }
    let keeps_order = order == Order::Keep;
    Some(Parameters {
        rate: rate?,
        delay: delay?,
        keeps_order,
        queue: queue.ok()?,
        overhead,
        losses,
        corruption,
        origin,
        mtu,
    })
}
