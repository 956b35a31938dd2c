//! Pins: what the kernel keeps when no process has it any more, under names in a BPF file system.

use std::ffi::CString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::{Argument, BpfError, Command, address, bpf, bpf_descriptor};
use crate::clock::clock_monotonic;

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const OURS: &str = "/sys/fs/bpf/narrows";
/// A symbolic link to nowhere: its text is what the folder is about. Other files than pins cannot be there.
const ABOUT: &str = "about";

/// A folder of pins of ours, locked: no other process changes it meanwhile.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    _lock: File,
}

/// Where a pinned classifier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedAt {
    /// The number of its link.
    pub link: u32,
    /// The number of the interface in its namespace; 0 if the interface is gone.
    pub interface: u32,
}

/// How long another process may take to change a folder.
const PATIENCE: Duration = Duration::from_secs(10);

/// The argument of `BPF_OBJ_PIN` and `BPF_OBJ_GET`.
#[derive(Debug)]
#[repr(C)]
struct Pin {
    path: u64,
    descriptor: u32,
    flags: u32,
}

#[expect(unsafe_code, reason = "the kernel reads it as it lies in memory")]
// SAFETY: it is repr(C), without padding, and the path lives as long as it is used.
unsafe impl Argument for Pin {}

/// The argument of `BPF_OBJ_GET_INFO_BY_FD`.
#[derive(Debug)]
#[repr(C)]
struct Ask {
    descriptor: u32,
    length: u32,
    info: u64,
}

#[expect(unsafe_code, reason = "the kernel reads it as it lies in memory")]
// SAFETY: it is repr(C), without padding, and what it points to lives as long as it is used.
unsafe impl Argument for Ask {}

/// The kernel's `struct bpf_link_info`, up to what a TCX link has.
#[derive(Debug, Default)]
#[repr(C)]
struct LinkInfo {
    kind: u32,
    number: u32,
    program: u32,
    unused: u32,
    interface: u32,
    hook: u32,
}

impl Pins {
    /// A new folder of this name, without pins; `about` is a short text to find it by.
    ///
    /// # Errors
    /// If there is no BPF file system at `/sys/fs/bpf`, or the folder exists or cannot be made.
    pub fn create(name: &str, about: &str) -> Result<Self, BpfError> {
        if !statfs(FILE_SYSTEM).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC) {
            return Err(BpfError::NoFileSystem);
        }
        let path = Path::new(OURS).join(name);
        let make = || -> io::Result<File> {
            fs::DirBuilder::new().mode(0o700).recursive(true).create(OURS)?;
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            let lock = File::open(&path)?;
            lock.lock()?;
            symlink(about, path.join(ABOUT))?;
            Ok(lock)
        };
        match make() {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(cause) => Err(BpfError::new(format!("make {}", path.display()), cause)),
        }
    }

    /// The folder of this name, if there is one. Waits until no other process changes it, or with `at_once` takes it for missing. One
    /// that a process left half made, or half removed, is removed.
    ///
    /// # Errors
    /// If it cannot be opened, or another process does not let go of it.
    pub fn find(name: &str, at_once: bool) -> Result<Option<Self>, BpfError> {
        let path = Path::new(OURS).join(name);
        let begin = clock_monotonic().as_nanos();
        let open = || -> io::Result<Option<File>> {
            loop {
                let lock = match File::open(&path) {
                    Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
                    opened => opened?,
                };
                match lock.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) if at_once => return Ok(None),
                    Err(TryLockError::WouldBlock) => {
                        let waited = clock_monotonic().as_nanos() - begin;
                        if u128::from(waited) > PATIENCE.as_nanos() {
                            return Err(io::Error::other(
                                "another process of narrows has it, and does not go on",
                            ));
                        }
                        sleep(Duration::from_millis(20));
                        continue;
                    }
                    Err(TryLockError::Error(cause)) => return Err(cause),
                }
                // What was removed meanwhile may have a successor.
                let identity = |data: fs::Metadata| (data.dev(), data.ino());
                if fs::metadata(&path)
                    .is_ok_and(|now| lock.metadata().is_ok_and(|own| identity(now) == identity(own)))
                {
                    if path.join(ABOUT).is_symlink() {
                        return Ok(Some(lock));
                    }
                    fs::remove_dir(&path)?;
                    return Ok(None);
                }
            }
        };
        match open() {
            Ok(lock) => Ok(lock.map(|lock| Self { path: path.clone(), _lock: lock })),
            Err(cause) => Err(BpfError::new(format!("open {}", path.display()), cause)),
        }
    }

    /// The names of all folders of ours.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn all() -> Result<Vec<String>, BpfError> {
        let list = || -> io::Result<Vec<String>> {
            let entries = match fs::read_dir(OURS) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let names = entries.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
            names.collect()
        };
        list().map_err(|cause| BpfError::new(format!("list {OURS}"), cause))
    }

    /// The text that it was made with.
    pub fn about(&self) -> String {
        fs::read_link(self.path.join(ABOUT))
            .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
    }

    /// Keeps a program, map or link under this name.
    ///
    /// # Errors
    /// If the name exists, or the kernel refuses.
    pub fn keep(&self, object: impl AsFd, name: &str) -> Result<(), BpfError> {
        let path = self.path.join(name);
        let failed = |cause| BpfError::new(format!("pin {}", path.display()), cause);
        let text = text_of(&path).map_err(failed)?;
        let descriptor = object.as_fd().as_raw_fd() as u32;
        let mut pin = Pin { path: address(text.as_bytes_with_nul()), descriptor, flags: 0 };
        bpf(Command::ObjectPin, &mut pin).map(drop).map_err(failed)
    }

    /// Where the classifier of this name is; `None` if there is no such pin.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn place(&self, name: &str) -> Result<Option<PinnedAt>, BpfError> {
        let path = self.path.join(name);
        let ask = || -> io::Result<Option<PinnedAt>> {
            let text = text_of(&path)?;
            let mut pin = Pin { path: address(text.as_bytes_with_nul()), descriptor: 0, flags: 0 };
            let link = match bpf_descriptor(Command::ObjectGet, &mut pin) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
                link => link?,
            };
            let mut info = LinkInfo::default();
            let mut ask = Ask {
                descriptor: link.as_raw_fd() as u32,
                length: size_of::<LinkInfo>() as u32,
                info: std::ptr::from_mut(&mut info) as u64,
            };
            bpf(Command::InfoByDescriptor, &mut ask)?;
            Ok(Some(PinnedAt { link: info.number, interface: info.interface }))
        };
        ask().map_err(|cause| BpfError::new(format!("look at {}", path.display()), cause))
    }

    /// Lets go of what is kept under names that begin like this.
    ///
    /// # Errors
    /// If the folder cannot be read, or a name not removed.
    pub fn let_go(&self, beginning: &str) -> Result<(), BpfError> {
        let remove = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let name = entry.file_name();
                if name.as_bytes().starts_with(beginning.as_bytes()) && name != ABOUT {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        remove().map_err(|cause| BpfError::new(format!("remove pins in {}", self.path.display()), cause))
    }

    /// Lets go of everything, and removes the folder.
    ///
    /// # Errors
    /// As [`Pins::let_go`].
    pub fn remove(self) -> Result<(), BpfError> {
        self.let_go("")?;
        let remove = fs::remove_file(self.path.join(ABOUT)).and_then(|()| fs::remove_dir(&self.path));
        remove.map_err(|cause| BpfError::new(format!("remove {}", self.path.display()), cause))?;
        // Others may have pins.
        let _ = fs::remove_dir(OURS);
        Ok(())
    }
}

fn text_of(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
