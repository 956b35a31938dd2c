//! A container that is watched.

use std::time::Duration;

use narrows_io::clock::MonotonicTime;
use narrows_io::namespace::Namespace;
use narrows_live::run_record::Membership;

use super::LOOK;
use crate::container::Container;
use crate::labels::Wish;

/// How long an interface may take to be up: an engine needs a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// The waits before a failed network is tried again.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A network that a container gets.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) wish: Wish,
    /// What its runs are shown as.
    pub(super) title: String,
    /// Their place in the graph of a lab.
    pub(super) membership: Option<Membership>,
}

/// A container, and when to look at it again.
#[derive(Debug)]
pub(super) struct Member {
    container: Container,
    /// What it gets, or what is wrong with its labels.
    demands: Result<Vec<Demand>, String>,
    /// The last event.
    since: MonotonicTime,
    next_look: Option<MonotonicTime>,
    /// Whether an interface is waited for.
    is_starting: bool,
    wait: Duration,
    /// What was said of it last, which is not said again.
    last_said: Option<String>,
}

impl Member {
    pub(super) fn new(container: Container, demands: Result<Vec<Demand>, String>, at: MonotonicTime) -> Self {
        Self {
            container,
            demands,
            since: at,
            next_look: None,
            is_starting: false,
            wait: FIRST_WAIT,
            last_said: None,
        }
    }

    /// It is now like this, after an event.
    pub(super) fn update(&mut self, container: Container, at: MonotonicTime) {
        // Labels do not change during a container's life.
        // It is in the middle of its start, since an earlier event.
        if !self.is_starting {
            self.since = at;
        }
        // One that joins a further network before its start is known by one network at a time.
        let mut networks = container.networks.clone();
        if self.container.process.is_none() && container.process.is_none() {
            networks.extend(self.container.networks.clone());
        }
        self.container = Container { networks, ..container };
    }

    pub(super) fn container(&self) -> &Container {
        &self.container
    }

    /// Whether its process runs, whatever late events say.
    pub(super) fn is_running(&self) -> bool {
        self.container.process.is_some_and(|process| Namespace::open(&format!("pid:{process}")).is_ok())
    }

    pub(super) fn demands(&self) -> Result<Vec<Demand>, String> {
        self.demands.clone()
    }

    pub(super) fn since(&self) -> MonotonicTime {
        self.since
    }

    pub(super) fn next_look(&self) -> Option<MonotonicTime> {
        self.next_look
    }

    /// Its interfaces are not all there yet: looks again in a moment, but not for ever. False when it is too late.
    pub(super) fn look_again(&mut self, now: MonotonicTime) -> bool {
        let is_in_time = now.as_nanos() < self.since.as_nanos() + PATIENCE.as_nanos() as u64;
        self.next_look = is_in_time.then(|| after(now, LOOK));
        self.is_starting = is_in_time;
        is_in_time
    }

    /// All is there.
    pub(super) fn is_settled(&mut self) {
        self.next_look = None;
        self.is_starting = false;
    }

    /// A network is up.
    pub(super) fn attached(&mut self) {
        self.wait = FIRST_WAIT;
        self.last_said = None;
    }

    /// A network has failed: it is tried again later. Whether that is news.
    pub(super) fn failed(&mut self, why: &str, now: MonotonicTime) -> bool {
        self.next_look = Some(after(now, self.wait));
        self.is_starting = false;
        self.wait = LONGEST_WAIT.min(self.wait * 2);
        self.says(why)
    }

    /// Whether this was not said before.
    pub(super) fn says(&mut self, what: &str) -> bool {
        let is_news = self.last_said.as_deref() != Some(what);
        self.last_said = Some(what.to_owned());
        is_news
    }
}

pub(super) fn after(now: MonotonicTime, wait: Duration) -> MonotonicTime {
    MonotonicTime::from_nanos(now.as_nanos().saturating_add(wait.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    fn member() -> Member {
        let text = br#"{"Id":"f0","Name":"/web"}"#;
        Member::new(Container::parse(text).unwrap(), Ok(Vec::new()), at(100))
    }

    #[test]
    fn an_interface_is_waited_for_and_not_for_ever() {
        let mut member = member();
        assert!(member.look_again(at(101)));
        assert_eq!(member.next_look(), Some(after(at(101), LOOK)));
        assert!(!member.look_again(at(110)));
        assert_eq!(member.next_look(), None);
    }

    #[test]
    fn a_failure_is_told_once_and_tried_again_ever_later() {
        let mut member = member();
        assert!(member.failed("taken", at(100)));
        assert_eq!(member.next_look(), Some(at(101)));
        assert!(!member.failed("taken", at(101)));
        assert_eq!(member.next_look(), Some(at(103)));
        for _ in 0..10 {
            member.failed("taken", at(200));
        }
        assert_eq!(member.next_look(), Some(at(230)));
        assert!(member.failed("another", at(230)));
        member.attached();
        assert!(member.failed("taken", at(300)));
        assert_eq!(member.next_look(), Some(at(301)));
    }
}
