//! Lists of conditions: the first that holds says how the numbers of a packet change.

use crate::tc::both::both;
use crate::value::Match;

/// What a firewall gives to packets. A packet's numbers are one of 64 bits: its mark, and its class above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Mark,
    Class,
}

impl Number {
    /// The bits that it has among those of a packet's numbers.
    pub(super) const fn bits(self) -> u64 {
        (u32::MAX as u64) << self.shift()
    }

    const fn shift(self) -> u32 {
        match self {
            Self::Mark => 0,
            Self::Class => 32,
        }
    }
}

/// A change of numbers: some bits are cleared, then some are inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    clear: u64,
    invert: u64,
}

impl Change {
    pub(super) const NONE: Self = Self { clear: 0, invert: 0 };

    /// The change of one number.
    pub(super) fn of(number: Number, clear: u32, invert: u32) -> Self {
        let placed = |bits| u64::from(bits) << number.shift();
        Self { clear: placed(clear), invert: placed(invert) }
    }

    /// What it makes of a number that was zero.
    pub(super) const fn value(self, number: Number) -> u32 {
        (self.invert >> number.shift()) as u32
    }

    /// This change, and then the other.
    const fn then(self, other: Self) -> Self {
        Self { clear: self.clear | other.clear, invert: (self.invert & !other.clear) ^ other.invert }
    }

    /// The bits that it may change.
    const fn touches(self) -> u64 {
        self.clear | self.invert
    }

    /// Whether nothing of what these bits were before is left.
    const fn decides(self, bits: u64) -> bool {
        self.clear & bits == bits
    }
}

/// Bits that a packet's numbers must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    mask: u64,
    value: u64,
}

impl Bits {
    pub(super) const ANY: Self = Self { mask: 0, value: 0 };

    /// Those of a mark under a mask, as the kernel compares it; `None` if no mark is so.
    pub(super) fn of_mark(value: u32, mask: u32) -> Option<Self> {
        (value & !mask == 0).then_some(Self { mask: mask.into(), value: value.into() })
    }

    /// Both; `None` if no packet has both.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        let possible = (self.value ^ other.value) & self.mask & other.mask == 0;
        possible.then_some(Self { mask: self.mask | other.mask, value: self.value | other.value })
    }

    /// What packets have before a change that have these bits behind it; `None` if there are none.
    fn before(self, change: Change) -> Option<Self> {
        let (mask, value) = (self.mask & !change.clear, self.value ^ change.invert & self.mask);
        (value & !mask == 0).then_some(Self { mask, value })
    }

    /// Whether all packets with these bits have the others, too.
    const fn within(self, other: Self) -> bool {
        self.mask & other.mask == other.mask && self.value & other.mask == other.value
    }

    const fn are_zero(self) -> bool {
        self.value == 0
    }
}

/// Conditions, and the change for packets that have them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) matches: Match,
    pub(super) bits: Bits,
    pub(super) change: Change,
}

/// The first entry whose conditions hold counts; where none does, nothing changes.
pub(super) type List = Vec<Entry>;

impl Entry {
    /// For packets that have more conditions; `None` if there are none.
    fn of_those(&self, matches: &Match, bits: Bits) -> Option<Self> {
        let (matches, bits) = (both(matches, &self.matches)?, bits.and(self.bits)?);
        Some(Self { matches, bits, change: self.change })
    }

    /// For packets that are changed by this one before they come to another; `None` if there are none.
    fn then(&self, later: &Self) -> Option<Self> {
        let matches = both(&self.matches, &later.matches)?;
        let bits = self.bits.and(later.bits.before(self.change)?)?;
        Some(Self { matches, bits, change: self.change.then(later.change) })
    }

    fn is_for_those_of(&self, other: &Self) -> bool {
        (&self.matches, self.bits) == (&other.matches, other.bits)
    }
}

/// What another list says of packets with these conditions.
pub(super) fn of_those(other: &[Entry], matches: &Match, bits: Bits) -> List {
    let mut all: List = other.iter().filter_map(|entry| entry.of_those(matches, bits)).collect();
    all.push(Entry { matches: matches.clone(), bits, change: Change::NONE });
    all
}

/// The list for packets some of which a rule changes before they come to this list. `tracked` are the bits that are of
/// interest.
pub(super) fn changed(mut list: List, rule: Entry, tracked: u64) -> List {
    let looks = |later: &Entry| later.bits.mask & rule.change.touches() != 0;
    // What decides the numbers whatever they were stays as it is: most rules set a whole mark.
    if list.iter().all(|later| !looks(later) && later.change.decides(tracked)) {
        list.push(rule);
        return list;
    }
    let looking = list.split_off(list.iter().position(looks).unwrap_or(list.len()));
    let mut all = List::with_capacity(list.len() + 1);
    for later in list {
        if later.change.decides(tracked) {
            all.push(later);
            continue;
        }
        let within = rule.then(&later);
        // Those with both conditions go first; where these are all, the entry itself never counts.
        let all_of_it = within.as_ref().is_some_and(|within| within.is_for_those_of(&later));
        all.extend(within);
        if !all_of_it {
            all.push(later);
        }
    }
    // From the first entry on that looks at what the rule changes, the packets of the rule have entries of their own.
    let mut own = List::new();
    for within in looking.iter().filter_map(|later| rule.then(later)) {
        let all_of_it = within.is_for_those_of(&rule);
        own.push(within);
        if all_of_it {
            break;
        }
    }
    if !own.last().is_some_and(|last| last.is_for_those_of(&rule)) {
        own.push(rule);
    }
    all.extend(own);
    all.extend(looking);
    all
}

/// Removes entries behind one for all packets, as far as these have its bits.
pub(super) fn trim(list: &mut List, is_for_all: impl Fn(&Match) -> bool) {
    let mut wide: Vec<Bits> = Vec::new();
    list.retain(|entry| {
        let counts = !wide.iter().any(|bits| entry.bits.within(*bits));
        if counts && is_for_all(&entry.matches) {
            wide.push(entry.bits);
        }
        counts
    });
}

/// How many entries before one are compared with it.
const NEAR: usize = 256;

/// Keeps what a list says of packets whose numbers are zero, without entries that never count: those behind one whose
/// condition they have, and the last ones if they do not change the number in question.
pub(super) fn prune(list: &mut List, number: Number) {
    let mut kept = List::new();
    for entry in list.drain(..).filter(|entry| entry.bits.are_zero()) {
        let mut near = kept.iter().rev().take(NEAR);
        if !near.any(|earlier| both(&earlier.matches, &entry.matches).as_ref() == Some(&entry.matches)) {
            kept.push(entry);
        }
    }
    while kept.last().is_some_and(|entry| entry.change.value(number) == 0) {
        kept.pop();
    }
    *list = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(change: Change, numbers: u64) -> u64 {
        numbers & !change.clear ^ change.invert
    }

    fn has(bits: Bits, numbers: u64) -> bool {
        numbers & bits.mask == bits.value
    }

    /// What a list makes of a packet.
    fn outcome(list: &[Entry], packet: u8, numbers: u64) -> u64 {
        let holds = |entry: &&Entry| {
            let dscps = &entry.matches.dscps;
            (dscps.is_empty() || dscps.contains(&packet)) && has(entry.bits, numbers)
        };
        apply(list.iter().find(holds).map_or(Change::NONE, |entry| entry.change), numbers)
    }

    /// Each list of two rules, compared with the execution of the rules in order.
    #[test]
    fn a_list_does_what_its_rules_do() {
        let dscps = [Vec::new(), vec![1], vec![1, 2]];
        let bits = [(0, 0), (0, 3), (1, 1), (2, 3)];
        let changes = [(3, 1), (3, 2), (1, 1), (0, 3), (2, 0)];
        let mut rules = List::new();
        for dscps in dscps {
            for (value, mask) in bits {
                let bits = Bits::of_mark(value, mask).expect("its bits are in the mask");
                rules.extend(changes.iter().map(|(clear, invert)| Entry {
                    matches: Match { dscps: dscps.clone(), ..Match::default() },
                    bits,
                    change: Change::of(Number::Mark, *clear, *invert),
                }));
            }
        }
        for last in &rules {
            for middle in &rules {
                let list = changed(changed(List::new(), last.clone(), 3), middle.clone(), 3);
                for first in rules.iter().step_by(7) {
                    let mut list = changed(list.clone(), first.clone(), 3);
                    trim(&mut list, |matches| *matches == Match::default());
                    for (packet, numbers) in (0..4).flat_map(|packet| (0..4).map(move |n| (packet, n))) {
                        let one =
                            |numbers, rule: &Entry| outcome(std::slice::from_ref(rule), packet, numbers);
                        let expected = [first, middle, last].into_iter().fold(numbers, one);
                        let found = outcome(&list, packet, numbers);
                        assert_eq!(found, expected, "{packet} {numbers} {first:?} {middle:?} {last:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bits_before_a_change() {
        for (value, mask) in [(0, 0), (0, 3), (1, 1), (2, 3), (2, 6), (5, 7)] {
            let bits = Bits::of_mark(value, mask).expect("its bits are in the mask");
            for (clear, invert) in [(3, 1), (7, 2), (1, 1), (0, 5), (2, 0)] {
                let change = Change::of(Number::Mark, clear, invert);
                for numbers in 0..8 {
                    let before = bits.before(change).is_some_and(|before| has(before, numbers));
                    assert_eq!(before, has(bits, apply(change, numbers)), "{bits:?} {change:?} {numbers}");
                }
            }
        }
    }
}
