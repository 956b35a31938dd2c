//! What is left when a process that holds namespaces is killed, ends orderly, or has no privilege.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use narrows_io::host::{Capabilities, has_netem, user_namespaces};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::process::{Signal, adopt_descendants, end_descendants, spawn};
use narrows_io::route_socket::RouteSocket;
use narrows_io::user_namespace::{
    InnerUser, UserNamespaceError, enter_user_namespace, start_in_user_namespace,
};

use crate::lab::{CLIENT4, Lab, SERVER4, eventually, privileged};

/// Tells a copy of this program which part of a test it is.
const PART: &str = "NARROWS_IO_TEST_PART";

/// Tells it where the namespace is that plays the host.
pub(crate) const HOST: &str = "NARROWS_IO_TEST_HOST";

/// Where another process finds a namespace of ours.
pub(crate) fn path_of(namespace: &Namespace) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd())
}

pub(crate) fn is_part(part: &str) -> bool {
    std::env::var(PART).as_deref() == Ok(part)
}

/// This test once more, in a process of its own, playing `part`.
pub(crate) fn copy_of(test: &str, part: &str) -> Command {
    let mut copy = Command::new("/proc/self/exe");
    copy.args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).env(PART, part);
    copy
}

#[test]
#[ignore = "needs namespaces"]
fn a_killed_holder_leaves_nothing() {
    let name = "leftovers::a_killed_holder_leaves_nothing";
    privileged(name, || {
        if is_part("holder") {
            return hold(&Namespace::open(&std::env::var(HOST).unwrap()).unwrap());
        }
        let host = Namespace::create().unwrap();
        let mut holder = copy_of(name, "holder");
        let mut holder = holder.env(HOST, path_of(&host)).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let ready = lines.map(Result::unwrap).find(|line| line.contains("holding ")).expect("it says so");
        let sleeper = ready.rsplit(' ').next().unwrap().to_owned();
        let has_cable = || RouteSocket::open(&host).unwrap().interface("cable").is_ok();
        assert!(has_cable() && fs::exists(format!("/proc/{sleeper}")).unwrap());

        holder.kill().unwrap();
        holder.wait().unwrap();
        // The cable's other end was in a nameless namespace: it goes when the kernel has removed that.
        eventually("the namespace and its cable to go", || !has_cable());
        eventually("the program inside to go", || !is_running(&sleeper));
    });
}

/// Holds a namespace, a cable into the host and a program, until killed.
fn hold(host: &Namespace) {
    let inside = Namespace::create().unwrap();
    let end = |namespace, name| VethEnd { namespace, name, mac: None };
    create_veth(&end(host, "cable"), &end(&inside, "eth0"), 1500).unwrap();
    let mut command = Command::new("sleep");
    command.arg("1000");
    let program = spawn(command, &inside).unwrap();
    println!("holding {}", program.id());
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

/// Whether the process is there and is no zombie that nobody waits for.
fn is_running(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
#[ignore = "needs namespaces"]
fn descendants_end_with_an_orderly_exit() {
    let name = "leftovers::descendants_end_with_an_orderly_exit";
    privileged(name, || {
        if !is_part("parent") {
            // Being the parent of all orphans is for a whole process; other tests run in this one.
            assert!(copy_of(name, "parent").status().unwrap().success());
            return;
        }
        adopt_descendants().unwrap();
        let inside = Namespace::create().unwrap();
        let mut command = Command::new("sh");
        // One goes when asked, one has to be killed, and the shell leaves both behind.
        command.args(["-c", "sleep 1000 & (trap '' TERM; echo deaf; while :; do sleep 1000; done) & exit 0"]);
        command.stdout(Stdio::piped());
        let mut program = spawn(command, &inside).unwrap();
        let mut said = String::new();
        BufReader::new(program.child().stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "deaf\n");
        program.wait().unwrap();
        let killed = end_descendants(Signal::SIGTERM, Duration::from_millis(100)).unwrap();
        assert!(killed >= 1);
        assert_eq!(end_descendants(Signal::SIGTERM, Duration::ZERO).unwrap(), 0, "none is left");
    });
}

#[test]
#[ignore = "needs user namespaces"]
fn everything_works_without_privilege_in_a_user_namespace() {
    let name = "leftovers::everything_works_without_privilege_in_a_user_namespace";
    if is_part("nobody") {
        assert!(Capabilities::effective().unwrap().all());
        assert_eq!(fs::read_to_string("/proc/self/setgroups").unwrap().trim(), "deny");
        let lab = Lab::new(1500);
        let socket = lab.client.run(|| std::net::UdpSocket::bind((CLIENT4, 0))).unwrap().unwrap();
        let (_, [crossed, _]) = lab.forwarding(|| socket.send_to(b"x", (SERVER4, 9)).unwrap());
        assert!(!crossed.is_empty());
        let mut command = Command::new("id");
        command.arg("-u").stdout(Stdio::piped());
        let mut program = spawn(command, &Namespace::create().unwrap()).unwrap();
        let mut said = String::new();
        BufReader::new(program.child().stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "0\n");
        return;
    }
    user_namespaces().expect("this host gives user namespaces");
    // A copy that everyone may execute; the original may lie in a closed folder.
    let path = std::env::temp_dir().join(format!("narrows-io-nobody-{}", std::process::id()));
    fs::copy("/proc/self/exe", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut copy = Command::new(&path);
    copy.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(PART, "nobody")
        .current_dir("/");
    if Capabilities::effective().unwrap().all() {
        copy.uid(65534).gid(65534);
    }
    start_in_user_namespace(&mut copy, InnerUser::Root);
    let status = copy.status();
    fs::remove_file(&path).unwrap();
    assert!(status.unwrap().success());
}

#[test]
fn a_user_namespace_is_refused_once_threads_exist() {
    let error = std::thread::spawn(|| enter_user_namespace(InnerUser::Same)).join().unwrap().unwrap_err();
    assert!(matches!(error, UserNamespaceError::Threads { .. }), "{error}");
}

#[test]
#[ignore = "needs namespaces"]
fn probing_for_netem_answers() {
    privileged("leftovers::probing_for_netem_answers", || assert!(has_netem().is_some()));
}
