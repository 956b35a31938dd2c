//! The open calls of a packet.

use alloc::vec::Vec;

/// The maximum number of nested calls.
pub(super) const DEEPEST: usize = 16;

/// The numbers of the calling rules from which a packet has not returned, the last one at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallStack {
    numbers: [u16; DEEPEST],
    depth: u8,
}

impl CallStack {
    /// Returns false if there are [`DEEPEST`] calls already.
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

/// The call stacks of packets in pipes, so that a [`Place`](super::Place) can refer to a stack by number.
///
/// A stack is a list of rule numbers. There are as many stacks as there are call paths to a pipe, which are few in
/// real rule sets. They are never freed.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The number of the stack without its last call, and that call. Stack 0, the empty one, is not stored.
    stacks: Vec<(u16, u16)>,
    /// Stacks for which there was no number.
    pub(super) forgotten: u64,
}

impl Calls {
    /// The number of a stack. If no number is left, that of the empty stack.
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

    /// The stack with this number.
    pub(super) fn stack(&self, mut number: u16) -> CallStack {
        let mut stack = CallStack::default();
        while let Some(&(rest, call)) = usize::from(number).checked_sub(1).and_then(|at| self.stacks.get(at))
        {
            // No stack was built with more calls than this.
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
