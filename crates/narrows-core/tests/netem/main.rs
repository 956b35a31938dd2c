//! The single queue of sch_netem: its arithmetic on given random numbers, and what a link does that has it. The queue
//! itself is compared with a transcription of the kernel's in `src/link/netem/queue/tests.rs`.

mod arithmetic;
mod link;
