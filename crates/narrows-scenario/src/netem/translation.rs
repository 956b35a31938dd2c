//! What the options mean as keys of a link's direction: the double queue.

use narrows_core::Duration;

use super::FedDelay;
use super::options::{Chance, DEFAULT_LIMIT, LossOption, Netem, RateOption, Shape, Slot, SlotGap};
use crate::problem::Problem;
use crate::units::Share;
use crate::value::inline::Inline;

/// A key of a direction, and its value as it stands in a file.
pub type Assignment = (&'static str, String);

/// The feed that takes the place of the device of `sch_delay`.
pub(super) const FEED: &str = "delay";

impl Netem {
    /// The keys of a direction that say the same, and their values; what has no effect is left out.
    ///
    /// # Errors
    /// When a scenario cannot say it: cells that lose bytes on the wire.
    pub(crate) fn assignments(&self) -> Result<Vec<Assignment>, Problem> {
        let mut keys = Vec::new();
        let rate = self.rate.filter(|rate| rate.rate.bits_per_second() > 0);
        if let Some(rate) = rate {
            keys.push(("rate", format!("\"{}\"", rate.rate)));
            keys.push(("overhead", overhead(rate)?));
        }
        match (rate, self.limit) {
            (Some(_), limit) => {
                keys.push(("queue", format!("\"{} packets\"", limit.unwrap_or(DEFAULT_LIMIT))));
            }
            (None, Some(limit)) => keys.push(("line-limit", format!("\"{limit} packets\""))),
            (None, None) => {}
        }
        if self.delay > Duration::ZERO || self.jitter > Duration::ZERO {
            keys.push(("delay", self.delay_text()));
        }
        if self.overtakes() {
            keys.push(("order", "\"allow\"".into()));
        }
        keys.extend(self.loss.filter(|loss| !loss.is_none()).map(|loss| ("loss", loss_text(loss, self.ecn))));
        for (key, chance) in [("duplicate", self.duplicate), ("corrupt", self.corrupt)] {
            if !chance.share.is_zero() {
                keys.push((key, chance_text(chance)));
            }
        }
        keys.extend(self.reordering().map(|(chance, gap)| ("reorder", reorder_text(chance, gap))));
        keys.extend(self.slot.as_ref().filter(|slot| slot.is_some()).map(|slot| ("slots", slots_text(slot))));
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

    fn delay_text(&self) -> String {
        if self.jitter == Duration::ZERO {
            return format!("\"{}\"", self.delay);
        }
        let mut table =
            distribution(self.distribution.as_ref().unwrap_or(&Shape::Uniform), self.delay, self.jitter);
        table.quoted("correlation", Some(self.delay_correlation).filter(|share| !share.is_zero()));
        table.finish()
    }
}

impl FedDelay {
    pub(crate) fn assignments(self) -> Vec<Assignment> {
        let mut keys = vec![
            ("delay", format!("{{ feed = \"{FEED}\", on-empty = \"zero\" }}")),
            ("line-limit", format!("\"{} packets\"", self.limit)),
        ];
        if self.reorder {
            keys.push(("order", "\"allow\"".into()));
        }
        keys
    }
}

/// A distribution of times, as the entries of its table.
fn distribution(shape: &Shape, mean: Duration, jitter: Duration) -> Inline {
    let mut table = Inline::default();
    match shape {
        Shape::Uniform if mean >= jitter => {
            let (low, high) = (mean - jitter, mean + jitter);
            table.plain("uniform", Some(format!("{{ low = \"{low}\", high = \"{high}\" }}")));
        }
        // Part of it is below zero, and becomes zero.
        Shape::Uniform => {
            table.plain("uniform", Some(format!("{{ low = \"0ns\", high = \"{}\" }}", jitter + jitter)));
            table.quoted("shift", Some(format!("-{}", jitter - mean)));
        }
        Shape::Normal => table.plain("normal", Some(format!("{{ mean = \"{mean}\", sd = \"{jitter}\" }}"))),
        Shape::Pareto | Shape::ParetoNormal | Shape::File(_) => {
            let key = if matches!(shape, Shape::File(_)) { "file" } else { "name" };
            let name = crate::node::toml_string(shape.word());
            table.plain("table", Some(format!("{{ {key} = {name}, mean = \"{mean}\", sd = \"{jitter}\" }}")));
        }
    }
    table
}

fn overhead(rate: RateOption) -> Result<String, Problem> {
    let RateOption { packet_overhead, cell_size, cell_overhead, .. } = rate;
    if packet_overhead == 0 && cell_size == 0 {
        return Ok("\"frame\"".into());
    }
    let cells = match cell_size {
        0 => String::new(),
        _ if cell_overhead < 0 => {
            return Err(Problem::new("cells that are shorter on the wire than their payload")
                .help("a scenario has no such cells; --exact-netem has"));
        }
        payload => {
            format!(
                ", cells = {{ payload = {payload}, size = {} }}",
                i64::from(payload) + i64::from(cell_overhead)
            )
        }
    };
    Ok(format!("{{ base = \"frame\", bytes = {packet_overhead}{cells} }}"))
}

fn loss_text(loss: LossOption, ecn: bool) -> String {
    let mut model = Inline::default();
    match loss {
        LossOption::Random(Chance { share, correlation }) if correlation.is_zero() && !ecn => {
            return format!("{{ ingress = \"{share}\" }}");
        }
        LossOption::Random(Chance { share, correlation }) => {
            model.quoted("rate", Some(share));
            model.quoted("correlation", Some(correlation).filter(|share| !share.is_zero()));
        }
        LossOption::State { p13, p31, p32, p23, p14 } => model.plain(
            "markov",
            Some(format!(
                "{{ p13 = \"{p13}\", p31 = \"{p31}\", p32 = \"{p32}\", p23 = \"{p23}\", p14 = \"{p14}\" }}"
            )),
        ),
        LossOption::GilbertElliott { p, r, loss_bad, loss_good } => model.plain(
            "gilbert-elliott",
            Some(format!(
                "{{ p = \"{p}\", r = \"{r}\", loss-bad = \"{loss_bad}\", loss-good = \"{loss_good}\" }}"
            )),
        ),
    }
    model.plain("ecn", ecn.then_some(true));
    format!("{{ ingress = {} }}", model.finish())
}

fn chance_text(Chance { share, correlation }: Chance) -> String {
    match correlation.is_zero() {
        true => format!("\"{share}\""),
        false => format!("{{ rate = \"{share}\", correlation = \"{correlation}\" }}"),
    }
}

fn reorder_text(Chance { share, correlation }: Chance, gap: u32) -> String {
    match (correlation.is_zero(), gap) {
        (true, 1) => format!("\"{share}\""),
        (true, gap) => format!("\"{share} gap {gap}\""),
        (false, 1) => format!("{{ rate = \"{share}\", correlation = \"{correlation}\" }}"),
        (false, gap) => format!("{{ rate = \"{share}\", correlation = \"{correlation}\", gap = {gap} }}"),
    }
}

fn slots_text(slot: &Slot) -> String {
    let mut table = Inline::default();
    match &slot.gap {
        SlotGap::Between { low, high } if low == high => table.quoted("gap", Some(low)),
        SlotGap::Between { low, high } => {
            table.plain("gap", Some(format!("{{ uniform = {{ low = \"{low}\", high = \"{high}\" }} }}")));
        }
        SlotGap::Distribution { shape, delay, jitter } => {
            table.plain("gap", Some(distribution(shape, *delay, *jitter).finish()));
        }
    }
    table.plain("packets", Some(slot.packets).filter(|packets| *packets > 0));
    table.plain("bytes", Some(slot.bytes).filter(|bytes| *bytes > 0));
    table.finish()
}
