//! Comparisons of masked numbers, as lists of bits that they must have.

use super::pattern::Field;

/// How a number, of which only the bits of a mask count, is compared with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tc) enum Comparison {
    Equal,
    Less,
    Greater,
}

impl Comparison {
    pub(in crate::tc) fn named(word: &str) -> Option<Self> {
        match word {
            "eq" | "=" | "==" => Some(Self::Equal),
            "lt" | "<" => Some(Self::Less),
            "gt" | ">" => Some(Self::Greater),
            _ => None,
        }
    }

    /// The numbers of so many bytes for which it holds, or with `inverted` does not, as values of bits; none if there is no
    /// such number. A number is greater if, from its highest bit on, it first differs in a bit that is 1.
    pub(in crate::tc) fn fields(self, value: u32, mask: u32, bytes: u8, inverted: bool) -> Vec<Field> {
        let bits = 8 * u32::from(bytes);
        let (mut less, mut greater) = (Vec::new(), Vec::new());
        // Bits above `bits` are not in the number.
        let mut equal = (u64::from(value) >> bits == 0).then_some(Field { mask: 0, value: 0 });
        if equal.is_none() {
            less.push(Field { mask: 0, value: 0 });
        }
        for bit in (0..bits).rev().map(|bit| 1 << bit) {
            let Some(so_far) = equal else { break };
            let with = |value| Field { mask: so_far.mask | bit, value: so_far.value | value };
            match (mask & bit != 0, value & bit != 0) {
                (true, true) => {
                    less.push(with(0));
                    equal = Some(with(bit));
                }
                (true, false) => {
                    greater.push(with(bit));
                    equal = Some(with(0));
                }
                // The number has a zero there.
                (false, true) => {
                    less.push(so_far);
                    equal = None;
                }
                (false, false) => {}
            }
        }
        let equal: Vec<Field> = equal.into_iter().collect();
        let lists = match (self, inverted) {
            (Self::Equal, false) => [equal, Vec::new()],
            (Self::Less, false) => [less, Vec::new()],
            (Self::Greater, false) => [greater, Vec::new()],
            (Self::Equal, true) => [less, greater],
            (Self::Less, true) => [equal, greater],
            (Self::Greater, true) => [equal, less],
        };
        let mut all = lists.concat();
        // One that says nothing holds for all numbers, and so does a list that is complete.
        if all.iter().any(|field| field.mask == 0) {
            all = vec![Field { mask: 0, value: 0 }];
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_numbers() {
        for (value, mask) in
            [(10, 0xff), (3, 0xf0), (0x1f3, 0xff), (0, 0xa5), (0x80, 0x81), (255, 255), (5, 0)]
        {
            for comparison in [Comparison::Equal, Comparison::Less, Comparison::Greater] {
                for inverted in [false, true] {
                    let fields = comparison.fields(value, mask, 1, inverted);
                    for number in 0..=255_u32 {
                        let holds = match comparison {
                            Comparison::Equal => number & mask == value,
                            Comparison::Less => number & mask < value,
                            Comparison::Greater => number & mask > value,
                        };
                        let found = fields.iter().any(|field| number & field.mask == field.value);
                        assert_eq!(
                            found,
                            holds != inverted,
                            "{number} {comparison:?} {value} {mask:#x} {inverted}"
                        );
                    }
                }
            }
        }
    }
}
