//! `narrows sweep` without the Python package, which has tests of its own.

use std::process::Command;

use crate::common::{NARROWS, finish};

#[test]
fn a_sweep_says_what_it_needs() {
    let ended = finish(Command::new(NARROWS).args(["sweep", "sweep.toml"]).env("PATH", "/nowhere")).expect(2);
    assert!(ended.err.starts_with("narrows: sweeps need the Python package"), "{ended}");
}
