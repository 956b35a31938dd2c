//! `narrows clean`: removes what killed runs left behind.
//!
//! Namespaces, interfaces and address translation end with the process that made them, whatever ended it. What a
//! `kill -9` can leave: control sockets, those of feeds, programs that gave up their death signal, and settings of the
//! host that `--internet` changed, offloads of interfaces that `bridge` had switched off, barriers of `attach --fail closed`.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use narrows_io::ledger::restore_abandoned;
use narrows_io::namespace::Namespace;
use narrows_io::process;
use narrows_io::rearranged::restore_abandoned as restore_interfaces_of;
use narrows_live::control;
use narrows_live::feeds;
use narrows_live::run::{RUN_ENVIRONMENT, SETTINGS};
use narrows_live::standing::INTERFACES;

use crate::output::{Failure, print};

pub(crate) fn clean() -> Result<u8, Failure> {
    let folder = control::run_folder();
    let mut removed = 0;
    if folder.exists() {
        control::check_owner(&folder).map_err(|error| Failure::Other(error.to_string()))?;
    }
    // What is killed may be another run, inside the one that it belonged to: until none is left.
    while let Some((run, path)) =
        control::sockets(&folder).into_iter().find(|(_, path)| !control::is_alive(path))
    {
        for process in marked(&run)? {
            process::kill_now(process);
            print(&format!("killed process {process} of run {run}\n"))?;
            removed += 1;
        }
        // Whoever cleans up at the same time may have been faster.
        if let Err(cause) = fs::remove_file(&path)
            && cause.kind() != ErrorKind::NotFound
        {
            return Err(Failure::Write { path, cause });
        }
        wait_until_gone(&run)?;
        print(&format!("removed {}\n", path.display()))?;
        removed += 1;
    }
    removed += remove_feeds(&folder)?;
    removed += restore_settings(&folder)?;
    removed += restore_interfaces(&folder)?;
    // Stays while runs are going on.
    let _ = fs::remove_dir(&folder);
    if removed == 0 {
        print("nothing was left behind\n")?;
    }
    Ok(0)
}

/// Removes the sockets of feeds whose run has no control socket any more: a run has that from before its feeds' until
/// after.
fn remove_feeds(folder: &Path) -> Result<usize, Failure> {
    // Looked for first: a run that begins meanwhile is in the list of runs then.
    let feeds = feeds::leftovers(folder);
    let runs = control::sockets(folder);
    let mut removed = 0;
    for feed in feeds.iter().filter(|feed| runs.iter().all(|(run, _)| *run != feed.run)) {
        match fs::remove_file(&feed.path) {
            Ok(()) => {
                print(&format!("removed {}\n", feed.path.display()))?;
                removed += 1;
            }
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(Failure::Write { path: feed.path.clone(), cause }),
        }
    }
    Ok(removed)
}

fn marked(run: &str) -> Result<Vec<u32>, Failure> {
    process::find_marked(RUN_ENVIRONMENT, run)
        .map_err(|error| Failure::Other(format!("cannot look through the processes: {error}")))
}

/// The kernel takes its time to end what was killed.
fn wait_until_gone(run: &str) -> Result<(), Failure> {
    const PAUSE: Duration = Duration::from_millis(2);
    const PAUSES: u32 = 1000;
    for _ in 0..PAUSES {
        if marked(run)?.is_empty() {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Puts back interfaces that killed runs had changed.
fn restore_interfaces(folder: &Path) -> Result<usize, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Other(error.to_string());
    let here = Namespace::current().map_err(|error| failed(&error))?;
    let restored = restore_interfaces_of(&here, &folder.join(INTERFACES)).map_err(|error| failed(&error))?;
    for record in &restored {
        print(&format!("put {} back as it was\n", record.interface))?;
    }
    Ok(restored.len())
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
