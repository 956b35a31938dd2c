//! Address translation of a gateway, and its rebindings at set times.

use std::net::IpAddr;

use narrows_core::{Duration, Time};
use narrows_frame::nat::{Nat, Outcome, Rebind};
use narrows_frame::translate::{Kind, kind};

/// A rebinding of the translation, once or periodically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebinding {
    /// What changes.
    pub what: Rebind,
    /// The time of the first one, from the first translated packet.
    pub after: Duration,
    /// The period, if it repeats.
    pub every: Option<Duration>,
}

/// The translator and its clock of rebindings.
#[derive(Debug)]
pub(crate) struct Translation {
    nat: Nat,
    rebindings: Vec<Rebinding>,
    /// When each is due; empty before the first packet.
    due: Vec<Option<Time>>,
    done: u64,
}

impl Translation {
    pub(crate) fn new(addresses: &[IpAddr], rebindings: &[Rebinding]) -> Self {
        Self { nat: Nat::new(addresses), rebindings: rebindings.to_vec(), due: Vec::new(), done: 0 }
    }

    /// Whether it translates packets of this kind.
    pub(crate) fn takes(&self, frame: &[u8]) -> bool {
        !matches!(kind(frame), Kind::Other)
    }

    /// Translates a packet that leaves to the outside.
    pub(crate) fn outbound(&mut self, at: Time, frame: &mut [u8]) -> Outcome {
        if self.due.is_empty() {
            self.due = self.rebindings.iter().map(|rebinding| Some(at + rebinding.after)).collect();
        }
        self.attend(at);
        self.nat.outbound(at, frame)
    }

    /// Translates a packet from outside.
    pub(crate) fn inbound(&mut self, at: Time, frame: &mut [u8]) -> Outcome {
        self.attend(at);
        self.nat.inbound(at, frame)
    }

    /// Gives a packet from outside its outer destination again.
    pub(crate) fn undo_inbound(&self, frame: &mut [u8]) {
        self.nat.undo_inbound(frame);
    }

    /// Whether this is an outer address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.nat.has(address)
    }

    /// Makes the rebindings due by an instant, in order of time.
    pub(crate) fn attend(&mut self, at: Time) {
        while let Some(next) = self.next().filter(|&next| next <= at) {
            for (due, rebinding) in self.due.iter_mut().zip(&self.rebindings) {
                if *due == Some(next) {
                    self.nat.rebind(rebinding.what);
                    self.done += 1;
                    *due = rebinding.every.map(|every| next + every);
                }
            }
        }
    }

    /// Forgets all mappings.
    pub(crate) fn rebind(&mut self, what: Rebind) {
        self.nat.rebind(what);
        self.done += 1;
    }

    /// Whether there is another address to change to.
    pub(crate) fn has_choice(&self) -> bool {
        self.nat.has_choice()
    }

    /// When the next rebinding is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.due.iter().flatten().copied().min()
    }

    /// How many were made.
    pub(crate) fn rebindings(&self) -> u64 {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_frame::MacAddress;
    use narrows_frame::craft::Udp;
    use narrows_frame::translate::Endpoint;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn leaves(translation: &mut Translation, at: Time) -> Endpoint {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let udp = Udp::new("10.0.0.7:5000".parse().unwrap(), "192.0.2.1:443".parse().unwrap());
        let mut frame = udp.ethernet(mac, mac, b"hello");
        assert_eq!(translation.outbound(at, &mut frame), Outcome::Translated);
        let Kind::Flow(flow) = kind(&frame) else { panic!() };
        flow.source
    }

    #[test]
    fn rebindings_count_from_the_first_packet_and_repeat() {
        let addresses = ["198.51.100.1", "198.51.100.2"].map(|text| text.parse().unwrap());
        let (after, every) = (Duration::from_millis(100), Some(Duration::from_millis(1000)));
        let port = Rebinding { what: Rebind::Port, after, every };
        let address = Rebinding { what: Rebind::Address, after: Duration::from_millis(500), every: None };
        let mut translation = Translation::new(&addresses, &[port, address]);
        assert_eq!(translation.next(), None);
        translation.attend(at(5000));
        let place = |number: usize, port| Endpoint { address: addresses[number], port };
        assert_eq!(leaves(&mut translation, at(6000)), place(0, 61_000));
        assert_eq!(translation.next(), Some(at(6100)));
        assert_eq!(leaves(&mut translation, at(6099)), place(0, 61_000));
        assert_eq!(leaves(&mut translation, at(6100)), place(0, 61_001));
        assert_eq!(leaves(&mut translation, at(6600)), place(1, 61_002));
        assert_eq!(translation.rebindings(), 2);
        // However late anybody looks.
        translation.attend(at(8200));
        assert_eq!((translation.rebindings(), translation.next()), (4, Some(at(9100))));
    }
}
