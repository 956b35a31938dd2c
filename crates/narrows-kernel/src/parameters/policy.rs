//! Queue management (`struct narrows_policy` in `bpf/state.h`).

use narrows_core::aqm::{AqmSettings, CodelConfig, PieConfig, RedConfig, Thresholds};
use narrows_core::service::Overhead;

use super::{Bytes, NO_LIMIT};

/// The words of the longest policy.
const WORDS: usize = 11;
/// What the program's arithmetic takes.
const LONGEST_INTERVAL: u64 = 100_000_000_000;

/// A policy, in the program's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    kind: u32,
    marks: bool,
    words: [u64; WORDS],
}

impl Policy {
    /// A policy at a wire with this overhead.
    ///
    /// # Errors
    /// What the program does not have.
    pub fn new(settings: &AqmSettings, overhead: Overhead) -> Result<Self, &'static str> {
        if let Some(config) = settings.downcast_ref() {
            Self::codel(config)
        } else if let Some(config) = settings.downcast_ref() {
            Self::pie(config)
        } else if let Some(config) = settings.downcast_ref() {
            Self::red(config, overhead)
        } else {
            Err("the kernel has no such queue management")
        }
    }

    fn of(kind: u32, marks: bool, numbers: &[u64]) -> Self {
        let mut words = [0; WORDS];
        words.iter_mut().zip(numbers).for_each(|(word, number)| *word = *number);
        Self { kind, marks, words }
    }

    fn codel(config: &CodelConfig) -> Result<Self, &'static str> {
        let &CodelConfig { target, interval, longest, ecn, ce_threshold, ce_match } = config;
        if interval.nanos() > LONGEST_INTERVAL {
            return Err("intervals of CoDel are at most 100 s in the kernel");
        }
        let threshold = ce_threshold.map_or(NO_LIMIT, |threshold| threshold.nanos());
        let (value, mask) = ce_match.unwrap_or_default();
        let selected = pair(value.into(), mask.into());
        Ok(Self::of(1, ecn, &[target.nanos(), interval.nanos(), longest.get(), threshold, selected]))
    }

    fn pie(config: &PieConfig) -> Result<Self, &'static str> {
        let &PieConfig {
            target,
            update,
            alpha,
            beta,
            burst,
            mean_packet,
            ecn,
            max_ecn_threshold,
            derandomize,
            cap_drop,
            high_delay_boost,
            byte_mode,
            departure_rate,
        } = config;
        if departure_rate {
            return Err("PIE measures no departure rate in the kernel");
        }
        let period = update.nanos().max(1_000_000);
        let high_delay = high_delay_boost.map_or(NO_LIMIT, |delay| delay.nanos());
        Ok(Self::of(
            2,
            ecn,
            &[
                target.nanos(),
                period,
                high_delay,
                target.seconds().to_bits(),
                alpha.to_bits(),
                beta.to_bits(),
                max_ecn_threshold.as_f64().to_bits(),
                burst.nanos().div_ceil(period),
                mean_packet.get(),
                pair(derandomize.into(), cap_drop.into()),
                pair(byte_mode.into(), 0),
            ],
        ))
    }

    fn red(config: &RedConfig, overhead: Overhead) -> Result<Self, &'static str> {
        let &RedConfig {
            thresholds,
            probability,
            weight,
            gentle,
            ecn,
            harddrop,
            nodrop,
            restart,
            adaptive,
            typical_packet: _,
            by_length,
            longest_packet,
        } = config;
        if adaptive {
            return Err("RED does not adapt itself in the kernel");
        }
        let (in_bytes, min, max) = match thresholds {
            Thresholds::Packets { min, max } => (false, min, max),
            Thresholds::Bytes { min, max } => (true, min.get(), max.get()),
        };
        let double = |number: u64| (number as f64).to_bits();
        Ok(Self::of(
            3,
            ecn,
            &[
                double(min),
                double(max),
                probability.as_f64().to_bits(),
                weight.to_bits(),
                config.halvings().to_bits(),
                // Zero: whatever the length.
                if by_length { double(longest_packet.get().max(1)) } else { 0 },
                config.typical_bits(overhead),
                pair(gentle.into(), in_bytes.into()),
                pair(restart.into(), harddrop.into()),
                pair(nodrop.into(), 0),
            ],
        ))
    }

    /// Whether it marks packets. CoDel may by its threshold alone.
    pub(super) const fn marks(&self) -> bool {
        self.marks || self.kind == 1 && self.words[3] != NO_LIMIT
    }

    pub(super) fn put(&self, bytes: &mut Bytes) {
        [self.kind, self.marks.into()].into_iter().for_each(|word| bytes.word(word));
        self.words.into_iter().for_each(|word| bytes.long(word));
    }
}

/// Two words of 32 bits, as they lie in memory.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}
