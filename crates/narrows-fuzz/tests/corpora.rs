//! Each reader of bytes from outside, over the inputs that fuzzers found so far: a smallest set that reaches all the branches that
//! they reached (`fuzz/corpora`, written by `scripts/fuzz --keep`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use narrows_fuzz::{TARGETS, Target};

fn packed(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpora")
        .join(target.name)
        .with_extension("tar.gz")
}

/// Names the input at which a check fails.
struct At(PathBuf);

impl Drop for At {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the input is {}", self.0.display());
        }
    }
}

/// How many inputs it has.
fn check(target: &Target) -> usize {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpora").join(target.name);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let unpacked =
        Command::new("tar").arg("-xzf").arg(packed(target)).arg("-C").arg(&folder).status().unwrap();
    assert!(unpacked.success(), "{}: tar {unpacked}", target.name);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let at = At(entry.unwrap().path());
        (target.check)(&fs::read(&at.0).unwrap());
        count += 1;
    }
    fs::remove_dir_all(&folder).unwrap();
    count
}

#[test]
fn inputs_that_fuzzers_found() {
    thread::scope(|scope| {
        let counts: Vec<_> =
            TARGETS.iter().map(|target| (target.name, scope.spawn(|| check(target)))).collect();
        for (name, count) in counts {
            let count = count.join().unwrap_or_else(|_| panic!("{name}"));
            println!("{name}: {count} inputs");
            assert!(count >= 5, "{name}: {count} inputs");
        }
    });
}
