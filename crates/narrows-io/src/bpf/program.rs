//! Programs that the kernel has verified and loaded.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::instruction::Instruction;
use super::{Argument, BpfError, Btf, Command, address, bpf, bpf_descriptor, short_name};

/// The licence reported to the kernel. None of the helper functions used requires the GPL.
const LICENCE: &std::ffi::CStr = c"MIT OR Apache-2.0";
/// The size of the verifier's log. A longer log is truncated to its end.
const LOG: usize = 64 << 10;
/// `BPF_F_XDP_HAS_FRAGS`: the program supports frames in several buffers.
const XDP_HAS_FRAGS: u32 = 1 << 5;
/// `BPF_XDP` as the expected attach type.
const ATTACH_XDP: u32 = 37;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// On frames in the driver, before anything else sees them. Its context is `struct xdp_md`. A frame may be in
    /// several buffers; the program sees the first.
    Xdp,
    /// On packets between the kernel's stack and the interface's queue (`SCHED_CLS`). Its context is `struct __sk_buff`.
    Classifier,
}

/// A program in the kernel, freed when neither we nor a link refers to it.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
    name: String,
}

/// The result of running a program on a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its return value.
    pub verdict: u32,
    /// The frame afterwards.
    pub frame: Vec<u8>,
}

/// The argument of `BPF_PROG_LOAD`.
#[derive(Debug, Default)]
#[repr(C)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    btf: u32,
    function_record_size: u32,
    functions: u64,
    function_count: u32,
    line_record_size: u32,
    lines: u64,
    line_count: u32,
    attach_type_number: u32,
    attach_object: u32,
    zero: u32,
}

/// The place of a function in a table of the kernel's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructOpsMember {
    /// The number of the table's type in the kernel's BTF.
    pub table: u32,
    /// The member's index in it.
    pub index: u32,
}

/// The types of a program's functions: the verifier checks those that others call by themselves.
#[derive(Clone, Copy, Debug)]
pub struct FunctionTypes<'a> {
    /// Where the types are.
    pub btf: &'a Btf,
    /// The instruction at which each function begins, ascending, and the number of its type.
    pub places: &'a [[u32; 2]],
}

/// Programs in tables of operations, and those that call functions of the kernel's, must say that the GPL covers them, too.
const LICENCE_WITH_GPL: &std::ffi::CStr = c"Dual MIT/GPL";
/// `BPF_PROG_TYPE_STRUCT_OPS`, `BPF_PROG_TYPE_SCHED_CLS`.
const STRUCT_OPS: u32 = 27;

/// The argument of `BPF_PROG_TEST_RUN`.
#[derive(Debug, Default)]
#[repr(C)]
struct TestRun {
    program: u32,
    verdict: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch_size: u32,
    zero: u32,
}

#[expect(unsafe_code, reason = "the kernel reads them as they lie in memory")]
// SAFETY: both are repr(C) and without padding; pointers are set by the calls below, from values that outlive them.
unsafe impl Argument for Load {}
#[expect(unsafe_code, reason = "the kernel reads them as they lie in memory")]
// SAFETY: as above.
unsafe impl Argument for TestRun {}

impl Program {
    /// Verifies and loads a program.
    ///
    /// # Errors
    /// If BPF is not allowed, or the verifier rejects the program: its log is in the error.
    pub fn load(kind: ProgramKind, name: &str, instructions: &[Instruction]) -> Result<Self, BpfError> {
        let (number, flags, expected_attach_type) = match kind {
            ProgramKind::Classifier => (3, 0, 0),
            ProgramKind::Xdp => (6, XDP_HAS_FRAGS, ATTACH_XDP),
        };
        let load =
            Load { kind: number, licence: address(LICENCE), flags, expected_attach_type, ..Load::default() };
        Self::load_as(load, name, instructions)
    }

    /// Verifies and loads a function of a table of operations.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn load_struct_ops(
        member: StructOpsMember,
        name: &str,
        instructions: &[Instruction],
        functions: FunctionTypes<'_>,
    ) -> Result<Self, BpfError> {
        let load = Load {
            kind: STRUCT_OPS,
            licence: address(LICENCE_WITH_GPL),
            expected_attach_type: member.index,
            attach_type_number: member.table,
            btf: functions.btf.as_fd().as_raw_fd() as u32,
            function_record_size: 8,
            functions: address(functions.places),
            function_count: functions.places.len() as u32,
            ..Load::default()
        };
        Self::load_as(load, name, instructions)
    }

    fn load_as(load: Load, name: &str, instructions: &[Instruction]) -> Result<Self, BpfError> {
        let mut load = Load {
            instruction_count: instructions.len() as u32,
            instructions: address(instructions),
            name: short_name(name),
            ..load
        };
        let cause = match bpf_descriptor(Command::ProgramLoad, &mut load) {
            Ok(descriptor) => return Ok(Self { descriptor, name: name.to_owned() }),
            Err(cause) => cause,
        };
        // Once more with a log, which is not created for valid programs.
        let mut log = vec![0u8; LOG];
        load.log_level = 1;
        load.log_size = LOG as u32;
        load.log = log.as_mut_ptr() as u64;
        let again = bpf_descriptor(Command::ProgramLoad, &mut load);
        if let Ok(descriptor) = again {
            return Ok(Self { descriptor, name: name.to_owned() });
        }
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG);
        let log = String::from_utf8_lossy(&log[..end]).trim_end().to_owned();
        // If BPF is not allowed at all, there is no log; if the verifier rejects the program there is one, and the
        // error code may be the same.
        if log.is_empty() {
            return Err(BpfError::new(format!("load the program `{name}`"), cause));
        }
        Err(BpfError::Verifier { name: name.to_owned(), log })
    }

    /// Its name in the kernel, truncated to 15 bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the program on a frame that is not sent anywhere, as a test.
    ///
    /// # Errors
    /// If the frame is shorter than an Ethernet header or longer than the kernel accepts.
    pub fn try_on(&self, frame: &[u8]) -> Result<Outcome, BpfError> {
        let mut after = vec![0; frame.len() + 256];
        let mut run = TestRun {
            program: self.descriptor.as_raw_fd() as u32,
            size_in: frame.len() as u32,
            size_out: after.len() as u32,
            data_in: address(frame),
            data_out: after.as_mut_ptr() as u64,
            repeat: 1,
            ..TestRun::default()
        };
        bpf(Command::ProgramTestRun, &mut run)
            .map_err(|cause| BpfError::new(format!("try the program `{}`", self.name), cause))?;
        after.truncate(run.size_out as usize);
        Ok(Outcome { verdict: run.verdict, frame: after })
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
