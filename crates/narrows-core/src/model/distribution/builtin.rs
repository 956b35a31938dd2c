//! The distribution tables that iproute2 ships for NetEm, generated from their formulas.
//!
//! Source: `netem/normal.c`, `pareto.c` and `paretonormal.c` of iproute2, from NISTnet; 8192 stands for one
//! σ. The programs use 16,384 steps of probability and keep every fourth, 4,096 entries.
//!
//! - normal: entry i is the last of the points −10, −9.99995, … at which 16384·Φ rounds to i.
//! - pareto: entry j is (p^(−1/3) − 3/2)·4/3 with p = 1 − j/4096, capped at 32,767.
//! - paretonormal: (normal + 3·pareto)/4, each rounded first, the sum rounded towards zero. Its pareto part
//!   uses four steps of 65,536 for each of the 16,384.
//!
//! The points at which the normal distribution is evaluated are summed in the same order as in the original,
//! to get the same rounding.

use alloc::vec::Vec;

use crate::model::normal;

/// The 4,096 entries of the table with this name: `normal`, `pareto` or `paretonormal`.
pub fn builtin_table(name: &str) -> Option<Vec<i16>> {
    let entry: fn(f64, u32) -> f64 = match name {
        "normal" => |normal, _| normal,
        "pareto" => |_, i| pareto(i),
        "paretonormal" => |normal, i| libm::trunc((normal + 3.0 * pareto(i)) / 4.0),
        _ => return None,
    };
    // A cast from a float saturates; the original does so explicitly.
    Some(normals().into_iter().zip((0..).step_by(4)).map(|(normal, i)| entry(normal, i) as i16).collect())
}

/// The value for step i of 16,384.
fn pareto(i: u32) -> f64 {
    let p = f64::from(65_536 - 4 * i) / 65_536.0;
    let value = (1.0 / libm::pow(p, 1.0 / 3.0) - 1.5) * (4.0 / 3.0 * 8192.0);
    libm::rint(value.min(32_767.0))
}

/// The values for steps 0, 4, … 16,380.
fn normals() -> Vec<f64> {
    let mut values = Vec::with_capacity(4_096);
    // 16384·Φ(x) rounds to i or less up to here.
    let end = |i: usize| normal::quantile((i as f64 + 0.5) / 16_384.0);
    let (mut x, mut last, mut next) = (-10.0, -10.0, end(0));
    while values.len() < 4_096 {
        if x > next {
            values.push(libm::rint(last * 8192.0));
            next = end(4 * values.len());
        } else {
            (x, last) = (x + 0.000_05, x);
        }
    }
    values
}
