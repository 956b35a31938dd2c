//! `narrows kernel` as a user meets it, but for building one.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Finished, Scratch, finish, narrows};

fn kernel<'a>(scratch: &Scratch, arguments: impl IntoIterator<Item = &'a str>) -> Finished {
    let mut command = narrows(["kernel"].into_iter().chain(arguments));
    finish(command.env("XDG_CACHE_HOME", scratch.path()))
}

/// Puts a kernel there that looks as one that an older narrows built.
fn add(scratch: &Scratch, version: &str) {
    let folder = scratch.path().join("narrows/kernels").join(version);
    std::fs::create_dir_all(&folder).unwrap();
    let about = format!(
        r#"{{"version": "{version}", "source": "linux-source-test 1", "built": 1709164800, "recipe": "0123456789abcdef",
            "edits": ["hosts with AMX"]}}"#
    );
    for (file, text) in [
        ("linux", "ELF"),
        ("about.json", &about),
        ("config", "CONFIG_NET_SCH_NETEM=y\nCONFIG_NET_SCH_FQ_CODEL=y\nCONFIG_TCP_CONG_BBR=y\n"),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

#[test]
fn without_a_kernel_there_is_one_sentence_with_the_command() {
    let scratch = Scratch::new();
    let info = kernel(&scratch, ["info"]).expect(2);
    assert_eq!(info.err, "narrows: there is no guest kernel yet: `narrows kernel build` makes one, once\n");
    assert_eq!(kernel(&scratch, ["info", "--json", "-"]).expect(0).json()["kernels"], serde_json::json!([]));
    assert_eq!(kernel(&scratch, ["remove", "--all"]).expect(0).out, "no guest kernel was kept\n");
}

#[test]
fn kernels_are_described_and_removed() {
    let scratch = Scratch::new();
    for version in ["6.9.3", "6.12.117"] {
        add(&scratch, version);
    }
    let info = kernel(&scratch, ["info"]).expect(0).out;
    let first = info.lines().next().unwrap();
    assert_eq!(first, "6.12.117", "the newest first: {info}");
    for part in [
        "2024-02-29 from linux-source-test 1",
        "of an older recipe: `narrows kernel build`",
        "fq_codel netem",
        "bbr reno",
    ] {
        assert!(info.contains(part), "{part}: {info}");
    }
    let json = kernel(&scratch, ["info", "--json", "-"]).expect(0).json();
    let json = &json["kernels"];
    assert_eq!(json[1]["version"], "6.9.3");
    assert_eq!(json[1]["older_recipe"], true);
    assert_eq!(json[1]["queueing_disciplines"], serde_json::json!(["fq_codel", "netem"]));
    let wrong = kernel(&scratch, ["remove", "6.9"]).expect(2).err;
    assert!(wrong.contains("no guest kernel 6.9 is kept; there is 6.12.117, 6.9.3"), "{wrong}");
    let removed = kernel(&scratch, ["remove", "6.9.3"]).expect(0).out;
    assert!(removed.ends_with("narrows/kernels/6.9.3\n"), "{removed}");
    assert_eq!(
        kernel(&scratch, ["info", "--json", "-"]).expect(0).json()["kernels"].as_array().unwrap().len(),
        1
    );
    kernel(&scratch, ["remove", "--all"]).expect(0);
    kernel(&scratch, ["info"]).expect(2);
}

#[test]
fn what_cannot_be_built_from_is_said() {
    let scratch = Scratch::new();
    let notes = scratch.write("notes.txt", "no kernel");
    let folder = scratch.path().to_str().unwrap();
    for (source, why) in [
        (notes.to_str().unwrap(), "neither a folder nor an archive by its name"),
        (folder, "it has no Makefile, so it is not a Linux source tree"),
        ("/none/such.tar.xz", "No such file"),
    ] {
        let error = kernel(&scratch, ["build", "--yes", "--source", source]).expect(2).err;
        assert!(error.contains(why) && error.contains("a Linux source tree or an archive of one"), "{error}");
    }
    let error = kernel(&scratch, ["build", "--yes", "--package", "bash"]).expect(2).err;
    assert!(error.contains("expected a kernel source package"), "{error}");
    assert!(!scratch.path().join("narrows").exists(), "nothing is begun");
}

#[test]
fn missing_tools_and_packages_are_named() {
    let scratch = Scratch::new();
    let build = |arguments: &[&str]| {
        let mut command = narrows(["kernel", "build", "--yes"].iter().chain(arguments).copied());
        finish(command.env("XDG_CACHE_HOME", scratch.path()).env("PATH", scratch.path())).expect(2).err
    };
    let error = build(&[]);
    assert!(
        error.contains("without apt-get, which is not here: give a kernel's source with --source"),
        "{error}"
    );
    let archive = scratch.write("linux.tar.xz", "");
    let error = build(&["--source", archive.to_str().unwrap()]);
    assert!(
        error.contains("cannot build a kernel: make, gcc, flex, bison, bc, xz, tar, strip not found"),
        "{error}"
    );
    assert!(error.contains("apt-get install make gcc libc6-dev flex bison"), "{error}");
}

/// Programs in place of those that a build from a package calls; the compiler and its kin are never reached.
fn stand_ins(scratch: &Scratch, apt_get: &str, dpkg_deb: &str) -> String {
    let folder = scratch.file("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let idle = ["make", "gcc", "flex", "bison", "bc", "xz", "tar", "strip"].map(|name| (name, "exit 1"));
    let offer = "printf 'Version: 6.99-1\\nSize: 1000000\\n'";
    for (name, script) in
        idle.into_iter().chain([("apt-cache", offer), ("apt-get", apt_get), ("dpkg-deb", dpkg_deb)])
    {
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

fn build_with(scratch: &Scratch, path: &str) -> Finished {
    let mut command = narrows(["kernel", "build", "--yes", "--package", "linux-source-6.99"]);
    finish(command.env("XDG_CACHE_HOME", scratch.path()).env("PATH", path))
}

#[test]
fn a_download_that_fails_shows_what_apt_said() {
    let scratch = Scratch::new();
    let path = stand_ins(&scratch, "echo 'E: no network here' >&2; exit 100", "exit 1");
    let error = build_with(&scratch, &path).expect(2).err;
    assert!(error.contains("A guest kernel from linux-source-6.99 6.99-1\n  download  1 MB"), "{error}");
    assert!(error.contains("downloading linux-source-6.99 6.99-1 failed (exit status: 100)"), "{error}");
    assert!(
        error.contains("E: no network here") && error.contains("run the same command to continue"),
        "{error}"
    );
}

#[test]
fn a_broken_package_is_downloaded_again() {
    let scratch = Scratch::new();
    let count = scratch.file("count");
    let get = format!("test -e p.deb || {{ echo broken > p.deb; echo once >> {}; }}", count.display());
    let path = stand_ins(&scratch, &get, "echo 'not a Debian archive' >&2; exit 2");
    for _ in 0..2 {
        let error = build_with(&scratch, &path).expect(2).err;
        assert!(error.contains("p.deb failed (exit status: 2)"), "{error}");
        assert!(error.contains("not a Debian archive"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(count).unwrap(), "once\nonce\n");
}
