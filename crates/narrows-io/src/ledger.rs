//! Settings of the host that several runs need at once, put back when the last one has ended.
//!
//! A setting that is raised has a file in a folder, with the value it had before. Each run that needs it
//! holds a shared lock on the file; the kernel lets go of the lock even after `kill -9`. Whoever ends and
//! finds that nobody else holds it puts the old value back and removes the file; so does
//! [`restore_abandoned`] for runs that were killed. Raising and putting back happen one at a time, under a
//! lock on the folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::fstat;

use crate::namespace::{Namespace, NamespaceError};
use crate::offload::OffloadError;
use crate::route_socket::NetlinkError;
use crate::sysctl::{SysctlError, read_sysctl, write_sysctl};

/// Why a setting could not be raised or put back.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The setting could not be read or written.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface's offloads could not be read or changed.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// The interfaces cannot be listed.
    #[error(transparent)]
    Interface(Box<NetlinkError>),
    /// Another run is on it.
    #[error(
        "another run of narrows is on the interface `{interface}`: end that first (`narrows clean` puts back what killed runs \
         left)"
    )]
    Taken {
        /// The interface.
        interface: String,
    },
    /// What was put back is not as it was.
    #[error(
        "the interface `{interface}` is not as it was: {offloads} cannot be switched on again; try `ethtool -K`"
    )]
    NotAsBefore {
        /// The interface.
        interface: String,
        /// What is still off.
        offloads: String,
    },
    /// The folder or a file in it could not be used.
    #[error("cannot {verb} {}, which remembers settings to put back: {cause}", path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// Somebody else wrote the file, or it was cut off.
    #[error("{} does not hold a setting to put back; look at it and remove it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// A setting raised for as long as this value lives, or the last of its kind on this host.
#[derive(Debug)]
pub struct RaisedSetting {
    namespace: Namespace,
    file: File,
    path: PathBuf,
    folder: PathBuf,
}

/// What a file of the ledger says: four lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRecord {
    /// The inode of the network namespace whose setting it is.
    pub namespace: u64,
    /// The setting, such as `net/ipv4/conf/eth0/forwarding`.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// Its value since.
    pub raised: String,
}

impl RaisedSetting {
    /// Sets `key` to `value` in `namespace`, remembering it in `folder`. `None` if it had that value and
    /// nobody of ours had set it: then it is not ours to put back.
    pub fn raise(
        namespace: &Namespace,
        key: &str,
        value: &str,
        folder: &Path,
    ) -> Result<Option<Self>, LedgerError> {
        let inode = inode(namespace)?;
        let path = folder.join(format!("{inode}-{}", key.replace('/', "-")));
        let _turn = Turn::take(folder)?;
        let mut file = open(&path)?;
        if read(&mut file).is_none() {
            let before = read_sysctl(namespace, key)?;
            if before == value {
                remove(&path)?;
                return Ok(None);
            }
            let (key, raised) = (key.to_owned(), value.to_owned());
            write(&mut file, &SettingRecord { namespace: inode, key, before, raised })
                .map_err(at("write", &path))?;
        }
        write_sysctl(namespace, key, value)?;
        file.lock_shared().map_err(at("lock", &path))?;
        Ok(Some(Self { namespace: namespace.try_clone()?, file, path, folder: folder.into() }))
    }

    /// Puts the value back if nobody else needs it. Dropping does the same, in silence.
    pub fn release(mut self) -> Result<bool, LedgerError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<bool, LedgerError> {
        let _turn = Turn::take(&self.folder)?;
        match self.file.try_lock() {
            Ok(()) => put_back(&self.namespace, &mut self.file, &self.path).map(|()| true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(cause)) => Err(at("lock", &self.path)(cause)),
        }
    }
}

impl Drop for RaisedSetting {
    fn drop(&mut self) {
        // What fails here is left in the ledger for `restore_abandoned`.
        let _ = self.put_back();
    }
}

/// The files of a folder that no live run holds, each locked as long as it is open. The folder's turn is the caller's.
pub(crate) fn unheld(folder: &Path) -> Result<Vec<(PathBuf, File)>, LedgerError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(at("read", folder))? {
        let path = entry.map_err(at("read", folder))?.path();
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(at("open", &path))?;
        match file.try_lock() {
            Ok(()) => files.push((path, file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(cause)) => return Err(at("lock", &path)(cause)),
        }
    }
    Ok(files)
}

/// Puts back the settings that killed runs left in `folder`: those of `namespace` that no live run holds.
/// Records of other namespaces are left alone. Returns what was put back.
pub fn restore_abandoned(namespace: &Namespace, folder: &Path) -> Result<Vec<SettingRecord>, LedgerError> {
    let inode = inode(namespace)?;
    let mut restored = Vec::new();
    if !folder.is_dir() {
        return Ok(restored);
    }
    let _turn = Turn::take(folder)?;
    for (path, mut file) in unheld(folder)? {
        let record = read(&mut file).ok_or_else(|| LedgerError::Unreadable { path: path.clone() })?;
        if record.namespace == inode {
            put_back(namespace, &mut file, &path)?;
            restored.push(record);
        }
    }
    Ok(restored)
}

/// The right to raise or put back, one at a time on this host; held for well under a millisecond. It is a lock on the
/// folder, which goes when nothing is in it.
pub(crate) struct Turn {
    _locked: File,
    folder: PathBuf,
}

impl Turn {
    pub(crate) fn take(folder: &Path) -> Result<Self, LedgerError> {
        loop {
            fs::create_dir_all(folder).map_err(at("make", folder))?;
            let locked = match File::open(folder) {
                Ok(locked) => locked,
                // Whoever had the turn before removed it in between.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(at("open", folder)(cause)),
            };
            locked.lock().map_err(at("lock", folder))?;
            let own = locked.metadata().map_err(at("look at", folder))?.ino();
            if fs::metadata(folder).is_ok_and(|there| there.ino() == own) {
                return Ok(Self { _locked: locked, folder: folder.into() });
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Fails while a setting is still raised.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// With the file locked for us alone: writes the old value, unless somebody has set another one since, and removes the
/// file.
fn put_back(namespace: &Namespace, file: &mut File, path: &Path) -> Result<(), LedgerError> {
    let record = read(file).ok_or_else(|| LedgerError::Unreadable { path: path.into() })?;
    match read_sysctl(namespace, &record.key) {
        Ok(now) if now == record.raised => drop(write_sysctl(namespace, &record.key, &record.before)?),
        // Another value is somebody else's doing; no such setting: its interface is gone.
        Ok(_) => {}
        Err(SysctlError::Refused { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    remove(path)
}

pub(crate) fn at<'a>(verb: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> LedgerError + 'a {
    move |cause| LedgerError::File { verb, path: path.into(), cause }
}

fn open(path: &Path) -> Result<File, LedgerError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(at("open", path))
}

fn remove(path: &Path) -> Result<(), LedgerError> {
    fs::remove_file(path).map_err(at("remove", path))
}

fn read(file: &mut File) -> Option<SettingRecord> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let namespace = lines.next()?.parse().ok()?;
    let mut line = || lines.next().map(str::to_owned);
    Some(SettingRecord { namespace, key: line()?, before: line()?, raised: line()? })
}

fn write(file: &mut File, record: &SettingRecord) -> io::Result<()> {
    let SettingRecord { namespace, key, before, raised } = record;
    file.rewind()?;
    file.write_all(format!("{namespace}\n{key}\n{before}\n{raised}\n").as_bytes())
}

pub(crate) fn inode(namespace: &Namespace) -> Result<u64, LedgerError> {
    let stat = fstat(namespace.as_fd()).map_err(|errno| NamespaceError::Refused {
        action: format!("look at {namespace}"),
        cause: errno.into(),
    })?;
    Ok(stat.st_ino)
}
