//! Instruction sequences with jumps to labels.

use super::instruction::{Condition, Instruction, Operand, Register};

/// A jump target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction.
#[derive(Clone, Debug, Default)]
pub struct Code {
    instructions: Vec<Instruction>,
    /// For each label, the index of the instruction that follows it.
    places: Vec<Option<usize>>,
    /// Jumps and their targets.
    jumps: Vec<(usize, Label)>,
}

impl Code {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends instructions.
    pub fn push(&mut self, instructions: impl IntoIterator<Item = Instruction>) {
        self.instructions.extend(instructions);
    }

    /// Creates a label to be placed later.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label before the next instruction.
    pub fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.instructions.len());
    }

    /// Appends a jump to a label, taken if the condition holds.
    pub fn jump(&mut self, when: Condition, register: Register, operand: impl Into<Operand>, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.instructions.push(Instruction::jump(when, register, operand, 0));
    }

    /// The instructions, with all jumps resolved.
    ///
    /// # Panics
    /// If the label of a jump was never placed or is out of reach: an error of the program's author.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let place = self.places[label.0].expect("a label that is jumped to is placed");
            let distance = place as i64 - at as i64 - 1;
            self.instructions[at].offset = i16::try_from(distance).expect("programs here are short");
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels_both_ways() {
        let mut code = Code::new();
        let (back, out) = (code.label(), code.label());
        code.place(back);
        code.push([Instruction::mov(Register::R0, 1)]);
        code.jump(Condition::Equal, Register::R0, 0, out);
        code.jump(Condition::Always, Register::R0, 0, back);
        code.place(out);
        code.push([Instruction::exit()]);
        let offsets: Vec<i16> = code.finish().iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [0, 1, -3, 0]);
    }
}
