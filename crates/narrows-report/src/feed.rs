//! What a report says of feeds: delays that another process streams in.

use narrows_core::model::OnEmpty;
use narrows_core::{Engine, FeedView, LinkId};
use serde::{Deserialize, Serialize};

use crate::info::Word;

/// A feed of a link.
///
/// One way, `taken = used + discarded + waiting`; two-way, `taken = used + late`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedReport {
    /// The link.
    pub link: String,
    /// Its name, unique on that link.
    pub feed: String,
    /// What became of packets for which there was no value: `zero`, `last`, `repeat` or `drop`.
    pub on_empty: Word,
    /// How many values may wait at most.
    pub lead_values: u64,
    /// How long packets wait for answers, in the two-way form.
    pub patience_ns: Option<u64>,
    /// Values that came.
    pub taken_values: u64,
    /// Values that decided over a packet.
    pub used_values: u64,
    /// Of these, those that lost it.
    pub lost_packets: u64,
    /// Packets for which there was no value in time.
    pub underruns_packets: u64,
    /// Underruns by all packets that asked for a value.
    pub underruns_share: f64,
    /// Values beyond an hour, which became an hour.
    pub clamped_values: u64,
    /// Values for which there was no room, or no question.
    pub refused_values: u64,
    /// Values that waited when the feed became a two-way one.
    pub discarded_values: u64,
    /// Values that wait now.
    pub waiting_values: u64,
    /// Packets that asked for an answer.
    pub asked_packets: u64,
    /// Packets that wait for one now.
    pub open_packets: u64,
    /// Answers that came too late.
    pub late_values: u64,
    /// What became of those who write to it, in a live run.
    pub writers: Option<FeedWriters>,
}

/// What became of the writers of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedWriters {
    /// The link.
    #[serde(skip)]
    pub link: String,
    /// The feed.
    #[serde(skip)]
    pub feed: String,
    /// Those that were let in, one after the other.
    pub writers: u64,
    /// Those that were sent away, because there was one.
    pub refused_writers: u64,
    /// Those that were cut off, because what they sent is no value.
    pub malformed_writers: u64,
    /// Values that were cut short, because their writer was gone.
    pub torn_values: u64,
    /// Questions that no writer has answered.
    pub unanswered: u64,
}

impl FeedReport {
    /// Takes what is known of those who wrote to it.
    pub fn met(&mut self, writers: FeedWriters) {
        // For each question that nobody answered, the run put in an answer of its own, after its time.
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
        patience_ns: feed.config.ask.map(narrows_core::Duration::nanos),
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
