//! Finds the rules that a packet may match without trying all of them.
//!
//! There is one tree for each kind of packet: direction, and whether it is IPv4, IPv6 or neither. It is built when
//! the first packet of its kind arrives after a change, or before prepared rules are handed over. A tree tests one
//! field after the other; at each node it tests the field that leaves the fewest rules in the worst case. This
//! follows P. Gupta and N. McKeown, "Packet classification using hierarchical intelligent cuttings" (Hot
//! Interconnects VII, 1999), with two differences. A packet finds all rules that match up to the first one that
//! decides, because other rules continue. And rules whose prefixes contain each other are not copied but put into
//! nested groups, so the size of a tree is linear in the number of rules, whatever the rules.
//!
//! Rules found by a tree are then tried as written: an index only leaves out rules that cannot match.

mod address;
mod build;
mod cache;
mod filter;
mod intervals;
mod item;
mod pieces;
mod tree;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::book::Entry;
use super::facts::{Bits, Facts};
use super::hot::Hot;
use super::test::Check;
use address::Address;
use cache::Cache;
use filter::View;
use item::Item;
use tree::{Search, Tree};

/// The fields that trees test.
mod field {
    pub(super) const SOURCE: usize = 0;
    pub(super) const DESTINATION: usize = 1;
    pub(super) const SOURCE_PORT: usize = 2;
    pub(super) const DESTINATION_PORT: usize = 3;
    pub(super) const PROTOCOL: usize = 4;
    pub(super) const COUNT: usize = 5;
}

/// A found rule, and whether it is known to match. Ordered by rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found(u32);

impl Found {
    /// No rule.
    const NONE: Self = Self(u32::MAX);

    /// There are fewer than 2^31 rules.
    const fn new(rule: u32, is_sure: bool) -> Self {
        Self(rule << 1 | is_sure as u32)
    }

    pub(super) const fn rule(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) const fn is_sure(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The trees built so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    v4: [Option<Part<u32>>; 2],
    v6: [Option<Part<u128>>; 2],
    /// Packets that are not IP have no addresses.
    other: [Option<Part<u32>>; 2],
    /// Whether any rule tests the direction. Otherwise one tree serves both directions.
    directed: bool,
}

/// The rules for packets of one kind.
#[derive(Clone, Debug)]
struct Part<A: Address> {
    tree: Arc<Tree<A>>,
    /// Not for a small tree.
    cache: Option<Cache<A>>,
}

/// A tree with at least this many filters gets a cache.
const MANY: usize = 64;

/// The input for building trees.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) rules: &'a [Entry],
    pub(super) hot: &'a [Hot],
}

impl Index {
    /// Without any tree yet.
    pub(super) fn new(rules: Rules<'_>) -> Self {
        let asks = |entry: &Entry| entry.terms.iter().any(Check::is_about_direction);
        let directed = rules.rules.iter().any(asks);
        Self { directed, ..Self::default() }
    }

    /// Builds the missing trees.
    pub(super) fn complete(&mut self, rules: Rules<'_>) {
        let ways = if self.directed { &[false, true][..] } else { &[false] };
        for &incoming in ways {
            let way = usize::from(incoming);
            let directed = self.directed;
            let kind = |version| Bits::of_kind(version, incoming, directed);
            self.v4[way].get_or_insert_with(|| Part::new(kind(Some(Bits::IPV4)), rules));
            self.v6[way].get_or_insert_with(|| Part::new(kind(Some(Bits::IPV6)), rules));
            self.other[way].get_or_insert_with(|| Part::new(kind(None), rules));
        }
    }

    /// Finds rules from `from` on, in order, up to the first that decides, and returns that one, or `last` if none
    /// before it decides. `matches` tells whether a rule matches.
    #[inline]
    pub(super) fn find(
        &mut self,
        facts: &Facts,
        rules: Rules<'_>,
        (from, last): (u32, u32),
        matches: &dyn Fn(u32) -> bool,
        found: &mut Vec<Found>,
    ) -> u32 {
        found.clear();
        let way = usize::from(self.directed & facts.bits.fulfil(Bits::IN));
        if facts.bits.fulfil(Bits::IPV4) {
            search(&mut self.v4[way], self.directed, facts, rules, (from, last), matches, found)
        } else if facts.bits.fulfil(Bits::IPV6) {
            search(&mut self.v6[way], self.directed, facts, rules, (from, last), matches, found)
        } else {
            search(&mut self.other[way], self.directed, facts, rules, (from, last), matches, found)
        }
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let v4 = self.v4.iter().chain(&self.other).flatten().map(Part::bytes).sum::<usize>();
        v4 + self.v6.iter().flatten().map(Part::bytes).sum::<usize>()
    }
}

#[inline]
fn search<A: Address>(
    part: &mut Option<Part<A>>,
    directed: bool,
    facts: &Facts,
    rules: Rules<'_>,
    (from, last): (u32, u32),
    matches: &dyn Fn(u32) -> bool,
    found: &mut Vec<Found>,
) -> u32 {
    let part = part.get_or_insert_with(|| Part::new(facts.bits.kind(directed), rules));
    let packet = View::of(facts);
    // Cached results start at the first rule.
    let cache = part.cache.as_mut().filter(|_| from == 0);
    if let Some((last, kept)) = cache.as_ref().and_then(|cache| cache.get(&packet)) {
        found.extend(kept.into_iter().filter(|&one| one != Found::NONE));
        return last;
    }
    let mut search = Search { packet, from, last, found, in_view: true, matches };
    part.tree.search(&mut search);
    let Search { last, in_view, .. } = search;
    if found.len() > 1 {
        if !found.is_sorted() {
            found.sort_unstable();
        }
        // Remove rules that were found before the deciding one.
        while found.pop_if(|one| one.rule() > last as usize).is_some() {}
    }
    if let Some(cache) = cache.filter(|_| in_view) {
        cache.put(&packet, last, found);
    }
    last
}

impl<A: Address> Part<A> {
    /// For packets with these known properties.
    #[cold]
    fn new(known: Bits, Rules { rules, hot }: Rules<'_>) -> Self {
        // Without the default rule.
        let rules = (0..).zip(rules.iter().zip(hot)).take(rules.len() - 1);
        let items: Vec<Item<A>> = rules
            .filter(|(_, (_, hot))| hot.is(Hot::ENABLED))
            .filter_map(|(at, (entry, hot))| Item::new(at, hot, &entry.terms, known))
            .collect();
        let tree = build::build(&items);
        let cache = (tree.len() >= MANY).then(Cache::new);
        Self { tree: Arc::new(tree), cache }
    }

    fn bytes(&self) -> usize {
        self.tree.bytes() + self.cache.as_ref().map_or(0, Cache::bytes)
    }
}
