//! Feeds in a report: delays that another process streams in.

use narrows_core::model::OnEmpty;
use narrows_core::{Engine, FeedView, LinkId};
use serde::{Deserialize, Serialize};

use crate::info::Word;

/// A feed of a link.
///
/// One-way: `taken = used + discarded + waiting`. Two-way: `taken = used + late`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedReport {
    /// The link.
    pub link: String,
    /// Its name, unique on that link.
    pub feed: String,
    /// The policy for packets without a value: `zero`, `last`, `repeat` or `drop`.
    pub on_empty: Word,
    /// The maximum number of values queued.
    pub lead_values: u64,
    /// How long packets wait for answers, in two-way mode.
    #[serde(alias = "patience_ns")]
    pub answer_timeout_ns: Option<u64>,
    /// Values accepted.
    pub taken_values: u64,
    /// Values applied to a packet.
    pub used_values: u64,
    /// Those that dropped the packet.
    pub lost_packets: u64,
    /// Packets for which no value arrived in time.
    pub underruns_packets: u64,
    /// Underruns as a share of all packets that needed a value.
    pub underruns_share: f64,
    /// Values above one hour, which were clamped to one hour.
    pub clamped_values: u64,
    /// Values rejected because there was no room, or no question for them.
    pub refused_values: u64,
    /// Values still queued when the feed switched to two-way mode.
    pub discarded_values: u64,
    /// Values queued now.
    pub waiting_values: u64,
    /// Packets for which an answer was requested.
    pub asked_packets: u64,
    /// Packets waiting for an answer now.
    pub open_packets: u64,
    /// Answers that came too late.
    pub late_values: u64,
    /// The feed's writers, in a live run.
    pub writers: Option<FeedWriters>,
}

/// The writers of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedWriters {
    /// The link.
    #[serde(skip)]
    pub link: String,
    /// The feed.
    #[serde(skip)]
    pub feed: String,
    /// Writers accepted, one after the other.
    pub writers: u64,
    /// Writers rejected because another was connected.
    pub refused_writers: u64,
    /// Writers disconnected because they sent something that is not a value.
    pub malformed_writers: u64,
    /// Incomplete values, because the writer disconnected.
    #[serde(alias = "torn_values")]
    pub truncated_values: u64,
    /// Questions that no writer answered.
    pub unanswered: u64,
}

impl FeedReport {
    /// Adds the information on its writers.
    pub fn met(&mut self, writers: FeedWriters) {
        // For each unanswered question, the run itself entered an answer after the deadline.
        let ours = writers.unanswered.min(self.late_values);
        self.late_values -= ours;
        self.taken_values -= ours;
        self.writers = Some(writers);
    }
}

/// The feeds of a link.
pub(crate) fn of_link<B>(link: LinkId, engine: &Engine<B>) -> impl Iterator<Item = FeedReport> + use<'_, B> {
    let view = engine.view(link);
    let name = view.name().to_owned();
    view.feeds().into_iter().map(move |feed| report(&name, &feed))
}

fn report(link: &str, feed: &FeedView<'_>) -> FeedReport {
    let counters = feed.counters;
    let asked = counters.used + counters.underruns;
    FeedReport {
        link: link.to_owned(),
        feed: feed.config.name.clone(),
        on_empty: match feed.config.on_empty {
            OnEmpty::Zero => "zero",
            OnEmpty::Last => "last",
            OnEmpty::Repeat => "repeat",
            OnEmpty::Drop => "drop",
        }
        .into(),
        lead_values: feed.config.lead.max(1) as u64,
        answer_timeout_ns: feed.config.ask.map(narrows_core::Duration::nanos),
        taken_values: counters.taken,
        used_values: counters.used,
        lost_packets: counters.lost,
        underruns_packets: counters.underruns,
        underruns_share: if asked == 0 { 0.0 } else { counters.underruns as f64 / asked as f64 },
        clamped_values: counters.clamped,
        refused_values: counters.refused,
        discarded_values: counters.discarded,
        waiting_values: feed.waiting,
        asked_packets: counters.asked,
        open_packets: feed.open,
        late_values: counters.late,
        writers: None,
    }
}
