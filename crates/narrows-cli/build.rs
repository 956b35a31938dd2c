//! Tells the program which commit it is made of: `$NARROWS_COMMIT` if that is set, else what git says of this source tree,
//! else nothing. Neither git nor a repository is needed.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NARROWS_COMMIT");
    let given = std::env::var("NARROWS_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(commit).unwrap_or_else(|| "commit unknown".into());
    println!("cargo::rustc-env=NARROWS_COMMIT={commit}");
    let target = std::env::var("TARGET").unwrap_or_else(|_| "an unknown target".into());
    println!("cargo::rustc-env=NARROWS_TARGET={target}");
}

/// The commit of the repository that this source tree is, if it is one and not merely inside of one.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    // What moves when there is a new commit.
    let branch = git(&root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().map(String::from).chain(branch) {
        let path = git(&root, &["rev-parse", "--git-path", &name]).map(|path| root.join(path));
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "--short=12", "HEAD"])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
