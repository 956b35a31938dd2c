use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use super::*;

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("own-folder-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn it_is_made_for_its_owner_alone() {
    let scratch = Scratch::new("made");
    let folder = OwnFolder::make(&scratch.file("narrows")).unwrap();
    folder.make_folder("settings".as_ref()).unwrap();
    assert_eq!([mode(folder.path()), mode(&folder.path().join("settings"))], [0o700, 0o700]);
    assert!(OwnFolder::open(&scratch.file("none")).unwrap().is_none());
    assert!(folder.open_folder("none".as_ref()).unwrap().is_none());
}

#[test]
fn one_that_an_older_version_left_open_to_others_is_closed() {
    let scratch = Scratch::new("mended");
    let [path, inner] = [scratch.file("narrows"), scratch.file("narrows/settings")];
    fs::create_dir_all(&inner).unwrap();
    for path in [&path, &inner] {
        set_mode(path, 0o777);
    }
    let folder = OwnFolder::make(&path).unwrap();
    folder.open_folder("settings".as_ref()).unwrap();
    assert_eq!([mode(&path), mode(&inner)], [0o700, 0o700]);
}

#[test]
fn one_that_is_meant_for_others_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new("others");
    for (name, bits) in [("shared", 0o775), ("narrows", 0o1777)] {
        let path = scratch.file(name);
        fs::create_dir(&path).unwrap();
        set_mode(&path, bits);
        assert!(matches!(OwnFolder::make(&path), Err(OwnFolderError::NotOurs(_))), "{name}");
        assert_eq!(mode(&path), bits, "{name}");
    }
}

#[test]
fn links_are_not_followed() {
    let scratch = Scratch::new("links");
    let elsewhere = OwnFolder::make(&scratch.file("narrows-elsewhere")).unwrap();
    elsewhere.replace("file", "text", Lock::Exclusive).unwrap();
    let link = scratch.file("narrows");
    symlink(elsewhere.path(), &link).unwrap();
    for refused in [OwnFolder::open(&link).map(drop), OwnFolder::make(&link).map(drop)] {
        assert!(matches!(refused, Err(OwnFolderError::NotAFolder(_))), "{refused:?}");
    }
    symlink(scratch.file("nowhere"), scratch.file("narrows-dangling")).unwrap();
    assert!(OwnFolder::make(&scratch.file("narrows-dangling")).is_err());
    assert!(!scratch.file("nowhere").exists());

    let folder = OwnFolder::make(&scratch.file("narrows-own")).unwrap();
    symlink(elsewhere.path(), folder.path().join("settings")).unwrap();
    symlink(elsewhere.path().join("file"), folder.path().join("file")).unwrap();
    assert!(matches!(folder.open_folder("settings".as_ref()), Err(OwnFolderError::NotAFolder(_))));
    assert!(matches!(folder.make_folder("settings".as_ref()), Err(OwnFolderError::NotAFolder(_))));
    assert!(matches!(folder.open_file("file"), Err(OwnFolderError::NotAFile(_))));
    // What is put in the place of a link does not go where that led.
    folder.replace("file", "other", Lock::Exclusive).unwrap();
    assert_eq!(fs::read_to_string(elsewhere.path().join("file")).unwrap(), "text");
}

#[test]
fn only_regular_files_are_opened_and_only_sockets_are_sockets() {
    let scratch = Scratch::new("kinds");
    let folder = OwnFolder::make(&scratch.0.join("narrows")).unwrap();
    nix::unistd::mkfifo(&folder.path().join("pipe"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    folder.make_folder("folder".as_ref()).unwrap();
    symlink("socket", folder.path().join("link")).unwrap();
    for name in ["pipe", "socket", "folder", "link"] {
        assert!(matches!(folder.open_file(name), Err(OwnFolderError::NotAFile(_))), "{name}");
        assert_eq!(folder.has_own_socket(name), name == "socket", "{name}");
    }
    assert!(folder.open_file("none").unwrap().is_none());
    assert_eq!(folder.names().unwrap(), ["folder", "link", "pipe", "socket"]);
}

#[test]
fn a_file_that_everybody_may_write_is_not_ours() {
    let scratch = Scratch::new("everybody");
    let folder = OwnFolder::make(&scratch.file("narrows")).unwrap();
    drop(folder.replace("file", "", Lock::Exclusive).unwrap());
    set_mode(&folder.path().join("file"), 0o666);
    assert!(matches!(folder.open_file("file"), Err(OwnFolderError::NotOurs(_))));
}

#[test]
fn a_file_is_replaced_whole_and_locked_from_the_first() {
    let scratch = Scratch::new("replaced");
    let folder = OwnFolder::make(&scratch.file("narrows")).unwrap();
    // What a killed run left is in nobody's way.
    fs::write(folder.path().join("new.file"), "half").unwrap();
    let first = folder.replace("file", "first", Lock::Shared).unwrap();
    let mut read = folder.open_file("file").unwrap().unwrap();
    assert!(read.try_lock().is_err(), "somebody has it");
    read.try_lock_shared().unwrap();
    let second = folder.replace("file", "second", Lock::Exclusive).unwrap();
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first", "who had opened it keeps what it was");
    assert!(folder.open_file("file").unwrap().unwrap().try_lock_shared().is_err());
    drop((first, second));
    assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "second");
    assert_eq!(folder.names().unwrap(), ["file"]);
    assert!(folder.remove("file").unwrap() && !folder.remove("file").unwrap());
}

#[test]
fn only_an_empty_folder_of_ours_is_removed() {
    let scratch = Scratch::new("removed");
    for name in ["narrows-1", "others"] {
        OwnFolder::make(&scratch.file(name)).unwrap();
        remove_if_empty(&scratch.file(name));
        assert_eq!(scratch.file(name).exists(), name == "others");
    }
}
