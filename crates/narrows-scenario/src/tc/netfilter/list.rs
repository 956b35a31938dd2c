//! Lists of conditions: the first that holds says how the numbers of a packet change.

use crate::tc::both::both;
use crate::value::Match;

/// What a firewall gives to packets, and to their connections. A packet's numbers are one of 122 bits: its mark, its class above
/// it, the mark of its connection, whether it is dropped, and [what is written](super::written) into its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Mark,
    Class,
    Connection,
    Dropped,
    Header,
}

impl Number {
    /// The bits that it has among those of a packet's numbers.
    pub(super) const fn bits(self) -> u128 {
        self.placed(u32::MAX)
    }

    const fn placed(self, bits: u32) -> u128 {
        ((bits & self.own()) as u128) << self.shift()
    }

    /// The bits of the number itself.
    const fn own(self) -> u32 {
        match self {
            Self::Mark | Self::Class | Self::Connection => u32::MAX,
            Self::Dropped => 1,
            Self::Header => 0x01ff_ffff,
        }
    }

    const fn shift(self) -> u32 {
        match self {
            Self::Mark => 0,
            Self::Class => 32,
            Self::Connection => 64,
            Self::Dropped => 96,
            Self::Header => 97,
        }
    }

    pub(super) const fn of(self, numbers: u128) -> u32 {
        (numbers >> self.shift()) as u32 & self.own()
    }
}

/// From the bits of the mark to those of the connection's mark.
const BETWEEN: u32 = 64;

/// A change of numbers: some bits are cleared, then some become those of the mark that the packet or its connection had, then
/// some are inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The bits that are copied are among them.
    clear: u128,
    invert: u128,
    /// The bits of the mark that become those of the connection's mark.
    restored: u32,
    /// The bits of the connection's mark that become those of the mark.
    saved: u32,
}

impl Change {
    pub(super) const NONE: Self = Self { clear: 0, invert: 0, restored: 0, saved: 0 };

    /// The change of one number.
    pub(super) fn of(number: Number, clear: u32, invert: u32) -> Self {
        Self { clear: number.placed(clear), invert: number.placed(invert), ..Self::NONE }
    }

    /// The packet is dropped.
    pub(super) fn drop() -> Self {
        Self::of(Number::Dropped, 1, 1)
    }

    /// Under a mask, the mark becomes that of the connection.
    pub(super) fn restore(mask: u32) -> Self {
        Self { clear: Number::Mark.placed(mask), restored: mask, ..Self::NONE }
    }

    /// Under a mask, the mark of the connection becomes that of the packet.
    pub(super) fn save(mask: u32) -> Self {
        Self { clear: Number::Connection.placed(mask), saved: mask, ..Self::NONE }
    }

    /// Whether bits come from the other mark.
    pub(super) const fn copies(self) -> bool {
        self.restored | self.saved != 0
    }

    /// Whether it looks at the mark of a connection, or changes it.
    pub(super) const fn is_of_connections(self) -> bool {
        self.copies() || self.touches() & Number::Connection.bits() != 0
    }

    /// The copied bits of numbers.
    const fn copied(self, numbers: u128) -> u128 {
        numbers >> BETWEEN & self.restored as u128 | (numbers & self.saved as u128) << BETWEEN
    }

    /// What it makes of numbers.
    pub(super) const fn applied(self, numbers: u128) -> u128 {
        (numbers & !self.clear | self.copied(numbers)) ^ self.invert
    }

    /// This change, and then the other.
    fn then(self, other: Self) -> Self {
        let restored = self.restored & !Number::Mark.of(other.clear)
            | other.restored & !Number::Connection.of(self.clear);
        let saved =
            self.saved & !Number::Connection.of(other.clear) | other.saved & !Number::Mark.of(self.clear);
        // A bit stays if neither changes it, or if it goes to the other number and comes back.
        let kept = !self.clear & !other.clear
            | Number::Mark.placed(self.saved & other.restored)
            | Number::Connection.placed(self.restored & other.saved);
        let invert = self.invert & !other.clear | other.copied(self.invert);
        Self { clear: !kept, invert: invert ^ other.invert, restored, saved }
    }

    /// The bits that it may change.
    const fn touches(self) -> u128 {
        self.clear | self.invert
    }

    /// Whether nothing of what these bits were before is left.
    const fn decides(self, bits: u128) -> bool {
        let copied = self.restored as u128 | (self.saved as u128) << BETWEEN;
        self.clear & !copied & bits == bits
    }
}

/// Bits that a packet's numbers must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    mask: u128,
    value: u128,
}

impl Bits {
    pub(super) const ANY: Self = Self { mask: 0, value: 0 };

    /// Those of a number under a mask, as the kernel compares it; `None` if no number is so.
    pub(super) fn of(number: Number, value: u32, mask: u32) -> Option<Self> {
        (value & !mask == 0).then_some(Self { mask: number.placed(mask), value: number.placed(value) })
    }

    /// Both; `None` if no packet has both.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        let possible = (self.value ^ other.value) & self.mask & other.mask == 0;
        possible.then_some(Self { mask: self.mask | other.mask, value: self.value | other.value })
    }

    /// What packets have before a change that have these bits behind it; `None` if there are none.
    fn before(self, change: Change) -> Option<Self> {
        let before = self.value ^ change.invert & self.mask;
        let copied = change.restored as u128 | Number::Connection.placed(change.saved);
        let decided = change.clear & !copied & self.mask;
        if before & decided != 0 {
            return None;
        }
        let kept = |bits: u128| bits & !change.clear;
        // A bit that is copied is asked of the number that it comes from.
        let moved =
            |bits: u128| (bits & change.restored as u128) << BETWEEN | bits >> BETWEEN & change.saved as u128;
        let stays = Self { mask: kept(self.mask), value: kept(before) };
        stays.and(Self { mask: moved(self.mask), value: moved(before) })
    }

    /// Whether all packets with these bits have the others, too.
    const fn within(self, other: Self) -> bool {
        self.mask & other.mask == other.mask && self.value & other.mask == other.value
    }

    /// Whether these numbers have them.
    pub(super) const fn hold(self, numbers: u128) -> bool {
        numbers & self.mask == self.value
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
pub(super) fn changed(mut list: List, rule: Entry, tracked: u128) -> List {
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
    for entry in list.drain(..).filter(|entry| entry.bits.hold(0)) {
        let mut near = kept.iter().rev().take(NEAR);
        if !near.any(|earlier| both(&earlier.matches, &entry.matches).as_ref() == Some(&entry.matches)) {
            kept.push(entry);
        }
    }
    while kept.last().is_some_and(|entry| number.of(entry.change.applied(0)) == 0) {
        kept.pop();
    }
    *list = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a list makes of a packet.
    fn outcome(list: &[Entry], packet: u8, numbers: u128) -> u128 {
        let holds = |entry: &&Entry| {
            let dscps = &entry.matches.dscps;
            (dscps.is_empty() || dscps.contains(&packet)) && entry.bits.hold(numbers)
        };
        list.iter().find(holds).map_or(Change::NONE, |entry| entry.change).applied(numbers)
    }

    /// Numbers of two bits of the mark, and two of that of the connection.
    fn all_numbers() -> impl Iterator<Item = u128> {
        (0..16).map(|bits: u128| bits & 3 | (bits >> 2) << BETWEEN)
    }

    fn all_bits() -> Vec<Bits> {
        let of = |number, value, mask| Bits::of(number, value, mask).expect("its bits are in the mask");
        let mut all = vec![Bits::ANY, of(Number::Connection, 0, 3), of(Number::Connection, 2, 2)];
        all.extend([(0, 3), (1, 1), (2, 3)].map(|(value, mask)| of(Number::Mark, value, mask)));
        all
    }

    fn all_changes() -> Vec<Change> {
        let mut all = vec![
            Change::restore(3),
            Change::restore(2),
            Change::save(3),
            Change::save(1),
            Change::of(Number::Connection, 3, 2),
        ];
        let marks = [(3, 1), (3, 2), (1, 1), (0, 3), (2, 0)];
        all.extend(marks.map(|(clear, invert)| Change::of(Number::Mark, clear, invert)));
        all
    }

    #[test]
    fn a_change_and_another() {
        for one in all_changes() {
            for other in all_changes() {
                for third in all_changes() {
                    let all = one.then(other).then(third);
                    for numbers in all_numbers() {
                        let expected = third.applied(other.applied(one.applied(numbers)));
                        assert_eq!(all.applied(numbers), expected, "{numbers:x} {one:?} {other:?} {third:?}");
                    }
                }
            }
        }
    }

    /// Each list of two rules, compared with the execution of the rules in order.
    #[test]
    fn a_list_does_what_its_rules_do() {
        let tracked = 3 | 3 << BETWEEN;
        let mut rules = List::new();
        for dscps in [Vec::new(), vec![1], vec![1, 2]] {
            for bits in all_bits() {
                rules.extend(all_changes().into_iter().map(|change| Entry {
                    matches: Match { dscps: dscps.clone(), ..Match::default() },
                    bits,
                    change,
                }));
            }
        }
        for last in rules.iter().step_by(2) {
            for middle in &rules {
                let list = changed(changed(List::new(), last.clone(), tracked), middle.clone(), tracked);
                for first in rules.iter().step_by(17) {
                    let mut list = changed(list.clone(), first.clone(), tracked);
                    trim(&mut list, |matches| *matches == Match::default());
                    for (packet, numbers) in
                        (0..4).flat_map(|packet| all_numbers().map(move |numbers| (packet, numbers)))
                    {
                        let one =
                            |numbers, rule: &Entry| outcome(std::slice::from_ref(rule), packet, numbers);
                        let expected = [first, middle, last].into_iter().fold(numbers, one);
                        let found = outcome(&list, packet, numbers);
                        assert_eq!(found, expected, "{packet} {numbers:x} {first:?} {middle:?} {last:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bits_before_a_change() {
        for bits in all_bits() {
            for change in all_changes() {
                for numbers in all_numbers() {
                    let before = bits.before(change).is_some_and(|before| before.hold(numbers));
                    assert_eq!(before, bits.hold(change.applied(numbers)), "{bits:?} {change:?} {numbers:x}");
                }
            }
        }
    }
}
