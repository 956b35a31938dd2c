//! The output of programs started in hosts: to our own output, optionally with a label before each line, or to a file
//! for each host. A thread per stream copies whole lines, so that none is split, and ends with the last program that
//! writes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::run_error::{RunError, system};
use crate::testbed::Host;

/// A longer line is written in pieces.
const LONGEST_LINE: u64 = 1 << 16;
/// How long writing the last lines may take once all programs have ended: a pager may have stopped reading.
const LAST_LINES: Duration = Duration::from_secs(2);
/// Colours of labels: cyan, yellow, green, magenta, blue, and their bright versions.
const COLOURS: [u8; 10] = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94];

/// How to handle it.
#[derive(Clone, Debug, Default)]
pub struct OutputPlan {
    /// Write `[server]` before each line.
    pub labels: bool,
    /// Colour the labels.
    pub colours: bool,
    /// A folder for `HOST.log`, with all output of a host's programs.
    pub logs: Option<PathBuf>,
    /// Redirect standard output to standard error.
    pub to_stderr: bool,
}

/// The streams of all programs.
#[derive(Debug)]
pub(crate) struct ServiceOutput {
    plan: OutputPlan,
    files: BTreeMap<String, Arc<Mutex<File>>>,
    /// Labels by host, in the order of their first programs.
    hosts: Vec<String>,
    /// At its end, each stream sends its write error, if any.
    done: Sender<Option<io::Error>>,
    ended: Receiver<Option<io::Error>>,
    going: usize,
}

/// The destination of lines.
#[derive(Clone, Debug)]
enum Sink {
    Stdout,
    Stderr,
    File(Arc<Mutex<File>>),
}

impl ServiceOutput {
    pub(crate) fn new(plan: OutputPlan) -> Self {
        let (done, ended) = mpsc::channel();
        Self { plan, files: BTreeMap::new(), hosts: Vec::new(), done, ended, going: 0 }
    }

    /// Connects standard output and error of a program of this host.
    pub(crate) fn connect(&mut self, command: &mut Command, host: &Host) -> Result<(), RunError> {
        if self.plan.logs.is_some() {
            let sink = Sink::File(self.file(&host.name)?);
            // One stream for both, to keep them in order.
            let stream = self.copy(String::new(), sink)?;
            command.stderr(stream.try_clone().map_err(system("make a pipe"))?).stdout(stream);
        } else if self.plan.labels {
            let out = if self.plan.to_stderr { Sink::Stderr } else { Sink::Stdout };
            let label = self.label(&host.name);
            command.stdout(self.copy(label.clone(), out)?).stderr(self.copy(label, Sink::Stderr)?);
        } else if self.plan.to_stderr {
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr.map_err(system("give a program the standard error"))?);
        }
        Ok(())
    }

    /// Waits until the last lines are written. Call it when all programs have ended. Returns a note if a log is
    /// incomplete.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let mut failed = None;
        while self.going > 0
            && let Ok(error) = self.ended.recv_timeout(LAST_LINES)
        {
            self.going -= 1;
            failed = failed.or(error);
        }
        let folder = self.plan.logs.as_ref()?.display();
        Some(format!("the logs in {folder} are incomplete: {}", failed?))
    }

    fn label(&mut self, host: &str) -> String {
        let known = self.hosts.iter().position(|known| known == host);
        let number = known.unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.hosts.len() - 1
        });
        match self.plan.colours {
            true => format!("\x1b[{}m[{host}]\x1b[0m ", COLOURS[number % COLOURS.len()]),
            false => format!("[{host}] "),
        }
    }

    fn file(&mut self, host: &str) -> Result<Arc<Mutex<File>>, RunError> {
        if let Some(file) = self.files.get(host) {
            return Ok(Arc::clone(file));
        }
        let folder = self.plan.logs.clone().unwrap_or_default();
        // A host's name becomes a single path component.
        let path = folder.join(format!("{}.log", host.replace('/', "_")));
        let made = fs::create_dir_all(&folder).and_then(|()| File::create(&path));
        let file = made.map_err(|cause| RunError::Log { path, cause })?;
        let file = Arc::new(Mutex::new(file));
        self.files.insert(host.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// A stream whose lines are copied by a thread.
    fn copy(&mut self, label: String, sink: Sink) -> Result<io::PipeWriter, RunError> {
        let (reader, writer) = io::pipe().map_err(system("make a pipe"))?;
        let done = self.done.clone();
        let copying = move || {
            let mut failed = None;
            // The programs continue: their output is read, written or not.
            copy_lines(reader, label.as_bytes(), |line| failed = failed.take().or(sink.write(line).err()));
            // Nobody waits any more if the run has ended.
            let _ = done.send(failed);
        };
        thread::Builder::new().name("output".into()).spawn(copying).map_err(system("start a thread"))?;
        self.going += 1;
        Ok(writer)
    }
}

impl Sink {
    fn write(&self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(line).and_then(|()| out.flush())
            }
            Self::Stderr => io::stderr().lock().write_all(line),
            Self::File(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line),
        }
    }
}

/// Copies line by line, with a label before each; the last one is completed.
fn copy_lines(from: impl Read, label: &[u8], mut write: impl FnMut(&[u8])) {
    let mut from = BufReader::new(from);
    let mut line = label.to_vec();
    // A pipe whose writers have ended returns end of file, not an error.
    while let Ok(1..) = from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        write(&line);
        line.truncate(label.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_label_and_the_last_one_its_end() {
        let mut all = Vec::new();
        copy_lines(&b"one\n\nthree\nno end"[..], b"[a] ", |line| all.push(line.to_vec()));
        assert_eq!(all.concat(), b"[a] one\n[a] \n[a] three\n[a] no end\n");
        assert_eq!(all.len(), 4, "each line is written at once");
    }

    #[test]
    fn a_line_without_end_is_cut_and_nothing_is_lost() {
        let long = vec![b'x'; LONGEST_LINE as usize * 2 + 5];
        let mut count = 0;
        copy_lines(&long[..], b"", |line| count += line.iter().filter(|byte| **byte == b'x').count());
        assert_eq!(count, long.len());
    }
}
