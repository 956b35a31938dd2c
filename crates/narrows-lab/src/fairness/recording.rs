//! Records curves of a few flows during a part of a run, for plotting.

/// What to record, and the recording.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    /// The start and the end, in byte-times.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) curves: Vec<Curves>,
}

/// For one flow: points (instant, value) in byte-times and bytes, connected by straight lines.
#[derive(Clone, Debug)]
pub(crate) struct Curves {
    pub(crate) flow: usize,
    /// What has left the link.
    pub(crate) packets: Vec<(f64, f64)>,
    /// What the fluid system has served.
    pub(crate) fluid: Vec<(f64, f64)>,
    /// The shortfall since it was furthest ahead; whole packets at the start of their transmission.
    pub(crate) shortfall: Vec<(f64, f64)>,
}

impl Recording {
    pub(crate) fn new(from: u64, to: u64, flows: impl IntoIterator<Item = usize>) -> Self {
        let curves = |flow| Curves { flow, packets: Vec::new(), fluid: Vec::new(), shortfall: Vec::new() };
        Self { from, to, curves: flows.into_iter().map(curves).collect() }
    }

    pub(crate) const fn wants(&self, now: u64) -> bool {
        self.from <= now && now <= self.to
    }

    /// Records the state of all flows at an instant: `state` gives the bytes sent, the bytes served by the fluid
    /// system, and the shortfall.
    pub(crate) fn add(&mut self, now: u64, state: impl Fn(usize) -> (f64, f64, f64)) {
        let at = now as f64;
        for curves in &mut self.curves {
            let (packets, fluid, shortfall) = state(curves.flow);
            curves.packets.push((at, packets));
            curves.fluid.push((at, fluid));
            curves.shortfall.push((at, shortfall));
        }
    }
}
