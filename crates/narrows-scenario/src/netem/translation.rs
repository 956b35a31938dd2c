//! What the options mean as keys of a link's direction: the double queue.

use narrows_core::Duration;
use narrows_core::queue::Bound;

use super::FedDelay;
use super::options::{Chance, DEFAULT_LIMIT, LossOption, Netem, RateOption, Shape, Slot, SlotGap};
use crate::dialect::number;
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Problem;
use crate::units::Share;

/// A key of a direction, and its value as it stands in a file.
pub type Assignment = (&'static str, String);

/// The feed that takes the place of the device of `sch_delay`.
pub(super) const FEED: &str = "delay";

impl Netem {
    /// The keys of a direction that say the same, and their values; what has no effect is left out.
    ///
    /// # Errors
    /// When a scenario cannot say it: cells that lose bytes on the wire.
    pub(crate) fn keys(&self) -> Result<Vec<(&'static str, Value)>, Problem> {
        let mut keys = Vec::new();
        let rate = self.rate.filter(|rate| rate.rate.bits_per_second() > 0);
        if let Some(rate) = rate {
            keys.push(("rate", text(rate.rate)));
            keys.push(("overhead", overhead(rate)?));
        }
        match (rate, self.limit) {
            (Some(_), limit) => keys.push(("queue", text(Bound::Packets(limit.unwrap_or(DEFAULT_LIMIT))))),
            (None, Some(limit)) => keys.push(("line-limit", text(Bound::Packets(limit)))),
            (None, None) => {}
        }
        if self.delay > Duration::ZERO || self.jitter > Duration::ZERO {
            keys.push(("delay", self.delay_value()));
        }
        if self.overtakes() {
            keys.push(("order", text("allow")));
        }
        keys.extend(
            self.loss.filter(|loss| !loss.is_none()).map(|loss| ("loss", loss_value(loss, self.ecn))),
        );
        for (key, chance) in [("duplicate", self.duplicate), ("corrupt", self.corrupt)] {
            if !chance.share.is_zero() {
                keys.push((key, chance_value(chance)));
            }
        }
        keys.extend(self.reordering().map(|(chance, gap)| ("reorder", reorder_value(chance, gap))));
        keys.extend(
            self.slot.as_ref().filter(|slot| slot.is_some()).map(|slot| ("slots", slots_value(slot))),
        );
        Ok(keys)
    }

    /// Whether packets overtake one another as their delays have it. With a rate each is due after the one before it.
    pub(crate) fn overtakes(&self) -> bool {
        self.jitter > Duration::ZERO && self.rate.is_none_or(|rate| rate.rate.bits_per_second() == 0)
    }

    /// Which packets skip the delay, of those that the gap leaves: a gap alone means all of them.
    pub(crate) fn reordering(&self) -> Option<(Chance, u32)> {
        match (self.reorder.share.is_zero(), self.gap.unwrap_or(0)) {
            (true, 0) => None,
            (true, gap) => Some((Chance { share: Share::ZERO.complement(), correlation: Share::ZERO }, gap)),
            (false, gap) => Some((self.reorder, gap.max(1))),
        }
    }

    fn delay_value(&self) -> Value {
        if self.jitter == Duration::ZERO {
            return text(self.delay);
        }
        let shape = self.distribution.as_ref().unwrap_or(&Shape::Uniform);
        let mut table = distribution(shape, self.delay, self.jitter);
        correlate(&mut table, self.delay_correlation);
        Value::Table(table)
    }
}

impl FedDelay {
    pub(crate) fn keys(self) -> Vec<(&'static str, Value)> {
        let mut keys = vec![
            ("delay", table([("feed", text(FEED)), ("on-empty", text("zero"))])),
            ("line-limit", text(Bound::Packets(self.limit))),
        ];
        if self.reorder {
            keys.push(("order", text("allow")));
        }
        keys
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let mut table = Table::default();
    entries.into_iter().for_each(|(key, value)| table.put(key, value));
    Value::Table(table)
}

fn correlate(table: &mut Table, correlation: Share) {
    if !correlation.is_zero() {
        table.put("correlation", text(correlation));
    }
}

/// A distribution of times, as the entries of its table.
fn distribution(shape: &Shape, mean: Duration, jitter: Duration) -> Table {
    let mut own = Table::default();
    match shape {
        Shape::Uniform if mean >= jitter => {
            own.put("uniform", table([("low", text(mean - jitter)), ("high", text(mean + jitter))]));
        }
        // Part of it is below zero, and becomes zero.
        Shape::Uniform => {
            own.put("uniform", table([("low", text("0ns")), ("high", text(jitter + jitter))]));
            own.put("shift", text(format!("-{}", jitter - mean)));
        }
        Shape::Normal => own.put("normal", table([("mean", text(mean)), ("sd", text(jitter))])),
        Shape::Pareto | Shape::ParetoNormal | Shape::File(_) => {
            let key = if matches!(shape, Shape::File(_)) { "file" } else { "name" };
            own.put("table", table([(key, text(shape.word())), ("mean", text(mean)), ("sd", text(jitter))]));
        }
    }
    own
}

fn overhead(rate: RateOption) -> Result<Value, Problem> {
    let RateOption { packet_overhead, cell_size, cell_overhead, .. } = rate;
    if packet_overhead == 0 && cell_size == 0 {
        return Ok(text("frame"));
    }
    let mut own = Table::default();
    own.put("base", text("frame"));
    own.put("bytes", number(packet_overhead));
    match cell_size {
        0 => {}
        _ if cell_overhead < 0 => {
            return Err(Problem::new("cells that are shorter on the wire than their payload")
                .help("a scenario has no such cells; --exact-netem has"));
        }
        payload => {
            let size = i64::from(payload) + i64::from(cell_overhead);
            own.put("cells", table([("payload", number(payload)), ("size", number(size))]));
        }
    }
    Ok(Value::Table(own))
}

fn loss_value(loss: LossOption, ecn: bool) -> Value {
    let shares = |entries: &[(&str, Share)]| {
        let mut table = Table::default();
        entries.iter().for_each(|(key, share)| table.put(key, text(share)));
        Value::Table(table)
    };
    let mut model = Table::default();
    match loss {
        LossOption::Random(Chance { share, correlation }) if correlation.is_zero() && !ecn => {
            return table([("ingress", text(share))]);
        }
        LossOption::Random(Chance { share, correlation }) => {
            model.put("rate", text(share));
            correlate(&mut model, correlation);
        }
        LossOption::State { p13, p31, p32, p23, p14 } => {
            let all = [("p13", p13), ("p31", p31), ("p32", p32), ("p23", p23), ("p14", p14)];
            model.put("markov", shares(&all));
        }
        LossOption::GilbertElliott { p, r, loss_bad, loss_good } => {
            let all = [("p", p), ("r", r), ("loss-bad", loss_bad), ("loss-good", loss_good)];
            model.put("gilbert-elliott", shares(&all));
        }
    }
    if ecn {
        model.put("ecn", Value::Boolean(true));
    }
    table([("ingress", Value::Table(model))])
}

fn chance_value(Chance { share, correlation }: Chance) -> Value {
    match correlation.is_zero() {
        true => text(share),
        false => table([("rate", text(share)), ("correlation", text(correlation))]),
    }
}

fn reorder_value(chance: Chance, gap: u32) -> Value {
    match (chance_value(chance), gap) {
        (value, 1) => value,
        (Value::Table(mut own), gap) => {
            own.put("gap", number(gap));
            Value::Table(own)
        }
        (_, gap) => text(format!("{} gap {gap}", chance.share)),
    }
}

fn slots_value(slot: &Slot) -> Value {
    let gap = match &slot.gap {
        SlotGap::Between { low, high } if low == high => text(low),
        SlotGap::Between { low, high } => {
            table([("uniform", table([("low", text(low)), ("high", text(high))]))])
        }
        SlotGap::Distribution { shape, delay, jitter } => Value::Table(distribution(shape, *delay, *jitter)),
    };
    let mut own = Table::default();
    own.put("gap", gap);
    for (key, most) in [("packets", slot.packets), ("bytes", slot.bytes)] {
        if most > 0 {
            own.put(key, number(most));
        }
    }
    Value::Table(own)
}
