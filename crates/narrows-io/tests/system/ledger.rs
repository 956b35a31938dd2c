//! What a ledger holds, whoever wrote it and whatever has become of its namespaces.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use narrows_io::host;
use narrows_io::ledger::{Cleared, LedgerError, RaisedSetting, SettingRecord, restore_abandoned};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::namespace_identity::NamespaceIdentity;
use narrows_io::own_folder::OwnFolderError;
use narrows_io::process::spawn;
use narrows_io::sysctl::{read_sysctl, write_sysctl};
use nix::sys::stat::{Mode, umask};

use crate::lab::privileged;
use crate::leftovers::{copy_of, is_part};

const FORWARDING: &str = "net/ipv4/conf/lo/forwarding";

/// A namespace where forwarding is on, as a run would have left it, and a folder for its ledger.
struct World {
    host: Namespace,
    identity: NamespaceIdentity,
    folder: PathBuf,
}

impl World {
    fn new(name: &str) -> Self {
        let host = Namespace::create().unwrap();
        write_sysctl(&host, FORWARDING, "1").unwrap();
        let identity = NamespaceIdentity::of(&host).unwrap();
        let folder = std::env::temp_dir().join(format!("narrows-io-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("settings")).unwrap();
        Self { host, identity, folder }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.join("settings")
    }

    /// The file of the setting, if this was the identity of its namespace. It says which interface by its number, but for
    /// those of older versions.
    fn file(&self, identity: &NamespaceIdentity) -> PathBuf {
        let key = if identity.boot.is_some() {
            "net-ipv4-conf-1-forwarding"
        } else {
            "net-ipv4-conf-lo-forwarding"
        };
        self.ledger().join(format!("{}-{key}", identity.inode))
    }

    /// Leaves a record as a killed run would.
    fn leave(&self, identity: &NamespaceIdentity) -> PathBuf {
        let boot = identity.boot.iter().map(|boot| format!("interface 1\nboot {boot}\n"));
        let more: String =
            boot.chain(identity.cookie.iter().map(|cookie| format!("cookie {cookie}\n"))).collect();
        let path = self.file(identity);
        fs::write(&path, format!("{}\n{FORWARDING}\n0\n1\n{more}", identity.inode)).unwrap();
        path
    }

    fn clear(&self) -> Cleared<SettingRecord> {
        restore_abandoned(&self.host, &self.ledger()).unwrap()
    }

    fn forwarding(&self) -> String {
        read_sysctl(&self.host, FORWARDING).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn removed(cleared: &Cleared<SettingRecord>) -> Vec<&Path> {
    cleared.removed.iter().map(|entry| entry.path.as_path()).collect()
}

#[test]
fn empty_and_cut_off_files_stand_in_nobodys_way() {
    privileged("ledger::empty_and_cut_off_files_stand_in_nobodys_way", || {
        let world = World::new("empty");
        world.leave(&world.identity);
        let inode = world.identity.inode;
        let broken =
            [("0-empty", String::new()), ("9-cut", "9\nnet".into()), ("new.0-unfinished", "0\nnet".into())];
        for (name, text) in &broken {
            fs::write(world.ledger().join(name), text).unwrap();
        }
        let cleared = world.clear();
        assert_eq!(
            removed(&cleared),
            broken.clone().map(|(name, _)| world.ledger().join(name)),
            "{cleared:?}"
        );
        assert_eq!(cleared.put_back.len(), 1, "{cleared:?}");
        assert!(cleared.failed.is_empty() && world.forwarding() == "0", "{cleared:?}");
        assert!(!world.folder.exists(), "both folders go when they are empty");

        // Nor in that of a run which needs the same setting.
        fs::create_dir_all(world.ledger()).unwrap();
        fs::write(world.file(&world.identity), format!("{inode}\n")).unwrap();
        let raised = RaisedSetting::raise(&world.host, FORWARDING, "1", &world.ledger()).unwrap().unwrap();
        assert_eq!(world.forwarding(), "1");
        assert!(raised.release().unwrap());
        assert_eq!(world.forwarding(), "0");
    });
}

#[test]
fn what_is_not_understood_is_named_and_left_and_the_rest_is_done() {
    privileged("ledger::what_is_not_understood_is_named_and_left_and_the_rest_is_done", || {
        let world = World::new("foreign");
        let precious = world.folder.join("precious");
        fs::write(&precious, "").unwrap();
        fs::write(world.ledger().join("0-notes"), "hello\n").unwrap();
        fs::write(world.ledger().join("notes"), "").unwrap();
        symlink(&precious, world.ledger().join("0-link")).unwrap();
        // What it says is about another setting than its name.
        fs::write(world.ledger().join("5-key"), "5\nother\n0\n1\n").unwrap();
        world.leave(&world.identity);
        let cleared = world.clear();
        let said: Vec<_> = cleared.failed.iter().map(LedgerError::to_string).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        for name in ["0-notes", "notes", "0-link", "5-key"] {
            assert!(said.iter().any(|said| said.contains(&format!("settings/{name}"))), "{name}: {said:?}");
            assert!(fs::symlink_metadata(world.ledger().join(name)).is_ok(), "{name}");
        }
        assert!(precious.exists());
        assert_eq!((cleared.put_back.len(), world.forwarding().as_str()), (1, "0"));
    });
}

#[test]
fn a_ledger_that_leads_elsewhere_is_refused() {
    privileged("ledger::a_ledger_that_leads_elsewhere_is_refused", || {
        let world = World::new("elsewhere");
        let file = world.leave(&world.identity);
        let link = world.folder.with_extension("link");
        fs::create_dir_all(&link).unwrap();
        symlink(world.ledger(), link.join("settings")).unwrap();
        let refused = restore_abandoned(&world.host, &link.join("settings"));
        let raised = RaisedSetting::raise(&world.host, FORWARDING, "1", &link.join("settings"));
        fs::remove_dir_all(&link).unwrap();
        for error in [refused.map(drop).unwrap_err(), raised.map(drop).unwrap_err()] {
            assert!(matches!(error, LedgerError::Folder(OwnFolderError::NotAFolder(_))), "{error}");
        }
        assert!(file.exists() && world.forwarding() == "1");
    });
}

#[test]
fn a_namespace_that_took_over_an_inode_is_left_alone() {
    privileged("ledger::a_namespace_that_took_over_an_inode_is_left_alone", || {
        let world = World::new("inode");
        let Some(cookie) = world.identity.cookie else { return eprintln!("left out: no SO_NETNS_COOKIE") };
        let gone = [
            NamespaceIdentity { cookie: Some(cookie + 1), ..world.identity.clone() },
            NamespaceIdentity { boot: Some("00000000-0000".into()), ..world.identity.clone() },
        ];
        for gone in &gone {
            let path = world.leave(gone);
            let cleared = world.clear();
            assert_eq!((removed(&cleared), cleared.put_back.len()), (vec![path.as_path()], 0), "{cleared:?}");
            assert_eq!(world.forwarding(), "1");

            // Nor does a run take it for its own: what it puts back is what it finds.
            fs::create_dir_all(world.ledger()).unwrap();
            world.leave(gone);
            assert!(RaisedSetting::raise(&world.host, FORWARDING, "1", &world.ledger()).unwrap().is_none());
            assert!(!world.folder.exists());
            fs::create_dir_all(world.ledger()).unwrap();
        }
    });
}

#[test]
fn a_namespace_is_found_wherever_it_is_held() {
    privileged("ledger::a_namespace_is_found_wherever_it_is_held", || {
        let world = World::new("held");
        world.leave(&world.identity);
        // No process is in it, but this one has a descriptor.
        let elsewhere = Namespace::create().unwrap();
        let cleared = restore_abandoned(&elsewhere, &world.ledger()).unwrap();
        assert_eq!((cleared.put_back.len(), world.forwarding().as_str()), (1, "0"), "{cleared:?}");
    });
}

#[test]
fn a_record_of_a_namespace_that_is_nowhere_is_never_applied() {
    privileged("ledger::a_record_of_a_namespace_that_is_nowhere_is_never_applied", || {
        let world = World::new("nowhere");
        let nowhere = NamespaceIdentity { inode: 5, ..world.identity.clone() };
        let path = world.leave(&nowhere);
        let cleared = world.clear();
        // It is gone where all processes can be seen, and else nobody knows.
        let named: Vec<_> = cleared.removed.iter().chain(&cleared.left).map(|entry| &entry.path).collect();
        assert_eq!(named, [&path], "{cleared:?}");
        assert_eq!(path.exists(), !cleared.left.is_empty());
        assert!(cleared.put_back.is_empty() && cleared.failed.is_empty() && world.forwarding() == "1");
    });
}

#[test]
fn many_at_once_need_a_setting_and_the_last_puts_it_back() {
    privileged("ledger::many_at_once_need_a_setting_and_the_last_puts_it_back", || {
        let world = World::new("many");
        fs::remove_dir_all(&world.folder).unwrap();
        write_sysctl(&world.host, FORWARDING, "0").unwrap();
        // Records and folders come and go all the time.
        let need = || {
            for _ in 0..50 {
                let raised = RaisedSetting::raise(&world.host, FORWARDING, "1", &world.ledger());
                let raised = raised.unwrap().expect("it is ours whoever raised it first");
                assert_eq!(world.forwarding(), "1", "as long as anybody needs it");
                raised.release().unwrap();
            }
        };
        let clear = || {
            for _ in 0..50 {
                let cleared = world.clear();
                assert!(cleared.is_empty(), "all of them live: {cleared:?}");
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(need);
            }
            scope.spawn(clear);
        });
        assert!(world.forwarding() == "0" && !world.folder.exists());
    });
}

#[test]
fn what_an_older_version_left_in_this_boot_is_put_back() {
    privileged("ledger::what_an_older_version_left_in_this_boot_is_put_back", || {
        let world = World::new("older");
        assert!(host::boot_time().unwrap() > 0);
        world.leave(&NamespaceIdentity { boot: None, cookie: None, ..world.identity.clone() });
        let cleared = world.clear();
        assert_eq!((cleared.put_back.len(), world.forwarding().as_str()), (1, "0"), "{cleared:?}");
    });
}

#[test]
fn nobody_else_may_write_to_it_whatever_the_umask() {
    let name = "ledger::nobody_else_may_write_to_it_whatever_the_umask";
    privileged(name, || {
        if !is_part("careless") {
            // The mask is the whole process's; other tests run in this one.
            assert!(copy_of(name, "careless").status().unwrap().success());
            return;
        }
        umask(Mode::empty());
        let world = World::new("umask");
        fs::remove_dir_all(&world.folder).unwrap();
        write_sysctl(&world.host, FORWARDING, "0").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let raised = RaisedSetting::raise(&world.host, FORWARDING, "1", &world.ledger()).unwrap().unwrap();
        let paths = [world.folder.clone(), world.ledger(), world.file(&world.identity)];
        assert_eq!(paths.map(|path| mode(&path)), [0o700, 0o700, 0o600]);
        drop(raised);

        // What an older version made is closed, rather than refused for ever.
        fs::create_dir_all(world.ledger()).unwrap();
        let open = fs::Permissions::from_mode(0o777);
        for path in [world.folder.clone(), world.ledger()] {
            fs::set_permissions(path, open.clone()).unwrap();
        }
        let raised = RaisedSetting::raise(&world.host, FORWARDING, "1", &world.ledger()).unwrap().unwrap();
        assert_eq!([world.folder.clone(), world.ledger()].map(|path| mode(&path)), [0o700, 0o700]);
        drop(raised);
        assert!(!world.folder.exists());
    });
}

#[test]
#[ignore = "needs ip"]
fn a_setting_follows_its_interface_to_another_name() {
    privileged("ledger::a_setting_follows_its_interface_to_another_name", || {
        let world = World::new("renamed");
        let ip = |arguments: &str| {
            let mut command = Command::new("ip");
            command.args(arguments.split(' '));
            assert!(spawn(command, &world.host).unwrap().wait().unwrap().success(), "ip {arguments}");
        };
        let make = |name, far| {
            let end = |name| VethEnd { namespace: &world.host, name, mac: None };
            create_veth(&end(name), &end(far), 1500).unwrap();
        };
        let forwarding =
            |name: &str| read_sysctl(&world.host, &format!("net/ipv4/conf/{name}/forwarding")).unwrap();
        let raise = |name: &str| {
            let key = format!("net/ipv4/conf/{name}/forwarding");
            write_sysctl(&world.host, &key, "0").unwrap();
            RaisedSetting::raise(&world.host, &key, "1", &world.ledger()).unwrap().unwrap()
        };
        make("uplink", "far");
        let raised = raise("uplink");
        ip("link set uplink name wan");
        // Another interface has the name now, and its own setting.
        make("uplink", "other");
        write_sysctl(&world.host, "net/ipv4/conf/uplink/forwarding", "1").unwrap();
        // A second run needs the first one's setting, whatever it is called.
        let second = RaisedSetting::raise(&world.host, "net/ipv4/conf/wan/forwarding", "1", &world.ledger());
        let second = second.unwrap().unwrap();
        assert!(!raised.release().unwrap(), "the second still needs it");
        assert_eq!(forwarding("wan"), "1");
        assert!(second.release().unwrap());
        assert_eq!((forwarding("wan").as_str(), forwarding("uplink").as_str()), ("0", "1"));

        // Of a killed run as well; and one that is gone is not said to be put back.
        for (then, name) in [("link set far name wan2", "wan2"), ("link delete wan2", "")] {
            let before = if name.is_empty() { "wan2" } else { "far" };
            let raised = raise(before);
            let left: Vec<_> =
                fs::read_dir(world.ledger()).unwrap().map(|entry| entry.unwrap().path()).collect();
            let text = fs::read(&left[0]).unwrap();
            drop(raised);
            // As it was before, with the record of a run that was killed.
            write_sysctl(&world.host, &format!("net/ipv4/conf/{before}/forwarding"), "1").unwrap();
            fs::create_dir_all(world.ledger()).unwrap();
            fs::write(&left[0], text).unwrap();
            ip(then);
            let cleared = world.clear();
            if name.is_empty() {
                assert!(cleared.put_back.is_empty(), "{cleared:?}");
                assert!(cleared.removed[0].why.contains("is gone, and its settings with it"), "{cleared:?}");
            } else {
                assert_eq!((cleared.put_back.len(), forwarding(name).as_str()), (1, "0"), "{cleared:?}");
            }
        }
    });
}
