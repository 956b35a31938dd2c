//! A feed's socket in the run folder, and sockets left by killed runs.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use narrows_io::allocator::RemovedWhenFull;
use narrows_io::own_folder::{OwnFolder, OwnFolderError};

use crate::run_record::number;

/// The suffix of feed sockets.
const SUFFIX: &str = ".feed";

/// A socket's file, removed with this value.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    _removed: RemovedWhenFull,
}

impl Socket {
    /// Creates the listening, non-blocking socket of a feed of this process, accessible to its owner only. The folder
    /// exists: the control socket is in it.
    pub(super) fn make(folder: &Path, link: &str, feed: &str) -> io::Result<(Self, UnixListener)> {
        let run = std::process::id();
        let named = folder.join(format!("{run}.{link}.{feed}{SUFFIX}"));
        match Self::make_at(&named) {
            // The kernel accepts 107 bytes; a number is shorter than any name.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                let numbered = (0..).map(|number| folder.join(format!("{run}.{number}{SUFFIX}")));
                let free = numbered.into_iter().find(|path| !path.exists());
                Self::make_at(&free.unwrap_or(named))
            }
            result => result,
        }
    }

    fn make_at(path: &Path) -> io::Result<(Self, UnixListener)> {
        // A killed run with our process ID may have left one.
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let socket = Self { path: path.into(), _removed: RemovedWhenFull::new(path) };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok((socket, listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If somebody else has removed it, nothing is left to do.
        let _ = fs::remove_file(&self.path);
    }
}

/// A feed's socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// The number of its run.
    pub run: u32,
    /// Its file name in the run folder.
    pub name: String,
}

/// The feed sockets in the run folder. Those of runs with neither a record nor a control socket were left by killed
/// runs.
///
/// # Errors
/// If the folder cannot be read.
pub fn leftovers(folder: &OwnFolder) -> Result<Vec<Leftover>, OwnFolderError> {
    let names = folder.names()?.into_iter().filter(|name| folder.has_own_socket(name));
    let leftover = |name: String| {
        let (run, _) = name.strip_suffix(SUFFIX)?.split_once('.')?;
        Some(Leftover { run: number(run)?, name })
    };
    let mut found: Vec<_> = names.filter_map(leftover).collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("narrows-sockets-{}-{name}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_socket_is_its_owners_and_goes_with_its_value() {
        let folder = Folder::new("owner");
        let (socket, _listener) = Socket::make(&folder.0, "access.up", "radio").unwrap();
        let run = std::process::id();
        let name = format!("{run}.access.up.radio.feed");
        assert_eq!(socket.path(), folder.0.join(&name));
        assert_eq!(fs::metadata(socket.path()).unwrap().permissions().mode() & 0o777, 0o600);
        for other in [".a.b.feed", "x.a.b.feed", "7.sock"] {
            drop(UnixListener::bind(folder.0.join(other)).unwrap());
        }
        fs::write(folder.0.join("7.a.b.feed"), "a file").unwrap();
        let own = OwnFolder::open(&folder.0).unwrap().unwrap();
        assert_eq!(leftovers(&own).unwrap(), [Leftover { run, name }]);
        drop(socket);
        assert_eq!(leftovers(&own).unwrap(), []);
    }

    #[test]
    fn names_that_are_too_long_for_the_kernel_become_numbers() {
        let folder = Folder::new("long");
        let names = ["a", "b"].map(|letter| letter.repeat(64));
        let sockets = names.each_ref().map(|name| Socket::make(&folder.0, name, name).unwrap());
        let files: Vec<_> = sockets.iter().map(|(socket, _)| socket.path().file_name().unwrap()).collect();
        let run = std::process::id();
        assert_eq!(files, [format!("{run}.0.feed").as_str(), &format!("{run}.1.feed")]);
    }

    #[test]
    fn what_a_killed_run_of_our_number_left_is_replaced() {
        let folder = Folder::new("left");
        let path = folder.0.join(format!("{}.a.b.feed", std::process::id()));
        drop(UnixListener::bind(&path).unwrap());
        let (socket, _listener) = Socket::make(&folder.0, "a", "b").unwrap();
        assert!(std::os::unix::net::UnixStream::connect(socket.path()).is_ok());
    }
}
