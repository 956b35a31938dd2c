//! Pins: what the kernel keeps when no process has it any more, under names in a BPF file system.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::{Argument, BpfError, Command, address, bpf};

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const OURS: &str = "/sys/fs/bpf/narrows";

/// A folder of pins of ours.
#[derive(Debug)]
pub struct Pins(PathBuf);

/// The argument of `BPF_OBJ_PIN`.
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

impl Pins {
    /// A new folder of this name, without pins.
    ///
    /// # Errors
    /// If there is no BPF file system at `/sys/fs/bpf`, or the folder exists or cannot be made.
    pub fn create(name: &str) -> Result<Self, BpfError> {
        if !statfs(FILE_SYSTEM).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC) {
            return Err(BpfError::NoFileSystem);
        }
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        let make = |path: &Path| {
            builder.create(path).map_err(|cause| BpfError::new(format!("make {}", path.display()), cause))
        };
        if !Path::new(OURS).is_dir() {
            make(Path::new(OURS))?;
        }
        let path = Path::new(OURS).join(name);
        make(&path)?;
        Ok(Self(path))
    }

    /// The folder of this name, if there is one.
    pub fn find(name: &str) -> Option<Self> {
        Some(Path::new(OURS).join(name)).filter(|path| path.is_dir()).map(Self)
    }

    /// The names of all folders of ours.
    pub fn all() -> Vec<String> {
        let entries = fs::read_dir(OURS).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Keeps a program, map or link under this name.
    ///
    /// # Errors
    /// If the name exists, or the kernel refuses.
    pub fn keep(&self, object: impl AsFd, name: &str) -> Result<(), BpfError> {
        let path = self.0.join(name);
        let step = || format!("pin {}", path.display());
        let text =
            CString::new(path.as_os_str().as_bytes()).map_err(|error| BpfError::new(step(), error.into()))?;
        let mut pin = Pin {
            path: address(text.as_bytes_with_nul()),
            descriptor: object.as_fd().as_raw_fd() as u32,
            flags: 0,
        };
        bpf(Command::ObjectPin, &mut pin).map(drop).map_err(|cause| BpfError::new(step(), cause))
    }

    /// Lets go of what is kept under names that begin like this.
    ///
    /// # Errors
    /// If the folder cannot be read, or a name not removed.
    pub fn let_go(&self, beginning: &str) -> Result<(), BpfError> {
        let remove = || -> io::Result<()> {
            for entry in fs::read_dir(&self.0)? {
                let entry = entry?;
                if entry.file_name().as_bytes().starts_with(beginning.as_bytes()) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        remove().map_err(|cause| BpfError::new(format!("remove pins in {}", self.0.display()), cause))
    }

    /// Lets go of everything, and removes the folder.
    ///
    /// # Errors
    /// As [`Pins::let_go`].
    pub fn remove(self) -> Result<(), BpfError> {
        self.let_go("")?;
        fs::remove_dir(&self.0)
            .map_err(|cause| BpfError::new(format!("remove {}", self.0.display()), cause))?;
        // Others may have pins.
        let _ = fs::remove_dir(OURS);
        Ok(())
    }
}
