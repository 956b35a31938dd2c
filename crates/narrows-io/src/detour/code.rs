//! The classifiers of a detour.

use crate::bpf::{Code, Condition, Helper, Instruction, Register, TCX_DROP, TCX_NEXT, Width};
use crate::link::InterfaceIndex;

/// Offsets of fields in `struct __sk_buff`.
const MARK: i16 = 8;
const CAME_BY: i16 = 36;
/// For `bpf_redirect`: to the interface's ingress.
const INTO_INGRESS: i32 = 1;

/// Decides over every packet alike.
pub(super) fn verdict(verdict: i32) -> [Instruction; 2] {
    [Instruction::mov(Register::R0, verdict), Instruction::exit()]
}

/// Redirects the packet to another interface, and returns.
pub(crate) fn redirect(to: InterfaceIndex, flags: i32) -> [Instruction; 4] {
    [
        Instruction::mov(Register::R1, number(to)),
        Instruction::mov(Register::R2, flags),
        Instruction::call(Helper::Redirect),
        Instruction::exit(),
    ]
}

/// At the interface's egress: frames that did not arrive through `outside` go to `inside`.
pub(super) fn divert_out(inside: InterfaceIndex, outside: InterfaceIndex) -> Vec<Instruction> {
    let mut code = Code::new();
    let back = code.label();
    code.push([Instruction::load(Width::Word, Register::R2, Register::R1, CAME_BY)]);
    code.jump(Condition::Equal, Register::R2, number(outside), back);
    code.push(redirect(inside, 0));
    code.place(back);
    code.push(verdict(TCX_NEXT));
    code.finish()
}

/// At the interface's ingress: unmarked frames go to `outside`.
pub(super) fn divert_in(outside: InterfaceIndex, mark: i32) -> Vec<Instruction> {
    let mut code = Code::new();
    let back = code.label();
    code.push([Instruction::load(Width::Word, Register::R2, Register::R1, MARK)]);
    code.jump(Condition::Equal, Register::R2, mark, back);
    code.push(redirect(outside, 0));
    code.place(back);
    code.push(verdict(TCX_NEXT));
    code.finish()
}

/// At the ingress of `inside`: marks frames and passes them to the interface's ingress.
pub(super) fn back_in(interface: InterfaceIndex, mark: i32) -> Vec<Instruction> {
    let mark = [
        Instruction::mov(Register::R2, mark),
        Instruction::store(Width::Word, Register::R1, MARK, Register::R2),
    ];
    [&mark[..], &redirect(interface, INTO_INGRESS)].concat()
}

/// At the ingress of `outside`: sends frames by the interface.
pub(super) fn back_out(interface: InterfaceIndex) -> Vec<Instruction> {
    redirect(interface, 0).to_vec()
}

/// At the interface's ingress: removes the mark; unmarked frames get the verdict `otherwise`.
pub(super) fn unmark(mark: i32, otherwise: i32) -> Vec<Instruction> {
    let mut code = Code::new();
    let back = code.label();
    code.push([Instruction::load(Width::Word, Register::R2, Register::R1, MARK)]);
    code.jump(Condition::Equal, Register::R2, mark, back);
    code.push(verdict(otherwise));
    code.place(back);
    code.push([
        Instruction::mov(Register::R2, 0),
        Instruction::store(Width::Word, Register::R1, MARK, Register::R2),
    ]);
    code.push(verdict(TCX_NEXT));
    code.finish()
}

/// At a barrier on the interface's egress: only passes frames that arrived through `outside`.
pub(super) fn only_back_out(outside: InterfaceIndex) -> Vec<Instruction> {
    let mut code = Code::new();
    let back = code.label();
    code.push([Instruction::load(Width::Word, Register::R2, Register::R1, CAME_BY)]);
    code.jump(Condition::Equal, Register::R2, number(outside), back);
    code.push(verdict(TCX_DROP));
    code.place(back);
    code.push(verdict(TCX_NEXT));
    code.finish()
}

fn number(interface: InterfaceIndex) -> i32 {
    interface.0 as i32 // the kernel's numbers of interfaces are positive ints
}
