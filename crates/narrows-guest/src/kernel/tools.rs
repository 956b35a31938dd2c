//! Programs needed for building, and the executable that results.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::KernelError;

/// Programs that every build needs, with their Debian packages.
const OF_BUILDS: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc libc6-dev"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("tar", "tar"),
    ("strip", "binutils"),
];

/// Programs for downloading a source package.
pub(super) const OF_PACKAGES: [&str; 3] = ["apt-get", "apt-cache", "dpkg-deb"];

/// Checks that all programs needed for building exist.
pub(super) fn check(path: Option<&OsStr>) -> Result<(), KernelError> {
    let missing: Vec<_> = OF_BUILDS.into_iter().filter(|(program, _)| !is_there(program, path)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let join = |texts: Vec<&str>, between: &str| texts.join(between);
    Err(KernelError::Tools {
        missing: join(missing.iter().map(|(program, _)| *program).collect(), ", "),
        packages: join(missing.iter().map(|(_, package)| *package).collect(), " "),
    })
}

/// Whether a program is in one of the folders of `path`, as in the variable PATH.
pub(super) fn is_there(program: &str, path: Option<&OsStr>) -> bool {
    path.is_some_and(|path| {
        env::split_paths(path).any(|folder| check_executable(&folder.join(program)).is_ok())
    })
}

/// Checks that a file exists and is executable by somebody.
pub(super) fn check_executable(path: &Path) -> Result<(), KernelError> {
    let refuse = |why: String| Err(KernelError::NotExecutable { path: path.into(), why });
    match path.metadata() {
        Err(cause) => refuse(cause.to_string()),
        Ok(found) if !found.is_file() => refuse("it is not a file".into()),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => refuse("it may not be executed".into()),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::temporary::Folder;

    #[test]
    fn missing_tools_are_named_with_their_packages() {
        let folder = Folder::new();
        for (program, _) in OF_BUILDS.into_iter().filter(|(program, _)| !matches!(*program, "gcc" | "bc")) {
            let path = folder.path().join(program);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let error = check(Some(folder.path().as_os_str())).unwrap_err().to_string();
        assert!(
            error.contains("gcc, bc not found") && error.ends_with("apt-get install gcc libc6-dev bc"),
            "{error}"
        );
        assert!(check(None).is_err());
    }

    #[test]
    fn what_is_no_executable_is_said_so() {
        let folder = Folder::new();
        let text = |path: &Path| check_executable(path).unwrap_err().to_string();
        assert!(text(folder.path()).contains("it is not a file"));
        let file = folder.path().join("text");
        assert!(text(&file).contains("No such file"));
        fs::write(&file, "").unwrap();
        assert!(text(&file).contains("may not be executed"));
    }
}
