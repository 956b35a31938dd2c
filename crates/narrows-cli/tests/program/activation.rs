//! Networks that a service manager starts for their first client.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Finished, NARROWS, Scratch, finish, start};
use crate::leftovers::RunFolder;

/// A run folder of a test's own, in which all networks go down with it.
struct Place {
    folder: RunFolder,
    state: Scratch,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: RunFolder::new(), state: Scratch::new() };
        // Without the folder it would be that of everybody.
        fs::write(place.folder.file("stays"), "").unwrap();
        place
    }

    /// Like a service manager that starts `narrows up` with a socket of this name in the run folder.
    fn manager(&self, socket: &str, when: &str, up: &[&str]) -> Command {
        let mut command = self.folder.narrows([]);
        let variables: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        command = Command::new("python3");
        for (name, value) in variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("XDG_STATE_HOME", self.state.path());
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/listen_fds.py");
        command.arg(program).arg(self.folder.file(socket)).args([when, NARROWS, "up"]).args(up);
        command
    }

    fn narrows(&self, arguments: &[&str]) -> Finished {
        let mut command = self.folder.narrows(arguments.iter().copied());
        finish(command.env("XDG_STATE_HOME", self.state.path()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.narrows(&["down", "--all", "--quiet"]);
    }
}

const UP: &[&str] = &["--rate", "10mbit", "--name", "lab", "--quiet"];

#[test]
#[ignore = "needs namespaces, python3"]
fn the_first_client_starts_a_network() {
    let place = Place::new();
    let mut manager = start(&mut place.manager("lab.sock", "later", UP));
    manager.until_it_says("listening");
    // Looking at what is there, and ending it, starts nothing.
    assert_eq!(place.narrows(&["ls", "-q"]).expect(0).out, "");
    place.narrows(&["down", "lab"]).expect(2);
    assert!(place.narrows(&["stats", "--run", "other"]).expect(2).err.contains("no active run `other`"));
    assert_eq!(place.narrows(&["ls", "-q"]).expect(0).out, "");

    place.narrows(&["exec", "lab", "client", "true"]).expect(0);
    assert_eq!(place.narrows(&["ls", "-q"]).expect(0).out, "lab\n");
    let stats = place.narrows(&["stats", "--run", "lab", "--json"]).expect(0).json();
    assert!(stats["conservation"].is_object(), "{stats}");
    place.narrows(&["set", "--run", "lab", "link.rate=2mbit"]).expect(0);
    // `clean` leaves the service manager's socket alone, and so does the end of the network.
    place.narrows(&["clean"]).expect(0);
    place.narrows(&["down", "lab", "--quiet"]).expect(0);
    manager.wait().expect(0);
    assert!(place.folder.file("lab.sock").exists());

    let err = place.narrows(&["stats", "--run", "lab"]).expect(2).err;
    assert!(err.contains("lab did not start") && err.contains("nobody listens there"), "{err}");
    assert!(err.contains("narrows@lab.socket"), "{err}");
}

#[test]
#[ignore = "needs python3"]
fn a_socket_where_no_client_looks_is_refused() {
    let place = Place::new();
    for (socket, up, why) in [
        ("other.sock", UP, "where no client looks: expected"),
        ("nameless.sock", &["--rate", "10mbit"][..], "give --name NAME"),
        ("lab.sock", &["--rate", "10mbit", "--name", "lab", "--detach"], "omit --detach"),
    ] {
        let ended = finish(&mut place.manager(socket, "now", up)).expect(2);
        assert!(ended.err.contains(why), "{ended}");
        assert!(ended.err.starts_with("narrows: "), "{ended}");
    }
}

#[test]
fn the_unit_listens_where_clients_look() {
    let unit = include_str!("../../../../packaging/systemd/narrows@.socket");
    assert!(unit.contains("\nListenStream=%t/narrows/%i.sock\n"), "{unit}");
    let path = narrows_live::control::activation_socket(Path::new("/run/narrows"), "lab");
    assert_eq!(path, Path::new("/run/narrows/lab.sock"));
}
