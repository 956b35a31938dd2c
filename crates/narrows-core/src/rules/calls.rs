//! Which calls a packet has not returned from.

use alloc::vec::Vec;

/// No more calls than so many within each other.
pub(super) const DEEPEST: usize = 16;

/// The numbers of the rules of the calls that a packet has not returned from, the last one at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallStack {
    numbers: [u16; DEEPEST],
    depth: u8,
}

impl CallStack {
    /// False where there are [`DEEPEST`] already.
    pub(super) fn push(&mut self, number: u16) -> bool {
        let Some(slot) = self.numbers.get_mut(usize::from(self.depth)) else { return false };
        *slot = number;
        self.depth += 1;
        true
    }

    pub(super) fn pop(&mut self) -> Option<u16> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.numbers[usize::from(self.depth)])
    }
}

/// Stacks of calls of packets that are in pipes, so that a [`Place`](super::Place) needs no more than a number for one.
///
/// A stack is a row of rules' numbers, and there are as many of them as there are ways to come to a pipe: few, in real
/// rules. They are never given up.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The stack without its last call, and that call. Stack 0, which is empty, is not in here.
    stacks: Vec<(u16, u16)>,
    /// Stacks that there was no number for.
    pub(super) forgotten: u64,
}

impl Calls {
    /// The number of a stack. Where there is none left, it is that of the empty one.
    pub(super) fn number(&mut self, stack: &CallStack) -> u16 {
        let mut at = 0;
        for &call in &stack.numbers[..usize::from(stack.depth)] {
            let known = self.stacks.iter().position(|&one| one == (at, call));
            let index = known.unwrap_or(self.stacks.len());
            let Ok(number) = u16::try_from(index + 1) else {
                self.forgotten += 1;
                return 0;
            };
            if known.is_none() {
                self.stacks.push((at, call));
            }
            at = number;
        }
        at
    }

    /// The stack of a number.
    pub(super) fn stack(&self, mut number: u16) -> CallStack {
        let mut stack = CallStack::default();
        while let Some(&(rest, call)) = usize::from(number).checked_sub(1).and_then(|at| self.stacks.get(at))
        {
            // Stacks have been built with no more calls than this.
            stack.push(call);
            number = rest;
        }
        let depth = usize::from(stack.depth);
        stack.numbers[..depth].reverse();
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_comes_back_from_its_number() {
        let mut calls = Calls::default();
        let mut numbers = Vec::new();
        for length in [0, 1, 3, 16] {
            let mut stack = CallStack::default();
            for call in 0..length {
                assert!(stack.push(100 + call));
            }
            assert_eq!(stack.push(7), length < 16);
            if length < 16 {
                assert_eq!(stack.pop(), Some(7));
            }
            let number = calls.number(&stack);
            assert_eq!(calls.number(&stack), number);
            numbers.push(number);
            let mut back = calls.stack(number);
            for call in (0..length).rev() {
                assert_eq!(back.pop(), Some(100 + call));
            }
            assert_eq!(back.pop(), None);
        }
        numbers.dedup();
        assert_eq!(numbers.len(), 4);
        assert_eq!(calls.forgotten, 0);
    }
}
