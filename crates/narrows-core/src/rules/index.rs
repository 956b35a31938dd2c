//! Finds the rules that a packet may match without trying all of them.
//!
//! There is a tree for each kind of packet: direction, and whether it is IPv4, IPv6 or neither. It is built when the first
//! packet of its kind comes after a change, or before rules are handed over that were prepared elsewhere. A tree asks for one field after the other, at each node for the one that leaves
//! the fewest rules in the worst case: after P. Gupta and N. McKeown, "Packet classification using hierarchical intelligent
//! cuttings" (Hot Interconnects VII, 1999), with two departures. A packet finds all rules that match up to the first one
//! that decides, as others go on; and rules whose prefixes contain each other are not copied but stand in groups within
//! groups, so that a tree grows with the number of rules, whatever they are like.
//!
//! What a tree finds is tried as it is written: an index only leaves out what cannot match.

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

/// Fields that trees ask for.
mod field {
    pub(super) const SOURCE: usize = 0;
    pub(super) const DESTINATION: usize = 1;
    pub(super) const SOURCE_PORT: usize = 2;
    pub(super) const DESTINATION_PORT: usize = 3;
    pub(super) const PROTOCOL: usize = 4;
    pub(super) const COUNT: usize = 5;
}

/// A rule that was found, and whether it is known to match. In the order of rules.
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

/// Trees that have been built.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    v4: [Option<Part<u32>>; 2],
    v6: [Option<Part<u128>>; 2],
    /// What is not IP has no addresses.
    other: [Option<Part<u32>>; 2],
    /// Whether any rule asks for a direction: else one tree is enough for both.
    directed: bool,
}

/// The rules for packets of one kind.
#[derive(Clone, Debug)]
struct Part<A: Address> {
    tree: Arc<Tree<A>>,
    /// Not for a tree that is small itself.
    cache: Option<Cache<A>>,
}

/// A tree of so many filters is worth a cache.
const MANY: usize = 64;

/// What trees are built from.
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

    /// Builds the trees that there are not yet.
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

    /// Finds rules from `from` on, in order, up to the first that decides, and returns that one, or `last`, before which it
    /// looks. `matches` says of a rule whether it matches.
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

    /// Bytes that it takes.
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
    // What is kept was found from the first rule on.
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
        // Some were found before the one was that decides.
        while found.pop_if(|one| one.rule() > last as usize).is_some() {}
    }
    if let Some(cache) = cache.filter(|_| in_view) {
        cache.put(&packet, last, found);
    }
    last
}

impl<A: Address> Part<A> {
    /// For packets of which this is known.
    #[cold]
    fn new(known: Bits, Rules { rules, hot }: Rules<'_>) -> Self {
        // The default rule is not among them.
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
