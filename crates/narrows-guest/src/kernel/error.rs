//! Errors of guest kernels.

use std::io;
use std::path::PathBuf;

/// Why a guest kernel was not found, built or removed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// No kernel is stored.
    #[error("there is no guest kernel yet: `narrows kernel build` makes one, once")]
    None,
    /// Only others are stored.
    #[error(
        "no guest kernel {asked} is kept; there is {kept}: name one of them, give the path of an executable (with a / in it), \
         or make one with `narrows kernel build`"
    )]
    NotKept {
        /// The requested version.
        asked: String,
        /// The stored versions.
        kept: String,
    },
    /// The given file cannot be executed.
    #[error("{} is not a guest kernel: {why}; expected a user-mode Linux executable", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("no folder for guest kernels: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoCache,
    /// Not supported on this machine.
    #[error("guest kernels are built on and for x86_64 only; this is {0}")]
    Architecture(&'static str),
    /// Programs needed for building are not installed.
    #[error("cannot build a kernel: {missing} not found; on Debian and Ubuntu: apt-get install {packages}")]
    Tools {
        /// The programs.
        missing: String,
        /// The packages that contain them.
        packages: String,
    },
    /// There is no apt to get a source package from.
    #[error(
        "{why}: give a kernel's source with --source FILE.tar.xz or --source FOLDER, such as linux-6.12.tar.xz from kernel.org"
    )]
    NoPackage {
        /// What is missing.
        why: String,
    },
    /// The package is not a kernel source package.
    #[error(
        "--package {0}: expected a kernel source package named linux-source-…, such as linux-source-6.12"
    )]
    NotSourcePackage(String),
    /// The source is invalid.
    #[error("--source {}: {why}; expected a Linux source tree or an archive of one (.tar.xz, .tar.gz, …)", path.display())]
    NotSource {
        /// The given file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Not enough disk space.
    #[error(
        "building needs about {need} MB in {}, but {free} MB are free; set XDG_CACHE_HOME to use another folder",
        folder.display()
    )]
    Space {
        /// The build folder.
        folder: PathBuf,
        /// The space needed, in MB.
        need: u64,
        /// The space available, in MB.
        free: u64,
    },
    /// Another build is in progress.
    #[error("another `narrows kernel build` is running in {}: wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// A program of the build failed.
    #[error("{what} failed ({status}){tail}\nfinished steps are kept: run the same command to continue")]
    Failed {
        /// Its task.
        what: String,
        /// How it ended.
        status: String,
        /// The last lines of its output, each on a line, or empty.
        tail: String,
    },
    /// A source file is not as an edit expects.
    #[error(
        "this tree is not as expected: {file}, {why} (the edit: {edit}); trees of {verified} are known to work",
        verified = super::VERIFIED_SERIES
    )]
    Edit {
        /// The path of the file in the tree.
        file: String,
        /// The purpose of the edit.
        edit: &'static str,
        /// What was found.
        why: String,
    },
    /// The kernel lacks a required option.
    #[error("this tree cannot be configured as needed: it does not take {0}")]
    Configuration(String),
    /// A file or folder cannot be used.
    #[error("cannot {what} {}: {cause}", path.display())]
    File {
        /// What was tried: `read`, `write`, ….
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

impl KernelError {
    /// For `map_err`: the error of trying `what` with `path`.
    pub(super) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { what, path, cause }
    }
}
