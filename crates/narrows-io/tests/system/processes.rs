//! Programs inside a namespace: where they run, how they end, why they do not start.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::marked::Mark;
use narrows_io::namespace::Namespace;
use narrows_io::process::{SpawnError, spawn};
use narrows_io::wait::{Waiting, wait};

use crate::lab::{PATIENCE, eventually, privileged};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("narrows-io-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_program_runs_in_its_namespace_and_its_end_is_seen() {
    privileged("processes::a_program_runs_in_its_namespace_and_its_end_is_seen", || {
        let namespace = Namespace::create().unwrap();
        let inside = namespace.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "readlink /proc/self/ns/net; echo $WHO; exit 7"]).env("WHO", "me");
        command.stdout(Stdio::piped());
        let mut program = spawn(command, &namespace).unwrap();
        let mut said = String::new();
        program.child().stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let deadline = MonotonicTime::from_nanos(clock_monotonic().as_nanos() + PATIENCE);
        let mut waiting = [Waiting::readable(&program)];
        assert_eq!(wait(&mut waiting, Some(deadline)).unwrap(), 1);
        assert!(waiting[0].is_ready());
        assert_eq!(program.wait().unwrap().code(), Some(7));
        assert_eq!(said, format!("{}\nme\n", inside.display()));
    });
}

#[test]
#[ignore = "needs namespaces"]
fn a_dropped_program_is_killed() {
    privileged("processes::a_dropped_program_is_killed", || {
        let namespace = Namespace::create().unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000");
        let program = spawn(command, &namespace).unwrap();
        let id = program.id();
        assert!(fs::exists(format!("/proc/{id}")).unwrap());
        drop(program);
        assert!(!fs::exists(format!("/proc/{id}")).unwrap());
    });
}

#[test]
#[ignore = "needs namespaces"]
fn marked_programs_are_found_and_killed_and_no_others() {
    privileged("processes::marked_programs_are_found_and_killed_and_no_others", || {
        let namespace = Namespace::create().unwrap();
        let value = format!("run-{}", std::process::id());
        let mark = Mark { name: "NARROWS_TEST_MARK", value: &value };
        let start = |value: &str| {
            let mut command = Command::new("sleep");
            command.arg("1000").env(mark.name, value);
            spawn(command, &namespace).unwrap()
        };
        let (mut program, mut other) = (start(&value), start(&format!("{value}0")));
        // Its environment is its own once it has executed.
        eventually("the program to be found", || mark.processes().unwrap() == [program.id()]);
        assert!(!mark.kill(other.id()).unwrap(), "as where its number was the program's before");
        assert!(mark.kill(program.id()).unwrap());
        assert!(!program.wait().unwrap().success());
        assert!(!mark.kill(program.id()).unwrap() && mark.processes().unwrap().is_empty());
        assert!(other.try_wait().unwrap().is_none());
    });
}

#[test]
#[ignore = "needs namespaces"]
fn reasons_not_to_start_are_told_apart() {
    privileged("processes::reasons_not_to_start_are_told_apart", || {
        let namespace = Namespace::create().unwrap();
        let folder = Folder::new("reasons");
        let start = |command| spawn(command, &namespace).unwrap_err();

        let error = start(Command::new("no-such-program-anywhere"));
        assert!(matches!(error, SpawnError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("no-such-program-anywhere"));
        let error = start(Command::new("ping -c 1 localhost"));
        assert!(error.to_string().contains("separate words"), "{error}");

        let plain = folder.file("plain", "no program", 0o644);
        let error = start(Command::new(&plain));
        assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error}");

        let script = folder.file("script", "#!/no/such/interpreter\n", 0o755);
        let error = start(Command::new(&script));
        assert!(matches!(error, SpawnError::NoInterpreter { .. }), "{error}");

        let mut elsewhere = Command::new("true");
        elsewhere.current_dir(folder.0.join("no-such-folder"));
        let error = start(elsewhere);
        assert!(matches!(error, SpawnError::NoDirectory { .. }), "{error}");
    });
}
