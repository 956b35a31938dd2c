//! The CNI plugin, called as container runtimes do.
//!
//! ```text
//! pod: eth0 ── far :node
//! ```

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use narrows_io::namespace::Namespace;
use narrows_io::process::spawn;
use serde_json::{Map, Value, json};

use crate::common::{NARROWS, Scratch, eventually, finish, kill, narrows, python, quoted};
use crate::engine::{inside, path, round_trip, shell};

const POD: &str = "10.78.0.1";
const NODE: &str = "10.78.0.2";
const POD_EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kubernetes/pod.yaml");

/// A node with a pod, and a runtime with a chain of plugins.
struct Node {
    pod: Namespace,
    node: Namespace,
    folder: Scratch,
    /// The configuration of the plugin.
    config: Value,
}

impl Node {
    fn new(keys: Value) -> Self {
        let [pod, node] = [(); 2].map(|()| Namespace::create().unwrap());
        // `ip link set netns` wants a process.
        let mut holder = Command::new("sleep");
        holder.arg("60").stdin(Stdio::null());
        let holder = spawn(holder, &node).unwrap();
        shell(&pod, &format!("ip link add eth0 type veth peer name far netns {}", holder.id()));
        shell(&pod, &format!("ip addr add {POD}/24 dev eth0 && ip link set eth0 up && ip link set lo up"));
        shell(&node, &format!("ip addr add {NODE}/24 dev far && ip link set far up"));
        let folder = Scratch::new();
        symlink(NARROWS, folder.file("narrows-cni")).unwrap();
        let mut config = json!({
            "cniVersion": "1.1.0", "name": "net", "type": "narrows-cni",
            "prevResult": { "cniVersion": "1.1.0", "ips": [{ "address": format!("{POD}/24") }] },
        });
        config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        Self { pod, node, folder, config }
    }

    /// Calls the plugin for the pod; its answer, or its error.
    fn call(&self, verb: &str) -> Result<Value, Value> {
        self.call_with(verb, &self.config)
    }

    fn call_with(&self, verb: &str, config: &Value) -> Result<Value, Value> {
        let mut command = Command::new(self.folder.file("narrows-cni"));
        command
            .env("NARROWS_CONTROL", self.folder.file("none.sock"))
            .env("XDG_STATE_HOME", self.folder.path())
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", "c0ffee0123456789")
            .env("CNI_IFNAME", "eth0")
            .env("CNI_NETNS", path(&self.pod))
            .env("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0")
            .env("CNI_PATH", self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(config.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let value = if text.trim().is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        if output.status.success() { Ok(value) } else { Err(value) }
    }

    fn narrows<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = narrows(arguments);
        command.env("NARROWS_CONTROL", self.folder.file("none.sock"));
        command
    }

    /// The runs: name, number, owner.
    fn runs(&self) -> Vec<(String, u64, String)> {
        let listed = finish(&mut self.narrows(["ls", "--json"])).expect(0).json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let runs = listed["runs"].as_array().unwrap().iter();
        runs.map(|run| (text(&run["name"]), run["run"].as_u64().unwrap(), text(&run["owner"]))).collect()
    }

    /// How long a datagram from the pod and its echo take; `None` if none comes back.
    fn round_trip(&self) -> Option<Duration> {
        round_trip((&self.pod, POD), (&self.node, NODE))
    }

    /// Waits until a round trip takes at least as long as through the network.
    #[track_caller]
    fn is_shaped(&self) {
        let mut took = None;
        eventually("a datagram comes back", || {
            took = self.round_trip();
            took.is_some()
        });
        assert!(took.unwrap() >= Duration::from_millis(20), "{took:?}");
    }

    fn is_clean(&self) {
        assert_eq!(self.runs(), []);
        let mut names = self.folder.names();
        // Reports are kept.
        names.retain(|name| name != "narrows" && name != "narrows-cni");
        assert_eq!(names, Vec::<String>::new());
        eventually("the pod's traffic takes the direct path", || {
            self.round_trip().is_some_and(|took| took < Duration::from_millis(20))
        });
    }
}

#[test]
#[ignore = "needs root, bpf, ip"]
fn a_pod_gets_the_network_of_its_annotations_and_loses_it_again() {
    let pod = std::fs::read_to_string(POD_EXAMPLE).unwrap();
    let pairs = pod.lines().filter_map(|line| line.trim().split_once(": "));
    let ours = pairs.filter(|(key, _)| key.starts_with("narrows."));
    let mut annotations: Map<_, _> = ours.map(|(key, value)| (key.to_owned(), json!(value))).collect();
    assert_eq!(annotations["narrows.delay"], "25ms");
    annotations.insert("x/y".into(), json!("z"));
    let node = Node::new(json!({
        "link": { "delay": "1ms" },
        "runtimeConfig": { "io.kubernetes.cri.pod-annotations": annotations },
    }));
    assert_eq!(node.call("STATUS"), Ok(Value::Null));
    assert_eq!(node.call("ADD"), Ok(node.config["prevResult"].clone()));
    node.is_shaped();
    let runs = node.runs();
    assert_eq!((runs.len(), &*runs[0].0, &*runs[0].2), (1, "web-0", "cni/net/c0ffee0123456789/eth0"));
    assert_eq!(node.call("CHECK"), Ok(Value::Null));
    let twice = node.call("ADD").unwrap_err();
    assert!(
        twice["msg"].as_str().unwrap().contains("pod default/web-0 has a network at eth0 already"),
        "{twice}"
    );
    finish(&mut node.narrows(["set", "--run", "web-0", "link.delay=20ms"])).expect(0);

    assert_eq!(node.call("DEL"), Ok(Value::Null));
    node.is_clean();
    let gone = node.call("CHECK").unwrap_err();
    assert_eq!(gone["code"], 101);
    // As often as the runtime likes, and whatever the configuration has become.
    let mut wrong = node.config.clone();
    wrong["link"] = json!({ "dealy": "1ms" });
    assert_eq!(node.call_with("DEL", &wrong), Ok(Value::Null));
}

#[test]
#[ignore = "needs root, bpf, ip"]
fn a_killed_network_blocks_its_pod_until_the_pod_is_removed() {
    let node = Node::new(json!({ "link": { "delay": "10ms" }, "fail": "closed" }));
    node.call("ADD").unwrap();
    node.is_shaped();
    kill("KILL", &node.runs()[0].1.to_string());
    eventually("CHECK notices", || {
        node.call("CHECK").is_err_and(|error| error["msg"].as_str().unwrap().contains("was killed"))
    });
    assert_eq!(node.round_trip(), None);
    assert_eq!(node.call("DEL"), Ok(Value::Null));
    node.is_clean();
}

#[test]
#[ignore = "needs root, bpf, ip"]
fn networks_of_attachments_that_are_gone_are_collected() {
    let node = Node::new(json!({ "link": { "delay": "10ms" } }));
    node.call("ADD").unwrap();
    let valid = |all: Value| {
        let mut config = node.config.clone();
        config["cni.dev/valid-attachments"] = all;
        config.as_object_mut().unwrap().remove("prevResult");
        config
    };
    let listed = valid(json!([{ "containerID": "c0ffee0123456789", "ifname": "eth0" }]));
    assert_eq!(node.call_with("GC", &listed), Ok(Value::Null));
    assert_eq!(node.runs().len(), 1);
    let mut elsewhere = valid(json!([]));
    elsewhere["name"] = json!("other");
    assert_eq!(node.call_with("GC", &elsewhere), Ok(Value::Null));
    assert_eq!(node.runs().len(), 1);
    assert_eq!(node.call_with("GC", &valid(json!([]))), Ok(Value::Null));
    node.is_clean();
}

#[test]
#[ignore = "needs root, bpf, ip"]
fn a_pod_without_keys_has_no_network_and_errors_are_the_runtimes() {
    let node = Node::new(json!({}));
    assert_eq!(node.call("ADD"), Ok(node.config["prevResult"].clone()));
    assert_eq!(node.runs(), []);
    assert_eq!(node.call("CHECK"), Ok(Value::Null));
    assert_eq!(node.call("DEL"), Ok(Value::Null));
    for (key, value, code, part) in [
        (
            "runtimeConfig",
            json!({ "io.kubernetes.cri.pod-annotations": { "narrows.dealy": "1ms" } }),
            7,
            "`dealy`",
        ),
        ("link", json!({ "rate": "fast" }), 7, "fast"),
        ("cniVersion", json!("0.2.0"), 1, "supported: 0.3.0"),
        ("prevResult", Value::Null, 7, "no prevResult"),
    ] {
        let mut config = node.config.clone();
        config[key] = value;
        let error = node.call_with("ADD", &config).unwrap_err();
        assert!(error["code"] == code && error["msg"].as_str().unwrap().contains(part), "{error}");
        assert_eq!(node.runs(), []);
    }
    // What narrows attach says arrives: here, that the interface is missing.
    let mut config = node.config.clone();
    config["link"] = json!({ "delay": "1ms" });
    shell(&node.pod, "ip link set eth0 down && ip link set eth0 name eth9");
    let error = node.call_with("ADD", &config).unwrap_err();
    assert!(error["code"] == 100 && error["msg"].as_str().unwrap().contains("eth9"), "{error}");
    let versions = node.call("VERSION").unwrap();
    assert_eq!(versions["supportedVersions"].as_array().unwrap().last().unwrap(), "1.1.0");
}

/// With the plugins of the CNI project before it, as in a cluster.
#[test]
#[ignore = "needs root, bpf, ip, CNI plugins"]
fn the_chain_of_the_reference_plugins_works() {
    let plugins = ["/usr/lib/cni", "/opt/cni/bin"].map(PathBuf::from);
    let plugins = plugins.iter().find(|folder| folder.join("bridge").exists()).unwrap();
    let node = Node::new(json!({ "link": { "delay": "10ms" } }));
    let target = Namespace::create().unwrap();
    let name = format!("nw{}", std::process::id() % 100_000);
    let bridge = json!({
        "cniVersion": "1.0.0", "name": "net", "type": "bridge", "bridge": name, "isGateway": true,
        "ipam": { "type": "host-local", "subnet": "10.79.0.0/24", "dataDir": node.folder.file("ipam") },
    });
    let environment = format!(
        "CNI_CONTAINERID=chained CNI_NETNS={} CNI_IFNAME=eth0 CNI_PATH={} NARROWS_CONTROL={} XDG_STATE_HOME={}",
        path(&target),
        plugins.display(),
        node.folder.file("none.sock").display(),
        node.folder.path().display(),
    );
    // The node's namespace is where the bridge is.
    let call = |program: PathBuf, verb: &str, config: &Value| {
        let line = format!(
            "ip link set lo up; printf %s {} | {environment} CNI_COMMAND={verb} {}",
            quoted(&config.to_string()),
            program.display()
        );
        serde_json::from_str::<Value>(&inside(&node.node, &line)).unwrap_or_default()
    };
    let result = call(plugins.join("bridge"), "ADD", &bridge);
    let mut ours = node.config.clone();
    ours["cniVersion"] = json!("1.0.0");
    ours["prevResult"] = result.clone();
    assert_eq!(call(node.folder.file("narrows-cni"), "ADD", &ours), result);
    let address = result["ips"][0]["address"].as_str().unwrap().split('/').next().unwrap().to_owned();
    let mut took = None;
    eventually("a datagram comes back", || {
        took = round_trip((&target, &address), (&node.node, "10.79.0.1"));
        took.is_some()
    });
    assert!(took.unwrap() >= Duration::from_millis(20), "{took:?}");
    call(node.folder.file("narrows-cni"), "DEL", &ours);
    call(plugins.join("bridge"), "DEL", &bridge);
    assert_eq!(node.runs(), []);
}

#[test]
fn install_and_uninstall_change_the_chain_alone() {
    let folder = Scratch::new();
    for name in ["bin", "net.d"] {
        std::fs::create_dir(folder.file(name)).unwrap();
    }
    let chain = "{\n  \"cniVersion\": \"1.0.0\", \"name\": \"n\",\n  \"plugins\": [\n    { \"type\": \"bridge\" }\n  ]\n}\n";
    let file = folder.write("net.d/10-n.conflist", chain);
    folder.write("net.d/20-other.conflist", chain);
    let cni = |words: &[&str]| {
        let (bin, conf) = (folder.file("bin"), folder.file("net.d"));
        let places = ["--bin-dir", bin.to_str().unwrap(), "--conf-dir", conf.to_str().unwrap()];
        finish(&mut narrows(["cni"].into_iter().chain(words.iter().copied()).chain(places)))
    };
    let said = cni(&["install", "--link", "delay=5ms"]).expect(0).out.clone();
    assert!(said.contains("added narrows-cni to the network n in"), "{said}");
    let with = std::fs::read_to_string(&file).unwrap();
    let checked = finish(&mut narrows(["cni", "check", file.to_str().unwrap()])).expect(0);
    assert!(checked.out.contains("delay = \"5ms\""), "{}", checked.out);
    // A second time, nothing is changed.
    let said = cni(&["install", "--link", "delay=5ms"]).expect(0).out.clone();
    assert!(!said.contains("added"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), with);
    let wrong = cni(&["install", "--link", "dealy=5ms"]).expect(2);
    assert!(wrong.err.contains("did you mean `delay`?"), "{}", wrong.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), with);
    cni(&["uninstall", "--program"]).expect(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), chain);
    assert_eq!(folder.names(), ["bin", "net.d"]);
    assert_eq!(std::fs::read_dir(folder.file("bin")).unwrap().count(), 0);
    let nothing = cni(&["install", "--file", "30-none.conflist"]).expect(2);
    assert!(nothing.err.contains("30-none.conflist"), "{}", nothing.err);
}

#[test]
#[ignore = "needs kubernetes_validate"]
fn the_manifests_are_valid_and_name_what_exists() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes/narrows-cni.yaml");
    assert_eq!(python("kubernetes_schema.py", &[file, POD_EXAMPLE]).as_deref(), Some("DaemonSet\nPod\n"));
    let text = std::fs::read_to_string(file).unwrap();
    let arguments = text.lines().filter_map(|line| line.trim().strip_prefix("args: [")?.strip_suffix(']'));
    let commands: Vec<Vec<String>> = arguments
        .map(|line| line.split(", ").map(|word| word.trim_matches('"').to_owned()).collect())
        .collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        // The first flag that is unknown is named.
        let words = command.iter().map(String::as_str).chain(["--no-such-flag"]);
        let ended = finish(&mut narrows(words)).expect(2);
        assert!(
            ended.err.contains("--no-such-flag") && ended.err.matches("error:").count() == 1,
            "{}",
            ended.err
        );
    }
}
