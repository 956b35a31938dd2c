//! Programs of `--on`: started together, awaited, their output labelled or kept; and hosts with a larger MTU.

use std::fs;

use crate::common::{Scratch, finish, narrows, run};
use crate::roles::role;

const THREE: &str = "[hosts.client]\n[hosts.web]\n[hosts.db]\n[links.a]\nbetween = ['client', 'web']\n\
    [links.b]\nbetween = ['client', 'db']\n";

#[test]
#[ignore = "needs namespaces, python3"]
fn all_are_started_before_any_is_awaited() {
    let scratch = Scratch::new();
    let scenario = scratch.write("three.toml", THREE);
    let (first, second) = (scratch.file("first"), scratch.file("second"));
    // Each listens once the other has been started: one by one, none ever would.
    let program = |mine: &std::path::Path, other: &std::path::Path| {
        format!(
            "touch {}; while ! test -e {}; do sleep 0.01; done; exec python3 -c 'import socket, time; \
             s = socket.create_server((\"\", 80)); time.sleep(1000)'",
            mine.display(),
            other.display()
        )
    };
    let (web, db) = (program(&first, &second), program(&second, &first));
    let arguments =
        ["run", scenario.to_str().unwrap(), "--quiet", "--on-timeout", "60s", "--on", "web", &web];
    let line = "exec 3<>/dev/tcp/web/80 4<>/dev/tcp/db/80";
    let done = finish(narrows(arguments).args(["--on", "db", &db, "--", "bash", "-c", line])).expect(0);
    assert!(!done.err.contains("did not listen"), "{}", done.err);
}

#[test]
#[ignore = "needs namespaces, python3"]
fn who_does_not_listen_is_named() {
    let listens =
        "exec python3 -c 'import socket, time; s = socket.create_server((\"\", 80)); time.sleep(1000)'";
    let flags = ["--quiet", "--on-timeout", "3s", "--on", "server", listens, "--on", "server", "sleep 1000"];
    let done = finish(&mut run(flags, "echo begun")).expect(0);
    assert!(done.err.contains("`sleep 1000` in host `server` did not listen within 3s"), "{}", done.err);
    assert!(!done.err.contains("python3"), "{}", done.err);
    let done =
        finish(&mut run(["--quiet", "--on-timeout", "0s", "--on", "server", "sleep 1000"], "true")).expect(0);
    assert!(!done.err.contains("listen"), "{}", done.err);
    let wrong = finish(&mut run(["--on-timeout", "2", "--on", "server", "true"], "true")).expect(2);
    assert!(wrong.err.contains("on-timeout"), "{}", wrong.err);
}

#[test]
#[ignore = "needs namespaces"]
fn lines_have_labels_or_files_of_their_hosts() {
    let scratch = Scratch::new();
    let many = "i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; printf end";
    let flags = ["--quiet", "--labels", "always", "--on", "server", many, "--on", "client", many];
    let done = finish(&mut run(flags, "true")).expect(0);
    for (host, text, word, count) in [
        ("server", &done.out, "out", 501),
        ("client", &done.out, "out", 501),
        ("server", &done.err, "err", 500),
        ("client", &done.err, "err", 500),
    ] {
        let label = format!("[{host}] ");
        let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(&label)).collect();
        assert_eq!(lines.len(), count, "{host} {word}");
        for (number, line) in lines[..500].iter().enumerate() {
            assert_eq!(*line, format!("{word} {number}"));
        }
    }
    // In a pipe by default they are as they were written.
    let plain = finish(&mut run(["--quiet", "--on", "server", "echo plain"], "true")).expect(0);
    assert_eq!(plain.out, "plain\n");
    let logs = scratch.file("logs");
    let flags =
        ["--quiet", "--logs", logs.to_str().unwrap(), "--on", "server", many, "--on", "client", "echo me"];
    let done = finish(&mut run(flags, "echo cmd")).expect(0);
    assert_eq!(done.out, "cmd\n");
    let server = fs::read_to_string(logs.join("server.log")).unwrap();
    assert_eq!(server.lines().count(), 1001, "{server}");
    assert!(server.starts_with("out 0\nerr 0\nout 1\n") && server.ends_with("end\n"), "{server}");
    assert_eq!(fs::read_to_string(logs.join("client.log")).unwrap(), "me\n");
    // A disk that is full: the program goes on, and the report says so.
    fs::remove_file(logs.join("server.log")).unwrap();
    std::os::unix::fs::symlink("/dev/full", logs.join("server.log")).unwrap();
    let flags = ["--logs", logs.to_str().unwrap(), "--on", "server", "echo lost"];
    let full = finish(&mut run(flags, "true")).expect(0);
    assert!(full.err.contains("are incomplete: No space left on device"), "{full}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_lacking_address_is_explained() {
    let hint = |words: &[&str]| finish(narrows(["run", "--quiet", "--delay", "1ms", "--"]).args(words)).err;
    assert!(hint(&["ping", "-c", "1"]).contains("your shell may have expanded $NARROWS_SERVER"));
    let literal = hint(&["ping", "-c", "1", "$NARROWS_SERVER"]);
    assert!(literal.contains("no shell expands `$NARROWS_SERVER`"), "{literal}");
    for fine in [&["ping", "-c", "1", "server"][..], &["false"], &["sh", "-c", "ping -c 1 $NARROWS_SERVER"]] {
        let said = hint(fine);
        assert!(!said.contains("NARROWS_SERVER"), "{said}");
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn jumbo_frames_cross_a_link_that_takes_them() {
    for backend in ["af_packet", "af_xdp", "tap"] {
        let server = role("tcp-server");
        let flags = ["--quiet", "--backend", backend, "--rate", "100mbit", "--delay", "1ms", "--mtu", "9000"];
        let mut flags = flags.to_vec();
        flags.extend(["--on", "server", &server]);
        let line = format!(
            "ip link show link | grep -o 'mtu 9000' && ping -4 -c 2 -M do -s 8972 server && ! ping -4 -c 1 -M do -s 8973 server && \
             ping -6 -c 2 -M do -s 8952 server && {}",
            role("tcp-client")
        );
        let done = finish(&mut run(flags, &line)).expect(0);
        assert!(done.out.contains("mtu 9000\n"), "{}", done.out);
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn each_hop_has_its_own_mtu_and_senders_find_out() {
    let scratch = Scratch::new();
    let text = "[hosts.client]\n[hosts.server]\n[routers.r]\n[links.wide]\nbetween = ['client', 'r']\nmtu = 9000\n\
        [links.slim]\nbetween = ['r', 'server']\nmtu = { bytes = 1500, policy = 'answer' }\n";
    let scenario = scratch.write("mixed.toml", text);
    let line = "ping -4 -c 1 -W 1 -M do -s 8972 server; ping -4 -c 1 -M do -s 1472 server && ip route get $NARROWS_SERVER";
    let done = finish(&mut narrows(["run", scenario.to_str().unwrap(), "--quiet", "--", "sh", "-c", line]))
        .expect(0);
    assert!(done.out.contains("mtu 1500") || done.out.contains("mtu = 1500"), "{}", done.out);
}
