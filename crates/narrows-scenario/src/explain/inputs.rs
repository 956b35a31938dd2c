//! Losses by chance, traces and feeds in numbers.

use narrows_core::{Duration, Rate};
use serde::Serialize;

use crate::direction::Direction;
use crate::value::{FeedUse, TraceUse};

/// Losses by chance in one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossExplanation {
    /// `ingress` or `wire`.
    pub place: &'static str,
    /// The model, in words.
    pub model: String,
    /// The share of packets in the long run.
    pub share: f64,
    /// How many are lost in a row on average, where that is known.
    pub mean_burst: Option<f64>,
    /// Whether packets that can be marked are marked instead.
    pub ecn: bool,
}

/// A trace, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceExplanation {
    /// The file.
    pub file: String,
    /// What it gives, how long it is, and what comes then.
    pub words: String,
    /// How long it is.
    pub length_ns: u64,
    /// What comes after its end: `loop`, `hold` or `end`.
    pub then: &'static str,
    /// The mean rate, where it gives one that has a limit always.
    pub mean_rate_bps: Option<u64>,
    /// The mean delay, where it gives one.
    pub mean_delay_ns: Option<u64>,
    /// The share of packets lost, where it gives one.
    pub mean_loss: Option<f64>,
}

/// A feed, as `narrows check` tells of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedExplanation {
    /// Its name, unique on the link.
    pub name: String,
    /// What becomes of a packet for which there is no value: `zero`, `last`, `repeat` or `drop`.
    pub on_empty: &'static str,
    /// How many values are held at most.
    pub lead: usize,
    /// In the two-way form, how long a packet waits for its answer.
    pub ask_ns: Option<u64>,
    /// All that in words.
    pub words: String,
}

pub(super) fn losses(direction: &Direction) -> Vec<LossExplanation> {
    let places = [("ingress", &direction.loss.ingress), ("wire", &direction.loss.wire)];
    let models = places.into_iter().filter_map(|(place, model)| Some((place, model.as_ref()?)));
    models
        .map(|(place, model)| LossExplanation {
            place,
            model: model.losses.to_string(),
            share: model.mean(),
            mean_burst: model.mean_burst(),
            ecn: model.ecn,
        })
        .collect()
}

pub(super) fn trace(used: &TraceUse) -> TraceExplanation {
    TraceExplanation {
        file: used.file.name.to_string(),
        words: used.words(),
        length_ns: used.trace.length().nanos(),
        then: used.then.name(),
        mean_rate_bps: used.mean_rate().map(Rate::bits_per_second),
        mean_delay_ns: used.mean_delay().map(Duration::nanos),
        mean_loss: used.mean_loss(),
    }
}

pub(super) fn feed(used: &FeedUse) -> FeedExplanation {
    FeedExplanation {
        name: used.name.clone(),
        on_empty: used.rule(),
        lead: used.lead,
        ask_ns: used.ask.map(Duration::nanos),
        words: used.to_string(),
    }
}
