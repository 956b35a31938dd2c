//! Where packets that leave a link go.

use alloc::vec::Vec;

use super::Hop;

/// The next hop after each lane of each link. All in one row, because each packet that leaves a link needs one: a list for
/// each link would be one more place in memory to wait for.
#[derive(Debug, Default)]
pub(super) struct Exits {
    hops: Vec<Hop>,
    /// By element, where its hops begin.
    begins: Vec<u32>,
}

impl Exits {
    /// Adds those of the next element.
    pub(super) fn add(&mut self, hops: &[Hop]) {
        self.begins.push(self.hops.len() as u32);
        self.hops.extend_from_slice(hops);
    }

    /// Where packets of a lane go.
    #[inline]
    pub(super) fn at(&self, element: u32, lane: u8) -> Hop {
        self.hops[self.begins[element as usize] as usize + usize::from(lane)]
    }

    /// Those of an element, by lane.
    pub(super) fn of(&self, element: u32) -> &[Hop] {
        let from = self.begins[element as usize] as usize;
        let to = self.begins.get(element as usize + 1).map_or(self.hops.len(), |&next| next as usize);
        &self.hops[from..to]
    }
}
