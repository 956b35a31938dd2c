//! `narrows clean`: removes what killed runs left behind.
//!
//! Namespaces, interfaces and address translation end with the process that made them, whatever ended it. What a
//! `kill -9` can leave: control sockets, programs that gave up their death signal, and settings of the host that
//! `--internet` changed.

use std::fs;
use std::path::Path;

use narrows_io::ledger::restore_abandoned;
use narrows_io::namespace::Namespace;
use narrows_io::process;
use narrows_live::control;
use narrows_live::run::{RUN_ENVIRONMENT, SETTINGS};

use crate::output::{Failure, print};

pub(crate) fn clean() -> Result<u8, Failure> {
    let folder = control::run_folder();
    let mut removed = 0;
    for (run, path) in control::sockets(&folder) {
        if control::is_alive(&path) {
            continue;
        }
        let marked = process::find_marked(RUN_ENVIRONMENT, &run)
            .map_err(|error| Failure::Other(format!("cannot look through the processes: {error}")))?;
        for process in marked {
            process::kill_now(process);
            print(&format!("killed process {process} of run {run}\n"))?;
            removed += 1;
        }
        fs::remove_file(&path).map_err(|cause| Failure::Write { path: path.clone(), cause })?;
        print(&format!("removed {}\n", path.display()))?;
        removed += 1;
    }
    removed += restore_settings(&folder)?;
    // Stays while runs are going on.
    let _ = fs::remove_dir(&folder);
    if removed == 0 {
        print("nothing was left behind\n")?;
    }
    Ok(0)
}

/// Puts back settings of this namespace that killed runs had changed.
fn restore_settings(folder: &Path) -> Result<usize, Failure> {
    let settings = folder.join(SETTINGS);
    if !settings.is_dir() {
        return Ok(0);
    }
    let failed = |error: &dyn std::fmt::Display| Failure::Other(error.to_string());
    let here = Namespace::current().map_err(|error| failed(&error))?;
    let restored = restore_abandoned(&here, &settings).map_err(|error| failed(&error))?;
    for setting in &restored {
        print(&format!("put {} back to {}\n", setting.key, setting.before))?;
    }
    Ok(restored.len())
}
