//! Queue management in links of an engine, in virtual time: what each policy does to loads for which that can be worked
//! out, and that it does so whoever polls whenever.

mod aimd;
mod drive;
mod fair;
mod late_polls;
mod loads;
