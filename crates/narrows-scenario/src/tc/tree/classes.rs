//! The classes of a device, found by their handles and by their parents.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Class;
use crate::tc::handle::Handle;

/// In the order in which they were put there.
#[derive(Clone, Debug, Default)]
pub(in crate::tc) struct Classes {
    all: BTreeMap<u64, Class>,
    /// Their keys in `all`.
    by_id: HashMap<Handle, u64>,
    by_parent: HashMap<Handle, BTreeSet<u64>>,
    next: u64,
}

impl Classes {
    pub(in crate::tc) fn iter(&self) -> impl Iterator<Item = &Class> {
        self.all.values()
    }

    pub(in crate::tc) fn get(&self, id: Handle) -> Option<&Class> {
        self.all.get(self.by_id.get(&id)?)
    }

    /// Neither its handle nor its parent may change.
    pub(super) fn get_mut(&mut self, id: Handle) -> Option<&mut Class> {
        self.all.get_mut(self.by_id.get(&id)?)
    }

    /// As [`Self::get_mut`].
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Class> {
        self.all.values_mut()
    }

    pub(in crate::tc) fn has(&self, id: Handle) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The direct children of a qdisc or class.
    pub(super) fn below(&self, parent: Handle) -> impl Iterator<Item = &Class> {
        self.by_parent.get(&parent).into_iter().flatten().filter_map(|key| self.all.get(key))
    }

    /// Puts a class behind the others; there is none of this handle.
    pub(in crate::tc) fn push(&mut self, class: Class) {
        self.by_id.insert(class.id, self.next);
        self.by_parent.entry(class.parent).or_default().insert(self.next);
        self.all.insert(self.next, class);
        self.next += 1;
    }

    pub(super) fn remove(&mut self, id: Handle) {
        let Some(key) = self.by_id.remove(&id) else { return };
        let Some(class) = self.all.remove(&key) else { return };
        if let Some(beside) = self.by_parent.get_mut(&class.parent) {
            beside.remove(&key);
        }
    }

    /// Removes the classes of a qdisc.
    pub(super) fn remove_of(&mut self, qdisc: Handle) {
        let gone: Vec<Handle> =
            self.iter().map(|class| class.id).filter(|class| class.qdisc() == qdisc).collect();
        gone.into_iter().for_each(|class| self.remove(class));
    }
}
