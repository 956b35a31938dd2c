//! The guest's view of the file system: the host's files under an overlay in memory, so that every change stays
//! inside; writable folders and files are the host's; devices, processes and run-time state are the guest's own.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use super::KEPT;
use crate::plan::Plan;

/// The supervisor's empty folders, used for the overlay.
pub(crate) const UPPER: &str = "upper";
pub(crate) const ROOT: &str = "root";
/// Its folder of writable files, by number, and the guest's folder for them.
pub(crate) const FILES: &str = "files";
pub(crate) const OPEN: &str = "open";

pub(super) fn lay_out(plan: &Plan) -> io::Result<()> {
    let (upper, root) = (Path::new(KEPT).join(UPPER), Path::new(KEPT).join(ROOT));
    attach("tmpfs", "tmpfs", &upper, MsFlags::empty(), "mode=755")?;
    let (data, work) = (upper.join("data"), upper.join("work"));
    fs::create_dir(&data)?;
    fs::create_dir(&work)?;
    let layers = format!("lowerdir=/,upperdir={},workdir={}", data.display(), work.display());
    attach("overlay", "overlay", &root, MsFlags::empty(), &layers)?;

    let here = Here::keep(plan, &root, &upper)?;
    let harmless = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    attach("proc", "proc", &root.join("proc"), harmless, "")?;
    attach("sysfs", "sysfs", &root.join("sys"), harmless, "")?;
    attach("devtmpfs", "devtmpfs", &root.join("dev"), MsFlags::MS_NOSUID, "mode=755")?;
    for folder in ["pts", "shm"] {
        fs::create_dir_all(root.join("dev").join(folder))?;
    }
    attach(
        "devpts",
        "devpts",
        &root.join("dev/pts"),
        MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        "mode=620,ptmxmode=666",
    )?;
    attach("tmpfs", "tmpfs", &root.join("dev/shm"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "mode=1777")?;
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        symlink(format!("/proc/self/{target}"), root.join("dev").join(name))?;
    }
    attach("tmpfs", "tmpfs", &root.join("run"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "mode=755")?;
    if let Some(here) = here {
        here.show(&root)?;
    }
    for path in plan.all("writable folder") {
        open_folder(&root, Path::new(path))?;
    }
    let open = Path::new(KEPT).join(OPEN);
    host_folder(&Path::new(KEPT).join(FILES), &open)?;
    for (number, path) in plan.all("writable file").enumerate() {
        open_file(&root, Path::new(path), &open.join(number.to_string()))?;
    }
    enter(&root)
}

/// The program's working directory, if the guest has something of its own mounted over it: the host's is visible all
/// the same.
struct Here {
    folder: PathBuf,
    kept: PathBuf,
}

impl Here {
    /// Call it before anything of the host is covered.
    fn keep(plan: &Plan, root: &Path, upper: &Path) -> io::Result<Option<Self>> {
        let folder = Path::new(plan.text("folder")?);
        let is_covered = ["/run", "/dev/shm"].iter().any(|own| folder.starts_with(own));
        if !is_covered || !within(root, folder).is_dir() {
            return Ok(None);
        }
        let here = Self { folder: folder.into(), kept: upper.join("here") };
        fs::create_dir(&here.kept)?;
        bind(&within(root, folder), &here.kept, folder)?;
        Ok(Some(here))
    }

    fn show(&self, root: &Path) -> io::Result<()> {
        let inside = within(root, &self.folder);
        fs::create_dir_all(&inside)?;
        bind(&self.kept, &inside, &self.folder)
    }
}

fn bind(from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    let result = mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    result.map_err(|errno| told("the folder", path, errno))
}

/// Lets the guest change a folder of the host.
fn open_folder(root: &Path, path: &Path) -> io::Result<()> {
    let inside = within(root, path);
    fs::create_dir_all(&inside)?;
    host_folder(path, &inside)
}

/// Lets the guest change a file of the host, and nothing else next to it.
fn open_file(root: &Path, path: &Path, open: &Path) -> io::Result<()> {
    let inside = within(root, path);
    if let Some(folder) = inside.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::options().append(true).create(true).open(&inside)?;
    let result = mount(Some(open), &inside, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    result.map_err(|errno| told("the file", path, errno))
}

/// A folder of the host, writable.
fn host_folder(path: &Path, inside: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let result = mount(Some("hostfs"), inside, Some("hostfs"), flags, Some(path));
    result.map_err(|errno| told("hostfs", path, errno))
}

fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn enter(root: &Path) -> io::Result<()> {
    chdir(root)?;
    // The old root is then mounted on top of the new one, and is unmounted from there.
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    Ok(chdir("/")?)
}

fn attach(source: &str, kind: &str, at: &Path, flags: MsFlags, options: &str) -> io::Result<()> {
    let options = Some(options).filter(|options| !options.is_empty());
    mount(Some(source), at, Some(kind), flags, options).map_err(|errno| told(kind, at, errno))
}

fn told(kind: &str, at: &Path, errno: nix::Error) -> io::Error {
    io::Error::other(format!("the guest cannot mount {kind} at {}: {errno}", at.display()))
}
