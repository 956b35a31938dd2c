//! The bands of Linux's `pfifo_fast`, by type of service.
//!
//! Linux maps the four TOS bits of RFC 1349 to a priority (`ip_tos2prio`) and the priority to one of three bands
//! (`prio2band`), as in the table of tc-prio(8):
//!
//! | TOS bits | asks for | band |
//! |---|---|---|
//! | `1xxx` without `x1xx` | low delay | 0, served first |
//! | `01xx` | high throughput | 2, served last |
//! | any other | neither, or both | 1 |
//!
//! The precedence bits, and so most of a DSCP, are ignored. Expedited forwarding (46, TOS byte 0xb8) asks for low
//! delay and high throughput by those bits and is in band 1, as in Linux. CS6 is in band 1, AF11 in band 2, AF12 in
//! band 0. Linux reads the byte of IPv4 packets only; all others are in band 1.

use alloc::vec;

use super::{Classifier, Condition, Families};

/// The code points whose TOS byte has these bits for low delay and high throughput.
fn points(bits: u8) -> u64 {
    (0..64u8).filter(|point| point & 0b110 == bits).fold(0, |set, point| set | 1 << point)
}

/// A classifier with three classes, 0 to 2: the bands of `pfifo_fast`.
pub fn pfifo_fast() -> Classifier {
    let asks = |bits| Condition {
        dscps: Some(points(bits)),
        families: Some(Families::IPV4),
        ..Condition::default()
    };
    Classifier::Rules { rules: vec![(asks(0b100), 0), (asks(0b010), 2)], default: Some(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_those_of_the_table_in_tc_prio() {
        // From tc-prio(8): TOS 0x0, 0x2, … 0x1e, for the default priomap 1 2 2 2 1 2 0 0 1 1 …
        let published = [1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1];
        let Classifier::Rules { rules, default } = pfifo_fast() else { panic!("it has rules") };
        let of_dscp = |dscp: u8| {
            let of =
                rules.iter().find(|(condition, _)| condition.dscps.is_some_and(|set| set >> dscp & 1 == 1));
            of.map(|(_, band)| *band).or(default).unwrap()
        };
        for byte in 0..=255u8 {
            let tos = usize::from(byte & 0x1e) >> 1;
            assert_eq!(of_dscp(byte >> 2), published[tos], "{byte:#x}");
        }
        assert_eq!([0, 46, 48, 10, 12, 8].map(of_dscp), [1, 1, 1, 2, 0, 1]);
        assert!(rules.iter().all(|(condition, _)| condition.families == Some(Families::IPV4)));
    }
}
