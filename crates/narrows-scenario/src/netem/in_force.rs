//! The way back: what the keys of a direction are in NetEm's words, for `tc qdisc show`.
//!
//! A link need not have been made by these words, and what is in force is nowhere kept but in its keys: whatever changed
//! them, a file, a timeline, `narrows set` or `narrows tc`, the words that are shown mean what the link does.

use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate};

use super::options::{Chance, LossOption, Netem, RateOption, Shape, Slot, SlotGap};
use super::{Assignment, FedDelay, Kind, Qdisc};
use crate::ScenarioError;
use crate::direction::Direction;
use crate::node::{Node, Table, Value};
use crate::units::{self, Share};

/// What a direction does, in NetEm's words as far as they go.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// Nothing for a plain link, or one of which NetEm could say nothing.
    pub qdisc: Option<Qdisc>,
    /// Whether it is NetEm's single queue.
    pub exact: bool,
    /// Keys of the direction whose values NetEm has no words for.
    pub unsaid: Vec<&'static str>,
    /// The keys that NetEm has to do with and that are not as in a plain link: what another qdisc replaces.
    pub keys: Vec<&'static str>,
}

/// A key as it is in a plain link.
const PLAIN: &[(&str, &str)] = &[
    ("rate", "\"unlimited\""),
    ("delay", "\"0ms\""),
    ("jitter", "\"0ms\""),
    ("order", "\"keep\""),
    ("queue", "\"fifo\""),
    ("overhead", "\"ip\""),
    ("loss", "\"0%\""),
    ("duplicate", "\"0%\""),
    ("corrupt", "\"0%\""),
    ("reorder", "\"none\""),
    ("slots", "\"none\""),
    ("trace", "\"none\""),
    ("exact-netem", "\"none\""),
    ("line-limit", "\"unlimited\""),
    ("scheduler", "\"none\""),
];

/// The bytes of an Ethernet header, which NetEm counts and `overhead = "ip"` does not.
const LINK_HEADER: i32 = 14;

impl Direction {
    /// What it does, in NetEm's words as far as they go.
    pub fn netem(&self) -> InForce {
        let entries = self.entries();
        let keys =
            PLAIN.iter().map(|(key, _)| *key).filter(|key| entries.iter().any(|(name, _)| name == key));
        let keys: Vec<&str> = keys.collect();
        let mut reader = Reader { netem: Netem::default(), fed: false, allow: false, unsaid: Vec::new() };
        if let Some((_, text)) = entries.iter().find(|(key, _)| *key == "exact-netem") {
            let mut exact = super::read(&Node::typed(text, 0)).ok();
            if let Some(Qdisc { kind: Kind::Netem(netem), .. }) = &mut exact {
                // It is in force, as it has no other in its place, and tc shows it always.
                netem.limit.get_or_insert(super::DEFAULT_LIMIT);
            }
            return InForce { qdisc: exact, exact: true, unsaid: Vec::new(), keys };
        }
        for (key, text) in &entries {
            if reader.read(key, &Node::typed(text, 0), self).is_none() {
                reader.unsaid.push(key);
            }
        }
        reader.finish(keys)
    }
}

/// The assignments that put a qdisc, or a plain link, in the place of what is in force: `keys` are those of [`InForce`],
/// and `exact` says whether the qdisc is to be NetEm's single queue.
///
/// # Errors
/// When a scenario cannot say what the qdisc does.
pub fn replacement<T: AsRef<str>>(
    keys: &[T],
    exact: bool,
    qdisc: Option<&Qdisc>,
) -> Result<Vec<Assignment>, ScenarioError> {
    let new = match qdisc {
        Some(qdisc) if exact => vec![("exact-netem", crate::node::toml_string(&qdisc.text()))],
        Some(qdisc) => qdisc.assignments()?,
        None => Vec::new(),
    };
    let reset = PLAIN.iter().filter(|(key, _)| {
        let replaced =
            keys.iter().any(|name| name.as_ref() == *key) && !new.iter().any(|(name, _)| name == key);
        // What schedules stays beside a discipline that says nothing of it, and goes with a plain link.
        replaced && (qdisc.is_none() || *key != "scheduler")
    });
    let mut all: Vec<Assignment> = reset.map(|(key, value)| (*key, (*value).to_owned())).collect();
    all.extend(new);
    Ok(all)
}

struct Reader {
    netem: Netem,
    /// Whether delays come from a feed.
    fed: bool,
    allow: bool,
    unsaid: Vec<&'static str>,
}

impl Reader {
    /// Takes in a key; nothing where NetEm cannot say its value.
    fn read(&mut self, key: &str, node: &Node, direction: &Direction) -> Option<()> {
        match key {
            "rate" => match units::rate(node).ok()? {
                Rate::UNLIMITED | Rate::DOWN => None,
                rate => {
                    let more = direction.overhead;
                    let cells = more.cells.unwrap_or(narrows_core::service::Cells { payload: 0, size: 0 });
                    self.netem.rate = Some(RateOption {
                        rate,
                        packet_overhead: more.extra - if more.link_header { 0 } else { LINK_HEADER },
                        cell_size: cells.payload,
                        cell_overhead: i32::try_from(i64::from(cells.size) - i64::from(cells.payload))
                            .ok()?,
                    });
                    if self.netem.limit.is_none()
                        && let Bound::Packets(limit) = direction.bound()
                    {
                        self.netem.limit = Some(limit);
                    }
                    Some(())
                }
            },
            // Said with the rate, or of no effect without one.
            "overhead" => (direction.overhead.minimum == 0).then_some(()),
            "queue" => {
                let said = match node.table("") {
                    Ok(table) => table.get("bound").filter(|_| table.iter().count() == 1)?,
                    Err(_) => node,
                };
                match units::bound(said).ok()? {
                    Bound::Packets(limit) => self.netem.limit = Some(limit),
                    Bound::Bytes(_) => return None,
                }
                Some(())
            }
            "line-limit" if direction.rate == Rate::UNLIMITED => {
                self.netem.limit = Some(units::packets(node).ok()?);
                Some(())
            }
            "delay" => self.delay(node),
            // That of a constant delay, which is read before.
            "jitter" => {
                self.netem.jitter = units::time(node).ok()?;
                self.netem.distribution = Some(Shape::Normal);
                Some(())
            }
            "order" => {
                self.allow = true;
                Some(())
            }
            "loss" => self.loss(node),
            "duplicate" => {
                self.netem.duplicate = chance(node)?;
                Some(())
            }
            "corrupt" => {
                self.netem.corrupt = chance(node)?;
                Some(())
            }
            "reorder" => {
                let table = node.table("").ok()?;
                let correlation = table.get("correlation").map_or(Some(Share::ZERO), share)?;
                let probability = share(table.get("probability").or(table.get("rate"))?)?;
                self.netem.reorder = Chance { share: probability, correlation };
                let gap = table.get("gap").map_or(Some(1), number)?;
                self.netem.gap = Some(gap).filter(|gap| *gap > 1);
                Some(())
            }
            "slots" => self.slots(node.table("").ok()?),
            _ => None,
        }
    }

    fn delay(&mut self, node: &Node) -> Option<()> {
        let Value::Table(table) = &node.value else {
            self.netem.delay = units::time(node).ok()?;
            return Some(());
        };
        if table.get("feed").is_some() {
            self.fed = true;
            return (table.get("ask").is_none()).then_some(());
        }
        let known = ["uniform", "normal", "table", "shift", "correlation"];
        if table.iter().any(|(key, _)| !known.contains(&key.name.as_str())) {
            return None;
        }
        // A correlation in time is none of NetEm's.
        let correlation = table.get("correlation").map_or(Some(Share::ZERO), share)?;
        let (shape, delay, jitter) = distribution(table)?;
        self.netem.delay = delay;
        self.netem.jitter = jitter;
        self.netem.distribution = Some(shape).filter(|shape| *shape != Shape::Uniform);
        self.netem.delay_correlation = correlation;
        Some(())
    }

    fn loss(&mut self, node: &Node) -> Option<()> {
        let model = match &node.value {
            Value::Table(table) => match (table.get("ingress"), table.get("wire"), table.get("with-delay")) {
                (Some(model), None, None) | (None, Some(model), None) => model,
                (None, None, None) => node,
                _ => return None,
            },
            _ => node,
        };
        let Value::Table(table) = &model.value else {
            self.netem.loss = Some(LossOption::Random(chance(model)?));
            return Some(());
        };
        self.netem.ecn = table.get("ecn").is_some_and(|node| node.boolean() == Ok(true));
        let of = |inner: &Table, key: &str, default: Share| inner.get(key).map_or(Some(default), share);
        self.netem.loss = Some(if let Some(inner) = table.get("gilbert-elliott") {
            let inner = inner.table("").ok()?;
            LossOption::GilbertElliott {
                p: share(inner.get("p")?)?,
                r: share(inner.get("r")?)?,
                loss_bad: of(inner, "loss-bad", Share::ZERO.complement())?,
                loss_good: of(inner, "loss-good", Share::ZERO)?,
            }
        } else if let Some(inner) = table.get("markov") {
            let inner = inner.table("").ok()?;
            LossOption::State {
                p13: share(inner.get("p13")?)?,
                p31: share(inner.get("p31")?)?,
                p32: of(inner, "p32", Share::ZERO)?,
                p23: of(inner, "p23", Share::ZERO.complement())?,
                p14: of(inner, "p14", Share::ZERO)?,
            }
        } else {
            LossOption::Random(chance(model)?)
        });
        Some(())
    }

    fn slots(&mut self, table: &Table) -> Option<()> {
        let gap = table.get("gap")?;
        let gap = match &gap.value {
            Value::Table(inner) => match (inner.get("uniform"), inner.get("shift")) {
                (Some(uniform), None) => {
                    let uniform = uniform.table("").ok()?;
                    SlotGap::Between { low: time(uniform, "low")?, high: time(uniform, "high")? }
                }
                _ => {
                    let (shape, delay, jitter) = distribution(inner)?;
                    SlotGap::Distribution { shape, delay, jitter }
                }
            },
            _ => {
                let gap = units::time(gap).ok()?;
                SlotGap::Between { low: gap, high: gap }
            }
        };
        let most = |key| table.get(key).map_or(Some(0), number);
        self.netem.slot = Some(Slot { gap, packets: most("packets")?, bytes: most("bytes")? });
        Some(())
    }

    fn finish(mut self, keys: Vec<&'static str>) -> InForce {
        if self.fed {
            let kind = Kind::Delay(FedDelay {
                limit: self.netem.limit.unwrap_or(super::DEFAULT_LIMIT),
                reorder: self.allow,
            });
            // All that netem would say, `delay` cannot.
            let besides = Netem { limit: None, ..self.netem } != Netem::default();
            if besides {
                let others = keys.iter().filter(|key| !["delay", "line-limit", "order"].contains(*key));
                self.unsaid.extend(others);
            }
            self.unsaid.dedup();
            return InForce {
                qdisc: Some(Qdisc { kind, clauses: Vec::new() }),
                exact: false,
                unsaid: self.unsaid,
                keys,
            };
        }
        // Order is allowed where NetEm has packets overtake, and else it makes no difference to a delay that is constant.
        if self.netem.jitter > Duration::ZERO && self.netem.overtakes() != self.allow {
            self.unsaid.push("order");
        }
        let qdisc = (self.netem != Netem::default())
            .then(|| Qdisc { kind: Kind::Netem(Box::new(self.netem)), clauses: Vec::new() });
        InForce { qdisc, exact: false, unsaid: self.unsaid, keys }
    }
}

/// The shape, the mean and the jitter of a distribution that NetEm has.
fn distribution(table: &Table) -> Option<(Shape, Duration, Duration)> {
    let shift = table.get("shift").map_or(Some(0), |node| units::signed_time(node).ok())?;
    if let Some(uniform) = table.get("uniform") {
        let uniform = uniform.table("").ok()?;
        let (low, high) =
            (time(uniform, "low")?.nanos() as i64 + shift, time(uniform, "high")?.nanos() as i64 + shift);
        let (mean, jitter) = (low.checked_add(high)? / 2, (high - low) / 2);
        let even = (low + high) % 2 == 0 && (high - low) % 2 == 0;
        let nanos = |value: i64| u64::try_from(value).ok().map(Duration::from_nanos);
        return if even { Some((Shape::Uniform, nanos(mean)?, nanos(jitter)?)) } else { None };
    }
    if shift != 0 {
        return None;
    }
    if let Some(normal) = table.get("normal") {
        let normal = normal.table("").ok()?;
        return Some((Shape::Normal, time(normal, "mean")?, time(normal, "sd")?));
    }
    let inner = table.get("table")?.table("").ok()?;
    let shape = match (inner.get("name"), inner.get("file")) {
        (Some(name), None) => {
            let name = name.text("").ok()?;
            Shape::NAMED.into_iter().find(|(known, _)| *known == name)?.1
        }
        (None, Some(file)) => Shape::File(file.text("").ok()?.into()),
        _ => return None,
    };
    Some((shape, time(inner, "mean")?, time(inner, "sd")?))
}

fn time(table: &Table, key: &str) -> Option<Duration> {
    units::time(table.get(key)?).ok()
}

fn share(node: &Node) -> Option<Share> {
    Share::read(node).ok()
}

fn number(node: &Node) -> Option<u32> {
    node.integer("", 0..1 << 32).ok().map(|number| number as u32)
}

/// `"1%"` or `{ rate, correlation }`.
fn chance(node: &Node) -> Option<Chance> {
    let Value::Table(table) = &node.value else {
        return Some(Chance { share: share(node)?, correlation: Share::ZERO });
    };
    let correlation = table.get("correlation").map_or(Some(Share::ZERO), share)?;
    Some(Chance { share: share(table.get("rate")?)?, correlation })
}
