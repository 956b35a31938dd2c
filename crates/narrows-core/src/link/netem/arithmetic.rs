//! The integer arithmetic of sch_netem, in the widths of its C code.

use super::config::{Rate, Share, Table};

/// NetEm's correlated random numbers, `get_crandom`: `answer = (value·(2³² − ρ) + last·ρ) >> 32`, where ρ is
/// one more than requested. Without a correlation a number passes unchanged and is not remembered.
#[derive(Clone, Copy, Debug)]
pub struct Crandom {
    last: u32,
    correlation: Share,
}

impl Crandom {
    /// With a correlation, as if the previous answer had been `last`.
    pub const fn new(correlation: Share, last: u32) -> Self {
        Self { last, correlation }
    }

    /// The next correlated value, from a uniform `value`.
    pub const fn next(&mut self, value: u32) -> u32 {
        if self.correlation.raw() == 0 {
            return value;
        }
        let rho = self.correlation.raw() as u64 + 1; // no more than 2³², so the sum stays below 2⁶⁴
        self.last = ((value as u64 * ((1 << 32) - rho) + self.last as u64 * rho) >> 32) as u32;
        self.last
    }
}

/// A delay in nanoseconds with mean `mu` and standard deviation `sigma`, `tabledist`: without a table,
/// uniform on [mu − sigma, mu + sigma).
pub fn table_delay(mu: i64, sigma: i32, random: u32, table: Option<&Table>) -> i64 {
    const SCALE: i64 = 8192;
    if sigma == 0 {
        return mu;
    }
    let Some(table) = table else {
        let width = 2 * i64::from(sigma).abs();
        return (i64::from(random) % width).wrapping_add(mu).wrapping_sub(sigma.into());
    };
    let (sigma, values) = (i64::from(sigma), table.values());
    let t = i64::from(values[random as usize % values.len()]);
    let part = (sigma % SCALE) * t;
    // Half away from zero; the division truncates.
    let rounded = if part >= 0 { part + SCALE / 2 } else { part - SCALE / 2 };
    (rounded / SCALE + (sigma / SCALE) * t).wrapping_add(mu)
}

/// The transmission time of a frame of `length` bytes, `packet_time_ns`. As in the kernel, an overhead that
/// makes a length negative makes it huge. Zero at a rate of 0, which the kernel takes as no rate.
pub const fn packet_nanos(length: u64, rate: Rate) -> u64 {
    let mut length = length.wrapping_add(rate.packet_overhead as u64);
    if let Some(mut cells) = (length as u32).checked_div(rate.cell_size) {
        if length > cells.wrapping_mul(rate.cell_size) as u64 {
            cells = cells.wrapping_add(1);
        }
        let cell = rate.cell_size.wrapping_add(rate.cell_overhead as u32);
        length = cells.wrapping_mul(cell) as u64;
    }
    match length.wrapping_mul(1_000_000_000).checked_div(rate.bytes_per_second) {
        Some(nanos) => nanos,
        None => 0,
    }
}
