//! Replaces files of `/etc` for programs: `hosts`, `resolv.conf`.
//!
//! Each program gets its own mount namespace between fork and exec, in which these files are mounted over the host's.
//! Nothing on the host changes, and nothing is left behind: the files are in a file system in memory that ends with
//! the namespace. Later mounts on the host are visible inside; mounts inside are not visible outside.
//!
//! The steps use only system calls, because they run between fork and exec: a file system in memory is mounted over a
//! folder that is not needed for a moment; the files are written there; each is mounted over the file of its name,
//! following symbolic links; and the file system is detached from the folder. If a file of that name does not exist,
//! there is nothing to mount over: then the folder `/etc` itself becomes a read-only overlay of the files over its
//! former contents.

use std::ffi::{CStr, CString};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::write;

/// Folders over which the files are written temporarily: the first usable one is taken.
const SCRATCH: [&CStr; 5] = [c"/sys", c"/mnt", c"/opt", c"/srv", c"/tmp"];
/// Sockets by which name services of the host answer instead of the files: they are hidden.
const NAME_SERVICES: [&CStr; 2] = [c"/run/systemd/resolve/io.systemd.Resolve", c"/run/nscd/socket"];
/// An empty file, to be mounted over them.
const NOTHING: &CStr = c"nothing";
const ETC: &CStr = c"/etc";

/// Why files cannot be mounted over the host's.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct EtcError {
    what: &'static str,
    cause: Errno,
}

/// Only the error number, for use between fork and exec, where nothing is allocated.
impl From<EtcError> for io::Error {
    fn from(error: EtcError) -> Self {
        error.cause.into()
    }
}

fn failed(what: &'static str) -> impl Fn(Errno) -> EtcError {
    move |cause| EtcError { what, cause }
}

/// Replacement files in `/etc`, by name.
#[derive(Debug)]
pub struct EtcFiles {
    files: Vec<EtcFile>,
    /// Whether name services of the host are hidden, too.
    hides_services: bool,
}

#[derive(Debug)]
struct EtcFile {
    name: CString,
    path: CString,
    contents: Vec<u8>,
}

impl EtcFiles {
    /// These files; optionally hides the host's name services, which would answer instead of them.
    ///
    /// # Errors
    /// If a name contains a zero byte or a slash.
    pub fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, Vec<u8>)>,
        hides_services: bool,
    ) -> io::Result<Self> {
        let file = |(name, contents): (&str, Vec<u8>)| {
            if name.contains('/') {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            Ok(EtcFile { name: CString::new(name)?, path: CString::new(format!("/etc/{name}"))?, contents })
        };
        Ok(Self { files: files.into_iter().map(file).collect::<io::Result<_>>()?, hides_services })
    }

    /// Their names and contents.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|file| (file.name.to_str().unwrap_or_default(), file.contents.as_slice()))
    }

    /// Whether name services of the host are hidden.
    pub fn hides_services(&self) -> bool {
        self.hides_services
    }

    /// Tests whether this works here: does everything once, on a temporary thread.
    ///
    /// # Errors
    /// If the kernel, or a security module such as AppArmor, rejects a step.
    pub fn try_out(&self) -> Result<(), EtcError> {
        thread::scope(|scope| {
            let tried = thread::Builder::new().spawn_scoped(scope, || self.mount());
            let thread = tried.map_err(|_| failed("start a thread")(Errno::EAGAIN))?;
            thread.join().map_err(|_| failed("mount")(Errno::EIO))?
        })
    }

    /// Gives the calling thread, or process, its own mount namespace with these files. System calls only, no
    /// allocation.
    pub(crate) fn mount(&self) -> Result<(), EtcError> {
        const NOWHERE: Option<&CStr> = None;
        unshare(CloneFlags::CLONE_NEWNS).map_err(failed("make a mount namespace"))?;
        // Otherwise the mounts below would be visible outside.
        let apart = MsFlags::MS_REC | MsFlags::MS_SLAVE;
        mount(NOWHERE, c"/", NOWHERE, apart, NOWHERE).map_err(failed("keep mounts apart from the host's"))?;
        let in_memory = |folder: &&&CStr| {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some(c"narrows"), **folder, Some(c"tmpfs"), flags, Some(c"mode=755")).is_ok()
        };
        let scratch = SCRATCH.iter().find(in_memory);
        let scratch = *scratch.ok_or(Errno::EPERM).map_err(failed("mount a file system in memory"))?;
        let folder = open(scratch, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
        let folder = folder.map_err(failed("open a file system in memory"))?;
        let mut is_missing = false;
        for file in &self.files {
            write_file(&folder, &file.name, &file.contents).map_err(failed("write to memory"))?;
            match put(&folder, &file.name, &file.path) {
                Ok(()) => {}
                Err(Errno::ENOENT) => is_missing = true,
                Err(cause) => return Err(failed("mount a file over one of /etc")(cause)),
            }
        }
        if is_missing {
            overlay(&folder).map_err(failed("mount an overlay over /etc"))?;
        }
        if self.hides_services {
            write_file(&folder, NOTHING, &[]).map_err(failed("write to memory"))?;
            for service in NAME_SERVICES {
                // Most hosts have none.
                let _ = put(&folder, NOTHING, service);
            }
        }
        umount2(scratch, MntFlags::MNT_DETACH).map_err(failed("unmount a folder"))
    }
}

fn write_file(folder: &OwnedFd, name: &CStr, mut contents: &[u8]) -> Result<(), Errno> {
    let flags = OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(0o644);
    let file = openat(folder, name, flags, mode)?;
    // Regardless of the umask.
    fchmod(&file, mode)?;
    while !contents.is_empty() {
        contents = &contents[write(&file, contents)?..];
    }
    Ok(())
}

/// Mounts a file from the folder over another one.
fn put(folder: &OwnedFd, name: &CStr, over: &CStr) -> Result<(), Errno> {
    const NONE: Option<&CStr> = None;
    let mut room = [0; 64];
    let source = text(&mut room, format_args!("/proc/self/fd/{}/", folder.as_raw_fd()), name)?;
    mount(Some(source), over, NONE, MsFlags::MS_BIND, NONE)
}

fn overlay(folder: &OwnedFd) -> Result<(), Errno> {
    let etc = open(ETC, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut room = [0; 96];
    let layers =
        format_args!("lowerdir=/proc/self/fd/{}:/proc/self/fd/{}", folder.as_raw_fd(), etc.as_raw_fd());
    let layers = text(&mut room, layers, c"")?;
    mount(Some(c"narrows"), ETC, Some(c"overlay"), MsFlags::empty(), Some(layers))
}

/// A zero-terminated text, in a buffer on the stack.
fn text<'a>(room: &'a mut [u8], start: std::fmt::Arguments<'_>, end: &CStr) -> Result<&'a CStr, Errno> {
    let whole = room.len();
    let mut left = &mut *room;
    let written = left.write_fmt(start).and_then(|()| left.write_all(end.to_bytes_with_nul()));
    written.map_err(|_| Errno::ENAMETOOLONG)?;
    let length = whole - left.len();
    CStr::from_bytes_with_nul(&room[..length]).map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What `look` gives on a thread that has these files, after `before` in a mount namespace of its own.
    fn seen<R: Send>(files: &EtcFiles, before: impl FnOnce() + Send, look: impl FnOnce() -> R + Send) -> R {
        thread::scope(|scope| {
            let looking = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNS).unwrap();
                let apart = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(None::<&str>, "/", None::<&str>, apart, None::<&str>).unwrap();
                before();
                files.mount().unwrap();
                look()
            });
            looking.join().unwrap()
        })
    }

    fn some() -> EtcFiles {
        EtcFiles::new([("hosts", b"192.0.2.1 server\n".to_vec())], true).unwrap()
    }

    fn read() -> (String, bool) {
        (fs::read_to_string("/etc/hosts").unwrap(), fs::exists("/etc/passwd").unwrap())
    }

    /// Another `/etc`, in memory.
    fn etc(prepare: impl FnOnce()) {
        mount(Some("etc"), "/etc", Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
        fs::write("/etc/passwd", "").unwrap();
        prepare();
    }

    #[test]
    #[ignore = "needs root"]
    fn the_files_are_there_whatever_was() {
        let wanted = ("192.0.2.1 server\n".to_owned(), true);
        let here = fs::read("/etc/hosts").ok();
        some().try_out().unwrap();
        assert_eq!(seen(&some(), || (), read), wanted);
        let plain = || etc(|| fs::write("/etc/hosts", "127.0.0.1 localhost").unwrap());
        assert_eq!(seen(&some(), plain, read), wanted);
        let missing = || etc(|| ());
        assert_eq!(seen(&some(), missing, read), wanted);
        let dangling = || etc(|| std::os::unix::fs::symlink("nowhere", "/etc/hosts").unwrap());
        assert_eq!(seen(&some(), dangling, read), wanted);
        let link = || {
            etc(|| {
                fs::create_dir("/etc/static").unwrap();
                fs::write("/etc/static/hosts", "127.0.0.1 localhost").unwrap();
                std::os::unix::fs::symlink("/etc/static/hosts", "/etc/hosts").unwrap();
            });
        };
        assert_eq!(seen(&some(), link, read), wanted);
        assert_eq!(fs::read("/etc/hosts").ok(), here, "nothing has changed outside");
    }

    #[test]
    #[ignore = "needs root"]
    fn name_services_of_the_host_do_not_answer() {
        let service = |run: &dyn Fn()| {
            mount(Some("run"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
            fs::create_dir("/run/nscd").unwrap();
            run();
        };
        let listens = || {
            service(&|| {
                std::mem::forget(std::os::unix::net::UnixListener::bind("/run/nscd/socket").unwrap())
            });
        };
        let connects = || std::os::unix::net::UnixStream::connect("/run/nscd/socket").is_ok();
        let keeps = EtcFiles { hides_services: false, ..some() };
        assert!(seen(&keeps, listens, connects));
        assert!(!seen(&some(), listens, connects));
    }
}
