//! The offset between this process's monotonic clock and the one of the kernel's frame timestamps.
//!
//! `bpf_ktime_get_ns()` is the host's `CLOCK_MONOTONIC`. In a time namespace (`time_namespaces(7)`) a process's clock
//! has an offset. `/proc/self/timens_offsets` describes the namespace of future children, which need not be our own;
//! so a program is run between two readings of our clock and returns the kernel's.

use std::io;

use crate::bpf::{
    Arithmetic, BpfError, Code, Condition, Helper, Instruction, Program, ProgramKind, Register, Width,
};
use crate::clock::{MonotonicTime, clock_monotonic};

/// Fields of `struct __sk_buff`.
const DATA: i16 = 76;
const DATA_END: i16 = 80;
/// The frame that the program runs on: it replaces the first bytes with the time.
const FRAME: [u8; 64] = [0; 64];
const TIME: usize = 8;
/// How often the two clocks are compared. The comparison that took the least time counts: some 2 µs.
const TRIES: usize = 16;

/// Converts the kernel's clock to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelClock {
    /// Nanoseconds by which ours is ahead, modulo 2⁶⁴, so it may also be behind.
    ahead: u64,
}

impl KernelClock {
    /// Compares the two. Outside time namespaces they are the same clock, and the result is exactly that; otherwise
    /// the offset is accurate to about a microsecond.
    ///
    /// # Errors
    /// If BPF is not allowed, or the kernel does not run the program.
    pub(super) fn compare() -> Result<Self, BpfError> {
        let program = load()?;
        let mut tightest = Comparison::by(&program)?;
        for _ in 1..TRIES {
            let other = Comparison::by(&program)?;
            if other.took() < tightest.took() {
                tightest = other;
            }
        }
        Ok(Self { ahead: tightest.ahead() })
    }

    /// Whether they are the same clock, as outside time namespaces.
    pub(super) const fn is_ours(self) -> bool {
        self.ahead == 0
    }

    /// Our clock's reading at this reading of the kernel's.
    pub(super) fn on_ours(self, kernel: MonotonicTime) -> MonotonicTime {
        MonotonicTime::from_nanos(kernel.as_nanos().wrapping_add(self.ahead))
    }
}

/// The kernel's clock reading between two readings of ours.
struct Comparison {
    before: u64,
    kernel: u64,
    after: u64,
}

impl Comparison {
    fn by(program: &Program) -> Result<Self, BpfError> {
        let before = clock_monotonic().as_nanos();
        let outcome = program.try_on(&FRAME)?;
        let after = clock_monotonic().as_nanos();
        let Some(time) = outcome.frame.first_chunk::<TIME>() else { return Err(no_time()) };
        Ok(Self { before, kernel: u64::from_ne_bytes(*time), after })
    }

    fn took(&self) -> u64 {
        self.after - self.before
    }

    /// By how much ours is ahead, accurate to half the duration of the comparison.
    fn ahead(&self) -> u64 {
        let is_one_clock = (self.before..=self.after).contains(&self.kernel);
        if is_one_clock { 0 } else { (self.before + self.took() / 2).wrapping_sub(self.kernel) }
    }
}

/// ```c
/// now = bpf_ktime_get_ns();
/// if (packet->data + 8 <= packet->data_end)
///     *(u64 *)packet->data = now;
/// return 0;
/// ```
fn load() -> Result<Program, BpfError> {
    use Register::{R0, R1, R2, R3, R4, R6};
    let mut code = Code::new();
    let done = code.label();
    code.push([
        Instruction::mov(R6, R1),
        Instruction::call(Helper::MonotonicTime),
        Instruction::load(Width::Word, R2, R6, DATA),
        Instruction::load(Width::Word, R3, R6, DATA_END),
        Instruction::mov(R4, R2),
        Instruction::arithmetic(Arithmetic::Add, R4, TIME as i32),
    ]);
    code.jump(Condition::Greater, R4, R3, done);
    code.push([Instruction::store(Width::Double, R2, 0, R0)]);
    code.place(done);
    code.push([Instruction::mov(R0, 0), Instruction::exit()]);
    Program::load(ProgramKind::Classifier, "narrows_clock", &code.finish())
}

fn no_time() -> BpfError {
    BpfError::Refused {
        step: "compare clocks with the kernel".into(),
        cause: io::ErrorKind::InvalidData.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_looks_is_of_one_clock() {
        for (kernel, ahead) in [(99, 5), (100, 0), (104, 0), (108, 0), (109, -5)] {
            let comparison = Comparison { before: 100, kernel, after: 108 };
            assert_eq!(comparison.ahead() as i64, ahead, "{kernel}");
        }
    }

    #[test]
    fn stamps_are_put_onto_our_clock_whichever_is_ahead() {
        for ours in [5_000_000_000, 60_000_000_000, 3_600_000_000_000] {
            let comparison = Comparison { before: ours - 3, kernel: 60_000_000_000, after: ours + 3 };
            let clock = KernelClock { ahead: comparison.ahead() };
            for later in [0, 250] {
                let on_ours = clock.on_ours(MonotonicTime::from_nanos(60_000_000_000 + later));
                assert_eq!(on_ours.as_nanos(), ours + later);
            }
        }
    }
}
