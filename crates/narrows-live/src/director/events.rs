//! The last events of a run, numbered, for clients.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;

use super::Director;
use crate::clock;
use crate::control::{Event, EventsSince, Happening};

/// The number of events kept.
const MOST: usize = 256;
/// The maximum length of a command line kept.
const LONGEST_COMMAND: usize = 160;

/// The last events.
#[derive(Debug, Default)]
pub(super) struct Events {
    kept: VecDeque<Event>,
    /// The total number of events.
    count: u64,
    /// How many writers of each feed had connected and disconnected at the last check.
    writers: BTreeMap<(String, String), (u64, u64)>,
}

impl Events {
    fn add(&mut self, event: impl FnOnce(u64) -> Event) {
        self.count += 1;
        if self.kept.len() == MOST {
            self.kept.pop_front();
        }
        self.kept.push_back(event(self.count));
    }

    /// The events after the one with this number.
    pub(super) fn since(&self, after: u64) -> EventsSince {
        let events: Vec<_> = self.kept.iter().filter(|event| event.number > after).cloned().collect();
        let missed = self.count.saturating_sub(after).saturating_sub(events.len() as u64);
        EventsSince { events, missed }
    }
}

impl Director {
    /// Records an event that has just happened; at a client's request if one is being answered.
    pub(super) fn happened(&mut self, what: Happening, text: String) {
        let (at_ns, wall_ns, generation) =
            (self.clock.now().nanos(), clock::since_1970(), self.plan.generation());
        // A timeline step has no author, whichever request it is noticed in.
        let is_asked_for = matches!(what, Happening::Changed | Happening::Entered | Happening::Ending);
        let by =
            self.asking.filter(|_| is_asked_for).and_then(|client| client.process).and_then(command_line);
        self.events.add(|number| Event { number, at_ns, wall_ns, what, text, generation, by });
    }

    /// Records writers of feeds that connected or disconnected.
    pub(super) fn look_at_feeds(&mut self) {
        let servers = self.pool.workers.iter().filter_map(|worker| worker.feeds.as_ref());
        let now: Vec<_> = servers
            .flat_map(|servers| servers.connections())
            .map(|(place, came, went)| ((place.link.clone(), place.name.clone()), (came, went)))
            .collect();
        for ((link, feed), (came, went)) in now {
            let key = (link, feed);
            let before = self.events.writers.insert(key.clone(), (came, went)).unwrap_or_default();
            let (link, feed) = key;
            let all = [
                (Happening::FeedConnected, came.saturating_sub(before.0)),
                (Happening::FeedGone, went.saturating_sub(before.1)),
            ];
            for (what, number) in all.into_iter().filter(|(_, number)| *number > 0) {
                let writers = if number == 1 { "a writer".to_owned() } else { format!("{number} writers") };
                self.happened(what, format!("{writers} of {link}/{feed}"));
            }
        }
    }

    /// Records packets of a packet thread that exceeded a bound on lateness: `late` counts them since its last
    /// sample.
    pub(super) fn look_at_lateness(&mut self, number: usize, late: &[(narrows_core::Duration, u64)]) {
        let worker = &mut self.pool.workers[number];
        let sampled = worker.seen.late();
        let sum = |at: usize| late[at].1 + sampled.get(at).map_or(0, |(_, packets)| *packets);
        let now: Vec<_> = (0..late.len()).map(|at| (late[at].0, sum(at))).collect();
        let before = std::mem::replace(&mut worker.late, now.clone());
        for (at, (bound, packets)) in now.into_iter().enumerate() {
            let more = packets.saturating_sub(before.get(at).map_or(0, |(_, packets)| *packets));
            if more > 0 {
                let packets =
                    if more == 1 { "1 packet was".to_owned() } else { format!("{more} packets were") };
                self.happened(Happening::Late, format!("{packets} released more than {bound} late"));
            }
        }
    }
}

/// The command line of a process, if it still exists.
fn command_line(process: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.split_terminator('\0');
    let program = Path::new(words.next()?).file_name()?.to_string_lossy().into_owned();
    let line = std::iter::once(program.as_str()).chain(words).collect::<Vec<_>>().join(" ");
    Some(line.chars().take(LONGEST_COMMAND).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        let (what, text) = (Happening::Changed, number.to_string());
        Event { number, at_ns: 0, wall_ns: 0, what, text, generation: 0, by: None }
    }

    #[test]
    fn the_last_events_are_kept_and_what_is_gone_is_counted() {
        let mut events = Events::default();
        assert_eq!(events.since(0), EventsSince::default());
        (0..MOST + 10).for_each(|_| events.add(event));
        let all = events.since(0);
        assert_eq!((all.events.len(), all.missed, all.events[0].number), (MOST, 10, 11));
        let last = events.since(MOST as u64 + 9);
        assert_eq!((last.events.len(), last.missed), (1, 0));
        assert_eq!(events.since(u64::MAX), EventsSince::default());
    }

    #[test]
    fn a_process_is_called_by_its_program_and_arguments() {
        let own = command_line(std::process::id()).unwrap();
        assert!(own.starts_with("narrows_live-"), "{own}");
        assert_eq!(command_line(0), None);
    }
}
