//! The program on the interface: stamps each frame and redirects it to the socket of its queue.

use crate::bpf::{
    BpfError, Code, Condition, Helper, Instruction, Map, Program, ProgramKind, Register, Width,
};

/// Fields of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const RECEIVE_QUEUE: i16 = 16;
/// The verdict for frames of a queue without a socket.
const XDP_PASS: i32 = 2;
/// The length of the timestamp: 64 bits of metadata, directly before the frame.
pub(super) const STAMP: usize = 8;

/// Loads the program for the sockets in `sockets`.
///
/// ```c
/// now = bpf_ktime_get_ns();
/// if (bpf_xdp_adjust_meta(context, -8) == 0 && context->data_meta + 8 <= context->data)
///     *(u64 *)context->data_meta = now;
/// return bpf_redirect_map(sockets, context->rx_queue_index, XDP_PASS);
/// ```
///
/// If a driver has no room for metadata, frames have no timestamp.
pub(super) fn load(sockets: &Map) -> Result<Program, BpfError> {
    use Register::{R0, R1, R2, R3, R6, R7};
    let mut code = Code::new();
    let redirect = code.label();
    code.push([
        Instruction::mov(R6, R1),
        Instruction::call(Helper::MonotonicTime),
        Instruction::mov(R7, R0),
        Instruction::mov(R1, R6),
        Instruction::mov(R2, -(STAMP as i32)),
        Instruction::call(Helper::AdjustMetadata),
    ]);
    code.jump(Condition::Unequal, R0, 0, redirect);
    code.push([
        Instruction::load(Width::Word, R1, R6, DATA_META),
        Instruction::load(Width::Word, R2, R6, DATA),
        Instruction::mov(R3, R1),
        Instruction::arithmetic(crate::bpf::Arithmetic::Add, R3, STAMP as i32),
    ]);
    // Never true, but the verifier requires the check.
    code.jump(Condition::Greater, R3, R2, redirect);
    code.push([Instruction::store(Width::Double, R1, 0, R7)]);
    code.place(redirect);
    code.push(Instruction::load_map(R1, sockets));
    code.push([
        Instruction::load(Width::Word, R2, R6, RECEIVE_QUEUE),
        Instruction::mov(R3, XDP_PASS),
        Instruction::call(Helper::RedirectMap),
        Instruction::exit(),
    ]);
    Program::load(ProgramKind::Xdp, "narrows", &code.finish())
}
