//! Agents of a run across several machines: what keeps them from starting, and whose they may be.

use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio, id};

use narrows_io::address::IpPrefix;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::route_socket::RouteSocket;

use crate::common::{NARROWS, Scratch, narrows};
use crate::machines::{EXAMPLE, Up};

/// A script in place of ssh that runs this on the machine `beta`, and an agent on `alpha`.
fn ssh(scratch: &Scratch, beta: &str) -> PathBuf {
    let script = format!("#!/bin/sh\ncase $1 in alpha) exec {NARROWS} agent;; esac\n{beta}\n");
    let ssh = scratch.write("ssh", &script);
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    ssh
}

fn refused(scratch: &Scratch, beta: &str) -> String {
    let mut command = narrows(["up", EXAMPLE, "--machines", "alpha=127.0.0.1,beta=127.0.0.1", "--ssh"]);
    let output = command.arg(ssh(scratch, beta)).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "needs namespaces"]
fn an_agent_that_does_not_start_is_explained() {
    let scratch = Scratch::new();
    for (beta, expected) in [
        (
            "echo 'root@beta: Permission denied (publickey).' >&2; exit 255",
            "cannot log in to `beta` (root@beta: Permission denied (publickey)): add your public key there \
             (`ssh-copy-id beta`)",
        ),
        ("echo 'Host key verification failed.' >&2; exit 255", "log in once with `ssh beta`"),
        ("exec no-such-program-of-anyone agent", "narrows was not found on `beta`"),
        ("exec /etc", "narrows on `beta` cannot be executed"),
        (
            "echo \"error: unrecognized subcommand 'agent'\" >&2; exit 2",
            "narrows on `beta` is too old for --machines",
        ),
        (
            r#"echo '{"hello":{"version":"0.0.1","address":null}}'; sleep 60"#,
            "narrows on the machine `beta` is version 0.0.1, and here it is",
        ),
        ("echo Welcome; exit 0", "the agent on `beta` did not start (Welcome)"),
        (
            r#"echo '{"failed":{"why":"the moon is full"}}'; sleep 60"#,
            "on the machine `beta`: the moon is full",
        ),
    ] {
        let said = refused(&scratch, beta);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn doctor_asks_the_machines() {
    let scratch = Scratch::new();
    let ask = |machines: &str| {
        let mut command = narrows(["doctor", "--for", "ssh", "--machines", machines, "--ssh"]);
        command.arg(ssh(&scratch, "echo 'sh: narrows: not found' >&2; exit 127")).output().unwrap()
    };
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let fine = ask("alpha");
    assert!(fine.status.success(), "{fine:?}");
    let said = text(&fine);
    assert!(said.contains("yes: narrows ") && said.contains("up --machines works"), "{said}");
    let broken = ask("alpha,beta");
    assert_eq!(broken.status.code(), Some(1), "{broken:?}");
    let said = text(&broken).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("beta no: narrows was not found on `beta` (sh: narrows: not found)"), "{said}");
}

/// Two namespaces, joined by a cable.
fn machines() -> [Namespace; 2] {
    let machines = [(); 2].map(|()| Namespace::create().unwrap());
    let end = |namespace| VethEnd { namespace, name: "wire", mac: None };
    create_veth(&end(&machines[0]), &end(&machines[1]), 1600).unwrap();
    for (machine, address) in machines.iter().zip(["10.79.0.1", "10.79.0.2"]) {
        let mut sockets = RouteSocket::open(machine).unwrap();
        sockets.add_address("wire", IpPrefix::new(address.parse::<IpAddr>().unwrap(), 24)).unwrap();
        sockets.set_up("wire").unwrap();
    }
    machines
}

#[test]
#[ignore = "needs root, user namespaces, su, ping, setpriv"]
fn an_ordinary_user_is_enough() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = scratch.file("narrows");
    fs::copy(NARROWS, &program).unwrap();
    let machines = machines();
    let [alpha, beta] = machines.each_ref().map(|machine| machine.as_fd().as_raw_fd());
    let enter = |of_beta: &str| {
        let (own, program) = (id(), program.display());
        let script = format!(
            "#!/bin/sh\nunset XDG_RUNTIME_DIR XDG_STATE_HOME; cd /\n\
             case $1 in alpha) n={alpha};; beta) n={beta};; esac\n\
             [ $1 = beta ] && exec nsenter --net=/proc/{own}/fd/$n {of_beta}\n\
             exec nsenter --net=/proc/{own}/fd/$n su nobody -s /bin/sh -c '{program} agent'\n"
        );
        let ssh = scratch.write("ssh", &script);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = narrows(["up", EXAMPLE, "--machines", "alpha=10.79.0.1,beta=10.79.0.2", "--ssh"]);
        command.arg(ssh).stderr(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let program = program.display();
    let up = Up::start(enter(&format!("su nobody -s /bin/sh -c '{program} agent'")));
    let line = format!("cd /; {program} exec {} client -- ping -c 3 -q server", up.runs[0]);
    let mut command = Command::new("su");
    let ping = command
        .args(["nobody", "-s", "/bin/sh", "-c", &line])
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&ping.stdout).contains(" 0% packet loss"), "{ping:?}");
    up.signal("-INT");
    let (status, said) = up.end();
    assert!(matches!(status, Some(0 | 75)), "{said}");

    // No user namespaces, and no privilege.
    let without = format!(
        "unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; \
         exec setpriv --bounding-set=-all {program} agent'"
    );
    let output = enter(&without).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("on the machine `beta`: this host does not allow user namespaces"), "{said}");
}
