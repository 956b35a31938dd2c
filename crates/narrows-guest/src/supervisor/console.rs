//! The guest kernel's console, which is recorded and quoted in errors; and its management console, which answers
//! while a program is spinning.

use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use super::rootfs::GuestRootfs;
use super::{Broken, failed};

/// How many of the last lines are quoted.
const LINES: usize = 15;
/// How long the management console may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Console {
    path: PathBuf,
    file: File,
    management: PathBuf,
    asking: PathBuf,
}

impl Console {
    pub(super) fn make(rootfs: &GuestRootfs) -> Result<Self, Broken> {
        Ok(Self {
            path: rootfs.path("console"),
            file: rootfs.make("console").map_err(failed("make the guest's console"))?,
            management: rootfs.path("uml").join("guest").join("mconsole"),
            asking: rootfs.path("asking"),
        })
    }

    /// The ends of the console for the kernel's process.
    pub(super) fn ends(&self) -> Result<(Stdio, Stdio), Broken> {
        let end = || self.file.try_clone().map(Stdio::from).map_err(failed("share the guest's console"));
        Ok((end()?, end()?))
    }

    fn text(&self) -> String {
        fs::read(&self.path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Messages for the user after a complete run.
    pub(super) fn remarks(&self, memory: u64) -> Vec<String> {
        killed_for_memory(&self.text()).into_iter().map(|who| out_of_memory(&who, memory)).collect()
    }

    /// Why the guest's kernel ended by itself.
    pub(super) fn last_words(&self, memory: u64) -> String {
        let text = self.text();
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let panic = lines.iter().rev().find(|line| line.contains("Kernel panic")).copied();
        let mut last = lines.split_off(lines.len().saturating_sub(LINES));
        // The lines after it may be longer.
        last.splice(0..0, panic.filter(|panic| !last.contains(panic)));
        let last = last.join("\n  ");
        let memory = match killed_for_memory(&text).last() {
            Some(who) => format!("{}\n", out_of_memory(who, memory)),
            None => String::new(),
        };
        format!("{memory}the guest kernel crashed; last lines of its console:\n  {last}")
    }

    /// The process that occupies the guest's processor, as `name (process 7)`; `None` if the guest's kernel does not
    /// answer.
    pub(super) fn spinning(&self) -> Option<String> {
        // The kernel prints the process at the level "information", which its console normally omits.
        self.ask("sysrq 7").ok()?;
        let answer = self.ask("sysrq p").ok()?;
        let (_, behind) = answer.split_once("Pid: ")?;
        let (number, behind) = behind.split_once(',')?;
        let (_, name) = behind.split_once("comm: ")?;
        let name = name.split_whitespace().next()?;
        Some(format!("`{name}` (process {} of the guest)", number.trim()))
    }

    /// UML's management console (`arch/um/drivers/mconsole.h`): one datagram in each direction.
    fn ask(&self, what: &str) -> io::Result<String> {
        const MAGIC: u32 = 0xcafe_babe;
        const VERSION: u32 = 2;
        const ROOM: usize = 512;
        // From the previous query, if there was one.
        let _ = fs::remove_file(&self.asking);
        let socket = UnixDatagram::bind(&self.asking)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut request = [MAGIC, VERSION, what.len() as u32].map(u32::to_ne_bytes).concat(); // a few bytes
        request.extend(what.as_bytes());
        request.resize(12 + ROOM, 0);
        socket.send_to(&request, &self.management)?;
        let mut text = String::new();
        loop {
            let mut answer = [0; 12 + ROOM];
            let length = socket.recv(&mut answer)?;
            let field =
                |at: usize| u32::from_ne_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
            let end = 12 + (field(8) as usize).min(length.saturating_sub(12));
            text += &String::from_utf8_lossy(&answer[12..end.min(length)]);
            if field(4) == 0 {
                return Ok(text);
            }
        }
    }
}

fn out_of_memory(who: &str, memory: u64) -> String {
    format!(
        "the guest ran out of its {} MiB of memory, and its kernel killed {who}: give it more, as in --memory {}M",
        memory >> 20,
        memory >> 19
    )
}

/// The programs that, according to the kernel's log, were killed for lack of memory.
fn killed_for_memory(text: &str) -> Vec<String> {
    let killed = text.lines().filter_map(|line| {
        let (_, behind) = line.split_once("Out of memory: Killed process ")?;
        let (number, behind) = behind.split_once(" (")?;
        let (name, _) = behind.split_once(')')?;
        Some(format!("`{name}` (process {number} of the guest)"))
    });
    killed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_killed_for_memory_is_read_from_the_log() {
        let log = "x\n[    1.5] Out of memory: Killed process 45 (tail) total-vm:1kB, anon-rss:0kB\ny\n";
        assert_eq!(killed_for_memory(log), ["`tail` (process 45 of the guest)"]);
        assert!(
            out_of_memory("`tail`", 1 << 30).contains("1024 MiB of memory, and its kernel killed `tail`")
        );
        assert!(out_of_memory("`tail`", 1 << 30).ends_with("--memory 2048M"));
        assert!(killed_for_memory("Out of memory: Killed process").is_empty());
    }
}
