//! Which parts of a network a loop handles, if several threads share it.
//!
//! Parts between which no packet can travel ([`Parts`]) are independent. So each thread has an engine for the whole
//! network, in which only its own parts see packets: names, numbers and draws are those of a single engine for all,
//! and so are the verdicts. An unused link costs less than a KiB.

use std::sync::Arc;

use narrows_core::{Element, Engine, Parts, PortId};
use narrows_io::scheduling::usable_processors;
use narrows_report::Place;

use super::pace::PaceError;

/// On how many threads, and where, the independent components of a network run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The maximum number of threads; by default as many as the host has room for.
    pub most: Option<usize>,
    /// The processors, one per thread; empty for any.
    pub processors: Vec<usize>,
}

impl Threads {
    /// The number of threads for this many parts.
    fn count(&self, parts: usize) -> Result<usize, PaceError> {
        let most = match (self.most, self.processors.len()) {
            (Some(most), _) => most,
            (None, 0) => room(usable_processors().map_or(1, |usable| usable.len())),
            (None, named) => named,
        };
        let count = parts.min(most).max(1);
        match self.processors.len() {
            named if named == 0 || named >= count => Ok(count),
            named => Err(PaceError::TooFewProcessors { named, threads: count }),
        }
    }
}

/// How many threads that may never sleep fit on a host with this many processors, beside the programs.
fn room(processors: usize) -> usize {
    if processors > 2 { processors - 1 } else { processors }
}

/// Which packet thread serves which parts of a network.
#[derive(Clone, Debug)]
pub struct Division {
    shares: Vec<Share>,
}

impl Default for Division {
    /// One thread for all.
    fn default() -> Self {
        Self { shares: vec![Share::default()] }
    }
}

impl Division {
    /// For a network of which these ports have cables.
    ///
    /// # Errors
    /// If fewer processors are given than there will be threads.
    pub fn of<'a, B>(
        engine: &Engine<B>,
        ports: impl IntoIterator<Item = &'a str>,
        threads: &Threads,
    ) -> Result<Self, PaceError> {
        let (parts, mut sizes) = (engine.parts(), vec![0; engine.parts().count()]);
        let ports = ports.into_iter().filter_map(|port| engine.port(port));
        ports.for_each(|port| sizes[parts.of_port(port)] += 1);
        Ok(Self { shares: Share::among(parts, &sizes, threads)? })
    }

    /// The number of the thread that serves a port.
    pub fn thread_of(&self, port: PortId) -> usize {
        self.shares.iter().position(|share| share.has(Place::Port(port))).unwrap_or(0)
    }

    pub(crate) fn into_shares(self) -> Vec<Share> {
        self.shares
    }
}

/// A loop's share of a network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share(Option<Several>);

/// If there are several.
#[derive(Clone, Debug)]
struct Several {
    own: usize,
    /// The thread of each part.
    threads: Arc<[usize]>,
    parts: Parts,
}

impl Share {
    /// Whether this place is in the loop's share.
    pub(crate) fn has(&self, place: Place) -> bool {
        self.0.as_ref().is_none_or(|several| {
            let part = match place {
                Place::Port(port) => several.parts.of_port(port),
                Place::Element(element) => several.parts.of_element(element),
            };
            several.threads[part] == several.own
        })
    }

    pub(crate) fn has_element(&self, element: Element) -> bool {
        self.has(Place::Element(element))
    }

    /// Links may have been added.
    pub(crate) fn update<B>(&mut self, engine: &Engine<B>) {
        if let Some(several) = &mut self.0 {
            several.parts = engine.parts();
        }
    }
}

impl Share {
    /// Shares for several loops, at most this many threads; a single share if there are no independent components, or
    /// no room for more threads. `sizes` is the number of ports with cables of each component.
    fn among(parts: Parts, sizes: &[usize], threads: &Threads) -> Result<Vec<Self>, PaceError> {
        let count = threads.count(sizes.iter().filter(|&&size| size > 0).count())?;
        if count < 2 {
            return Ok(vec![Self::default()]);
        }
        let threads: Arc<[usize]> = deal(sizes, count).into();
        let share = |own| Self(Some(Several { own, threads: threads.clone(), parts: parts.clone() }));
        Ok((0..count).map(share).collect())
    }
}

/// Distributes parts of these sizes among threads: largest first, each to the thread with the least.
fn deal(sizes: &[usize], threads: usize) -> Vec<usize> {
    let mut largest_first: Vec<usize> = (0..sizes.len()).collect();
    largest_first.sort_by_key(|&part| std::cmp::Reverse(sizes[part]));
    let (mut dealt, mut loads) = (vec![0; sizes.len()], vec![0; threads]);
    for part in largest_first {
        let least = (0..threads).min_by_key(|&thread| loads[thread]).unwrap_or(0);
        dealt[part] = least;
        loads[least] += sizes[part];
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_dealt_out_evenly_and_always_the_same_way() {
        assert_eq!(deal(&[2, 2, 2, 2], 2), [0, 1, 0, 1]);
        assert_eq!(deal(&[2, 2, 8, 2, 2], 2), [1, 1, 0, 1, 1]);
        assert_eq!(deal(&[0, 2], 2), [1, 0]);
        assert_eq!(deal(&[], 3), Vec::<usize>::new());
    }

    #[test]
    fn there_are_no_more_threads_than_parts_or_processors() {
        let threads = |most, processors: &[usize]| Threads { most, processors: processors.to_vec() };
        assert_eq!(threads(Some(4), &[]).count(3).unwrap(), 3);
        assert_eq!(threads(Some(2), &[]).count(3).unwrap(), 2);
        assert_eq!(threads(Some(2), &[]).count(0).unwrap(), 1);
        assert_eq!(threads(None, &[0]).count(3).unwrap(), 1);
        assert_eq!(threads(None, &[0, 1]).count(3).unwrap(), 2);
        assert_eq!(threads(Some(4), &[0, 1]).count(2).unwrap(), 2);
        let refused = threads(Some(4), &[0, 1]).count(3).unwrap_err().to_string();
        assert!(refused.contains("2 processors") && refused.contains("3 threads"), "{refused}");
        assert_eq!([1, 2, 3, 16].map(room), [1, 2, 2, 15]);
    }
}
