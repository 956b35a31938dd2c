//! Packets of a run, for viewers of its packets: one query for all of them, and none while there is no viewer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use narrows_live::control::{Client, ControlError, PacketCounts, PacketRecord, PacketsSince};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::stream::{Tell, message, tell_each};

/// How often a run is asked.
const EACH: Duration = Duration::from_millis(250);
/// Packets kept for viewers that read slowly, and for those that come later.
const MOST: usize = 1024;

/// The last packets of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest {
    since_ns: u64,
    packets: Arc<Vec<PacketRecord>>,
    /// Packets that a run no longer kept when it was asked.
    missed: u64,
    counts: PacketCounts,
    /// Why there is no answer now.
    gone: Option<Arc<str>>,
}

/// The runs whose packets are viewed.
#[derive(Debug, Default)]
pub(crate) struct Inspected(Mutex<BTreeMap<String, watch::Sender<Latest>>>);

impl Inspected {
    /// Subscribes to the packets of a run, as an event stream.
    pub(crate) fn stream(self: &Arc<Self>, run: &str) -> Body {
        tell_each(self.watch(run), Known::default())
    }

    fn watch(self: &Arc<Self>, run: &str) -> watch::Receiver<Latest> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(run) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Latest::default());
        watched.insert(run.into(), sender.clone());
        tokio::spawn(keep(self.clone(), run.into(), sender));
        receiver
    }
}

/// Asks a run repeatedly, as long as anybody is subscribed.
async fn keep(inspected: Arc<Inspected>, run: String, sender: watch::Sender<Latest>) {
    let mut latest = Latest::default();
    loop {
        let (named, after) = (run.clone(), latest.packets.last().map_or(0, |packet| packet.seen));
        let asked = spawn_blocking(move || Client::find(Some(&named))?.packets(after)).await;
        let answer = asked.unwrap_or_else(|failure| Err(ControlError::Refused(failure.to_string())));
        latest = match answer {
            Ok(new) => latest.with(new),
            Err(error) => Latest { gone: Some(error.to_string().into()), ..Latest::default() },
        };
        sender.send_replace(latest.clone());
        sleep(EACH).await;
        let mut watched = inspected.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.receiver_count() == 0 {
            watched.remove(&run);
            return;
        }
    }
}

impl Latest {
    fn with(self, new: PacketsSince) -> Self {
        let PacketsSince { since_ns, packets, missed, counts } = new;
        let packets = if packets.is_empty() {
            self.packets
        } else {
            let all = self.packets.len() + packets.len();
            let known = self.packets.iter().cloned().chain(packets);
            Arc::new(known.skip(all.saturating_sub(MOST)).collect())
        };
        // What was no longer kept at the first question was for earlier viewers.
        let missed = if self.since_ns == since_ns { self.missed + missed } else { 0 };
        Self { since_ns, packets, missed, counts, gone: None }
    }
}

/// What a viewer already has.
#[derive(Default)]
struct Known {
    last: u64,
}

/// Packets that a viewer does not have yet.
#[derive(Serialize)]
struct New<'a> {
    since_ns: u64,
    counts: PacketCounts,
    missed: u64,
    packets: &'a [PacketRecord],
}

impl Tell<Latest> for Known {
    fn tell(&mut self, latest: &Latest) -> String {
        if let Some(why) = &latest.gone {
            self.last = 0;
            return message("gone", &**why);
        }
        let last = latest.packets.last().map_or(0, |packet| packet.seen);
        // Another run of that name counts from the first.
        let after = if last < self.last { 0 } else { self.last };
        let from = latest.packets.partition_point(|packet| packet.seen <= after);
        self.last = last;
        let Latest { since_ns, counts, missed, .. } = *latest;
        message("packets", &New { since_ns, counts, missed, packets: &latest.packets[from..] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(since_ns: u64, numbers: std::ops::Range<u64>) -> PacketsSince {
        let packet = |seen| PacketRecord { seen, ..PacketRecord::default() };
        PacketsSince { since_ns, packets: numbers.map(packet).collect(), missed: 2, ..Default::default() }
    }

    #[test]
    fn a_viewer_gets_each_packet_once() {
        let mut known = Known::default();
        let first = Latest::default().with(answer(7, 1..3));
        let told = known.tell(&first);
        assert!(told.starts_with("event: packets\n") && told.contains("\"seen\":2"), "{told}");
        let second = first.with(answer(7, 3..4));
        let told = known.tell(&second);
        assert!(told.contains("\"seen\":3") && !told.contains("\"seen\":2"), "{told}");
        assert!(told.contains("\"missed\":2"), "{told}");
        assert!(known.tell(&second.with(answer(7, 4..4))).contains("\"packets\":[]"));
    }

    #[test]
    fn the_last_packets_are_kept() {
        let all = Latest::default().with(answer(1, 1..1001)).with(answer(1, 1001..1101));
        assert_eq!((all.packets.len(), all.packets[0].seen), (MOST, 1101 - MOST as u64));
        assert_eq!(all.with(answer(2, 1101..1102)).missed, 0);
    }
}
