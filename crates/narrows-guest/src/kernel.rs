//! Guest kernels: storing, finding, building and removing them.
//!
//! A [`Store`] is a folder with one folder for each version: `6.12.117/linux` (the executable), `about.json` (what it
//! was built from) and `config` (the complete kernel configuration). [`BuildPlan`] builds a kernel from a source tree
//! with the recipe of this version of narrows: a configuration and a few source edits ([`recipe_hash`] identifies
//! both).

mod acquire;
mod build;
mod command;
mod configuration;
mod edits;
mod error;
mod plan;
mod progress;
mod source;
mod store;
#[cfg(test)]
mod temporary;
mod tools;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub use edits::recipe_hash;
pub use error::KernelError;
pub use plan::BuildPlan;
pub use progress::{Progress, Step};
pub use source::Source;
pub use store::{About, Kept, Store};

/// Source packages whose kernels were built with this recipe and ran narrows' own live engine, newest first.
pub const VERIFIED_PACKAGES: [&str; 2] = ["linux-source-7.2", "linux-source-6.12"];
/// The series of those packages, as text.
const VERIFIED_SERIES: &str = "7.2 and 6.12";

/// A bootable executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestKernel {
    /// The executable.
    pub path: PathBuf,
    /// The kernel's version, for example `6.12.117`; for an executable that narrows did not build, the file name.
    pub version: String,
    /// Whether it was built with another configuration or other edits than those of this version of narrows: features
    /// that depend on them (in particular seeded randomness) may be missing. `None` for an executable that narrows
    /// did not build.
    pub of_older_recipe: Option<bool>,
}

impl GuestKernel {
    /// Finds the requested kernel: the path (with a `/` in it) of an executable, or a stored version (`6.12.117`, or
    /// `6.12` for the newest of that series); by default the newest stored one. A candidate built with the present
    /// recipe is preferred to a newer one with an older recipe.
    ///
    /// # Errors
    /// If there is none; the message lists the available ones, or how to build one.
    pub fn find(asked: Option<&OsStr>) -> Result<Self, KernelError> {
        match asked {
            Some(path) if path.as_encoded_bytes().contains(&b'/') => Self::at(Path::new(path)),
            asked => Store::of_user()?.find(asked.map(OsStr::to_string_lossy).as_deref()),
        }
    }

    fn at(path: &Path) -> Result<Self, KernelError> {
        tools::check_executable(path)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let about = About::read(folder).ok();
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self {
            path: path.into(),
            version: about
                .as_ref()
                .map_or_else(|| name.to_string_lossy().into_owned(), |about| about.version.clone()),
            of_older_recipe: about.map(|about| about.recipe != recipe_hash()),
        })
    }
}
