use std::path::PathBuf;
use std::process::Stdio;

use super::*;
use crate::kernel::edits::tests as edits;
use crate::kernel::store::Store;
use crate::kernel::temporary::Folder;
use crate::kernel::{Kept, Source};

/// A tree as small as can be, whose Makefile knows what a build asks for: compiling ends well when `ready` is there.
const MAKEFILE: &str = "
kernelversion:
\t@echo 6.99.1
allnoconfig:
\t@cp $(KCONFIG_ALLCONFIG) .config
mrproper:
\t@rm -f .config
linux:
\t@echo '  CC      a.o'; echo '  CC      b.o'; echo begun >> begun
\t@test -e READY || { echo 'a.c:1: no good'; false; }
\t@cp $$(command -v cat) linux
";

fn tree(folder: &Folder) -> PathBuf {
    let tree = folder.path().join("given/linux-6.99.1");
    let makefile = MAKEFILE.replace("READY", &ready(folder).display().to_string());
    let files = [
        ("Makefile", makefile.as_str()),
        ("Kconfig", ""),
        ("arch/um/Makefile", ""),
        ("arch/x86/um/Makefile", ""),
        ("drivers/gpu/card.c", "never compiled"),
    ];
    for (file, text) in files.into_iter().chain(edits::OUTLINE) {
        let path = tree.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    tree
}

fn ready(folder: &Folder) -> PathBuf {
    folder.path().join("ready")
}

fn archive(folder: &Folder) -> PathBuf {
    let tree = tree(folder);
    let path = folder.path().join("linux-6.99.1.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&path).arg("-C").arg(tree.parent().unwrap()).arg("linux-6.99.1");
    assert!(tar.status().unwrap().success());
    path
}

fn plan(folder: &Folder, source: Source) -> BuildPlan {
    let store = Store::at(folder.path().join("kernels"));
    let work = store.building().join("here");
    BuildPlan { source, store, jobs: 1, processors: 1, keep_source: false, folder: work }
}

fn build(plan: &BuildPlan) -> (Result<GuestKernel, KernelError>, Vec<Progress>) {
    let mut seen = Vec::new();
    let result = plan.build(&mut |progress| seen.push(progress));
    (result, seen)
}

fn only(plan: &BuildPlan) -> Kept {
    let mut kept = plan.store.list().unwrap();
    assert_eq!(kept.len(), 1);
    kept.remove(0)
}

#[test]
fn an_archive_becomes_a_kernel() {
    let folder = Folder::new();
    let plan = plan(&folder, Source::Archive(archive(&folder)));
    fs::write(ready(&folder), "").unwrap();
    let (built, seen) = build(&plan);
    let built = built.unwrap();
    assert_eq!((built.version.as_str(), built.of_older_recipe), ("6.99.1", Some(false)));
    assert!(Command::new(&built.path).stdin(Stdio::null()).status().unwrap().success());
    let steps = [Step::Unpack, Step::Configure, Step::Compile].map(Progress::Begins);
    let compiled = [Progress::Compiled(1), Progress::Compiled(2), Progress::Begins(Step::Keep)];
    assert_eq!(seen, [steps.as_slice(), &compiled].concat());
    let kept = only(&plan);
    assert_eq!(kept.about.edits, edits::ALL);
    assert!(kept.queueing_disciplines().unwrap().contains(&"netem".to_owned()));
    assert!(!plan.folder.exists(), "the source is removed");
}

#[test]
fn a_given_tree_is_copied_and_stays_as_it_is() {
    let folder = Folder::new();
    let given = tree(&folder);
    fs::write(given.join(".config"), "of another build").unwrap();
    let plan = BuildPlan { keep_source: true, ..plan(&folder, Source::Tree(given.clone())) };
    fs::write(ready(&folder), "").unwrap();
    build(&plan).0.unwrap();
    for (file, text) in edits::OUTLINE {
        assert_eq!(fs::read_to_string(given.join(file)).unwrap(), text);
    }
    assert_eq!(fs::read_to_string(given.join(".config")).unwrap(), "of another build");
    assert!(!given.join("linux").exists());
    let copied = plan.folder.join("tree");
    assert!(fs::read_to_string(copied.join("arch/um/os-Linux/util.c")).unwrap().contains("narrows_seed"));
    assert!(!copied.join("drivers/gpu/card.c").exists(), "what is never compiled is left out");
}

#[test]
fn what_failed_goes_on_with_the_same_tree() {
    let folder = Folder::new();
    let plan = plan(&folder, Source::Archive(archive(&folder)));
    let error = build(&plan).0.unwrap_err().to_string();
    assert!(error.contains("compiling the kernel failed") && error.contains("a.c:1: no good"), "{error}");
    assert!(error.ends_with("run the same command to continue"), "{error}");
    assert_eq!(plan.store.list().unwrap(), []);
    assert!(plan.resumes());
    fs::write(ready(&folder), "").unwrap();
    let (built, seen) = build(&plan);
    assert!(built.is_ok());
    assert_eq!(seen[0], Progress::Begins(Step::Configure), "nothing is unpacked again");
}

#[test]
fn a_tree_in_part_is_unpacked_again() {
    let folder = Folder::new();
    let plan = plan(&folder, Source::Archive(archive(&folder)));
    fs::create_dir_all(plan.folder.join("tree.part")).unwrap();
    fs::write(plan.folder.join("tree.part/Makefile"), "half of a fi").unwrap();
    fs::write(ready(&folder), "").unwrap();
    assert!(build(&plan).0.is_ok());
}

#[test]
fn a_kernel_of_the_same_version_is_replaced() {
    let folder = Folder::new();
    let plan = plan(&folder, Source::Archive(archive(&folder)));
    fs::write(ready(&folder), "").unwrap();
    build(&plan).0.unwrap();
    let old = only(&plan).folder.join("old");
    fs::write(&old, "").unwrap();
    build(&plan).0.unwrap();
    only(&plan);
    assert!(!old.exists());
}

#[test]
fn two_builds_at_once_are_refused() {
    let folder = Folder::new();
    let plan = plan(&folder, Source::Archive(archive(&folder)));
    fs::create_dir_all(plan.store.building()).unwrap();
    let held = lock(&plan.store.building()).unwrap();
    let error = build(&plan).0.unwrap_err().to_string();
    assert!(error.starts_with("another `narrows kernel build` is running in"), "{error}");
    drop(held);
    fs::write(ready(&folder), "").unwrap();
    assert!(build(&plan).0.is_ok());
}

#[test]
fn a_broken_archive_is_no_kernel() {
    let folder = Folder::new();
    let path = folder.path().join("linux.tar.xz");
    fs::write(&path, "cut short").unwrap();
    let error = build(&plan(&folder, Source::Archive(path))).0.unwrap_err().to_string();
    assert!(error.starts_with("unpacking ") && error.contains("linux.tar.xz failed"), "{error}");
}

#[test]
fn an_archive_of_something_else_is_said_so() {
    let folder = Folder::new();
    let path = archive(&folder);
    let mut tar = Command::new("tar");
    tar.arg("--delete").arg("--file").arg(&path).arg("linux-6.99.1/arch/um/Makefile");
    assert!(tar.status().unwrap().success());
    let error = build(&plan(&folder, Source::Archive(path))).0.unwrap_err().to_string();
    assert!(error.contains("it has no arch/um/Makefile, so it is not one with user-mode Linux"), "{error}");
}

#[test]
fn a_tree_that_edits_do_not_know_is_refused_before_compiling() {
    let folder = Folder::new();
    let given = tree(&folder);
    fs::write(given.join("arch/um/os-Linux/util.c"), "int nothing;\n").unwrap();
    let (error, seen) = build(&plan(&folder, Source::Tree(given)));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("arch/um/os-Linux/util.c") && error.contains("seeded randomness"), "{error}");
    assert_eq!(seen, [Progress::Begins(Step::Unpack)]);
}
