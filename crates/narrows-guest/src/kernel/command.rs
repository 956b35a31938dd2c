//! Runs the programs of a build: their output goes to its log and to the watcher.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use super::KernelError;

/// The arguments of every call of make.
pub(super) const MAKE_ARGUMENTS: [&str; 1] = ["ARCH=um"];

/// How many last lines of the log an error shows.
const TAIL: usize = 12;

/// A call of `make` in a tree.
pub(super) fn make(tree: &Path) -> Command {
    let mut command = Command::new("make");
    // Settings of the user's own make or shell do not apply here.
    for name in
        ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KCONFIG_CONFIG", "KBUILD_OUTPUT", "CROSS_COMPILE", "SUBARCH"]
    {
        command.env_remove(name);
    }
    command.arg("-C").arg(tree).args(MAKE_ARGUMENTS).env("LC_ALL", "C");
    command.env("KBUILD_BUILD_USER", "narrows").env("KBUILD_BUILD_HOST", "narrows");
    command.env("KBUILD_BUILD_TIMESTAMP", "1970-01-01 00:00:00 UTC").env("KBUILD_BUILD_VERSION", "1");
    command
}

/// Runs a program to its end; `seen` gets each line of its output, which is added to the log together with its error
/// output.
///
/// If this process is killed, the program's next line finds no reader, which ends it.
///
/// # Errors
/// If it cannot be started or fails; the error contains its last lines.
pub(super) fn run(
    what: &str,
    mut command: Command,
    log: &Path,
    lock: &File,
    seen: &mut dyn FnMut(&str),
) -> Result<(), KernelError> {
    let failed = |cause: io::Error| KernelError::Failed {
        what: what.into(),
        status: cause.to_string(),
        tail: String::new(),
    };
    let (reader, writer) = io::pipe().map_err(failed)?;
    let errors = writer.try_clone().map_err(failed)?;
    // Processes that outlive us hold the lock through their standard input.
    let held = lock.try_clone().map_err(failed)?;
    let mut child = command.stdin(held).stdout(writer).stderr(errors).spawn().map_err(|cause| {
        let program = command.get_program().to_string_lossy().into_owned();
        KernelError::Failed { what: what.into(), status: format!("{program}: {cause}"), tail: String::new() }
    })?;
    // It holds the writing ends; if they stayed open here, the pipe would never end.
    drop(command);
    let mut log_file =
        OpenOptions::new().create(true).append(true).open(log).map_err(KernelError::file("write", log))?;
    let mut last = Vec::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        writeln!(log_file, "{line}").map_err(KernelError::file("write", log))?;
        seen(&line);
        if last.len() == TAIL {
            last.remove(0);
        }
        last.push(line);
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(failure(what, status, &last, log)) }
}

fn failure(what: &str, status: ExitStatus, last: &[String], log: &Path) -> KernelError {
    let lines: String = last.iter().map(|line| format!("\n  {line}")).collect();
    let tail = if lines.is_empty() { lines } else { format!("; the end of {}:{lines}", log.display()) };
    KernelError::Failed { what: what.into(), status: status.to_string(), tail }
}

/// The output of a program.
///
/// # Errors
/// If it cannot be started or fails.
pub(super) fn output(what: &str, mut command: Command) -> Result<String, KernelError> {
    let failed = |status: String| KernelError::Failed { what: what.into(), status, tail: String::new() };
    let said = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|cause| failed(cause.to_string()))?;
    if !said.status.success() {
        return Err(failed(said.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::temporary::Folder;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run_in(folder: &Path, command: Command) -> (Result<(), KernelError>, Vec<String>) {
        let lock = File::create(folder.join("lock")).unwrap();
        let mut lines = Vec::new();
        let result =
            run("the trial", command, &folder.join("log"), &lock, &mut |line| lines.push(line.to_owned()));
        (result, lines)
    }

    #[test]
    fn lines_are_seen_and_logged() {
        let folder = Folder::new();
        let (result, lines) = run_in(folder.path(), shell("echo one; echo two >&2"));
        assert!(result.is_ok());
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_failure_shows_the_last_lines() {
        let folder = Folder::new();
        let (result, _) = run_in(folder.path(), shell("for i in $(seq 30); do echo line $i; done; exit 3"));
        let error = result.unwrap_err().to_string();
        assert!(error.contains("the trial failed (exit status: 3)") && error.contains("line 30"), "{error}");
        assert!(error.contains("line 19\n") && !error.contains("line 18\n"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = Folder::new();
        let (result, _) = run_in(folder.path(), Command::new("/none/such"));
        assert!(result.unwrap_err().to_string().contains("/none/such: No such file"));
    }
}
