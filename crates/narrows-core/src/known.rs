//! What routers find in their tables.

/// A prefix in a table: of a router's own routes, or of the destinations that all routers have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// In a router's own table the number of the route, else that of the group.
    pub(crate) number: u32,
    /// The length of the prefix.
    pub(crate) bits: u8,
}

/// What routers found for a packet's destination in the table that they have in common, so that only the first one
/// looks. In four bytes: a byte for the length of the prefix, from 1, and the number of the group; 0 if none has looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownOnce(u32);

impl KnownOnce {
    const NO_GROUP: Self = Self(u32::MAX);

    /// What was found before, or what `find` finds now.
    pub(crate) fn or_find(&mut self, find: impl FnOnce() -> Option<Known>) -> Option<Known> {
        match *self {
            Self(0) => {}
            Self::NO_GROUP => return None,
            Self(found) => return Some(Known { number: found >> 8, bits: found as u8 - 1 }),
        }
        let found = find();
        *self = match found {
            None => Self::NO_GROUP,
            // The length is 128 at most, so this is not `NO_GROUP`.
            Some(Known { number, bits }) if number < 1 << 24 => Self(number << 8 | (u32::from(bits) + 1)),
            Some(_) => Self(0),
        };
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_look_counts() {
        for found in [(0, 0), (7, 128), ((1 << 24) - 1, 120)] {
            let known = Known { number: found.0, bits: found.1 };
            let mut once = KnownOnce::default();
            assert_eq!(once.or_find(|| Some(known)), Some(known));
            assert_eq!(once.or_find(|| unreachable!("it is known")), Some(known));
        }
        let mut once = KnownOnce::default();
        assert_eq!(once.or_find(|| None), None);
        assert_eq!(once.or_find(|| unreachable!("it is known that there is none")), None);
        // More groups than have room.
        let far = Known { number: 1 << 24, bits: 1 };
        let mut once = KnownOnce::default();
        assert_eq!(once.or_find(|| Some(far)), Some(far));
        assert_eq!(once.or_find(|| None), None);
    }
}
