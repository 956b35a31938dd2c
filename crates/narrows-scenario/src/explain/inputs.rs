//! Statistics of random loss, traces and feeds.

use narrows_core::{Duration, Rate};
use serde::Serialize;

use crate::direction::Direction;
use crate::value::{FeedUse, TraceUse};

/// Random loss in one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossExplanation {
    /// `ingress` or `wire`.
    pub place: &'static str,
    /// The model, in words.
    pub model: String,
    /// Long-run share of lost packets.
    pub share: f64,
    /// Mean number of consecutive losses, if known.
    pub mean_burst: Option<f64>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceExplanation {
    /// File name.
    pub file: String,
    /// Columns, length, and what happens after the end, in words.
    pub words: String,
    /// Length.
    pub length_ns: u64,
    /// What happens after its end: `loop`, `hold` or `end`.
    pub then: &'static str,
    /// Mean rate, if it has a rate that is never unlimited.
    pub mean_rate_bps: Option<u64>,
    /// Mean delay, if it has delays.
    pub mean_delay_ns: Option<u64>,
    /// Mean loss, if it has loss.
    pub mean_loss: Option<f64>,
}

/// A feed, as shown by `narrows check`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedExplanation {
    /// Name, unique on the link.
    pub name: String,
    /// What happens to a packet without a value: `zero`, `last`, `repeat` or `drop`.
    pub on_empty: &'static str,
    /// Maximum number of buffered values.
    pub lead: usize,
    /// In the two-way form, the answer timeout.
    pub ask_ns: Option<u64>,
    /// Description in words.
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
