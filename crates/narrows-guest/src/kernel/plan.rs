//! The cost of a build, determined before anything is changed.

use std::env;
use std::fs;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::statvfs::statvfs;

use super::acquire::NOT_NEEDED;
use super::edits::fnv_1a;
use super::{KernelError, Source, Store, recipe_hash, tools};

/// The maximum CPU time of a build, in seconds: measured on a virtual AMD EPYC at 2.6 GHz, beside other work, with
/// 6.12.
const PROCESSOR_SECONDS: u64 = 840;
/// The maximum disk space of a build, in MB: 6.12 with its package and archive takes 710 while it is being unpacked;
/// a given tree exists twice for a moment.
const SPACE: u64 = 900;
/// The disk space of a built kernel, in MB.
const KEPT_SPACE: u64 = 8;

/// A build that is ready to start.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    pub(super) source: Source,
    pub(super) store: Store,
    pub(super) jobs: usize,
    pub(super) processors: usize,
    pub(super) keep_source: bool,
    /// The build folder; it already exists if the same build was interrupted.
    pub(super) folder: PathBuf,
}

impl BuildPlan {
    /// A build from a source into a store, with this many parallel compilers, or by default one for each processor;
    /// `keep_source` keeps the tree.
    ///
    /// # Errors
    /// If the architecture is not supported, tools are missing, or there is not enough space.
    pub fn new(
        source: Source,
        store: Store,
        jobs: Option<NonZeroU16>,
        keep_source: bool,
    ) -> Result<Self, KernelError> {
        if env::consts::ARCH != "x86_64" {
            return Err(KernelError::Architecture(env::consts::ARCH));
        }
        tools::check(env::var_os("PATH").as_deref())?;
        let folder = store.building().join(name(&source));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let jobs = jobs.map_or(processors, |jobs| usize::from(jobs.get()));
        let plan = Self { source, store, jobs, processors, keep_source, folder };
        if !plan.resumes() {
            check_space(plan.store.folder(), SPACE)?;
        }
        Ok(plan)
    }

    /// Whether it resumes an interrupted build.
    #[must_use]
    pub fn resumes(&self) -> bool {
        self.folder.is_dir()
    }

    /// The download, the time and the disk space, in a few lines.
    #[must_use]
    pub fn describe(&self) -> String {
        let download = match &self.source {
            Source::Package { size, .. } => {
                format!("{} MB, by apt-get download, as this user", size.div_ceil(1_000_000))
            }
            Source::Archive(_) | Source::Tree(_) => "nothing".into(),
        };
        let processors = self.jobs.min(self.processors) as u64;
        let minutes = PROCESSOR_SECONDS.div_ceil(60 * processors);
        let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let resumes = if self.resumes() { "\n  continues an interrupted build" } else { "" };
        let afterwards =
            if self.keep_source { "the same afterwards" } else { &format!("{KEPT_SPACE} MB afterwards") };
        format!(
            "A guest kernel from {}\n  download  {download}\n  time      about {} on {}, by what it took on a 2.6 GHz AMD EPYC\n  space     {SPACE} MB while it is built, {afterwards}, in {}{resumes}\n",
            self.source.describe(),
            plural(minutes, "minute"),
            plural(processors, "processor"),
            self.store.folder().display(),
        )
    }
}

/// The name of the build folder: the same for the same source, recipe and file patterns.
fn name(source: &Source) -> String {
    let from = source.describe();
    let hash = fnv_1a([from.as_str(), &recipe_hash(), NOT_NEEDED].into_iter());
    let label = match source {
        Source::Package { name, .. } => name.as_str(),
        Source::Archive(_) => "archive",
        Source::Tree(_) => "tree",
    };
    format!("{label}-{hash:016x}")
}

/// Checks that this many MB are free where a folder is or will be.
fn check_space(folder: &Path, need: u64) -> Result<(), KernelError> {
    let there = folder.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    fs::metadata(there).map_err(KernelError::file("read", there))?;
    let found = statvfs(there).map_err(|cause| KernelError::file("read", there)(cause.into()))?;
    let free = found.blocks_available().saturating_mul(found.fragment_size()) / 1_000_000;
    if free < need {
        return Err(KernelError::Space { folder: there.into(), need, free });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::temporary::Folder;

    fn plan(source: Source, folder: &Folder) -> BuildPlan {
        let store = Store::at(folder.path().join("kernels"));
        let work = store.building().join(name(&source));
        BuildPlan { source, store, jobs: 3, processors: 2, keep_source: false, folder: work }
    }

    fn package() -> Source {
        Source::Package { name: "linux-source-6.12".into(), version: "6.12.9-1".into(), size: 153_476_148 }
    }

    #[test]
    fn what_it_takes_is_said() {
        let folder = Folder::new();
        let text = plan(package(), &folder).describe();
        assert!(text.contains("linux-source-6.12 6.12.9-1") && text.contains("154 MB, by apt-get"), "{text}");
        assert!(text.contains("minutes on 2 processors") && !text.contains("interrupted"), "{text}");
        let given = plan(Source::Archive("/srv/linux.tar.xz".into()), &folder).describe();
        assert!(given.contains("from /srv/linux.tar.xz") && given.contains("download  nothing"), "{given}");
    }

    #[test]
    fn an_interrupted_build_is_found_again() {
        let folder = Folder::new();
        let first = plan(package(), &folder);
        fs::create_dir_all(&first.folder).unwrap();
        assert!(plan(package(), &folder).describe().contains("continues an interrupted build"));
        let newer =
            Source::Package { name: "linux-source-6.12".into(), version: "6.12.10-1".into(), size: 1 };
        assert!(!plan(newer, &folder).resumes());
    }

    #[test]
    fn too_little_space_is_said() {
        let folder = Folder::new();
        let to_be = folder.path().join("not/there/yet");
        assert!(check_space(&to_be, 0).is_ok());
        let error = check_space(&to_be, u64::MAX).unwrap_err().to_string();
        assert!(
            error.contains(&folder.path().display().to_string()) && error.contains("MB are free"),
            "{error}"
        );
    }
}
