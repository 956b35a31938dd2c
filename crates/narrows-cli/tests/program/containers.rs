//! `narrows docker watch`, `compose` and `clab`, with an engine of the tests' own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::{Scratch, Started, eventually, finish, kill, narrows, python, start};
use crate::engine::Engine;
use crate::top::on_a_terminal;
use crate::web::Web;

/// Round trips through 10 ms each way; what is not shaped takes much less.
const SHAPED: Duration = Duration::from_millis(20);
const DELAY: &[(&str, &str)] = &[("narrows.delay", "10ms")];

/// Ends it as a Ctrl-C does; what it said.
fn end(watch: Started) -> String {
    watch.signal("INT");
    watch.wait().expect(0).err.clone()
}

#[track_caller]
fn is_shaped(engine: &Engine, name: &str) {
    let took = comes_back(engine, name, "bridge");
    assert!(took >= SHAPED, "{name}: {took:?}");
}

/// The round trip of the first datagram that comes back: an interface that has just come up may lose some.
#[track_caller]
fn comes_back(engine: &Engine, from: &str, to: &str) -> Duration {
    let mut took = None;
    eventually("a datagram comes back", || {
        took = engine.echo(from, to);
        took.is_some()
    });
    took.unwrap()
}

/// No bound holds on a slow machine for one round trip: the best of many is meant.
#[track_caller]
fn is_direct(engine: &Engine, name: &str) {
    eventually("a round trip takes less than through the network", || {
        engine.echo(name, "bridge").is_some_and(|took| took < SHAPED)
    });
}

#[test]
#[ignore = "needs root, ip"]
fn labels_are_followed_through_restarts_of_containers_and_of_the_engine() {
    let mut engine = Engine::new();
    engine.run("early", DELAY);
    engine.run("plain", &[("maintainer", "x")]);
    let mut watch = engine.watch(&["docker", "watch"]);
    watch.until_it_complains("early eth0: attached after");
    engine.run("late", &[("narrows.down.delay", "20ms"), ("narrows.direction", "in")]);
    watch.until_it_complains("late eth0: attached after");
    for name in ["early", "late"] {
        is_shaped(&engine, name);
    }
    is_direct(&engine, "plain");

    // An event that comes again changes nothing.
    engine.tell("container", "start", "early");
    engine.end("late");
    watch.until_it_complains("late eth0: detached");
    engine.run("late", DELAY);
    eventually("it is attached again", || engine.echo("late", "bridge").is_some_and(|took| took >= SHAPED));

    // What starts while the engine's socket is away is found in its list afterwards.
    engine.stop();
    watch.until_it_complains("the engine does not answer");
    engine.run("meanwhile", &[("com.docker-tc.enabled", "1"), ("com.docker-tc.delay", "20ms")]);
    is_shaped(&engine, "early");
    engine.restart();
    watch.until_it_complains("the engine answers again");
    watch.until_it_complains("meanwhile eth0: attached after");
    is_shaped(&engine, "meanwhile");
    let titles = finish(&mut engine.narrows(["ls", "--json"])).expect(0).out;
    assert!(titles.contains("early on eth0") && !titles.contains("standard input"), "{titles}");
    let ls = finish(&mut engine.narrows(["ls", "-q"])).expect(0).out;
    assert_eq!(ls.lines().filter(|run| *run == "early").count(), 1, "{ls}");

    let said = end(watch);
    assert_eq!(said.matches("early eth0: attached").count(), 1, "{said}");
    for name in ["early", "late", "meanwhile"] {
        assert!(said.contains(&format!("{name} eth0: detached")), "{said}");
        is_direct(&engine, name);
    }
}

#[test]
#[ignore = "needs root, ip"]
fn starts_of_podman_are_seen_before_its_events() {
    let mut engine = Engine::podman();
    // Where the engine keeps namespaces is learnt from it.
    engine.run("first", DELAY);
    let mut watch = engine.watch(&["docker", "watch"]);
    watch.until_it_complains("first eth0: attached after");
    engine.quietly(|engine| engine.run("web", DELAY));
    watch.until_it_complains("web eth0: attached after");
    is_shaped(&engine, "web");

    // A restart, whose events come when the container runs again: it stays attached.
    engine.quietly(|engine| engine.end("web"));
    watch.until_it_complains("web eth0: detached");
    engine.quietly(|engine| engine.run("web", DELAY));
    eventually("it is attached again", || engine.echo("web", "bridge").is_some_and(|took| took >= SHAPED));
    for action in ["restart", "die", "init", "start"] {
        engine.tell("container", action, "web");
    }
    engine.run("last", DELAY);
    watch.until_it_complains("last eth0: attached after");
    is_shaped(&engine, "web");
    let said = end(watch);
    assert_eq!(said.matches("web eth0: attached").count(), 2, "{said}");
}

#[test]
#[ignore = "needs root, ip"]
fn with_fail_closed_nothing_passes_that_is_not_shaped() {
    let mut engine = Engine::new();
    // Where the engine keeps namespaces is learnt from it.
    engine.run("first", &[]);
    let mut watch = engine.watch(&["docker", "watch", "--fail", "closed"]);
    // The engine says that it joins a network, before it has a process.
    engine.create("web", DELAY);
    eventually("its interface is blocked", || blocked(&engine));
    engine.connect("web");
    // Before the network is there, nothing passes; then only what crosses it.
    eventually("a datagram comes back", || match engine.echo("web", "bridge") {
        Some(took) => {
            assert!(took >= SHAPED, "{took:?}");
            true
        }
        None => false,
    });
    engine.start("web");
    watch.until_it_complains("web eth0: attached after");

    // Killed, it leaves it closed; another watch takes it over.
    watch.signal("KILL");
    drop(watch);
    eventually("its network is gone", || finish(&mut engine.narrows(["ls", "-q"])).out.trim().is_empty());
    assert_eq!(engine.echo("web", "bridge"), None, "closed");
    let mut watch = engine.watch(&["docker", "watch", "--fail", "closed"]);
    watch.until_it_complains("web eth0: attached after");
    is_shaped(&engine, "web");
    end(watch);
    is_direct(&engine, "web");
    assert!(!blocked(&engine));
}

/// Whether a record of a barrier is in the run folder.
fn blocked(engine: &Engine) -> bool {
    let folder = engine.folder.file("interfaces");
    let records =
        fs::read_dir(folder).map(|all| all.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok()));
    records.is_ok_and(|mut all| all.any(|record| record.contains("closed egress")))
}

#[test]
#[ignore = "needs root, ip"]
fn another_tool_at_the_interface_and_a_container_that_is_gone_are_told() {
    let mut engine = Engine::new();
    engine.run("web", DELAY);
    let process = engine.process("web").to_string();
    let mut other =
        crate::common::start(&mut engine.narrows(["attach", "eth0", "--pid", &process, "--name", "other"]));
    other.until_it_complains("on eth0 in");
    let mut watch = engine.watch(&["docker", "watch"]);
    let said = watch.until_it_complains("web eth0: not attached");
    assert!(said.contains("eth0"), "{said}");
    other.signal("INT");
    other.wait().expect(0);
    watch.until_it_complains("web eth0: attached after");

    // Gone before anything can be done, and in the middle of it.
    for _ in 0..5 {
        engine.run("brief", DELAY);
        engine.end("brief");
    }
    engine.run("wrong", &[("narrows.dealy", "10ms")]);
    watch.until_it_complains("did you mean `delay`?");
    engine.run("file", &[("narrows.trace", "/etc/passwd")]);
    watch.until_it_complains("labels of file:1");
    is_shaped(&engine, "web");
    let said = end(watch);
    assert!(!said.contains("root:") && !said.contains("panicked"), "{said}");
}

const COMPOSE: &str = r#"name: shop
services: { web: {}, db: {}, cache: {} }
x-narrows:
  services: { cache: { delay: 10ms } }
  links:
    "web -> db": { delay: 15ms }
    "db -> web": { delay: 5ms }
    "web <-> cache": { delay: 2ms }
"#;

fn service(name: &str) -> [(&'static str, String); 2] {
    [("com.docker.compose.project", "shop".into()), ("com.docker.compose.service", name.into())]
}

fn run(engine: &mut Engine, container: &str, name: &str) {
    let labels = service(name);
    let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, value.as_str())).collect();
    engine.run(container, &labels);
}

#[test]
#[ignore = "needs root, ip"]
fn services_of_a_project_have_links_between_them() {
    let mut engine = Engine::new();
    let file = engine.folder.write("compose.yml", COMPOSE);
    for name in ["web", "db", "cache"] {
        run(&mut engine, &format!("shop-{name}-1"), name);
    }
    engine.run("foreign", &[("com.docker.compose.project", "other"), ("com.docker.compose.service", "web")]);
    let mut watch = engine.watch(&["compose", "-f", file.to_str().unwrap()]);
    for name in ["web", "db", "cache"] {
        watch.until_it_complains(&format!("shop-{name}-1 eth0: attached after"));
    }
    let took = |from: &str, to: &str| comes_back(&engine, from, to);
    assert!(took("shop-web-1", "shop-db-1") >= SHAPED, "15 ms there, 5 ms back");
    assert!(took("shop-cache-1", "bridge") >= SHAPED, "its own link");
    eventually("a link of a pair replaces both own links", || took("shop-web-1", "shop-cache-1") < SHAPED);
    assert!(took("shop-web-1", "shop-cache-1") >= Duration::from_millis(4));
    is_direct(&engine, "shop-web-1");
    is_direct(&engine, "foreign");

    // It comes back with another address, which the others are told.
    engine.end("shop-db-1");
    watch.until_it_complains("shop-db-1 eth0: detached");
    run(&mut engine, "shop-db-2", "db");
    watch.until_it_complains("shop-db-2 eth0: attached after");
    eventually("the new address is known", || {
        engine.echo("shop-web-1", "shop-db-2").is_some_and(|took| took >= SHAPED)
    });
    let said = end(watch);
    assert!(!said.contains("foreign"), "{said}");
    is_direct(&engine, "shop-cache-1");
}

const LAB: &str = r#"name: pair
topology:
  nodes: { a: { kind: linux }, b: { kind: linux }, c: { kind: linux } }
  links:
    - endpoints: ["a:eth0", "b:eth0"]
      vars: { narrows: { delay: 10ms } }
    - endpoints: ["b:eth1", "c:eth0"]
"#;

/// An event as containerlab prints it, in the file that the tests' own containerlab follows.
fn lab_event(engine: &Engine, action: &str, container: &str, lab: &str) {
    let line = format!(
        r#"{{"timestamp":"2026-01-02T03:04:05Z","type":"container","action":"{action}","actor_id":"{container}","actor_name":"{container}","actor_full_id":"{container}","attributes":{{"containerlab":"{lab}"}}}}"#
    );
    let path = engine.folder.file("events");
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

#[test]
#[ignore = "needs root, ip"]
fn links_of_a_lab_are_followed_through_restarts_of_nodes() {
    let mut engine = Engine::new();
    let file = engine.folder.write("pair.clab.yml", LAB);
    let program = engine.folder.write(
        "containerlab",
        &format!("#!/bin/sh\nexec tail -n +1 -s 0.05 -f '{}'\n", engine.folder.file("events").display()),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let labels = |node: &'static str| [("containerlab", "pair"), ("clab-node-name", node)];
    for node in ["a", "b"] {
        engine.run(&format!("clab-pair-{node}"), &labels(node));
    }
    engine.run("clab-other-a", &[("containerlab", "other"), ("clab-node-name", "a")]);
    lab_event(&engine, "running", "clab-pair-a", "pair");
    lab_event(&engine, "running", "clab-other-a", "other");
    let arguments = ["clab", "-t", file.to_str().unwrap(), "--containerlab", program.to_str().unwrap()];
    let mut command = engine.narrows(arguments);
    command.arg("--socket").arg(engine.socket());
    let mut watch = start(&mut command);
    watch.until_it_complains("clab-pair-a eth0: attached after");
    let took = comes_back(&engine, "clab-pair-a", "clab-pair-b");
    assert!(took >= SHAPED, "{took:?}");
    is_direct(&engine, "clab-other-a");

    // It is one network to `ls`, the page and `top`, with the link that is not shaped.
    let ls = finish(&mut engine.narrows(["ls", "--json"])).expect(0).json();
    let membership = &ls["runs"][0]["membership"];
    assert_eq!(*membership, serde_json::json!({ "group": "pair", "ends": ["a:eth0", "b:eth0"] }));
    let web = Web::start(&mut engine.narrows([]), &[]);
    let group = web.read("/api/group?group=pair");
    assert_eq!(group["nodes"], serde_json::json!(["a", "b", "c"]));
    let [shaped, plain] = &group["links"].as_array().unwrap()[..] else { panic!("{group}") };
    assert_eq!((&shaped["run"], &shaped["nodes"][1]), (&"clab-pair-a".into(), &"b".into()));
    assert_eq!(shaped["figures"]["directions"].as_array().unwrap().len(), 2);
    assert!(plain["run"].is_null() && plain["figures"].is_null() && plain["ends"][0] == "b:eth1", "{plain}");
    python("web_group.py", &[web.page()]);
    let steps = [
        ("[c]", ""),
        ("a:eth0 → b:eth0", "e"),
        ("narrows set --run clab-pair-a link.", "\u{1b}"),
        ("nothing was set", "q"),
    ];
    on_a_terminal(&engine.narrows([]), &["pair"], &steps);

    engine.end("clab-pair-a");
    lab_event(&engine, "die", "clab-pair-a", "pair");
    watch.until_it_complains("clab-pair-a eth0: detached");
    engine.run("clab-pair-a", &labels("a"));
    lab_event(&engine, "start", "clab-pair-a", "pair");
    eventually("the node that came back is shaped", || {
        engine.echo("clab-pair-a", "clab-pair-b").is_some_and(|took| took >= SHAPED)
    });
    let said = end(watch);
    assert!(!said.contains("clab-other"), "{said}");
    is_direct(&engine, "clab-pair-a");
}

#[test]
fn a_topology_file_is_checked_without_an_engine() {
    let folder = Scratch::new();
    let file = folder.write("pair.clab.yml", LAB);
    let file = file.to_str().unwrap();
    let said = finish(&mut narrows(["clab", "-t", file, "--check"])).expect(0).out;
    assert!(said.contains("# link a:eth0–b:eth0") && said.contains("delay = \"10ms\""), "{said}");
    let said = finish(&mut narrows(["clab", "-t", file, "--containerlab", "/nowhere/clab"])).expect(2).err;
    assert!(said.contains("command not found: `/nowhere/clab`") && said.contains("CONTAINERLAB"), "{said}");
    fs::write(file, LAB.replace("delay: 10ms", "delai: 10ms")).unwrap();
    let said = finish(narrows(["clab", "--check"]).current_dir(folder.path())).expect(2).err;
    for part in ["delai", "did you mean `delay`?", "pair.clab.yml:6:"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_doctor_says_what_a_lab_needs() {
    let folder = Scratch::new();
    let program = folder.write("clab", "");
    let said = |script: &str| {
        // Replaced, as a file that is open for writing cannot be run.
        fs::remove_file(&program).unwrap();
        folder.write("clab", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = narrows(["doctor", "--for", "clab", "--json"]);
        let nowhere = format!("unix://{}", folder.file("docker.sock").display());
        command.env("CONTAINERLAB", &program).env("DOCKER_HOST", nowhere);
        finish(&mut command).expect(1).json()["clab"].clone()
    };
    let found = said("case $1 in version) echo ' version: 0.99.1';; events) echo ' --initial-state ';; esac");
    assert_eq!(found["containerlab events"]["works"], true, "{found:#}");
    assert!(found["containerlab"]["finding"].as_str().unwrap().ends_with("clab, 0.99.1"), "{found:#}");
    assert!(found["engine"]["finding"].as_str().unwrap().starts_with("no: no container engine"), "{found:#}");
    let found = said("echo 'Usage: containerlab [command]'");
    assert!(found["containerlab events"]["finding"].as_str().unwrap().contains("newer"), "{found:#}");
    let mut command = narrows(["doctor", "--for", "clab"]);
    let said = finish(command.env("CONTAINERLAB", "/nowhere/clab")).expect(1).out;
    assert!(said.contains("/nowhere/clab") && said.contains("something is missing"), "{said}");
}

#[test]
#[ignore = "needs root, ip"]
fn a_dry_run_says_what_would_be_done() {
    let mut engine = Engine::new();
    engine.run("web", DELAY);
    engine.run("plain", &[]);
    let socket = format!("unix://{}", engine.socket().display());
    let said =
        finish(&mut engine.narrows(["docker", "watch", "--dry-run", "--socket", &socket])).expect(0).out;
    let process = engine.process("web").to_string();
    assert!(said.contains(&format!("narrows attach eth0 - --pid {process} --name web")), "{said}");
    assert!(said.contains("delay = \"10ms\"") && said.contains("plain: nothing to attach"), "{said}");
    is_direct(&engine, "web");
}

#[test]
fn a_compose_file_is_checked_without_an_engine() {
    let folder = Scratch::new();
    let file = folder.write("compose.yml", COMPOSE);
    let file = file.to_str().unwrap();
    let said = finish(&mut narrows(["compose", "-f", file, "--check"])).expect(0).out;
    assert!(said.contains("# service web") && said.contains("ip from any to table(db) out"), "{said}");
    fs::write(file, COMPOSE.replace("web -> db", "webb -> db")).unwrap();
    let said = finish(&mut narrows(["compose", "-f", file, "--check"])).expect(2).err;
    for part in ["no service `webb`", "did you mean `web`?", "compose.yml:6:"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = finish(narrows(["compose"]).current_dir(folder.path())).err;
    assert!(said.contains("no service `webb`"), "compose.yml is found: {said}");
}

#[test]
fn an_engine_that_is_not_there_is_told() {
    let folder = Scratch::new();
    let nowhere = folder.file("docker.sock");
    let nowhere = nowhere.to_str().unwrap();
    for (command, parts) in [
        (
            &["docker", "watch", "--socket", nowhere][..],
            &["no container engine listens at", nowhere, "podman.socket"][..],
        ),
        (
            &["docker", "watch", "--socket", "tcp://10.0.0.1:2375"],
            &["--socket is `tcp://10.0.0.1:2375`", "this host"],
        ),
        (&["docker", "watch", "--dry-run", "--socket", nowhere], &["no container engine listens"]),
        (&["compose", "-f", "/nowhere.yml"], &["/nowhere.yml", "no such file"]),
    ] {
        let said = finish(narrows(command.iter().copied()).env_remove("DOCKER_HOST")).expect(2).err;
        parts.iter().for_each(|part| assert!(said.contains(part), "{command:?}: {part}: {said}"));
    }
    let mut command = narrows(["docker", "watch"]);
    let said = finish(command.env("DOCKER_HOST", "ssh://far")).expect(2).err;
    assert!(said.contains("DOCKER_HOST is `ssh://far`"), "{said}");
    let mut command = narrows(["doctor", "--for", "docker"]);
    let said = finish(command.env("DOCKER_HOST", format!("unix://{nowhere}"))).expect(1).out;
    for part in
        ["CAP_NET_ADMIN", "TCX links", "engine", "no container engine listens", "something is missing"]
    {
        assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}: {said}");
    }
}

#[test]
#[ignore = "needs root, ip"]
fn a_watch_that_is_told_to_end_by_a_service_manager_ends_in_order() {
    let mut engine = Engine::new();
    engine.run("web", DELAY);
    let mut watch = engine.watch(&["docker", "watch"]);
    watch.until_it_complains("web eth0: attached after");
    kill("TERM", &watch.id().to_string());
    let ended = watch.wait().expect(143);
    assert!(ended.err.contains("web eth0: detached"), "{ended}");
    is_direct(&engine, "web");
}
