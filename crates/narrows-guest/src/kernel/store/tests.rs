use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::kernel::temporary::Folder;

fn add(folder: &Folder, version: &str, recipe: &str) {
    let place = folder.path().join(version);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(EXECUTABLE), "ELF").unwrap();
    fs::write(
        place.join(CONFIGURATION),
        "CONFIG_NET_SCH_TBF=y\nCONFIG_NET_SCH_MQPRIO_LIB=y\nCONFIG_TCP_CONG_BBR=y\nCONFIG_TCP_CONG_ADVANCED=y\n",
    )
    .unwrap();
    About {
        version: version.into(),
        source: "a test".into(),
        built: 1_700_000_000,
        recipe: recipe.into(),
        edits: vec!["seeded randomness".into()],
    }
    .write(&place)
    .unwrap();
}

fn versions(store: &Store) -> Vec<String> {
    store.list().unwrap().into_iter().map(|kept| kept.about.version).collect()
}

#[test]
fn the_newest_comes_first_by_numbers() {
    let folder = Folder::new();
    for version in ["6.9.3", "6.12.9", "6.12.117", "6.13.0-rc2", "6.13.0", "5.10"] {
        add(&folder, version, &recipe_hash());
    }
    let store = Store::at(folder.path().into());
    assert_eq!(versions(&store), ["6.13.0", "6.13.0-rc2", "6.12.117", "6.12.9", "6.9.3", "5.10"]);
    let found = |asked| store.find(asked).unwrap().version;
    assert_eq!(found(None), "6.13.0");
    assert_eq!(found(Some("6.12")), "6.12.117");
    assert_eq!(found(Some("6.12.9")), "6.12.9");
    assert_eq!(found(Some("6")), "6.13.0");
}

#[test]
fn one_of_this_recipe_goes_before_a_newer_one() {
    let folder = Folder::new();
    add(&folder, "6.12.9", &recipe_hash());
    add(&folder, "6.12.117", "old");
    add(&folder, "7.2.1", "old");
    let store = Store::at(folder.path().into());
    for (asked, version) in
        [(None, "6.12.9"), (Some("6"), "6.12.9"), (Some("7"), "7.2.1"), (Some("6.12.117"), "6.12.117")]
    {
        assert_eq!(store.find(asked).unwrap().version, version);
    }
}

#[test]
fn a_version_is_no_prefix_of_another_number() {
    let folder = Folder::new();
    add(&folder, "6.12.1", &recipe_hash());
    let store = Store::at(folder.path().into());
    let error = store.find(Some("6.1")).unwrap_err().to_string();
    assert!(error.starts_with("no guest kernel 6.1 is kept; there is 6.12.1:"), "{error}");
}

#[test]
fn without_a_kernel_the_command_is_said() {
    let folder = Folder::new();
    let store = Store::at(folder.path().join("none"));
    for asked in [None, Some("6.1")] {
        let error = store.find(asked).unwrap_err().to_string();
        assert_eq!(error, "there is no guest kernel yet: `narrows kernel build` makes one, once");
    }
    assert!(store.remove("6.1.2").is_err());
    assert_eq!(store.remove_all().unwrap(), []);
}

#[test]
fn what_is_no_kernel_is_passed_over() {
    let folder = Folder::new();
    add(&folder, "6.1.2", "old");
    fs::create_dir_all(folder.path().join(".building/tree")).unwrap();
    fs::create_dir_all(folder.path().join("6.2")).unwrap();
    fs::write(folder.path().join("notes"), "").unwrap();
    add(&folder, "6.3", "old");
    fs::write(folder.path().join("6.3/about.json"), "{").unwrap();
    assert_eq!(versions(&Store::at(folder.path().into())), ["6.1.2"]);
}

#[test]
fn an_older_recipe_is_told() {
    let folder = Folder::new();
    add(&folder, "6.1.2", "0123456789abcdef");
    add(&folder, "6.1.3", &recipe_hash());
    let store = Store::at(folder.path().into());
    assert_eq!(store.find(Some("6.1.2")).unwrap().of_older_recipe, Some(true));
    assert_eq!(store.find(Some("6.1.3")).unwrap().of_older_recipe, Some(false));
}

#[test]
fn what_is_in_a_kernel_is_read_from_its_configuration() {
    let folder = Folder::new();
    add(&folder, "6.1.2", "");
    let kept = &Store::at(folder.path().into()).list().unwrap()[0];
    assert_eq!(kept.queueing_disciplines().unwrap(), ["tbf"]);
    assert_eq!(kept.congestion_controls().unwrap(), ["bbr", "reno"]);
    assert_eq!(kept.size().unwrap(), 3);
}

#[test]
fn a_removed_kernel_is_gone_and_others_stay() {
    let folder = Folder::new();
    for version in ["6.1.2", "6.12.3"] {
        add(&folder, version, "");
    }
    fs::create_dir_all(folder.path().join(".building/tree")).unwrap();
    let store = Store::at(folder.path().into());
    let series = store.remove("6.1").unwrap_err().to_string();
    assert!(series.contains("no guest kernel 6.1 is kept; there is 6.12.3, 6.1.2"), "{series}");
    assert_eq!(store.remove("6.1.2").unwrap().about.version, "6.1.2");
    assert_eq!(versions(&store), ["6.12.3"]);
    assert_eq!(store.remove_all().unwrap().len(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_removed_under_a_build() {
    let folder = Folder::new();
    add(&folder, "6.1.2", "");
    let store = Store::at(folder.path().into());
    fs::create_dir_all(store.building()).unwrap();
    let held = lock(&store.building()).unwrap();
    let error = store.remove_all().unwrap_err().to_string();
    assert!(error.starts_with("another `narrows kernel build` is running"), "{error}");
    assert_eq!(versions(&store), ["6.1.2"]);
    drop(held);
    assert!(store.remove_all().is_ok());
}

#[test]
fn a_path_is_taken_as_it_is() {
    let folder = Folder::new();
    add(&folder, "6.1.2", "old");
    let executable = folder.path().join("6.1.2/linux");
    let find = |path: &Path| GuestKernel::find(Some(path.as_os_str()));
    assert!(find(&executable).unwrap_err().to_string().contains("may not be executed"));
    fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
    let kernel = find(&executable).unwrap();
    assert_eq!((kernel.version.as_str(), kernel.of_older_recipe), ("6.1.2", Some(true)));
    let other = folder.path().join("vmlinux");
    fs::copy(&executable, &other).unwrap();
    let kernel = find(&other).unwrap();
    assert_eq!((kernel.version.as_str(), kernel.of_older_recipe), ("vmlinux", None));
    assert!(
        GuestKernel::find(Some(OsStr::new("./none/such"))).unwrap_err().to_string().contains("No such file")
    );
}
