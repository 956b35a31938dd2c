//! Puts a source tree into the build folder: downloaded, unpacked or copied, without files that are never compiled.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::{self, run};
use super::source::{Source, check_tree};
use super::{KernelError, Progress, Step, edits};

/// Patterns for tar of files that no guest kernel needs: without them the tree takes a third of the space.
pub(super) const NOT_NEEDED: &str = include_str!("trimmed.exclude");

/// The folders and files of a build.
pub(super) struct Work {
    /// The build folder.
    pub(super) folder: PathBuf,
    /// Held as long as anything runs in it.
    pub(super) lock: File,
}

impl Work {
    /// The source tree, which is complete and edited if it exists.
    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// The output of the programs.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("build.log")
    }

    fn run(&self, what: &str, command: Command) -> Result<(), KernelError> {
        run(what, command, &self.log(), &self.lock, &mut |_| ())
    }

    /// Puts the tree here, if it is not here yet.
    pub(super) fn acquire(
        &self,
        source: &Source,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(), KernelError> {
        let tree = self.tree();
        if tree.is_dir() {
            return Ok(());
        }
        let part = self.folder.join("tree.part");
        let download = self.folder.join("download");
        remove(&part)?;
        fs::create_dir_all(&part).map_err(KernelError::file("make", &part))?;
        match source {
            Source::Package { name, version, .. } => {
                watch(Progress::Begins(Step::Download));
                self.download(name, version, &download)?;
                watch(Progress::Begins(Step::Unpack));
                let unpacked = self.archive_in(&download).and_then(|archive| self.unpack(&archive, &part));
                if unpacked.is_err() {
                    // A corrupt download of the right length would be taken for complete the next time.
                    remove(&download)?;
                }
                unpacked?;
            }
            Source::Archive(archive) => {
                watch(Progress::Begins(Step::Unpack));
                self.unpack(archive, &part)?;
            }
            Source::Tree(given) => {
                watch(Progress::Begins(Step::Unpack));
                self.copy(given, &part)?;
            }
        }
        check_tree(&part).map_err(|why| KernelError::NotSource { path: source.describe().into(), why })?;
        edits::make_all(&part)?;
        fs::rename(&part, &tree).map_err(KernelError::file("move", &part))?;
        remove(&download)
    }

    /// Downloads a source package. A complete earlier download is reused.
    fn download(&self, name: &str, version: &str, folder: &Path) -> Result<(), KernelError> {
        fs::create_dir_all(folder).map_err(KernelError::file("make", folder))?;
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "download", &format!("{name}={version}")]).current_dir(folder).env("LC_ALL", "C");
        self.run(&format!("downloading {name} {version}"), apt)
    }

    /// The archive in a source package.
    fn archive_in(&self, folder: &Path) -> Result<PathBuf, KernelError> {
        let package = find(folder, &|name| name.ends_with(".deb"))?
            .ok_or_else(|| none_there(folder, "apt-get left no package"))?;
        let unpacked = folder.join("unpacked");
        remove(&unpacked)?;
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.arg("-x").args([&package, &unpacked]);
        self.run(&format!("unpacking {}", package.display()), dpkg)?;
        find(&unpacked.join("usr/src"), &|name| name.contains(".tar."))?
            .ok_or_else(|| none_there(&unpacked, "the package has no archive of a source tree"))
    }

    fn unpack(&self, archive: &Path, to: &Path) -> Result<(), KernelError> {
        let mut tar = self.tar_into(to)?;
        tar.arg("--strip-components=1").arg("--file").arg(archive);
        self.run(&format!("unpacking {}", archive.display()), tar)
    }

    fn copy(&self, given: &Path, to: &Path) -> Result<(), KernelError> {
        let what = format!("copying {}", given.display());
        let archive = self.folder.join("tree.tar");
        let mut tar = Command::new("tar");
        tar.arg("--create")
            .arg(self.exclusions()?)
            .arg("--directory")
            .arg(given)
            .arg("--file")
            .arg(&archive)
            .arg(".");
        self.run(&what, tar)?;
        let mut tar = self.tar_into(to)?;
        tar.arg("--file").arg(&archive);
        self.run(&what, tar)?;
        fs::remove_file(&archive).map_err(KernelError::file("remove", &archive))?;
        // The given tree may contain build results.
        let mut clean = command::make(to);
        clean.arg("mrproper");
        self.run("cleaning the tree", clean)
    }

    fn tar_into(&self, folder: &Path) -> Result<Command, KernelError> {
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--no-same-owner", "--no-same-permissions"]).arg(self.exclusions()?);
        tar.arg("--directory").arg(folder);
        Ok(tar)
    }

    fn exclusions(&self) -> Result<String, KernelError> {
        let path = self.folder.join("not-needed");
        fs::write(&path, NOT_NEEDED).map_err(KernelError::file("write", &path))?;
        Ok(format!("--exclude-from={}", path.display()))
    }
}

fn none_there(path: &Path, why: &str) -> KernelError {
    KernelError::NotSource { path: path.into(), why: why.into() }
}

/// Finds a file by name in a folder or its subfolders.
fn find(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Option<PathBuf>, KernelError> {
    let entries = fs::read_dir(folder).map_err(KernelError::file("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(KernelError::file("read", folder))?;
        let kind = entry.file_type().map_err(KernelError::file("read", entry.path()))?;
        if kind.is_file() && wanted(&entry.file_name().to_string_lossy()) {
            return Ok(Some(entry.path()));
        }
        if kind.is_dir()
            && let Some(found) = find(&entry.path(), wanted)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Removes a folder with its contents, if it exists.
pub(super) fn remove(folder: &Path) -> Result<(), KernelError> {
    match fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(KernelError::file("remove", folder)(cause))
        }
        _ => Ok(()),
    }
}
