//! With the feature `program`: compiles the BPF program. NARROWS_CLANG names the compiler; default: the first of `clang-19` to
//! `clang-22` and `clang` that is there and new enough.

use std::path::Path;
use std::process::Command;

/// Older ones make code that the verifier rejects ("R1 has no valid kptr").
const OLDEST: u32 = 19;
const SOURCE: &str = "bpf/qdisc.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=NARROWS_CLANG");
    if std::env::var_os("CARGO_FEATURE_PROGRAM").is_none() {
        return;
    }
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    let object = Path::new(&folder).join("qdisc.bpf.o");
    let clang = clang();
    let done = Command::new(&clang)
        .args(["-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-c", SOURCE, "-o"])
        .arg(&object)
        .status();
    match done {
        Ok(status) if status.success() => {}
        other => panic!("{clang} cannot compile {}: {other:?}", SOURCE),
    }
}

fn clang() -> String {
    let named = std::env::var("NARROWS_CLANG").into_iter();
    let usual = (OLDEST..OLDEST + 4).map(|version| format!("clang-{version}")).chain(["clang".into()]);
    let all: Vec<String> = match named.clone().next() {
        Some(_) => named.collect(),
        None => usual.collect(),
    };
    let fits = |name: &&String| version(name).is_some_and(|version| version >= OLDEST);
    all.iter().find(fits).cloned().unwrap_or_else(|| {
        panic!(
            "the feature `program` of narrows-kernel needs clang {OLDEST} or newer (tried: {})",
            all.join(", ")
        )
    })
}

/// The major version of a compiler that is there.
fn version(name: &str) -> Option<u32> {
    let printed = Command::new(name).arg("--version").output().ok()?.stdout;
    let text = String::from_utf8_lossy(&printed);
    let version = text.split("version ").nth(1)?;
    version.split('.').next()?.parse().ok()
}
