//! Sources of kernels.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{KernelError, VERIFIED_PACKAGES, tools};

/// The prefix of source packages.
const PACKAGES: &str = "linux-source-";

/// The source of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A package available through apt.
    Package {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// The download size, in bytes.
        size: u64,
    },
    /// An archive that tar can read, with the tree in one folder.
    Archive(PathBuf),
    /// A tree, which is copied.
    Tree(PathBuf),
}

impl Source {
    /// The given file or folder.
    ///
    /// # Errors
    /// If it is neither an archive nor a kernel tree.
    pub fn given(path: &Path) -> Result<Self, KernelError> {
        let refuse = |why: String| KernelError::NotSource { path: path.into(), why };
        let whole = path.canonicalize().map_err(|cause| refuse(cause.to_string()))?;
        if whole.is_dir() {
            check_tree(&whole).map_err(refuse)?;
            return Ok(Self::Tree(whole));
        }
        let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(".tar") || name.ends_with(".tgz") || name.ends_with(".txz") {
            Ok(Self::Archive(whole))
        } else {
            Err(refuse("it is neither a folder nor an archive by its name".into()))
        }
    }

    /// The package with this name, or the newest of [`VERIFIED_PACKAGES`] that apt offers. `path` is where programs
    /// are searched.
    ///
    /// # Errors
    /// If there is no apt, it offers none of them, or the name is not a kernel source package.
    pub fn package(asked: Option<&str>, path: Option<&OsStr>) -> Result<Self, KernelError> {
        if let Some(name) = asked.filter(|name| !is_package_name(name)) {
            return Err(KernelError::NotSourcePackage(name.into()));
        }
        if let Some(missing) = tools::OF_PACKAGES.into_iter().find(|program| !tools::is_there(program, path))
        {
            return Err(KernelError::NoPackage {
                why: format!("no source package without {missing}, which is not here"),
            });
        }
        let names = asked.map_or_else(|| VERIFIED_PACKAGES.to_vec(), |name| vec![name]);
        names.iter().find_map(|name| offered(name)).ok_or_else(|| KernelError::NoPackage {
            why: format!(
                "apt does not offer {} here (`apt-get update` as root fetches what it offers)",
                names.join(" or ")
            ),
        })
    }

    /// Its origin, for the description of a kernel.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Package { name, version, .. } => format!("{name} {version}"),
            Self::Archive(path) | Self::Tree(path) => path.display().to_string(),
        }
    }
}

fn is_package_name(name: &str) -> bool {
    name.strip_prefix(PACKAGES).is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
    })
}

/// The download, if apt offers this package.
fn offered(name: &str) -> Option<Source> {
    let mut command = Command::new("apt-cache");
    command.args(["show", "--no-all-versions", name]).stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().ok()?;
    parse_offer(name, &String::from_utf8_lossy(&said.stdout))
}

fn parse_offer(name: &str, text: &str) -> Option<Source> {
    let field =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).map(str::trim);
    let (version, size) = (field("Version")?.to_owned(), field("Size")?.parse().ok()?);
    Some(Source::Package { name: name.into(), version, size })
}

/// Why a folder is not a kernel source tree from which a user-mode kernel can be built.
pub(super) fn check_tree(folder: &Path) -> Result<(), String> {
    for (file, what) in [
        ("Makefile", "a Linux source tree"),
        ("Kconfig", "a Linux source tree"),
        ("arch/um/Makefile", "one with user-mode Linux"),
        ("arch/x86/um/Makefile", "one with user-mode Linux for x86"),
    ] {
        if !folder.join(file).is_file() {
            return Err(format!("it has no {file}, so it is not {what}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::temporary::Folder;

    #[test]
    fn what_apt_offers_is_read() {
        let text = "Package: linux-source-6.12\nVersion: 6.12.9-1\nInstalled-Size: 149880\nFilename: pool/x.deb\nSize: \
                    153476148\nDescription: kernel\n";
        let expected = Source::Package {
            name: "linux-source-6.12".into(),
            version: "6.12.9-1".into(),
            size: 153_476_148,
        };
        assert_eq!(parse_offer("linux-source-6.12", text), Some(expected));
        assert_eq!(parse_offer("linux-source-6.12", ""), None);
        assert_eq!(parse_offer("linux-source-6.12", "Version: 1\nSize: much\n"), None);
    }

    #[test]
    fn other_packages_are_refused() {
        for name in ["bash", "linux-source-", "linux-source-6.1 -o x=y", "--help", "linux-source-6.1/../x"] {
            let error = Source::package(Some(name), None).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--package {name}: expected a kernel source package")),
                "{error}"
            );
        }
    }

    #[test]
    fn without_apt_the_source_is_to_be_given() {
        let error = Source::package(None, None).unwrap_err().to_string();
        assert!(error.contains("without apt-get") && error.contains("--source FILE.tar.xz"), "{error}");
    }

    #[test]
    fn a_folder_that_is_no_kernel_is_refused() {
        let folder = Folder::new();
        let text = |path: &Path| Source::given(path).unwrap_err().to_string();
        assert!(text(folder.path()).contains("it has no Makefile"));
        for file in ["Makefile", "Kconfig"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        assert!(text(folder.path()).contains("not one with user-mode Linux"));
        let file = folder.path().join("notes.txt");
        fs::write(&file, "").unwrap();
        assert!(text(&file).contains("neither a folder nor an archive"));
        assert!(text(&folder.path().join("none.tar.xz")).contains("No such file"));
    }
}
