//! Address translation in the network: real programs behind translators, and the scenario's own traffic.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{NARROWS, Scratch, finish, narrows, quoted, scenarios, sound};

/// Two hosts behind a router that translates, and a router behind that.
const HOME: &str = r#"
seed = 3
HOSTS
[routers.home]
addresses = { lan = ["198.18.7.1/24"], access = ["198.18.3.1/24"] }
[routers.isp]
addresses = { access = ["198.18.3.2/24"], core = ["198.18.1.1/24"] }
[links.wifi]
between = ["phone", "home"]
delay = "1ms"
[links.lan]
between = ["laptop", "home"]
[links.access]
between = ["home", "isp"]
rules = ["100 nat 1 ip4 from any to any", "200 pipe 1 ip4 from any to any"]
one-pass = false
nats.1 = { address = "192.0.2.9", redirects = ["redirect_port tcp 198.18.7.2:80 8080"] }
pipes.1 = { rate = "50mbit", delay = "2ms", mtu = 1200 }
[links.core]
between = ["isp", "server"]
mtu = 1000
"#;

/// CMD runs on the first of them.
const HOSTS: [&str; 3] = [
    "[hosts.phone]",
    "[hosts.laptop]\naddresses = [\"198.18.7.2/24\"]",
    "[hosts.server]\naddresses = [\"198.18.1.2/24\"]",
];

fn home(scratch: &Scratch, hosts: [&str; 3]) -> String {
    let file = scratch.write("home.toml", &HOME.replace("HOSTS", &hosts.join("\n")));
    file.to_str().unwrap().to_owned()
}

/// Answers datagrams to port 5000 and connections to port 5001 with the sender's address and port.
const MIRROR: &str = "python3 -c '
import select, socket
tcp = socket.create_server((\"\", 5001))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind((\"\", 5000))
while True:
    for ready in select.select([tcp, udp], [], [])[0]:
        if ready is tcp:
            one, sender = ready.accept()
            one.sendall(\"{} {}\".format(*sender).encode())
            one.close()
        else:
            sender = ready.recvfrom(100)[1]
            ready.sendto(\"{} {}\".format(*sender).encode(), sender)'";

/// Asks for its outer ends, twice by one socket, and prints them; then for a port that nobody listens at.
const CLIENT: &str = "python3 -c '
import socket, time
for attempt in range(200):
    try:
        one = socket.create_connection((\"198.18.1.2\", 5001), timeout=20)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
print(\"tcp\", one.recv(100).decode())
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(20)
for attempt in range(2):
    udp.sendto(b\"who am I\", (\"198.18.1.2\", 5000))
    print(\"udp\", udp.recv(100).decode())
udp.connect((\"198.18.1.2\", 9))
udp.send(b\"nobody\")
try:
    udp.recv(100)
except ConnectionRefusedError:
    print(\"refused\")
'";

fn translated(report: &Value) -> u64 {
    report["rules"][0]["translated"]["packets"].as_u64().unwrap()
}

#[test]
#[ignore = "needs namespaces, ping, python3"]
fn programs_are_seen_at_the_outer_address_and_the_replay_agrees() {
    let scratch = Scratch::new();
    let (file, log) = (home(&scratch, HOSTS), scratch.file("run.log"));
    let log = log.to_str().unwrap();
    let show = format!("{} ipfw nat show log; {0} ipfw nat 1 show", quoted(NARROWS));
    let line = format!(
        "exec >&2
        ping -n -c 2 -i 0.05 -w 20 198.18.1.2 || exit 3
        # Through the translator, the second router says that no hops are left.
        ping -n -c 1 -t 2 -w 20 198.18.1.2
        # Both ways in pieces, which are cut on the far side of the translator.
        ping -n -c 3 -i 0.05 -w 20 -M dont -s 1100 198.18.1.2
        # Too long for the pipe behind the translator.
        ping -n -c 1 -w 20 -M do -s 1190 198.18.1.2
        {CLIENT}
        {show}"
    );
    let flags = ["run", &file, "--json", "-", "--record", log, "--on", "server", MIRROR];
    let ended = finish(&mut narrows(flags.into_iter().chain(["--", "sh", "-c", &line]))).expect(0);
    let report = ended.json();
    sound(&report);
    assert!(ended.err.contains("2 received"), "{ended}");
    assert!(ended.err.contains("From 198.18.3.2 icmp_seq=1 Time to live exceeded"), "{ended}");
    assert!(ended.err.contains("3 received"), "{ended}");
    assert!(ended.err.contains("icmp_seq=1 Frag needed and DF set (mtu = 1200)"), "{ended}");
    let ends = |word: &str| -> Vec<&str> {
        ended.err.lines().filter_map(|line| line.strip_prefix(word)).map(str::trim).collect()
    };
    for end in ends("tcp").iter().chain(&ends("udp")) {
        let (address, port) = end.split_once(' ').unwrap();
        assert_eq!(address, "192.0.2.9", "{ended}");
        assert!(port.parse::<u16>().unwrap() >= 32_768, "{ended}");
    }
    assert_eq!((ends("tcp").len(), ends("udp").len()), (1, 2), "{ended}");
    assert_eq!(ends("udp")[0], ends("udp")[1], "one flow: {ended}");
    assert!(ended.err.contains("\nrefused\n"), "an error about a closed port comes back: {ended}");
    assert!(ended.err.contains("nat 1: icmp=4, udp=2, tcp="), "{ended}");
    let config = "ipfw nat 1 config ip 192.0.2.9 redirect_port tcp 198.18.7.2:80 8080";
    assert!(ended.err.contains(config), "{ended}");
    assert!(translated(&report) > 15, "{report:#}");
    let replayed = finish(&mut narrows(["sim", "--replay", log, "--json", "-"])).expect(0);
    assert_eq!(translated(&replayed.json()), translated(&report));
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

/// A connection to the outer address leads to the inner host, and a changed translator leads it elsewhere.
#[test]
#[ignore = "needs namespaces, curl, python3"]
fn a_port_is_redirected_and_the_translator_changes_while_it_runs() {
    let scratch = Scratch::new();
    let [phone, laptop, server] = HOSTS;
    let file = home(&scratch, [server, laptop, phone]);
    let serve = format!("cd {} && exec python3 -m http.server 80", quoted(scratch.path().to_str().unwrap()));
    let narrows_itself = quoted(NARROWS);
    let line = format!(
        "for attempt in $(seq 100); do curl -sf --max-time 5 http://192.0.2.9:8080/ >/dev/null && break; sleep 0.1; done
        curl -sf --max-time 5 http://192.0.2.9:8080/ || exit 3
        {narrows_itself} ipfw nat 1 config ip 192.0.2.9 deny_in redirect_port tcp 198.18.7.2:80 8081
        curl -s --max-time 1 http://192.0.2.9:8080/; test $? = 28 || exit 4
        curl -sf --max-time 5 http://192.0.2.9:8081/ || exit 5
        {narrows_itself} ipfw nat 1 delete
        curl -s --max-time 1 http://192.0.2.9:8081/; test $? = 28 || exit 6"
    );
    let flags = ["run", &file, "--quiet", "--on", "laptop", &serve, "--", "sh", "-c", &line];
    let ended = finish(&mut narrows(flags)).expect(0);
    assert_eq!(ended.out.matches("<h1>Directory listing for /").count(), 2, "{ended}");
}

/// In a script for two hosts, the client has the outer address, and the server knows the way there.
#[test]
#[ignore = "needs namespaces, ping, python3"]
fn a_script_of_ipfw_translates_between_two_hosts() {
    let scratch = Scratch::new();
    let script = "nat 1 config ip 192.0.2.9 same_ports deny_in\nadd 100 nat 1 ip4 from any to any via em0\n";
    let file = scratch.write("nat.conf", script);
    let ask = CLIENT
        .replace("import socket", "import os, socket")
        .replace("\"198.18.1.2\"", "os.environ[\"NARROWS_SERVER\"]");
    let line = format!("ping -n -c 1 -w 20 $NARROWS_SERVER >&2 || exit 3; {ask}");
    let flags = ["run", "--ipfw", file.to_str().unwrap(), "--quiet", "--on", "server", MIRROR];
    let ended = finish(&mut narrows(flags.into_iter().chain(["--", "sh", "-c", &line]))).expect(0);
    assert_eq!(ended.out.matches("192.0.2.9 ").count(), 3, "{ended}");
    assert!(ended.out.contains("\nrefused\n"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, python3"]
fn the_example_shows_who_can_talk_to_whom() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nat/punch");
    let mut command = Command::new(script.canonicalize().unwrap());
    command.env("NARROWS", NARROWS).env_remove("NARROWS_CONTROL").stdin(Stdio::null());
    let ended = finish(&mut command).expect(0);
    let verdicts: Vec<&str> =
        ended.out.lines().filter(|line| line.contains("connected")).map(str::trim).collect();
    assert_eq!(verdicts, ["connected", "connected", "not connected"], "{ended}");
}

/// Requests over TCP, a call and an upload: all answers find their way back through the translator.
#[test]
fn generated_traffic_is_translated_both_ways() {
    let file = scenarios().join("nat.toml");
    let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
    sound(&report);
    let rules = &report["rules"][0];
    let packets = |key: &str| rules[key]["packets"].as_u64().unwrap();
    assert_eq!(packets("translated"), packets("arrived_out") + packets("arrived_in"), "{rules:#}");
    assert_eq!(packets("denied"), 0, "{rules:#}");
    let apps = report["applications"].as_array().unwrap();
    for app in apps {
        assert!(app["succeeded"].as_u64().unwrap() > 0, "{app:#}");
    }
    assert_eq!(apps.len(), 2);
}
