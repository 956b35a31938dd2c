//! Blocks an interface before a network is attached to it, so that nothing bypasses the network in between.
//!
//! The barrier is like one that a killed run with `--fail closed` leaves: it stays when this process ends. The next
//! run on the interface takes it over once it has redirected the frames; [`unblock`] and `narrows clean` remove it.

use std::path::Path;

use narrows_io::bpf::Direction;
use narrows_io::detour::{DetourError, Diverted, full_barrier};
use narrows_io::link::Interface;
use narrows_io::namespace::Namespace;
use narrows_io::saved_interface::SavedInterface;

use crate::inline::{INTERFACES, InlineError};

/// Blocks the frames of the interface that `diverted` selects. `reference` says what the namespace was opened by, for
/// `narrows clean`.
///
/// # Errors
/// If another run uses the interface, or the kernel refuses.
pub fn block(
    namespace: &Namespace,
    reference: Option<&str>,
    interface: &Interface,
    diverted: Diverted,
    run_folder: &Path,
) -> Result<(), InlineError> {
    let mut claimed = SavedInterface::claim(namespace, reference, interface, &run_folder.join(INTERFACES))?;
    shut(&mut claimed, diverted.hooks())?;
    // The barriers and their record stay; the claim ends.
    drop(claimed);
    Ok(())
}

/// Lets nothing pass in these directions any more.
pub(crate) fn shut(claimed: &mut SavedInterface, directions: &[Direction]) -> Result<(), InlineError> {
    let program = full_barrier().map_err(DetourError::from)?;
    directions.iter().try_for_each(|&direction| Ok(claimed.close(direction, &program)?))
}

/// Removes the barriers of [`block`], if no run has taken them over.
///
/// # Errors
/// If a run uses the interface, or the kernel refuses.
pub fn unblock(namespace: &Namespace, interface: &Interface, run_folder: &Path) -> Result<(), InlineError> {
    SavedInterface::claim(namespace, None, interface, &run_folder.join(INTERFACES))?.restore()?;
    Ok(())
}
