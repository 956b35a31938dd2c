//! `narrows kernel` as a user meets it, but for building one.

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
    assert_eq!(kernel(&scratch, ["info", "--json", "-"]).expect(0).json(), serde_json::json!([]));
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
    assert_eq!(json[1]["version"], "6.9.3");
    assert_eq!(json[1]["older_recipe"], true);
    assert_eq!(json[1]["queueing_disciplines"], serde_json::json!(["fq_codel", "netem"]));
    let wrong = kernel(&scratch, ["remove", "6.9"]).expect(2).err;
    assert!(wrong.contains("no guest kernel 6.9 is kept; there is 6.12.117, 6.9.3"), "{wrong}");
    let removed = kernel(&scratch, ["remove", "6.9.3"]).expect(0).out;
    assert!(removed.ends_with("narrows/kernels/6.9.3\n"), "{removed}");
    assert_eq!(kernel(&scratch, ["info", "--json", "-"]).expect(0).json().as_array().unwrap().len(), 1);
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
    assert!(error.contains("a kernel's source package is wanted"), "{error}");
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
