//! Programs of our own in the kernel. Needs root over the host: in a user namespace BPF is not allowed, which is tested there.

use std::net::UdpSocket;

use narrows_io::bpf::{
    Arithmetic, BpfError, Code, Condition, Direction, Helper, Instruction, Link, Map, Program, ProgramKind,
    Register, Width, XdpMode,
};
use narrows_io::route_socket::RouteSocket;

use crate::lab::{Lab, SERVER4, eventually, frame, privileged};

use Register::{R0, R1, R2, R3, R6, R10};

const XDP_PASS: i32 = 2;
const XDP_DROP: i32 = 1;
const TC_DROP: i32 = 2;

/// Adds one to entry 0 of a map of numbers, then gives the verdict.
pub(crate) fn counting(map: &Map, verdict: i32) -> Vec<Instruction> {
    let mut code = Code::new();
    let out = code.label();
    code.push([Instruction::store(Width::Word, R10, -4, 0), Instruction::mov(R2, R10)]);
    code.push([Instruction::arithmetic(Arithmetic::Add, R2, -4)]);
    code.push(Instruction::load_map(R1, map));
    code.push([Instruction::call(Helper::MapLookup)]);
    code.jump(Condition::Equal, R0, 0, out);
    code.push([
        Instruction::load(Width::Double, R1, R0, 0),
        Instruction::arithmetic(Arithmetic::Add, R1, 1),
        Instruction::store(Width::Double, R0, 0, R1),
    ]);
    code.place(out);
    code.push([Instruction::mov(R0, verdict), Instruction::exit()]);
    code.finish()
}

#[test]
#[ignore = "needs root, bpf"]
fn a_program_reads_a_frame_and_judges_it() {
    privileged("bpf::a_program_reads_a_frame_and_judges_it", || {
        // Drops frames whose EtherType is the one of `frame`, 0x88b5.
        let mut code = Code::new();
        let out = code.label();
        code.push([
            Instruction::mov(R6, XDP_PASS),
            Instruction::load(Width::Word, R2, R1, 0),
            Instruction::load(Width::Word, R3, R1, 4),
            Instruction::mov(R0, R2),
            Instruction::arithmetic(Arithmetic::Add, R0, 14),
        ]);
        code.jump(Condition::Greater, R0, R3, out);
        code.push([Instruction::load(Width::Half, R0, R2, 12)]);
        code.jump(Condition::Unequal, R0, i32::from(0x88b5u16.to_be()), out);
        code.push([Instruction::mov(R6, XDP_DROP)]);
        code.place(out);
        code.push([Instruction::mov(R0, R6), Instruction::exit()]);
        let program = Program::load(ProgramKind::Xdp, "by ethertype", &code.finish()).unwrap();
        let mut bytes = frame(&[7; 50]);
        let outcome = program.try_on(&bytes).unwrap();
        assert_eq!((outcome.verdict, &outcome.frame), (XDP_DROP as u32, &bytes));
        bytes[12] = 0;
        assert_eq!(program.try_on(&bytes).unwrap().verdict, XDP_PASS as u32);
    });
}

#[test]
#[ignore = "needs root, bpf"]
fn the_verifier_s_words_are_in_the_error() {
    privileged("bpf::the_verifier_s_words_are_in_the_error", || {
        // Reads a register that was never written.
        let code = [Instruction::mov(R0, R6), Instruction::exit()];
        let error = Program::load(ProgramKind::Xdp, "faulty", &code).unwrap_err();
        assert!(matches!(error, BpfError::Verifier { .. }), "{error}");
        assert!(error.to_string().contains("R6 !read_ok"), "{error}");
    });
}

#[test]
#[ignore = "needs root, bpf"]
fn a_classifier_drops_until_its_link_goes() {
    privileged("bpf::a_classifier_drops_until_its_link_goes", || {
        let lab = Lab::new(1500);
        let seen = Map::of_numbers("seen", 1).unwrap();
        let index = RouteSocket::open(&lab.client).unwrap().interface_index("eth0").unwrap();
        let socket = lab.client.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
        let sent =
            || RouteSocket::open(&lab.client).unwrap().interface("eth0").unwrap().statistics.sent_packets;
        let link = lab
            .client
            .run(|| {
                let program =
                    Program::load(ProgramKind::Classifier, "drop all", &counting(&seen, TC_DROP)).unwrap();
                Link::tcx(&program, index, Direction::Egress).unwrap()
            })
            .unwrap();
        let before = sent();
        eventually("a packet that the classifier saw", || {
            // The stack tells that the packet was dropped.
            let _ = socket.send_to(b"x", (SERVER4, 9));
            seen.number(0).unwrap() > 0
        });
        assert_eq!(sent(), before, "nothing passes");
        drop(link);
        eventually("a packet that passes", || {
            let _ = socket.send_to(b"x", (SERVER4, 9));
            sent() > before
        });
    });
}

#[test]
#[ignore = "needs root, bpf"]
fn an_interface_has_one_xdp_program_at_a_time() {
    privileged("bpf::an_interface_has_one_xdp_program_at_a_time", || {
        let lab = Lab::new(1500);
        let seen = Map::of_numbers("seen", 1).unwrap();
        let index = RouteSocket::open(&lab.wire).unwrap().interface_index("client").unwrap();
        lab.wire
            .run(|| {
                let program = Program::load(ProgramKind::Xdp, "count", &counting(&seen, XDP_PASS)).unwrap();
                for mode in [XdpMode::Native, XdpMode::Generic] {
                    let link = Link::xdp(&program, index, mode).unwrap();
                    let error = Link::xdp(&program, index, mode).unwrap_err();
                    assert!(matches!(error, BpfError::Occupied(_)), "{error}");
                    drop(link);
                }
                drop(Link::xdp(&program, index, XdpMode::Native).unwrap());
            })
            .unwrap();
    });
}
