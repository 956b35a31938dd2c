//! Instructions of the kernel's BPF virtual machine (RFC 9669): eight bytes each.

use std::os::fd::{AsFd, AsRawFd};

use super::Map;

/// An instruction, or one half of the only one with twice the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    opcode: u8,
    /// The source in the upper half, the destination in the lower half.
    registers: u8,
    pub(super) offset: i16,
    immediate: i32,
}

/// A 64-bit register. A call takes its arguments in 1 to 5, clobbers them, and returns its result in 0; 6 to 9 are
/// preserved; 10 points to the end of the 512-byte stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names are their numbers")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// An immediate number, sign-extended to 64 bits.
    Immediate(i32),
    /// A register's value.
    Register(Register),
}

impl From<i32> for Operand {
    fn from(value: i32) -> Self {
        Self::Immediate(value)
    }
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

/// The width of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
}

impl Width {
    fn code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

/// Operations on 64-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Arithmetic {
    Add = 0x00,
    Subtract = 0x10,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Move = 0xb0,
}

/// Conditions of a jump; comparisons are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    Always = 0x00,
    /// The register is equal to the operand.
    Equal = 0x10,
    /// The register is greater than the operand.
    Greater = 0x20,
    /// The register is greater than or equal to the operand.
    AtLeast = 0x30,
    /// The two have a bit in common.
    CommonBits = 0x40,
    /// The two differ.
    Unequal = 0x50,
    /// The register is less than the operand.
    Less = 0xa0,
    /// The register is less than or equal to the operand.
    AtMost = 0xb0,
}

/// Kernel helper functions, by their numbers in `linux/bpf.h`. All are available to programs under any licence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// `bpf_map_lookup_elem(map, key)`: a pointer to the value, or 0.
    MapLookup = 1,
    /// `bpf_ktime_get_ns()`: CLOCK_MONOTONIC.
    MonotonicTime = 5,
    /// `bpf_redirect(interface, flags)`.
    Redirect = 23,
    /// `bpf_redirect_map(map, key, flags)`.
    RedirectMap = 51,
    /// `bpf_xdp_adjust_meta(context, delta)`.
    AdjustMetadata = 54,
}

/// Instruction classes.
const LOAD: u8 = 0x00;
const LOAD_MEMORY: u8 = 0x61;
const STORE_IMMEDIATE: u8 = 0x62;
const STORE_REGISTER: u8 = 0x63;
const JUMP: u8 = 0x05;
const ARITHMETIC: u8 = 0x07;
/// The operand is a register.
const FROM_REGISTER: u8 = 0x08;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// In the source register field of a 64-bit load: the value is a map's descriptor.
const PSEUDO_MAP: u8 = 1;
/// In the source register field of a call: the immediate is an offset in the program.
const PSEUDO_CALL: u8 = 1;
/// The same: the immediate is a function's number in the kernel's BTF.
const PSEUDO_KERNEL_CALL: u8 = 2;

impl Instruction {
    fn new(opcode: u8, to: Register, from: u8, offset: i16, immediate: i32) -> Self {
        Self { opcode, registers: from << 4 | to as u8, offset, immediate }
    }

    fn with(opcode: u8, to: Register, operand: Operand, offset: i16) -> Self {
        match operand {
            Operand::Immediate(value) => Self::new(opcode, to, 0, offset, value),
            Operand::Register(from) => Self::new(opcode | FROM_REGISTER, to, from as u8, offset, 0),
        }
    }

    /// `to = operand`.
    pub fn mov(to: Register, operand: impl Into<Operand>) -> Self {
        Self::arithmetic(Arithmetic::Move, to, operand)
    }

    /// `to = to ∘ operand`, in 64 bits.
    pub fn arithmetic(what: Arithmetic, to: Register, operand: impl Into<Operand>) -> Self {
        Self::with(ARITHMETIC | what as u8, to, operand.into(), 0)
    }

    /// `to = *(base + offset)`, zero-extended.
    pub fn load(width: Width, to: Register, base: Register, offset: i16) -> Self {
        Self::new(LOAD_MEMORY | width.code(), to, base as u8, offset, 0)
    }

    /// `*(base + offset) = operand`.
    pub fn store(width: Width, base: Register, offset: i16, operand: impl Into<Operand>) -> Self {
        match operand.into() {
            Operand::Immediate(value) => Self::new(STORE_IMMEDIATE | width.code(), base, 0, offset, value),
            Operand::Register(from) => Self::new(STORE_REGISTER | width.code(), base, from as u8, offset, 0),
        }
    }

    /// `to = map`. The map must stay open until the program is loaded, which then holds a reference.
    pub fn load_map(to: Register, map: &Map) -> [Self; 2] {
        Self::load_wide(to, PSEUDO_MAP, map.as_fd().as_raw_fd() as u64)
    }

    fn load_wide(to: Register, kind: u8, value: u64) -> [Self; 2] {
        let [low, high] = [value as u32, (value >> 32) as u32].map(|half| half as i32);
        [Self::new(LOAD | Width::Double.code(), to, kind, 0, low), Self::new(0, Register::R0, 0, 0, high)]
    }

    /// Skips `offset` instructions after this one if the condition holds; [`super::Code`] computes the offset.
    pub fn jump(when: Condition, register: Register, operand: impl Into<Operand>, offset: i16) -> Self {
        Self::with(JUMP | when as u8, register, operand.into(), offset)
    }

    /// Calls a kernel helper function.
    pub fn call(helper: Helper) -> Self {
        Self::new(JUMP | CALL, Register::R0, 0, 0, helper as i32)
    }

    /// Ends the program; its return value is in register 0.
    pub fn exit() -> Self {
        Self::new(JUMP | EXIT, Register::R0, 0, 0, 0)
    }

    /// From its encoding in memory.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let [opcode, registers, o0, o1, i0, i1, i2, i3] = bytes;
        Self {
            opcode,
            registers,
            offset: i16::from_ne_bytes([o0, o1]),
            immediate: i32::from_ne_bytes([i0, i1, i2, i3]),
        }
    }

    /// The register that it writes to, if it is the first half of a 64-bit load.
    pub fn wide_load_to(self) -> Option<Register> {
        use Register::*;
        let registers = [R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10];
        let to = registers.get(usize::from(self.registers & 0xf)).copied();
        to.filter(|_| self.opcode == LOAD | Width::Double.code())
    }

    /// Whether it is a call.
    pub fn is_call(self) -> bool {
        self.opcode == JUMP | CALL
    }

    /// `to = value`.
    pub fn load_number(to: Register, value: u64) -> [Self; 2] {
        Self::load_wide(to, 0, value)
    }

    /// Calls a function of the program itself, this many instructions behind the next one.
    pub fn call_at(offset: i32) -> Self {
        Self { registers: PSEUDO_CALL << 4, ..Self::new(JUMP | CALL, Register::R0, 0, 0, offset) }
    }

    /// Calls a function of the kernel's, by its number in the kernel's BTF.
    pub fn call_kernel(function: u32) -> Self {
        Self {
            registers: PSEUDO_KERNEL_CALL << 4,
            ..Self::new(JUMP | CALL, Register::R0, 0, 0, function as i32)
        }
    }

    /// The encoding in memory.
    pub fn bytes(self) -> [u8; 8] {
        let mut bytes = [self.opcode, self.registers, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.immediate.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    /// Written out by hand from the tables of RFC 9669.
    #[test]
    fn instructions_are_encoded_as_the_standard_has_them() {
        use Register::{R0, R1, R2, R3, R6, R10};
        let cases: &[(Instruction, [u8; 8])] = &[
            (Instruction::mov(R0, 2), [0xb7, 0x00, 0, 0, 2, 0, 0, 0]),
            (Instruction::mov(R6, R1), [0xbf, 0x16, 0, 0, 0, 0, 0, 0]),
            (Instruction::arithmetic(Arithmetic::Add, R2, -8), [0x07, 0x02, 0, 0, 0xf8, 0xff, 0xff, 0xff]),
            (Instruction::arithmetic(Arithmetic::And, R2, R3), [0x5f, 0x32, 0, 0, 0, 0, 0, 0]),
            (Instruction::load(Width::Word, R2, R1, 16), [0x61, 0x12, 16, 0, 0, 0, 0, 0]),
            (Instruction::load(Width::Half, R2, R1, 12), [0x69, 0x12, 12, 0, 0, 0, 0, 0]),
            (Instruction::load(Width::Byte, R2, R1, -1), [0x71, 0x12, 0xff, 0xff, 0, 0, 0, 0]),
            (Instruction::load(Width::Double, R2, R10, -8), [0x79, 0xa2, 0xf8, 0xff, 0, 0, 0, 0]),
            (Instruction::store(Width::Double, R1, 0, R0), [0x7b, 0x01, 0, 0, 0, 0, 0, 0]),
            (Instruction::store(Width::Word, R10, -4, 7), [0x62, 0x0a, 0xfc, 0xff, 7, 0, 0, 0]),
            (Instruction::jump(Condition::Greater, R2, R3, 5), [0x2d, 0x32, 5, 0, 0, 0, 0, 0]),
            (Instruction::jump(Condition::Unequal, R0, 0, 3), [0x55, 0x00, 3, 0, 0, 0, 0, 0]),
            (Instruction::jump(Condition::Always, R0, 0, -2), [0x05, 0x00, 0xfe, 0xff, 0, 0, 0, 0]),
            (Instruction::call(Helper::RedirectMap), [0x85, 0x00, 0, 0, 51, 0, 0, 0]),
            (Instruction::exit(), [0x95, 0x00, 0, 0, 0, 0, 0, 0]),
        ];
        for (instruction, bytes) in cases {
            assert_eq!(instruction.bytes(), *bytes, "{instruction:?}");
        }
        let [low, high] = Instruction::load_wide(R3, 0, 0x1122_3344_aabb_ccdd).map(Instruction::bytes);
        assert_eq!(low, [0x18, 0x03, 0, 0, 0xdd, 0xcc, 0xbb, 0xaa]);
        assert_eq!(high, [0x00, 0x00, 0, 0, 0x44, 0x33, 0x22, 0x11]);
    }
}
