//! The events of a lab: a process `containerlab events`, which ends with this one.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use narrows_io::child_lifetime::terminate_with_us;

use super::event;
use crate::engine::LONGEST_EVENT;
use crate::event::Event;

/// The arguments: with what runs already first, so that nothing is missed while the program starts.
const ARGUMENTS: [&str; 4] = ["events", "--format", "json", "--initial-state"];
/// The maximum length of a line that says why it ended.
const LONGEST_LINE: u64 = 4096;

/// A running program.
#[derive(Debug)]
pub(crate) struct LabEvents {
    program: PathBuf,
    lab: String,
    child: Child,
    output: BufReader<ChildStdout>,
    /// Reads what it says besides, so that it never has to wait; its last line.
    complaint: Option<JoinHandle<String>>,
}

impl LabEvents {
    /// Starts the program.
    pub(crate) fn start(program: &Path, lab: &str) -> Result<Self, String> {
        let told = |error: io::Error| format!("cannot start {}: {error}", program.display());
        let mut command = Command::new(program);
        command.args(ARGUMENTS);
        // Ctrl-C is for us.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        terminate_with_us(&mut command);
        let mut child = command.spawn().map_err(told)?;
        let (output, complaints) = (child.stdout.take(), child.stderr.take());
        let output = output.ok_or_else(|| told(io::ErrorKind::BrokenPipe.into()))?;
        let complaint = complaints.map(|complaints| thread::spawn(move || last_line(complaints)));
        Ok(Self {
            program: program.into(),
            lab: lab.into(),
            child,
            output: BufReader::new(output),
            complaint,
        })
    }

    /// Waits for the next event that matters; an error when the program ends.
    pub(crate) fn next_event(&mut self) -> Result<Event, String> {
        loop {
            let mut line = Vec::new();
            let read = self.output.by_ref().take(LONGEST_EVENT).read_until(b'\n', &mut line);
            if read.is_err() || !line.ends_with(b"\n") {
                return Err(self.end());
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match event::parse(&line, &self.lab) {
                Ok(None) => {}
                Ok(Some(event)) => return Ok(event),
                Err(error) => {
                    return Err(format!("{} events: not an event: {error}", self.program.display()));
                }
            }
        }
    }

    /// Why it has ended.
    fn end(&mut self) -> String {
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let said = self.complaint.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let program = self.program.display();
        if said.is_empty() {
            format!("{program} events has ended: {status}")
        } else {
            format!("{program} events has ended: {said}")
        }
    }
}

impl Drop for LabEvents {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line that is not empty.
fn last_line(from: ChildStderr) -> String {
    let mut from = BufReader::new(from);
    let (mut last, mut line) = (String::new(), Vec::new());
    while let Ok(1..) = from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            text.trim().clone_into(&mut last);
        }
        line.clear();
    }
    last
}
