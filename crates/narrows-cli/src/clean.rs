//! `narrows clean`: removes what killed runs left behind.
//!
//! Namespaces, interfaces and address translation end with the process that made them, whatever ended it. What a
//! `kill -9` can leave: control sockets, programs that gave up their death signal, and settings of the host that
//! `--internet` changed.

use std::fs;

use narrows_io::process;
use narrows_live::control;
use narrows_live::run::RUN_ENVIRONMENT;

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
    // Stays while runs are going on.
    let _ = fs::remove_dir(&folder);
    if removed == 0 {
        print("nothing was left behind\n")?;
    }
    Ok(0)
}
