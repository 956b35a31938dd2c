//! Asks one machine whether an agent can run there: `narrows doctor --for ssh`.

use std::sync::mpsc::channel;

use super::group::{Group, start};
use crate::output::Failure;

/// The user that narrows runs as on this machine, and whether that has all privileges.
///
/// # Errors
/// Why no agent of this version starts there.
pub(crate) fn ask(machine: &str, ssh: Option<&str>) -> Result<(u32, bool), Failure> {
    let (events, heard) = channel();
    let mut agents = start(&[machine.to_owned()], ssh, &events)?;
    let mut group = Group { agents: &mut agents, heard: &heard };
    Ok(group.greet()?.first().copied().unwrap_or_default())
}
