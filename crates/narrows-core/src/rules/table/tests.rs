use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use crate::classify::Prefix;

use super::{Lpm, Table};

/// Of the kinds that real tables have, and close enough together to meet.
fn prefix() -> impl Strategy<Value = Prefix> {
    let mapped = |address: u32| 0xffff_0000_0000 | u128::from(address);
    // Few bits differ, at places all over the address.
    let sparse = prop::collection::vec(0..128u32, 0..6)
        .prop_map(|bits| bits.into_iter().fold(0u128, |address, bit| address | 1 << bit));
    let address = prop_oneof![
        any::<u128>(),
        sparse,
        (0..4u32, any::<u8>()).prop_map(move |(net, host)| mapped(0x0a00_0000 | net << 12 | u32::from(host))),
        (0..256u128).prop_map(|host| 0x2001_0db8 << 96 | host),
    ];
    let bits = prop_oneof![0..=128u8, 100..=128u8, Just(0), Just(48), Just(96), Just(120), Just(128)];
    (address, bits).prop_map(|(address, bits)| Prefix::new(address.to_be_bytes(), bits))
}

/// Whether an address is in a prefix of its own version of IP.
fn has(prefix: &Prefix, address: [u8; 16]) -> bool {
    let is_v4 = v4_net().contains(address);
    prefix.contains(address) && (!is_v4 || prefix.bits() >= 96)
}

fn v4_net() -> Prefix {
    Prefix::new(v4(0, 0, 0, 0), 96)
}

/// IPv4 first.
fn sorted(plain: &BTreeMap<Prefix, u32>) -> Vec<(Prefix, u32)> {
    let mut all = plain.iter().map(|(&prefix, &value)| (prefix, value)).collect::<Vec<_>>();
    all.sort_by_key(|(prefix, _)| !has(prefix, prefix.address()) || !v4_net().contains(prefix.address()));
    all
}

/// Linear search.
fn longest(prefixes: &BTreeMap<Prefix, u32>, address: [u8; 16]) -> Option<(Prefix, u32)> {
    let having = prefixes.iter().filter(|(prefix, _)| has(prefix, address));
    having.max_by_key(|(prefix, _)| prefix.bits()).map(|(&prefix, &value)| (prefix, value))
}

/// The address with some bits turned over behind a place, so that it agrees with others up to there.
fn near(prefix: Prefix, place: u32, turned: u128) -> [u8; 16] {
    let address = u128::from_be_bytes(prefix.address());
    (address ^ turned.checked_shr(place).unwrap_or(0)).to_be_bytes()
}

proptest! {
    #[test]
    fn a_table_is_what_a_linear_search_says(
        changes in prop::collection::vec((prefix(), any::<bool>(), 0..u32::MAX), 1..120),
        probes in prop::collection::vec((any::<prop::sample::Index>(), 0..=128u32, any::<u128>()), 40),
    ) {
        let mut plain = BTreeMap::new();
        let mut table = Lpm::new();
        for &(prefix, goes, value) in &changes {
            if goes {
                // Another one: chances are that this one is not there.
                let prefix = match plain.keys().nth(value as usize % (plain.len() + 1)) {
                    Some(&there) => there,
                    None => prefix,
                };
                prop_assert_eq!(table.remove(prefix), plain.remove(&prefix));
            } else {
                prop_assert_eq!(table.insert(prefix, value), plain.insert(prefix, value));
            }
            prop_assert_eq!(table.len(), plain.len());
            prop_assert_eq!(table.get(prefix), plain.get(&prefix));
        }
        let entries = table.iter().map(|(prefix, &value)| (prefix, value)).collect::<Vec<_>>();
        prop_assert_eq!(&entries, &sorted(&plain));
        prop_assert_eq!(table.iter().len(), plain.len());

        for (which, place, turned) in probes {
            let address = near(which.get(&changes).0, place, turned);
            let found = longest(&plain, address);
            prop_assert_eq!(table.lookup(address), found.as_ref().map(|(_, value)| value));
            // In order of address and length, those that one address has are in order of length.
            let all = plain.iter().filter(|(prefix, _)| has(prefix, address));
            prop_assert!(table.matches(address).eq(all.map(|(_, value)| value)));
        }

        let again = plain.iter().rev().map(|(&prefix, &value)| (prefix, value)).collect::<Table>();
        prop_assert_eq!(again.iter().collect::<Vec<_>>(), entries);
        for prefix in plain.keys() {
            prop_assert!(table.remove(*prefix).is_some());
        }
        prop_assert!(table.is_empty() && table == Lpm::new());
    }
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

#[test]
fn the_table_of_the_manual_leads_to_its_pipes() {
    // ipfw(8), "EXAMPLES", "LOOKUP TABLES": tablearg gives the pipe of each.
    let table = Table::from_iter([
        (Prefix::new(v4(192, 168, 2, 0), 96 + 24), 1),
        (Prefix::new(v4(192, 168, 0, 0), 96 + 27), 4),
        (Prefix::new(v4(192, 168, 0, 2), 128), 1),
    ]);
    let addresses = [v4(192, 168, 2, 9), v4(192, 168, 0, 9), v4(192, 168, 0, 2), v4(192, 168, 0, 32)];
    assert_eq!(addresses.map(|address| table.lookup(address)), [Some(1), Some(4), Some(1), None]);
}

#[test]
fn the_whole_of_ipv4_is_not_the_whole_of_ipv6() {
    let mut table = Table::new();
    table.insert(Prefix::new(v4(0, 0, 0, 0), 96), 4);
    assert_eq!((table.lookup(v4(10, 0, 0, 1)), table.lookup([0x20; 16])), (Some(4), None));
    table.insert(Prefix::new([0; 16], 0), 6);
    assert_eq!((table.lookup(v4(10, 0, 0, 1)), table.lookup([0x20; 16])), (Some(4), Some(6)));
    table.remove(Prefix::new(v4(0, 0, 0, 0), 96));
    assert_eq!((table.lookup(v4(10, 0, 0, 1)), table.lookup([0x20; 16])), (None, Some(6)));
}

#[test]
fn every_length_of_one_address_has_its_own_value() {
    for address in [u128::MAX, 0, 0x2001_0db8_1234_5678_9abc_def0_1122_3344] {
        let mut table = Lpm::new();
        for bits in (0..=128).rev() {
            table.insert(Prefix::new(address.to_be_bytes(), bits), bits);
        }
        assert!(table.matches(address.to_be_bytes()).copied().eq(0..=128));
        // An address that differs in one bit has all prefixes up to it.
        for place in 0..128u8 {
            let other = address ^ 1 << (127 - place);
            assert_eq!(table.lookup(other.to_be_bytes()), Some(&place));
        }
        assert!(table.iter().map(|(prefix, _)| prefix.bits()).eq(0..=128));
    }
}

#[test]
fn memory_is_bounded_and_used_again() {
    let fill = |table: &mut Lpm<u32>, round: u32| {
        for nth in 0..4096u32 {
            let at = crate::random::mix(u64::from(nth) << 8 | u64::from(round));
            table.insert(Prefix::new(u128::from(at).wrapping_mul(0x1_0001_0001).to_be_bytes(), 128), nth);
        }
    };
    let mut table = Lpm::new();
    fill(&mut table, 0);
    // A host takes a value, a node, and at most one more where it parts from others: 68 bytes, four times that with room
    // to grow, and chains of nodes while there are few.
    let full = table.bytes();
    assert!(full < 4096 * 4 * 68, "{full} bytes");
    for round in 1..20 {
        for prefix in table.iter().map(|(prefix, _)| prefix).collect::<Vec<_>>() {
            table.remove(prefix);
            table.insert(prefix, 0);
        }
        let gone =
            table.iter().map(|(prefix, _)| prefix).filter(|p| p.bits() == 128).skip(1).collect::<Vec<_>>();
        for prefix in gone {
            table.remove(prefix);
        }
        fill(&mut table, round);
    }
    assert!(table.bytes() < 2 * full, "{} bytes, and {full} at first", table.bytes());
}

#[test]
fn values_that_own_something_are_dropped_once() {
    let mut table = Lpm::<String>::new();
    for (nth, bits) in (100..=128).enumerate() {
        table.insert(Prefix::new(v4(10, 1, 2, 3), bits), String::from("x").repeat(nth));
    }
    assert_eq!(table.remove(Prefix::new(v4(10, 1, 2, 3), 104)).map(|x| x.len()), Some(4));
    table.get_mut(Prefix::new(v4(10, 1, 2, 3), 105)).unwrap().push('y');
    assert_eq!(table.lookup(v4(10, 0x7f, 0, 0)).map(String::as_str), Some("xxxxxy"));
}
