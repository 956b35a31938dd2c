//! The neighbours of one interface: their link addresses, requests for them, and packets that wait for an answer.
//!
//! The states are those of RFC 4861, 7.3, which Linux uses for ARP, too, with its default times:
//! - An address is asked for three times, a second apart. Packets to it wait, at most [`MOST_WAITING`]; one more takes
//!   the place of the oldest. If there is no answer, they are given up.
//! - An answer counts as fresh for 30 s. Then the next packet leads to requests to that station alone; packets leave to
//!   the known address meanwhile. After three requests without an answer the address is forgotten.
//!
//! Time comes in as an argument: nothing here reads a clock.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use narrows_core::{Duration, Time};
use narrows_frame::MacAddress;

/// How often an address is asked for, and how long each request may take (RFC 4861, 10: `MAX_MULTICAST_SOLICIT`,
/// `RETRANS_TIMER`).
const REQUESTS: u8 = 3;
const REQUEST_EVERY: Duration = Duration::from_secs(1);
/// How long an answer is believed (`REACHABLE_TIME`).
const FRESH: Duration = Duration::from_secs(30);
/// Packets that wait for one address.
pub(crate) const MOST_WAITING: usize = 64;
/// Addresses that are known or asked for.
const MOST: usize = 1024;

/// The neighbours of an interface; `W` is a packet that waits.
#[derive(Debug)]
pub(crate) struct Neighbours<W> {
    all: BTreeMap<IpAddr, Entry<W>>,
}

impl<W> Default for Neighbours<W> {
    fn default() -> Self {
        Self { all: BTreeMap::new() }
    }
}

#[derive(Debug)]
struct Entry<W> {
    mac: Option<MacAddress>,
    /// When the neighbour last told its address.
    told: Time,
    /// When a packet last needed it.
    needed: Time,
    /// Requests sent since.
    requests: u8,
    /// When the next request is due, or the last one has failed.
    next: Option<Time>,
    waiting: VecDeque<W>,
}

/// A request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) address: IpAddr,
    /// The station that had the address; `None`: everybody is asked.
    pub(crate) had: Option<MacAddress>,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due<W> {
    /// Send this request.
    Ask(Ask),
    /// There was no answer for these packets.
    GivenUp(VecDeque<W>),
}

/// Whether a packet can be sent to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Yes; it may be time to send a request.
    Known(Option<Ask>),
    /// Not yet: it waits; there may be a request to send.
    Waits(Option<Ask>),
    /// No: too many addresses are being asked for.
    Full,
}

impl<W> Neighbours<W> {
    /// The link address of a neighbour, if it is known.
    pub(crate) fn mac(&self, address: IpAddr) -> Option<MacAddress> {
        self.all.get(&address)?.mac
    }

    /// Whether a packet at an instant can be sent to a neighbour.
    pub(crate) fn reach(&mut self, at: Time, address: IpAddr) -> Reach {
        if !self.all.contains_key(&address) {
            if !self.has_room(at) {
                return Reach::Full;
            }
            let (mac, waiting) = (None, VecDeque::new());
            self.all.insert(address, Entry { mac, told: at, needed: at, requests: 0, next: None, waiting });
        }
        let Some(entry) = self.all.get_mut(&address) else { return Reach::Full };
        entry.needed = at;
        let is_doubtful = entry.mac.is_none() || at.since(entry.told) >= FRESH;
        let ask = (is_doubtful && entry.next.is_none()).then(|| entry.ask(at, address));
        if entry.mac.is_some() { Reach::Known(ask) } else { Reach::Waits(ask) }
    }

    /// Makes a packet wait for a neighbour's answer. Returns the one that has no place any more.
    pub(crate) fn wait(&mut self, address: IpAddr, packet: W) -> Option<W> {
        let Some(entry) = self.all.get_mut(&address) else { return Some(packet) };
        entry.waiting.push_back(packet);
        if entry.waiting.len() > MOST_WAITING { entry.waiting.pop_front() } else { None }
    }

    /// A neighbour has told its link address. Returns the packets that waited for that. Addresses that nobody asked for
    /// are taken if `is_wanted`.
    pub(crate) fn told(
        &mut self,
        at: Time,
        address: IpAddr,
        mac: MacAddress,
        is_wanted: bool,
    ) -> VecDeque<W> {
        let has_place = self.all.contains_key(&address) || is_wanted && self.has_room(at);
        if !has_place {
            return VecDeque::new();
        }
        let entry = self.all.entry(address).or_insert_with(|| Entry {
            mac: None,
            told: at,
            needed: at,
            requests: 0,
            next: None,
            waiting: VecDeque::new(),
        });
        (entry.mac, entry.told, entry.requests, entry.next) = (Some(mac), at, 0, None);
        std::mem::take(&mut entry.waiting)
    }

    /// When the next thing is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.all.values().filter_map(|entry| entry.next).min()
    }

    /// The next thing that is due at an instant.
    pub(crate) fn due(&mut self, at: Time) -> Option<Due<W>> {
        let is_due = |entry: &Entry<W>| entry.next.is_some_and(|next| next <= at);
        let (&address, entry) = self.all.iter_mut().find(|(_, entry)| is_due(entry))?;
        if entry.requests < REQUESTS {
            return Some(Due::Ask(entry.ask(at, address)));
        }
        let waiting = std::mem::take(&mut entry.waiting);
        self.all.remove(&address);
        Some(Due::GivenUp(waiting))
    }

    /// How many packets wait.
    pub(crate) fn waiting(&self) -> usize {
        self.all.values().map(|entry| entry.waiting.len()).sum()
    }

    /// Whether there is room for another address; if not, the one that was not needed for longest makes room, unless
    /// its answer is fresh or packets wait for it.
    fn has_room(&mut self, at: Time) -> bool {
        if self.all.len() < MOST {
            return true;
        }
        let is_idle = |entry: &Entry<W>| entry.next.is_none() && at.since(entry.needed) >= FRESH;
        let idle = self.all.iter().filter(|(_, entry)| is_idle(entry));
        let oldest = idle.min_by_key(|(_, entry)| entry.needed).map(|(&address, _)| address);
        oldest.is_some_and(|address| self.all.remove(&address).is_some())
    }
}

impl<W> Entry<W> {
    fn ask(&mut self, at: Time, address: IpAddr) -> Ask {
        self.requests += 1;
        self.next = Some(at + REQUEST_EVERY);
        Ask { address, had: self.mac }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn host(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number).into()
    }

    fn everybody(number: u32) -> Ask {
        Ask { address: host(number), had: None }
    }

    #[test]
    fn packets_wait_for_the_answer_and_then_go_at_once() {
        let mut all = Neighbours::default();
        assert_eq!(all.reach(at(0), host(1)), Reach::Waits(Some(everybody(1))));
        assert_eq!(all.wait(host(1), "first"), None);
        assert_eq!(all.reach(at(1), host(1)), Reach::Waits(None), "it has been asked for");
        assert_eq!(all.wait(host(1), "second"), None);
        assert_eq!((all.waiting(), all.mac(host(1)), all.next()), (2, None, Some(at(1000))));
        assert_eq!(all.told(at(2), host(1), MAC, false), ["first", "second"]);
        assert_eq!(all.reach(at(3), host(1)), Reach::Known(None));
        assert_eq!((all.waiting(), all.mac(host(1)), all.next()), (0, Some(MAC), None));
    }

    #[test]
    fn three_requests_a_second_apart_and_then_they_are_given_up() {
        let mut all = Neighbours::default();
        all.reach(at(0), host(1));
        all.wait(host(1), 7);
        assert_eq!(all.due(at(999)), None);
        assert_eq!(all.due(at(1000)), Some(Due::Ask(everybody(1))));
        assert_eq!(all.due(at(1000)), None);
        assert_eq!(all.due(at(2000)), Some(Due::Ask(everybody(1))));
        assert_eq!(all.due(at(3000)), Some(Due::GivenUp([7].into())));
        assert_eq!((all.due(at(9000)), all.next(), all.waiting()), (None, None, 0));
        assert_eq!(all.reach(at(9000), host(1)), Reach::Waits(Some(everybody(1))), "from the beginning");
    }

    #[test]
    fn the_oldest_makes_room_for_one_packet_too_many() {
        let mut all = Neighbours::default();
        all.reach(at(0), host(1));
        for number in 0..MOST_WAITING {
            assert_eq!(all.wait(host(1), number), None);
        }
        assert_eq!(all.wait(host(1), MOST_WAITING), Some(0));
        assert_eq!(all.waiting(), MOST_WAITING);
        assert_eq!(all.wait(host(2), 5), Some(5), "nobody asked for that one");
    }

    #[test]
    fn an_old_answer_is_asked_about_while_it_is_used_and_forgotten_without_another() {
        let mut all = Neighbours::<()>::default();
        assert_eq!(all.told(at(0), host(1), MAC, false), []);
        assert_eq!(all.mac(host(1)), None, "unasked");
        all.told(at(0), host(1), MAC, true);
        assert_eq!(all.reach(at(29_999), host(1)), Reach::Known(None));
        let alone = Ask { address: host(1), had: Some(MAC) };
        assert_eq!(all.reach(at(30_000), host(1)), Reach::Known(Some(alone)));
        assert_eq!(all.due(at(31_000)), Some(Due::Ask(alone)));
        assert_eq!(all.reach(at(31_500), host(1)), Reach::Known(None));
        all.told(at(31_600), host(1), MAC, false);
        assert_eq!((all.next(), all.reach(at(31_700), host(1))), (None, Reach::Known(None)));
        all.reach(at(90_000), host(1));
        for second in 91..=93 {
            assert!(all.due(at(second * 1000)).is_some());
        }
        assert_eq!(all.mac(host(1)), None);
    }

    #[test]
    fn there_is_room_for_many_and_for_more_once_some_are_idle() {
        let mut all = Neighbours::<()>::default();
        for number in 0..MOST as u32 {
            all.told(at(u64::from(number)), host(number), MAC, true);
        }
        assert_eq!(all.reach(at(2000), host(5000)), Reach::Full);
        assert_eq!(all.told(at(2000), host(5000), MAC, true), []);
        assert_eq!(all.mac(host(5000)), None);
        assert!(matches!(all.reach(at(31_000), host(5000)), Reach::Waits(Some(_))));
        assert_eq!((all.mac(host(0)), all.mac(host(1))), (None, Some(MAC)), "the most idle one went");
    }
}
