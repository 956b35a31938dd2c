//! Builds a kernel from a source and stores it.
//!
//! Everything happens in one folder, which stays in place until the build is complete, so an interrupted build can be
//! resumed. A tree only exists there when it is complete and edited, make knows what it has compiled, and the kernel
//! is moved to its place by a single rename.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::acquire::{Work, remove};
use super::command::{self, output, run};
use super::store::{CONFIGURATION, EXECUTABLE, lock};
use super::{
    About, BuildPlan, GuestKernel, Kept, KernelError, Progress, Step, configuration, edits, recipe_hash,
};

impl BuildPlan {
    /// Builds the kernel, reporting progress to `watch`.
    ///
    /// # Errors
    /// If another build is in progress, the tree is not as expected, or a program fails. Completed work is kept for
    /// the next attempt.
    pub fn build(&self, watch: &mut dyn FnMut(Progress)) -> Result<GuestKernel, KernelError> {
        let building = self.store.building();
        fs::create_dir_all(&self.folder).map_err(KernelError::file("make", &self.folder))?;
        let work = Work { folder: self.folder.clone(), lock: lock(&building)? };
        let log = work.log();
        fs::write(&log, "").map_err(KernelError::file("write", &log))?;
        work.acquire(&self.source, watch)?;
        let tree = work.tree();
        watch(Progress::Begins(Step::Configure));
        let made = edits::make_all(&tree)?;
        configure(&work)?;
        watch(Progress::Begins(Step::Compile));
        compile(&work, self.jobs, watch)?;
        watch(Progress::Begins(Step::Keep));
        let kept = self.keep(&work, made)?;
        if !self.keep_source {
            remove(&self.folder)?;
        }
        Ok(kept.into())
    }

    fn keep(&self, work: &Work, edits: Vec<String>) -> Result<Kept, KernelError> {
        let tree = work.tree();
        let mut ask = command::make(&tree);
        ask.args(["--silent", "--no-print-directory", "kernelversion"]);
        let version = output("asking for the version", ask)?;
        let staged = work.folder.join("kept");
        remove(&staged)?;
        fs::create_dir_all(&staged).map_err(KernelError::file("make", &staged))?;
        let executable = staged.join(EXECUTABLE);
        let mut strip = Command::new("strip");
        strip.arg("-o").args([&executable, &tree.join(EXECUTABLE)]);
        run("strip", strip, &work.log(), &work.lock, &mut |_| ())?;
        let configured = tree.join(".config");
        fs::copy(&configured, staged.join(CONFIGURATION)).map_err(KernelError::file("copy", configured))?;
        let about = About {
            source: self.source.describe(),
            built: when(&executable).map_err(KernelError::file("read", &executable))?,
            recipe: recipe_hash(),
            edits,
            version,
        };
        about.write(&staged)?;
        let place = self.store.place(&about.version);
        put(&staged, &place).map_err(KernelError::file("put a kernel at", &place))?;
        Ok(Kept { folder: place, about })
    }
}

/// The modification time of a file, in seconds since 1970; the file is on disk afterwards.
fn when(path: &Path) -> std::io::Result<u64> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Replaces a folder atomically: a reader sees the old one or the new one. A running guest keeps its own.
fn put(folder: &Path, place: &Path) -> std::io::Result<()> {
    if place.exists() {
        renameat_with(CWD, folder, CWD, place, RenameFlags::EXCHANGE)?;
        fs::remove_dir_all(folder)
    } else {
        fs::rename(folder, place)
    }
}

fn configure(work: &Work) -> Result<(), KernelError> {
    let (tree, wanted) = (work.tree(), work.folder.join("guest.config"));
    fs::write(&wanted, configuration::OPTIONS).map_err(KernelError::file("write", &wanted))?;
    let mut make = command::make(&tree);
    make.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &wanted);
    run("configuring the kernel", make, &work.log(), &work.lock, &mut |_| ())?;
    let made = tree.join(".config");
    configuration::check(&fs::read_to_string(&made).map_err(KernelError::file("read", made))?)
}

fn compile(work: &Work, jobs: usize, watch: &mut dyn FnMut(Progress)) -> Result<(), KernelError> {
    let mut make = command::make(&work.tree());
    make.arg(format!("--jobs={jobs}")).arg(EXECUTABLE);
    let mut files = 0;
    run("compiling the kernel", make, &work.log(), &work.lock, &mut |line| {
        if line.trim_start().starts_with("CC ") {
            files += 1;
            watch(Progress::Compiled(files));
        }
    })
}

#[cfg(test)]
mod tests;
