//! Captures of an interface by tcpdump, for programs that expect plain files of it.
//!
//! tcpdump sees what arrives at the interface, before the network, and what leaves by it, after the network. The run's own
//! capture has one record for each packet instead, with its verdict.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use narrows_io::child_lifetime::terminate_with_us;
use narrows_io::namespace::Namespace;
use narrows_io::process::{Running, Signal, SpawnError, spawn};

/// The maximum length of what it says before it listens.
const LONGEST_START: u64 = 1 << 16;
/// What it says when it listens.
const LISTENS: &str = "listening on";

/// Why an interface is not captured.
#[derive(Debug, thiserror::Error)]
pub enum SnifferError {
    /// It cannot be started.
    #[error("a capture of each interface is written by tcpdump: {0}")]
    Start(#[from] SpawnError),
    /// It ended before it listened.
    #[error("tcpdump does not capture `{interface}`: {said}{}", remedy(said))]
    Ended {
        /// The interface.
        interface: String,
        /// Its last words.
        said: String,
    },
    /// It failed during the run.
    #[error("the capture of `{interface}` by tcpdump is incomplete: {why}")]
    Incomplete {
        /// The interface.
        interface: String,
        /// What happened.
        why: String,
    },
}

fn remedy(said: &str) -> &'static str {
    if said.contains("Couldn't change to") {
        "; as root, tcpdump needs CAP_SETGID, which containers have unless it is dropped"
    } else {
        ""
    }
}

/// A running tcpdump, which ends with this process.
#[derive(Debug)]
pub(crate) struct Sniffer {
    interface: String,
    file: PathBuf,
    process: Running,
    /// Kept open, so that its last words do not end it.
    output: BufReader<ChildStderr>,
}

impl Sniffer {
    /// Starts it, and waits until it captures the interface to this file.
    pub(crate) fn start(namespace: &Namespace, interface: &str, file: &Path) -> Result<Self, SnifferError> {
        let mut command = Command::new("tcpdump");
        // Packet by packet, so that few are still to be written at the end. As a user of its own it could not write to
        // every folder.
        command.args(["--immediate-mode", "-U", "-Z", "root", "-i", interface, "-w"]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        terminate_with_us(&mut command);
        let mut process = spawn(command, namespace)?;
        let ended = |said: String| SnifferError::Ended { interface: interface.into(), said };
        let Some(output) = process.child().stderr.take() else { return Err(ended("it says nothing".into())) };
        let mut output = BufReader::new(output);
        let (mut last, mut start) = (String::new(), output.by_ref().take(LONGEST_START));
        loop {
            let mut line = String::new();
            match start.read_line(&mut line) {
                Ok(1..) if line.contains(LISTENS) => break,
                Ok(1..) => last = line.trim().to_owned(),
                Ok(0) => return Err(ended(last)),
                Err(error) => return Err(ended(error.to_string())),
            }
        }
        Ok(Self { interface: interface.into(), file: file.into(), process, output })
    }

    /// Ends it; the file is complete then.
    pub(crate) fn end(mut self) -> Result<(), SnifferError> {
        let ended = self.finish();
        let incomplete = |why| SnifferError::Incomplete { interface: self.interface.clone(), why };
        match ended {
            Ok((true, _)) => Ok(()),
            Ok((false, said)) => Err(incomplete(said)),
            Err(error) => Err(incomplete(error.to_string())),
        }
    }

    /// Waits until the file does not grow any more: what tcpdump has not read when it is told to end is lost.
    fn wait_until_written(&self) {
        const PAUSE: Duration = Duration::from_millis(50);
        const MOST: u32 = 20;
        let length = || self.file.metadata().map_or(0, |data| data.len());
        let mut before = length();
        for _ in 0..MOST {
            sleep(PAUSE);
            let now = length();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Whether it ended well, and its last line.
    fn finish(&mut self) -> io::Result<(bool, String)> {
        self.wait_until_written();
        // It may have ended by itself; then there is nobody to tell.
        let _ = self.process.signal(Signal::SIGINT);
        let mut said = String::new();
        self.output.by_ref().take(LONGEST_START).read_to_string(&mut said)?;
        let status = self.process.wait()?;
        let last = said.lines().last().unwrap_or_default();
        Ok((status.success(), if last.is_empty() { status.to_string() } else { last.to_owned() }))
    }
}
