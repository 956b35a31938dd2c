//! The folder where kernels are stored.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, thread};

use serde::{Deserialize, Serialize};

use super::configuration::built_in;
use super::edits::recipe_hash;
use super::{GuestKernel, KernelError};

/// The executable's file name in its folder.
pub(super) const EXECUTABLE: &str = "linux";
/// The complete kernel configuration.
pub(super) const CONFIGURATION: &str = "config";
const ABOUT: &str = "about.json";
/// The folder for builds: no version begins with a dot.
const BUILDING: &str = ".building";

/// The description of a kernel that narrows built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// As in the source tree: `6.12.117`.
    pub version: String,
    /// Its source: a package with its version, or the path of an archive or folder.
    pub source: String,
    /// When it was built, in seconds since 1970.
    pub built: u64,
    /// The hash of the configuration and edits, in hexadecimal digits.
    pub recipe: String,
    /// The purposes of the source edits that were made.
    pub edits: Vec<String>,
}

impl About {
    /// Reads the description in this folder.
    pub(super) fn read(folder: &Path) -> Result<Self, KernelError> {
        let path = folder.join(ABOUT);
        let text = fs::read_to_string(&path).map_err(KernelError::file("read", &path))?;
        serde_json::from_str(&text).map_err(|cause| KernelError::File {
            what: "read",
            path,
            cause: cause.into(),
        })
    }

    /// Writes the description to this folder.
    pub(super) fn write(&self, folder: &Path) -> Result<(), KernelError> {
        let path = folder.join(ABOUT);
        serde_json::to_string_pretty(self)
            .map_err(std::io::Error::from)
            .and_then(|text| fs::write(&path, text + "\n"))
            .map_err(KernelError::file("write", &path))
    }
}

/// A stored kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its folder.
    pub folder: PathBuf,
    /// Its description.
    pub about: About,
}

impl Kept {
    /// The executable.
    #[must_use]
    pub fn executable(&self) -> PathBuf {
        self.folder.join(EXECUTABLE)
    }

    /// Whether it was built by another version of narrows with another recipe.
    #[must_use]
    pub fn is_of_older_recipe(&self) -> bool {
        self.about.recipe != recipe_hash()
    }

    /// The size of the executable in bytes.
    ///
    /// # Errors
    /// If it cannot be accessed.
    pub fn size(&self) -> Result<u64, KernelError> {
        let path = self.executable();
        let found = fs::metadata(&path).map_err(KernelError::file("read", path))?;
        Ok(found.len())
    }

    /// Its queueing disciplines, by tc's names.
    ///
    /// # Errors
    /// If its configuration cannot be read.
    pub fn queueing_disciplines(&self) -> Result<Vec<String>, KernelError> {
        let mut names = built_in(&self.configuration()?, "NET_SCH_");
        // Code shared by two of them.
        names.retain(|name| name != "mqprio_lib");
        Ok(names)
    }

    /// Its congestion control algorithms, by the kernel's names.
    ///
    /// # Errors
    /// If its configuration cannot be read.
    pub fn congestion_controls(&self) -> Result<Vec<String>, KernelError> {
        let mut names = built_in(&self.configuration()?, "TCP_CONG_");
        names.retain(|name| name != "advanced");
        names.push("reno".into());
        names.sort();
        Ok(names)
    }

    fn configuration(&self) -> Result<String, KernelError> {
        let path = self.folder.join(CONFIGURATION);
        fs::read_to_string(&path).map_err(KernelError::file("read", &path))
    }
}

impl From<Kept> for GuestKernel {
    fn from(kept: Kept) -> Self {
        let of_older_recipe = Some(kept.is_of_older_recipe());
        Self { path: kept.executable(), version: kept.about.version, of_older_recipe }
    }
}

/// A folder with kernels.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The user's store: `$XDG_CACHE_HOME/narrows/kernels`, or `~/.cache/narrows/kernels`.
    ///
    /// # Errors
    /// If neither variable is set.
    pub fn of_user() -> Result<Self, KernelError> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Ok(Self::at(cache.ok_or(KernelError::NoCache)?.join("narrows/kernels")))
    }

    /// A store in this folder, which need not exist yet.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder for builds.
    pub(super) fn building(&self) -> PathBuf {
        self.folder.join(BUILDING)
    }

    /// The folder of a version.
    pub(super) fn place(&self, version: &str) -> PathBuf {
        self.folder.join(version)
    }

    /// The stored kernels, newest version first. A folder without an executable or its description does not count.
    ///
    /// # Errors
    /// If the folder exists and cannot be read.
    pub fn list(&self) -> Result<Vec<Kept>, KernelError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(KernelError::file("read", &self.folder))?,
        };
        let mut kept: Vec<_> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|folder| folder.join(EXECUTABLE).is_file())
            .filter_map(|folder| About::read(&folder).ok().map(|about| Kept { folder, about }))
            .collect();
        kept.sort_by(|one, other| order(&other.about.version).cmp(&order(&one.about.version)));
        Ok(kept)
    }

    /// The newest kernel of the requested version or series, or of all: one with the present recipe if there is any.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, asked: Option<&str>) -> Result<GuestKernel, KernelError> {
        let mut kept = self.list()?;
        let names = names(&kept);
        kept.retain(|kept| asked.is_none_or(|asked| is_of(&kept.about.version, asked)));
        let found = kept.iter().position(|kept| !kept.is_of_older_recipe()).unwrap_or(0);
        match (kept.into_iter().nth(found), asked) {
            (Some(kept), _) => Ok(kept.into()),
            (None, Some(asked)) if !names.is_empty() => {
                Err(KernelError::NotKept { asked: asked.into(), kept: names })
            }
            (None, _) => Err(KernelError::None),
        }
    }

    /// Removes the kernel of exactly this version.
    ///
    /// # Errors
    /// If it is not stored, or cannot be removed.
    pub fn remove(&self, version: &str) -> Result<Kept, KernelError> {
        let kept = self.list()?;
        let Some(found) = kept.iter().find(|kept| kept.about.version == version) else {
            return Err(match names(&kept) {
                none if none.is_empty() => KernelError::None,
                names => KernelError::NotKept { asked: version.into(), kept: names },
            });
        };
        fs::remove_dir_all(&found.folder).map_err(KernelError::file("remove", &found.folder))?;
        Ok(found.clone())
    }

    /// Removes all kernels and the remains of builds; a build in progress is an error.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn remove_all(&self) -> Result<Vec<Kept>, KernelError> {
        let building = self.building();
        if building.exists() {
            let _alone = lock(&building)?;
            fs::remove_dir_all(&building).map_err(KernelError::file("remove", &building))?;
        }
        let kept = self.list()?;
        for kernel in &kept {
            fs::remove_dir_all(&kernel.folder).map_err(KernelError::file("remove", &kernel.folder))?;
        }
        Ok(kept)
    }
}

/// A lock that is held is retried at this interval, for a second in total: the remains of an ended build are about to
/// end, and a process forked by another thread holds the lock until it executes its program.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 20;

/// Held as long as anything builds in this folder: the programs of a build hold it, too.
///
/// # Errors
/// If another process holds it.
pub(super) fn lock(building: &Path) -> Result<File, KernelError> {
    let path = building.join("lock");
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&path);
    let file = file.map_err(KernelError::file("write", &path))?;
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            Err(TryLockError::Error(cause)) => return Err(KernelError::file("lock", path)(cause)),
        }
    }
    Err(KernelError::Busy(building.into()))
}

fn names(kept: &[Kept]) -> String {
    kept.iter().map(|kept| kept.about.version.as_str()).collect::<Vec<_>>().join(", ")
}

/// Whether a version is the requested one, or belongs to the requested series.
fn is_of(version: &str, asked: &str) -> bool {
    version.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

/// Numerically: `6.9` is before `6.12`, and a release candidate before its release.
fn order(version: &str) -> (Vec<u64>, bool, &str) {
    let (numbers, rest) = version.split_once('-').unwrap_or((version, ""));
    (numbers.split('.').map(|number| number.parse().unwrap_or(0)).collect(), rest.is_empty(), rest)
}

#[cfg(test)]
mod tests;
