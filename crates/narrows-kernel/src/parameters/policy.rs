//! Queue management (`struct narrows_policy` in `bpf/state.h`).

use narrows_core::aqm::{CodelConfig, PieConfig, RedConfig, Thresholds};
use narrows_core::queue::AqmPlan;
use narrows_core::service::Overhead;

use super::{Bytes, NO_LIMIT};

/// The words of the longest policy.
const WORDS: usize = 10;
/// What the program's arithmetic takes.
const LONGEST_INTERVAL: u64 = 100_000_000_000;
const MARKS: &str = "a BPF qdisc cannot mark a packet, only drop it: the kernel needs `ecn = false`";

/// A policy that drops packets, in the program's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    kind: u32,
    words: [u64; WORDS],
}

impl Policy {
    /// A policy at a wire with this overhead.
    ///
    /// # Errors
    /// What the program does not have.
    pub fn new(plan: &AqmPlan, overhead: Overhead) -> Result<Self, &'static str> {
        match plan {
            AqmPlan::Codel(config) => Self::codel(config),
            AqmPlan::Pie(config) => Self::pie(config),
            AqmPlan::Red(config) => Self::red(config, overhead),
        }
    }

    fn of(kind: u32, numbers: &[u64]) -> Self {
        let mut words = [0; WORDS];
        words.iter_mut().zip(numbers).for_each(|(word, number)| *word = *number);
        Self { kind, words }
    }

    fn codel(config: &CodelConfig) -> Result<Self, &'static str> {
        let &CodelConfig { target, interval, longest, ecn, ce_threshold, ce_match: _ } = config;
        if ecn || ce_threshold.is_some() {
            return Err(MARKS);
        }
        if interval.nanos() > LONGEST_INTERVAL {
            return Err("intervals of CoDel are at most 100 s in the kernel");
        }
        Ok(Self::of(1, &[target.nanos(), interval.nanos(), longest.get()]))
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
            max_ecn_threshold: _,
            derandomize,
            cap_drop,
            high_delay_boost,
            byte_mode,
            departure_rate,
        } = config;
        if ecn {
            return Err(MARKS);
        }
        if departure_rate {
            return Err("PIE measures no departure rate in the kernel");
        }
        let period = update.nanos().max(1_000_000);
        let high_delay = high_delay_boost.map_or(NO_LIMIT, |delay| delay.nanos());
        Ok(Self::of(
            2,
            &[
                target.nanos(),
                period,
                high_delay,
                target.seconds().to_bits(),
                alpha.to_bits(),
                beta.to_bits(),
                burst.nanos().div_ceil(period),
                mean_packet.get(),
                pair(derandomize, cap_drop),
                pair(byte_mode, false),
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
            harddrop: _,
            nodrop,
            restart,
            adaptive,
            typical_packet: _,
            longest_packet,
        } = config;
        if ecn || nodrop {
            return Err(MARKS);
        }
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
            &[
                double(min),
                double(max),
                probability.as_f64().to_bits(),
                weight.to_bits(),
                config.halvings().to_bits(),
                double(longest_packet.get().max(1)),
                config.typical_bits(overhead),
                pair(gentle, in_bytes),
                pair(restart, false),
            ],
        ))
    }

    pub(super) fn put(&self, bytes: &mut Bytes) {
        [self.kind, 0].into_iter().for_each(|word| bytes.word(word));
        self.words.into_iter().for_each(|word| bytes.long(word));
    }
}

/// Two words of 32 bits, as they lie in memory.
fn pair(first: bool, second: bool) -> u64 {
    let [a, b, c, d] = u32::from(first).to_ne_bytes();
    let [e, f, g, h] = u32::from(second).to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}
