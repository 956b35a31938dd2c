//! Links inside the kernel: each direction is a queueing discipline in BPF at the interface of the host that sends.
//!
//! [`fit()`] says which scenarios fit, and gives the [`Parameters`] of their directions; [`KernelLinks`] loads the program
//! (`bpf/qdisc.bpf.c`) with them. The program decides as the engine does and leaves a record of each packet, which
//! [`narrows_io::kernel_end::KernelEnd`] reads; nothing of narrows is on the packets' way.
//!
//! The loader is our own: a few system calls in `narrows-io`. libbpf would need libelf (LGPL), and no Rust loader
//! registers tables of operations by itself. What it leaves out is not used: the program has no types of its own, and
//! finds the kernel's fields by symbols ([`program`]).

pub mod fit;
pub mod load;
pub mod parameters;
pub mod program;
pub mod types;

pub use fit::{Fitting, Misfit, Misfits, fit};
pub use load::{KernelLinks, LoadError, qdisc_name, try_out};
pub use parameters::Parameters;
