//! Loss that marks instead: what can be told of congestion is marked and gets through, all else is lost, and which packets
//! are chosen is the same in both ways and for every kind of packet.

use narrows_core::model::Independent;
use narrows_core::{DropReason, FlowKey, LinkConfig, Loss, Target};

use crate::corruption::Sender;
use crate::sample::ratio;

const PACKETS: usize = 5_000;

/// Which packets were lost, and which left with the mark.
fn send(ingress: bool, mark: bool, ecn: u8) -> (Vec<bool>, Vec<bool>, Sender) {
    let mut config = LinkConfig::new("link", Target::Port("out".into()));
    let loss = Loss { mark, ..Loss::of(Independent(ratio(30, 100))) };
    *(if ingress { &mut config.ingress_loss } else { &mut config.wire_loss }) = Some(loss);
    let mut sender = Sender::new(9, config);
    // A DSCP that must stay.
    let key = FlowKey { traffic_class: 46 << 2 | ecn, ..FlowKey::default() };
    let left: Vec<_> = (0..PACKETS).map(|_| sender.send_with(key, 500)).collect();
    for (key, _) in left.iter().flatten() {
        assert_eq!(key.traffic_class >> 2, 46);
    }
    let lost = left.iter().map(Option::is_none).collect();
    let marked = left.iter().map(|left| left.as_ref().is_some_and(|(key, _)| key.traffic_class & 3 == 3));
    (lost, marked.collect(), sender)
}

#[test]
fn what_can_be_marked_is_marked_instead_of_lost() {
    for ingress in [true, false] {
        let (chosen, _, _) = send(ingress, false, 0);
        let count = chosen.iter().filter(|&&chosen| chosen).count() as f64;
        let (n, p) = (PACKETS as f64, 0.3);
        assert!((count - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt(), "{count}");
        for ecn in 0..4u8 {
            let (lost, marked, sender) = send(ingress, true, ecn);
            let (nothing, all) = (vec![false; PACKETS], vec![true; PACKETS]);
            let counters = &sender.engine.view(sender.engine.links().next().expect("one")).counters()[0];
            let reason = if ingress { DropReason::IngressLoss } else { DropReason::WireLoss };
            let (expected_lost, expected_marked) = match ecn {
                0 => (&chosen, &nothing),
                // It has the mark already: it gets through, and is not counted.
                3 => (&nothing, &all),
                _ => (&nothing, &chosen),
            };
            assert_eq!((&lost, &marked), (expected_lost, expected_marked), "ECN {ecn}");
            assert_eq!(counters.marked, if ecn == 1 || ecn == 2 { count as u64 } else { 0 });
            assert_eq!(counters.dropped(reason).packets, if ecn == 0 { count as u64 } else { 0 });
        }
    }
}
