//! The shapes: routers, and the links between them.

use narrows_core::{Duration, Seed, Stream};

use super::{Core, MOST_LINKS, NetworkPlan, NetworkShape, limited, wrong};
use crate::flags::span_of_time;
use crate::problem::ScenarioError;

/// Waxman's parameters: two routers at distance d are connected with probability BETA·exp(−d/(ALPHA·L)),
/// where L is the maximum distance.
const ALPHA: f64 = 0.4;
const BETA: f64 = 0.4;

impl NetworkPlan {
    pub(super) fn core(&self) -> Result<Core, ScenarioError> {
        let core = match self.shape {
            NetworkShape::Star => {
                self.one_size(1, 1, 1)?;
                plain(1, Vec::new(), 4)
            }
            NetworkShape::Line => {
                let count = self.one_size(2, 2, 250)?;
                // The ends come first.
                let edges = [0, count - 1].into_iter().chain(1..count - 1).collect();
                Core { edges, ..plain(count, (1..count).map(|b| (b - 1, b)).collect(), 2) }
            }
            NetworkShape::Ring => {
                let count = self.one_size(4, 3, 500)?;
                plain(count, (0..count).map(|a| (a, (a + 1) % count)).collect(), count)
            }
            NetworkShape::Mesh => {
                let count = self.one_size(4, 2, 300)?;
                plain(count, pairs(count).collect(), count)
            }
            NetworkShape::Dumbbell => {
                self.one_size(2, 2, 2)?;
                Core { routers: vec!["left".into(), "right".into()], ..plain(2, vec![(0, 1)], 4) }
            }
            NetworkShape::Grid => self.grid()?,
            NetworkShape::LeafSpine => self.leaf_spine()?,
            NetworkShape::FatTree => self.fat_tree()?,
            NetworkShape::Waxman => self.waxman()?,
        };
        limited("links between routers", core.links.len(), 0, MOST_LINKS)?;
        Ok(core)
    }

    fn one_size(&self, usual: usize, least: usize, most: usize) -> Result<usize, ScenarioError> {
        match self.size {
            Some((_, Some(_))) => Err(wrong("this shape has one size: write --size 8, not 4x2".into())),
            Some((size, None)) => limited("as the size of this shape", size, least, most),
            None => Ok(usual),
        }
    }

    fn two_sizes(&self, usual: (usize, usize)) -> Result<(usize, usize), ScenarioError> {
        let (a, b) = match self.size {
            Some((_, None)) => return Err(wrong("this shape has two sizes: write --size 4x2".into())),
            Some((a, Some(b))) => (a, b),
            None => usual,
        };
        Ok((limited("as the first size", a, 1, 1000)?, limited("as the second size", b, 1, 1000)?))
    }

    fn grid(&self) -> Result<Core, ScenarioError> {
        let (columns, rows) = self.two_sizes((3, 3))?;
        let count = limited("routers", columns * rows, 2, 10_000)?;
        let mut links = Vec::new();
        for at in 0..count {
            if at % columns + 1 < columns {
                links.push((at, at + 1));
            }
            if at + columns < count {
                links.push((at, at + columns));
            }
        }
        Ok(plain(count, links, count))
    }

    fn leaf_spine(&self) -> Result<Core, ScenarioError> {
        let (leaves, spines) = self.two_sizes((4, 2))?;
        let names = (1..=leaves).map(|n| format!("leaf{n}")).chain((1..=spines).map(|n| format!("spine{n}")));
        let links = (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, leaves + spine, None)));
        Ok(Core {
            routers: names.collect(),
            links: links.collect(),
            edges: (0..leaves).collect(),
            hosts: 2 * leaves,
            spreads: true,
        })
    }

    fn fat_tree(&self) -> Result<Core, ScenarioError> {
        let ports = self.one_size(4, 2, 56)?;
        if !ports.is_multiple_of(2) {
            return Err(wrong(format!("fat-tree: --size {ports}: switches need an even number of ports")));
        }
        let half = ports / 2;
        let mut core = Core {
            routers: Vec::new(),
            links: Vec::new(),
            edges: Vec::new(),
            hosts: ports * half * half,
            spreads: true,
        };
        core.routers.extend((1..=half * half).map(|n| format!("core{n}")));
        for pod in 1..=ports {
            let aggregation = core.routers.len();
            core.routers.extend((1..=half).map(|n| format!("pod{pod}a{n}")));
            let edge = core.routers.len();
            core.routers.extend((1..=half).map(|n| format!("pod{pod}e{n}")));
            core.edges.extend(edge..edge + half);
            for one in 0..half {
                core.links.extend((0..half).map(|other| (edge + one, aggregation + other, None)));
                core.links.extend((0..half).map(|other| (aggregation + one, one * half + other, None)));
            }
        }
        Ok(core)
    }

    /// Connects separate components where they are nearest.
    fn waxman(&self) -> Result<Core, ScenarioError> {
        let count = self.one_size(10, 2, 500)?;
        let longest = match &self.values.delay {
            Some(text) => span_of_time("delay", text)?,
            None => Duration::ZERO,
        };
        let stream = |purpose| Stream::new(Seed(self.values.seed), "waxman", purpose);
        let (places, draws) = (stream("place"), stream("link"));
        let place = |router: usize| {
            let mut draw = places.nth(router as u64);
            (draw.uniform(), draw.uniform())
        };
        let at: Vec<(f64, f64)> = (0..count).map(place).collect();
        let distance = |a: usize, b: usize| libm::hypot(at[a].0 - at[b].0, at[a].1 - at[b].1);
        let diagonal = libm::sqrt(2.0);
        let mut links: Vec<(usize, usize)> = Vec::new();
        for (number, (a, b)) in pairs(count).enumerate() {
            let probability = BETA * libm::exp(-distance(a, b) / (ALPHA * diagonal));
            if draws.nth(number as u64).uniform() < probability {
                links.push((a, b));
            }
        }
        loop {
            let mut is_reached = vec![false; count];
            is_reached[0] = true;
            while let Some(&(a, b)) = links.iter().find(|&&(a, b)| is_reached[a] != is_reached[b]) {
                (is_reached[a], is_reached[b]) = (true, true);
            }
            let between = pairs(count).filter(|&(a, b)| is_reached[a] != is_reached[b]);
            match between.min_by(|x, y| distance(x.0, x.1).total_cmp(&distance(y.0, y.1))) {
                Some(nearest) => links.push(nearest),
                None => break,
            }
        }
        let delay = |a, b| {
            let nanos = longest.nanos() as f64 * distance(a, b) / diagonal;
            (longest > Duration::ZERO).then(|| format!("{}ns", nanos as u64))
        };
        let links = links.into_iter().map(|(a, b)| (a, b, delay(a, b))).collect();
        Ok(Core { links, ..plain(count, Vec::new(), count) })
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)))
}

/// Routers that are all alike.
fn plain(count: usize, links: Vec<(usize, usize)>, hosts: usize) -> Core {
    Core {
        routers: (1..=count).map(|n| format!("r{n}")).collect(),
        links: links.into_iter().map(|(a, b)| (a, b, None)).collect(),
        edges: (0..count).collect(),
        hosts,
        spreads: false,
    }
}
