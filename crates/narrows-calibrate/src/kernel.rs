//! The kernel's own queueing disciplines for comparison with narrows, as in the figures of Grohmann 2023:
//! `pfifo_fast`, the traditional default of interfaces, and `netem`, the kernel's emulator.

use narrows_core::model::quantile;
use narrows_io::host::has_qdisc;

use crate::asked::{Path, Setting};

/// The limit of `netem`, in packets: more than arrive within the longest delay at the highest rate.
const LIMIT: u32 = 100_000;
/// The number of entries in a distribution table, as in iproute2's `normal.dist`.
const TABLE: u32 = 4096;
/// The value of one standard deviation in such a table (`NETEM_DIST_SCALE`).
const SCALE: f64 = 8192.0;
/// `TCA_NETEM_DELAY_DIST`, `TCA_NETEM_LATENCY64`, `TCA_NETEM_JITTER64`.
const DISTRIBUTION: u16 = 2;
const LATENCY: u16 = 10;
const JITTER: u16 = 11;

/// A queueing discipline with its netlink options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qdisc {
    pub(crate) kind: &'static str,
    pub(crate) options: Vec<u8>,
}

impl Qdisc {
    pub(crate) fn pfifo_fast() -> Self {
        Self { kind: "pfifo_fast", options: Vec::new() }
    }

    /// As `tc qdisc add … netem limit 100000 delay MEAN [SD distribution normal]`.
    pub(crate) fn netem(setting: Setting) -> Self {
        // struct tc_netem_qopt: latency (in ticks; the 64-bit attribute counts), limit, loss, gap, duplication, jitter.
        let mut options = vec![0; 24];
        options[4..8].copy_from_slice(&LIMIT.to_ne_bytes());
        attribute(&mut options, LATENCY, &setting.mean().to_ne_bytes());
        if let Some((_, sd)) = setting.normal() {
            attribute(&mut options, JITTER, &(sd as u64).to_ne_bytes());
            let values = (0..TABLE).map(|at| {
                let value = quantile((f64::from(at) + 0.5) / f64::from(TABLE)) * SCALE;
                value.clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16
            });
            let table: Vec<u8> = values.flat_map(i16::to_ne_bytes).collect();
            attribute(&mut options, DISTRIBUTION, &table);
        }
        Self { kind: "netem", options }
    }
}

/// Appends a netlink attribute.
fn attribute(options: &mut Vec<u8>, kind: u16, value: &[u8]) {
    options.extend((4 + value.len() as u16).to_ne_bytes());
    options.extend(kind.to_ne_bytes());
    options.extend(value);
    options.resize(options.len().next_multiple_of(4), 0);
}

/// The paths that this kernel does not support, or that cannot be tested here.
pub(crate) fn lacking() -> Vec<Path> {
    let both = [(Path::PfifoFast, Qdisc::pfifo_fast()), (Path::Netem, Qdisc::netem(Setting::Constant(0)))];
    let lacks = |qdisc: &Qdisc| has_qdisc(qdisc.kind, &qdisc.options) != Some(true);
    both.iter().filter(|(_, qdisc)| lacks(qdisc)).map(|&(path, _)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every attribute of the options: its kind and its value.
    fn attributes(mut rest: &[u8]) -> Vec<(u16, &[u8])> {
        let mut all = Vec::new();
        while let [l0, l1, k0, k1, ..] = *rest {
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            all.push((u16::from_ne_bytes([k0, k1]), &rest[4..length]));
            rest = &rest[length.next_multiple_of(4)..];
        }
        all
    }

    #[test]
    fn a_delay_is_a_number_of_nanoseconds_and_a_normal_one_has_a_table() {
        let qdisc = Qdisc::netem(Setting::Reordering { mean: 200_000, sd: 25_000 });
        let all = attributes(&qdisc.options[24..]);
        assert_eq!(all[..2], [(10, &200_000_u64.to_ne_bytes()[..]), (11, &25_000_u64.to_ne_bytes()[..])]);
        let table: Vec<f64> =
            all[2].1.as_chunks().0.iter().map(|two| f64::from(i16::from_ne_bytes(*two)) / SCALE).collect();
        assert_eq!((all.len(), all[2].0, table.len()), (3, 2, 4096));
        // The standard normal: mean 0, variance 1 less what lies beyond four deviations.
        let mean = table.iter().sum::<f64>() / 4096.0;
        let variance = table.iter().map(|value| value * value).sum::<f64>() / 4096.0;
        assert!(mean.abs() < 1e-3 && (variance - 1.0).abs() < 2e-3, "{mean} {variance}");
        let constant = Qdisc::netem(Setting::Constant(400_000));
        assert_eq!(attributes(&constant.options[24..]), [(10, &400_000_u64.to_ne_bytes()[..])]);
    }
}
