//! Quantiles that are expensive to compute, from a table in z = Φ⁻¹(p).
//!
//! In z the quantiles of most distributions are smooth out to both ends. The table covers |z| ≤ 8.5; beyond
//! that, 10⁻¹⁷ of the probability lies on either side, and the value at the end is used. Each sixteenth of z
//! is a cell or is halved repeatedly, as far as needed. A cell holds the cubic through four exact values, at
//! 0, ⅓, ⅔ and 1 of its width. It is accepted if it is within the tolerance at ⅙, ½ and ⅚, close to where
//! such a cubic is worst. Where the tolerance is never reached, at a jump or a corner, a cell of sufficiently
//! small probability is a straight line between its ends.
//!
//! So each value is (a) within 0.1 ns, or 1 part in 10⁹ if that is more, of the exact quantile, as far as
//! three points in each cell show, or (b) the exact quantile of a probability within 10⁻⁶ of the requested
//! one. For a distribution with so many jumps that this would take more than 2¹⁶ cells, the limit in (b) is
//! 10⁻⁵ or 10⁻⁴. A cell takes 40 bytes: 11 kB for a smooth distribution, up to 2.6 MB for one that consists
//! of jumps. Building the table takes from a fraction of a millisecond to some milliseconds, and one or two
//! seconds for a mixture with tens of thousands of samples.

use alloc::vec::Vec;

use super::level::Level;

/// A table of quantiles.
#[derive(Clone, Debug)]
pub(crate) struct Interpolation {
    /// First the sixteenths, then pairs of halves.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
enum Node {
    /// The coefficients of t⁰ to t³, where t is 0 at the start and 1 at the end.
    Cell([f64; 4]),
    /// The index of the two halves.
    Halves(u32),
}

const REACH: f64 = 8.5;
const PER_UNIT: f64 = 16.0;
const ROOTS: usize = (2.0 * REACH * PER_UNIT) as usize;
const MOST_NODES: usize = 1 << 16;
/// In nanoseconds.
const TOLERANCE: f64 = 0.1;

impl Interpolation {
    /// Builds the table of a quantile function.
    pub(crate) fn new(quantile: impl Fn(Level) -> f64) -> Self {
        let exact = |z: f64| quantile(Level::of_normal(z)).min(super::LONGEST);
        // With 10⁻⁴ the number of cells is limited: some 20,000 cells with jumps, and their parents.
        [1e-6, 1e-5]
            .iter()
            .find_map(|&mass| Self::build(&exact, mass, MOST_NODES))
            .unwrap_or_else(|| Self::build(&exact, 1e-4, usize::MAX).expect("there is no limit"))
    }

    fn build(exact: &impl Fn(f64) -> f64, mass: f64, most: usize) -> Option<Self> {
        let mut nodes = Vec::new();
        nodes.resize(ROOTS, Node::Halves(0));
        // Cells still to build: the node, its start, its width, and the values at its ends.
        let mut open: Vec<(usize, f64, f64, [f64; 2])> = Vec::new();
        for root in 0..ROOTS {
            let (start, width) = (root as f64 / PER_UNIT - REACH, 1.0 / PER_UNIT);
            open.push((root, start, width, [exact(start), exact(start + width)]));
            while let Some((node, start, width, ends)) = open.pop() {
                if let Some(cell) = cell(exact, start, width, ends, mass) {
                    nodes[node] = Node::Cell(cell);
                    continue;
                }
                let halves = nodes.len();
                if halves + 2 > most {
                    return None;
                }
                nodes[node] = Node::Halves(halves as u32);
                nodes.extend([Node::Halves(0); 2]);
                let half = 0.5 * width;
                let middle = exact(start + half);
                open.push((halves, start, half, [ends[0], middle]));
                open.push((halves + 1, start + half, half, [middle, ends[1]]));
            }
        }
        Some(Self { nodes })
    }

    /// The quantile at Φ(z).
    #[inline]
    pub(crate) fn at(&self, z: f64) -> f64 {
        let place = ((z + REACH) * PER_UNIT).clamp(0.0, ROOTS as f64);
        let root = (place as usize).min(ROOTS - 1);
        let mut t = place - root as f64;
        let mut node = &self.nodes[root];
        loop {
            match node {
                Node::Cell([a, b, c, d]) => return ((d * t + c) * t + b) * t + a,
                Node::Halves(first) => {
                    t *= 2.0;
                    let second = t >= 1.0;
                    t -= f64::from(u8::from(second));
                    node = &self.nodes[*first as usize + usize::from(second)];
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }
}

/// The cubic for a cell, if it is accurate enough, or the line, if the cell's probability is small enough.
fn cell(
    exact: &impl Fn(f64) -> f64,
    start: f64,
    width: f64,
    [y0, y3]: [f64; 2],
    mass: f64,
) -> Option<[f64; 4]> {
    let line = [y0, y3 - y0, 0.0, 0.0];
    // Quantiles are non-decreasing: none in between is further off than that.
    if y3 - y0 <= TOLERANCE {
        return Some(line);
    }
    let at = |t: f64| exact(start + t * width);
    let [y1, y2] = [at(1.0 / 3.0), at(2.0 / 3.0)];
    // Newton's divided differences, at steps of a third.
    let (d1, d2, d3) = (y1 - y0, y2 - 2.0 * y1 + y0, y3 - 3.0 * y2 + 3.0 * y1 - y0);
    let (c1, c2, c3) = (3.0 * d1, 4.5 * d2, 4.5 * d3);
    // c1·t + c2·t·(t − 1/3) + c3·t·(t − 1/3)·(t − 2/3)
    let cubic = [y0, c1 - c2 / 3.0 + c3 * 2.0 / 9.0, c2 - c3, c3];
    let value = |t: f64| ((cubic[3] * t + cubic[2]) * t + cubic[1]) * t + cubic[0];
    let good = [1.0 / 6.0, 0.5, 5.0 / 6.0].iter().all(|&t| {
        let wanted = at(t);
        (value(t) - wanted).abs() <= (1e-9 * wanted.abs()).max(TOLERANCE)
    });
    // The tolerance applies to values; a cubic may still decrease between them if they differ by that little.
    let goes_up = cubic_goes_up(cubic);
    if good && goes_up {
        return Some(cubic);
    }
    let held = Level::of_normal(start + width).from(Level::of_normal(start));
    (held < mass).then_some(line)
}

/// Whether the slope, b + 2·c·t + 3·d·t², is non-negative from 0 to 1.
fn cubic_goes_up([_, b, c, d]: [f64; 4]) -> bool {
    let slope = |t: f64| b + (2.0 * c + 3.0 * d * t) * t;
    let lowest = if d > 0.0 { (-c / (3.0 * d)).clamp(0.0, 1.0) } else { 0.0 };
    slope(0.0) >= 0.0 && slope(1.0) >= 0.0 && slope(lowest) >= 0.0
}
