//! The user's folder for data that outlives a run: reports, and the output of networks in the background.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::{env, fs};

use narrows_io::host;

/// `narrows` in the user's state folder; `None` if the user has none. Must be called before entering a user
/// namespace.
pub(crate) fn folder() -> Option<PathBuf> {
    // What a guest writes there vanishes with it.
    if host::time_is_virtual() {
        return None;
    }
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let (state, home) = (absolute("XDG_STATE_HOME"), absolute("HOME"));
    let state = state.or_else(|| Some(home?.join(".local/state")));
    // With sudo, root may have another user's folder, which must not be used.
    let is_ours = |state: &PathBuf| {
        let there = state.ancestors().find_map(|folder| fs::metadata(folder).ok());
        there.is_some_and(|data| data.uid() == host::user())
    };
    state.filter(is_ours).map(|state| state.join("narrows"))
}
