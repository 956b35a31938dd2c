//! The supervisor's own file system: a private mount namespace with a single file system in memory for everything
//! that a guest needs while it runs. It is removed with the last process in it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use narrows_io::terminal::WindowSize;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::getrlimit;
use nix::sys::stat::{Mode, umask};
use nix::unistd::gethostname;

use super::output::Outputs;
use super::{Broken, Kind, failed};
use crate::init::{FILES, INPUT, KEPT, OPEN, PLAN, ROOT, UPPER};
use crate::limits::LIMITS;
use crate::plan::Plan;

/// How many bytes the file system may hold beyond the guest's memory: unread output, and input that was available at
/// the start.
const ROOM: u64 = 1 << 30;

pub(super) struct GuestRootfs {
    /// Files that were created so that the guest can write them.
    made: Vec<PathBuf>,
    /// Folders and files of the host that the guest may write.
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl GuestRootfs {
    /// Creates it, and the files that the guest may write.
    pub(super) fn open(plan: &Plan) -> Result<Self, Broken> {
        let memory = plan.number("memory").map_err(failed("read the plan"))?;
        set_apart(memory + ROOM).map_err(failed("make a file system for the guest"))?;
        let mut rootfs = Self { made: Vec::new(), folders: Vec::new(), files: Vec::new() };
        for folder in [UPPER, ROOT, FILES, OPEN, "uml", "memory"] {
            fs::create_dir(rootfs.path(folder)).map_err(failed("make a folder for the guest"))?;
        }
        rootfs.share("/proc/self/exe", "init").map_err(failed("give narrows to the guest"))?;
        for path in plan.all("writable") {
            rootfs.make_writable(Path::new(path))?;
        }
        Ok(rootfs)
    }

    /// The path of a file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        Path::new(KEPT).join(name)
    }

    /// The socket of the guest's clock.
    pub(super) fn clock(&self) -> PathBuf {
        self.path("clock")
    }

    /// A new file, opened for appending.
    pub(super) fn make(&self, name: &str) -> io::Result<File> {
        File::options().append(true).create_new(true).open(self.path(name))
    }

    /// Makes a file of the host appear here: the one behind a link in `/proc`. A file that no longer exists under its
    /// name is copied.
    pub(super) fn share(&self, link: &str, name: &str) -> io::Result<()> {
        let here = self.path(name);
        let mut made = File::create(&here)?;
        let (source, wanted) = (fs::read_link(link)?, fs::metadata(link)?);
        let same = |found: &fs::Metadata| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino());
        if fs::metadata(&source).is_ok_and(|found| same(&found)) {
            return Ok(mount(Some(&source), &here, None::<&str>, MsFlags::MS_BIND, None::<&str>)?);
        }
        made.set_permissions(wanted.permissions())?;
        io::copy(&mut File::open(link)?, &mut made)?;
        Ok(())
    }

    /// Writes the plan for the guest's first process.
    pub(super) fn leave_plan(&self, plan: &Plan, input: Kind, outputs: &Outputs) -> Result<(), Broken> {
        let mut inside = Plan::default();
        for name in ["argument", "name", "folder", "prompts"] {
            plan.all(name).for_each(|value| inside.add(name, value));
        }
        self.folders.iter().for_each(|path| inside.add("writable folder", path));
        self.files.iter().for_each(|path| inside.add("writable file", path));
        for (name, value) in std::env::vars_os() {
            let mut variable = name;
            variable.push("=");
            variable.push(value);
            inside.add("variable", variable);
        }
        let mask = umask(Mode::empty());
        umask(mask);
        inside.add("umask", mask.bits().to_string());
        inside.add("host name", gethostname().unwrap_or_else(|_| OsString::from("guest")));
        for (name, resource) in LIMITS {
            if let Ok((soft, hard)) = getrlimit(*resource) {
                inside.add(name, format!("{soft} {hard}"));
            }
        }
        let kind = match input {
            Kind::Terminal => "terminal",
            Kind::File { .. } => "file",
            Kind::Nothing => "nothing",
            Kind::Stream => "stream",
        };
        inside.add("input", kind);
        inside.add("offset", input.offset().to_string());
        let word = |terminal| if terminal { "terminal" } else { "pipe" };
        inside.add("output", word(outputs.output_is_terminal));
        inside.add("error", word(outputs.error_is_terminal));
        if outputs.joined {
            inside.add("joined", "");
        }
        let size = outputs.terminal.as_ref().and_then(|terminal| WindowSize::of(terminal).ok());
        let size = size.unwrap_or(WindowSize { rows: 24, columns: 80 });
        inside.add("rows", size.rows.to_string());
        inside.add("columns", size.columns.to_string());
        fs::write(self.path(PLAN), inside.encode()).map_err(failed("leave the guest its plan"))?;
        debug_assert!(self.path(INPUT).exists() || !matches!(input, Kind::File { .. }));
        Ok(())
    }

    /// A folder must exist; a file is created if it does not.
    fn make_writable(&mut self, path: &Path) -> Result<(), Broken> {
        let refused = |cause: io::Error| {
            Broken::Said(format!("cannot let the guest write {}: {cause}", path.display()))
        };
        let found = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            other => Some(other.map_err(refused)?),
        };
        match found {
            Some(found) if found.is_dir() => {
                self.folders.push(path.into());
                return Ok(());
            }
            Some(found) if found.is_file() => {
                File::options().append(true).open(path).map_err(refused)?;
            }
            Some(_) => {
                return Err(Broken::Said(format!(
                    "{} is neither a file nor a folder; a guest can write to nothing else on the host",
                    path.display()
                )));
            }
            None => {
                File::options().append(true).create_new(true).open(path).map_err(refused)?;
                self.made.push(path.into());
            }
        }
        let here = self.path(FILES).join(self.files.len().to_string());
        let shared = File::create(&here)
            .and_then(|_| Ok(mount(Some(path), &here, None::<&str>, MsFlags::MS_BIND, None::<&str>)?));
        self.files.push(path.into());
        shared.map_err(refused)
    }
}

impl Drop for GuestRootfs {
    fn drop(&mut self) {
        for path in &self.made {
            if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
                // Nothing was written to it: as if it had never existed.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Over `/sys`, of which the guest has its own: nothing else of the host is hidden from it.
fn set_apart(room: u64) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_PRIVATE | MsFlags::MS_REC, None::<&str>)?;
    let options = format!("mode=700,size={room}");
    Ok(mount(
        Some("narrows"),
        KEPT,
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(options.as_bytes()),
    )?)
}
