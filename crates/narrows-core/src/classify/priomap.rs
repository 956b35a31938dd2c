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
//! band 0. Linux reads the byte of forwarded IPv4 packets; here IPv6 packets are treated the same.

use alloc::boxed::Box;

use super::Classifier;

/// The TOS bits for low delay and high throughput.
const LOW_DELAY: u8 = 0x10;
const HIGH_THROUGHPUT: u8 = 0x08;

/// A classifier with three classes, 0 to 2: the bands of `pfifo_fast`.
pub fn pfifo_fast() -> Classifier {
    let band = |byte: usize| match byte as u8 & (LOW_DELAY | HIGH_THROUGHPUT) {
        LOW_DELAY => 0,
        HIGH_THROUGHPUT => 2,
        _ => 1,
    };
    Classifier::TrafficClass(Box::new(core::array::from_fn(band)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_those_of_the_table_in_tc_prio() {
        // From tc-prio(8): TOS 0x0, 0x2, … 0x1e, for the default priomap 1 2 2 2 1 2 0 0 1 1 …
        let published = [1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1];
        let Classifier::TrafficClass(bands) = pfifo_fast() else { panic!("it goes by the byte") };
        for byte in 0..=255u8 {
            let tos = usize::from(byte & 0x1e) >> 1;
            assert_eq!(bands[usize::from(byte)], published[tos], "{byte:#x}");
        }
        let of_dscp = |dscp: u8| bands[usize::from(dscp << 2)];
        assert_eq!([0, 46, 48, 10, 12, 8].map(of_dscp), [1, 1, 1, 2, 0, 1]);
    }
}
