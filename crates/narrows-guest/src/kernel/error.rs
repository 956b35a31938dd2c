//! Why there is no guest kernel.

use std::io;
use std::path::PathBuf;

/// Why a guest kernel was not found, built or removed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// None is kept.
    #[error("there is no guest kernel yet: `narrows kernel build` makes one, once")]
    None,
    /// Others are kept.
    #[error(
        "no guest kernel {asked} is kept; there is {kept}: name one of them, give the path of an executable (with a / in it), \
         or make one with `narrows kernel build`"
    )]
    NotKept {
        /// The version that was asked for.
        asked: String,
        /// Those that are there.
        kept: String,
    },
    /// What was named cannot be run.
    #[error("{} is not a guest kernel: {why}; expected a user-mode Linux executable", path.display())]
    NotExecutable {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where.
    #[error("no folder for guest kernels: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoCache,
    /// Not on this machine.
    #[error("guest kernels are built on and for x86_64 only; this is {0}")]
    Architecture(&'static str),
    /// What building needs is not installed.
    #[error("cannot build a kernel: {missing} not found; on Debian and Ubuntu: apt-get install {packages}")]
    Tools {
        /// The programs.
        missing: String,
        /// The packages that have them.
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
    /// The package is none of a kernel's source.
    #[error(
        "--package {0}: expected a kernel source package named linux-source-…, such as linux-source-6.12"
    )]
    NotSourcePackage(String),
    /// The source cannot be what it should be.
    #[error("--source {}: {why}; expected a Linux source tree or an archive of one (.tar.xz, .tar.gz, …)", path.display())]
    NotSource {
        /// What was given.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Not enough space.
    #[error(
        "building needs about {need} MB in {}, but {free} MB are free; set XDG_CACHE_HOME to use another folder",
        folder.display()
    )]
    Space {
        /// Where it was to be built.
        folder: PathBuf,
        /// What it takes, in MB.
        need: u64,
        /// What there is, in MB.
        free: u64,
    },
    /// Another build is going on.
    #[error("another `narrows kernel build` is running in {}: wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// A program that the build runs failed.
    #[error("{what} failed ({status}){tail}\nfinished steps are kept: run the same command to continue")]
    Failed {
        /// What it was to do.
        what: String,
        /// How it ended.
        status: String,
        /// Its last lines, each on a line, or empty.
        tail: String,
    },
    /// A source file is not what an edit expects.
    #[error(
        "this tree is not as expected: {file}, {why} (the edit: {edit}); trees of {verified} are known to work",
        verified = super::VERIFIED_SERIES
    )]
    Edit {
        /// The file, in the tree.
        file: String,
        /// What the edit is for.
        edit: &'static str,
        /// What was found.
        why: String,
    },
    /// The kernel lacks an option that nothing works without.
    #[error("this tree cannot be configured as needed: it does not take {0}")]
    Configuration(String),
    /// A file or folder could not be used.
    #[error("cannot {what} {}: {cause}", path.display())]
    File {
        /// What was tried: `read`, `write`, ….
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

impl KernelError {
    /// For `map_err`: trying `what` with `path`.
    pub(super) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { what, path, cause }
    }
}
