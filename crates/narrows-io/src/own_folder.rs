//! The user's own folders. Their contents decide what is reverted, ended and removed later.
//!
//! A folder is held by a descriptor. It is opened without following a symbolic link in its last component, and used
//! only if it belongs to this user and nobody else may write to it. Its files are accessed through that descriptor:
//! links among them are not followed, and only this user's regular files are opened.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::host;

/// The prefix of run folders.
const OURS: &str = "narrows";
/// The prefix of a file that is not complete yet, before its own name.
pub const UNFINISHED: &str = "new.";
/// Permissions: everything for the owner, nothing for others.
const OWNER_ONLY: Mode = Mode::S_IRWXU;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Why a folder, or a file in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OwnFolderError {
    /// A symbolic link or a file where a folder is expected.
    #[error("{} is not a folder but a symbolic link or a file: look at it and remove it", .0.display())]
    NotAFolder(PathBuf),
    /// Not a regular file where a file is expected.
    #[error("{} is not a regular file: look at it and remove it", .0.display())]
    NotAFile(PathBuf),
    /// Somebody else owns it, or may have modified it.
    #[error("{} belongs to another user, or others may write to it: remove it", .0.display())]
    NotOurs(PathBuf),
    /// The kernel refused.
    #[error("cannot {verb} {}: {cause}", path.display())]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}

impl OwnFolderError {
    /// Whether a file or folder did not exist, perhaps because it was just removed.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { cause, .. } if cause.kind() == ErrorKind::NotFound)
    }

    /// The same as an I/O error.
    pub fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Refused { cause, .. } => cause.kind(),
            _ => ErrorKind::PermissionDenied,
        };
        io::Error::new(kind, self)
    }
}

/// How a file is locked: shared or exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Together with others.
    Shared,
    /// Alone.
    Exclusive,
}

/// A folder that belongs to this user and that nobody else may write to.
#[derive(Debug)]
pub struct OwnFolder {
    folder: File,
    path: PathBuf,
}

impl OwnFolder {
    /// Opens the folder; `None` if it does not exist.
    ///
    /// If a folder whose name is ours lets others write to it, their permissions are removed.
    ///
    /// # Errors
    /// If it is not a folder, or others have access to it.
    pub fn open(path: &Path) -> Result<Option<Self>, OwnFolderError> {
        let is_named_ours =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(OURS.as_bytes()));
        let opened = openat(nix::fcntl::AT_FDCWD, path, FOLDER, Mode::empty());
        Self::checked(opened, path.into(), is_named_ours)
    }

    /// Opens the folder, or creates it for its owner only.
    ///
    /// # Errors
    /// Those of [`OwnFolder::open`], or if it cannot be created.
    pub fn make(path: &Path) -> Result<Self, OwnFolderError> {
        match fs::DirBuilder::new().recursive(true).mode(OWNER_ONLY.bits()).create(path) {
            // An existing folder is checked below.
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(refused("make", path)(cause));
            }
            _ => {}
        }
        Self::open(path)?.ok_or_else(|| missing("open", path))
    }

    /// Opens a folder in this one; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of [`OwnFolder::open`].
    pub fn open_folder(&self, name: &OsStr) -> Result<Option<Self>, OwnFolderError> {
        Self::checked(openat(&self.folder, name, FOLDER, Mode::empty()), self.path.join(name), true)
    }

    /// Opens a folder in this one, or creates it.
    ///
    /// # Errors
    /// Those of [`OwnFolder::make`].
    pub fn make_folder(&self, name: &OsStr) -> Result<Self, OwnFolderError> {
        let path = self.path.join(name);
        match mkdirat(&self.folder, name, OWNER_ONLY) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(refused("make", &path)(errno.into())),
        }
        self.open_folder(name)?.ok_or_else(|| missing("open", &path))
    }

    fn checked(
        opened: nix::Result<std::os::fd::OwnedFd>,
        path: PathBuf,
        may_be_mended: bool,
    ) -> Result<Option<Self>, OwnFolderError> {
        let folder = match opened {
            Ok(folder) => File::from(folder),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ENOTDIR | Errno::ELOOP) => return Err(OwnFolderError::NotAFolder(path)),
            Err(errno) => return Err(refused("open", &path)(errno.into())),
        };
        let data = folder.metadata().map_err(refused("look at", &path))?;
        if data.uid() != host::user() {
            return Err(OwnFolderError::NotOurs(path));
        }
        if data.mode() & WRITABLE_BY_OTHERS != 0 {
            // A sticky folder is meant for everybody, whatever its name.
            if !may_be_mended || data.mode() & STICKY != 0 {
                return Err(OwnFolderError::NotOurs(path));
            }
            fchmod(&folder, OWNER_ONLY).map_err(|errno| refused("close", &path)(errno.into()))?;
        }
        Ok(Some(Self { folder, path }))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names in it, sorted. Names that are not UTF-8 are not ours.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self) -> Result<Vec<String>, OwnFolderError> {
        let refused = |errno: Errno| refused("read", &self.path)(errno.into());
        let mut listing = Dir::openat(&self.folder, ".", FOLDER, Mode::empty()).map_err(refused)?;
        let mut names = Vec::new();
        for entry in listing.iter() {
            let entry = entry.map_err(refused)?;
            names.extend(
                entry.file_name().to_str().ok().filter(|name| ![".", ".."].contains(name)).map(str::to_owned),
            );
        }
        names.sort();
        Ok(names)
    }

    /// Opens a regular file of this user in it; `None` if it does not exist.
    ///
    /// # Errors
    /// If it is something else, or belongs to somebody else.
    pub fn open_file(&self, name: &str) -> Result<Option<File>, OwnFolderError> {
        let path = self.path.join(name);
        // Do not wait at a pipe that somebody put there.
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENXIO | Errno::EISDIR) => return Err(OwnFolderError::NotAFile(path)),
            Err(errno) => return Err(refused("open", &path)(errno.into())),
        };
        let data = file.metadata().map_err(refused("look at", &path))?;
        if !data.is_file() {
            return Err(OwnFolderError::NotAFile(path));
        }
        // The folder keeps other members of the group out.
        if data.uid() != host::user() || data.mode() & 0o002 != 0 {
            return Err(OwnFolderError::NotOurs(path));
        }
        Ok(Some(file))
    }

    /// Creates or replaces the file `name` with this text atomically: a reader sees the complete file or none. The
    /// file is locked before it becomes visible.
    ///
    /// If killed half-way, this leaves a file whose name begins with [`UNFINISHED`].
    ///
    /// # Errors
    /// If the kernel refuses; the previous file is then unchanged.
    pub fn replace(&self, name: &str, text: &str, lock: Lock) -> Result<File, OwnFolderError> {
        let unfinished = format!("{UNFINISHED}{name}");
        self.remove(&unfinished)?;
        let placed = self.write_new(&unfinished, text, lock).and_then(|file| {
            renameat(&self.folder, unfinished.as_str(), &self.folder, name)
                .map_err(|errno| refused("rename", &self.path.join(&unfinished))(errno.into()))?;
            Ok(file)
        });
        if placed.is_err() {
            // The first error is the one to report.
            let _ = self.remove(&unfinished);
        }
        placed
    }

    fn write_new(&self, name: &str, text: &str, lock: Lock) -> Result<File, OwnFolderError> {
        let path = self.path.join(name);
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let made = openat(&self.folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let mut file = File::from(made.map_err(|errno| refused("make", &path)(errno.into()))?);
        match lock {
            Lock::Shared => file.lock_shared(),
            Lock::Exclusive => file.lock(),
        }
        .map_err(refused("lock", &path))?;
        file.write_all(text.as_bytes()).map_err(refused("write", &path))?;
        Ok(file)
    }

    /// Removes a file or socket in it; returns whether it existed.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove(&self, name: &str) -> Result<bool, OwnFolderError> {
        match unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) => Ok(true),
            // Another clean-up may have been faster.
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(refused("remove", &self.path.join(name))(errno.into())),
        }
    }

    /// Removes the files of which `is_meant` holds and that nobody has locked. Returns their names.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove_unlocked(&self, is_meant: impl Fn(&str) -> bool) -> Result<Vec<String>, OwnFolderError> {
        let mut removed = Vec::new();
        for name in self.names()?.into_iter().filter(|name| is_meant(name)) {
            let Some(file) = self.open_file(&name)? else { continue };
            if file.try_lock().is_ok() && self.remove(&name)? {
                removed.push(name);
            }
        }
        Ok(removed)
    }

    /// Removes a folder in it if that is empty.
    pub fn remove_empty_folder(&self, name: &OsStr) {
        let _ = unlinkat(&self.folder, name, UnlinkatFlags::RemoveDir);
    }

    /// Whether there is a socket of this user with that name.
    pub fn has_own_socket(&self, name: &str) -> bool {
        let Ok(found) = fstatat(&self.folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return false };
        SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK
            && found.st_uid == host::user()
    }

    /// Waits until nobody else has locked the folder, and locks it as long as this value lives.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn lock(&self) -> Result<(), OwnFolderError> {
        self.folder.lock().map_err(refused("lock", &self.path))
    }

    /// Whether both are the same folder.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let identity = |folder: &File| folder.metadata().map(|data| (data.dev(), data.ino())).ok();
        identity(&self.folder).is_some_and(|own| identity(&other.folder) == Some(own))
    }
}

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Removes the folder if it is empty and its name is ours.
pub fn remove_if_empty(path: &Path) {
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(OURS.as_bytes())) {
        // It stays while other runs have something in it.
        let _ = fs::remove_dir(path);
    }
}

fn refused<'a>(verb: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> OwnFolderError + 'a {
    move |cause| OwnFolderError::Refused { verb, path: path.into(), cause }
}

fn missing(verb: &'static str, path: &Path) -> OwnFolderError {
    refused(verb, path)(ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests;
