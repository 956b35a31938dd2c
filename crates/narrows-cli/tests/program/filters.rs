//! Filters at the ingress of a link that edit and gate packets of real programs.

use crate::common::{Scratch, finish, narrows, sound};

/// Ports are translated both ways, replies to pings get a hop limit, and datagrams to the port 5001 go to a station that
/// does not exist. From MAC addresses that no host has, everything is dropped.
const SCENARIO: &str = r#"
seed = 5
[hosts.client]
addresses = ["198.18.1.1/24", "2001:db8:1::1/64"]
[hosts.server]
addresses = ["198.18.1.2/24", "2001:db8:1::2/64"]
[links.path]
between = ["client", "server"]
delay = "2ms"
up.ingress = [
    { match = { link-source = "02:99:99:99:99:99" }, action = "drop" },
    { match = { protocol = "tcp", destination-port = 80 }, action = "edit", set = { destination-port = 8080 } },
    { match = { destination-port = 5001 }, action = "edit", set = { link-destination = "02:99:99:99:99:99" } },
]
down.ingress = [
    { match = { protocol = "tcp", source-port = 8080 }, action = "edit", set = { source-port = 80 } },
    { match = { protocol = ["icmp", "icmpv6"], hop-limit = "60-70" }, action = "edit", set = { hop-limit = 9 } },
]
"#;

/// Echoes a line of each connection at port 8080, and each datagram at the ports 5000 and 5001.
const SERVER: &str = "python3 -c '
import select, socket
tcp = socket.create_server((\"\", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
udp = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for port, one in enumerate(udp, 5000): one.bind((\"\", port))
while True:
    for ready in select.select([tcp, *udp], [], [])[0]:
        if ready is tcp:
            one = ready.accept()[0]
            one.sendall(one.recv(100).upper())
            one.close()
        else:
            data, sender = ready.recvfrom(100)
            ready.sendto(data, sender)'";

const CLIENT: &str = "python3 -c '
import socket, time
for address in [\"198.18.1.2\", \"2001:db8:1::2\"]:
    for attempt in range(200):
        try:
            one = socket.create_connection((address, 80), timeout=20)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    one.sendall(b\"hello\")
    print(one.getpeername()[1], one.recv(100))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(20)
udp.sendto(b\"lost\", (\"198.18.1.2\", 5001))
udp.sendto(b\"kept\", (\"198.18.1.2\", 5000))
print(udp.recv(100))'";

#[test]
#[ignore = "needs namespaces, ping, python3"]
fn packets_of_programs_are_edited_and_the_replay_agrees() {
    let scratch = Scratch::new();
    let (file, log) = (scratch.write("edits.toml", SCENARIO), scratch.file("run.log"));
    let log = log.to_str().unwrap();
    let line = format!(
        "exec >&2
        ping -n -c 1 -w 20 198.18.1.2 && ping -n -c 1 -w 20 2001:db8:1::2 || exit 3
        {CLIENT}"
    );
    let flags = ["--json", "-", "--record", log, "--on", "server", SERVER];
    let arguments = ["run", file.to_str().unwrap()].into_iter().chain(flags).chain(["--", "sh", "-c", &line]);
    let ended = finish(&mut narrows(arguments)).expect(0);
    sound(&ended.json());
    assert_eq!(ended.err.matches("ttl=9 ").count() + ended.err.matches("hlim=9 ").count(), 2, "{ended}");
    assert_eq!(ended.err.matches("80 b'HELLO'").count(), 2, "over IPv4 and IPv6: {ended}");
    assert!(ended.err.contains("b'kept'") && !ended.err.contains("b'lost'"), "{ended}");
    let replayed = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(replayed.out.contains("all identical, to the nanosecond"), "{replayed}");
}

/// A gate that is closed but for the first of ten seconds of virtual time.
#[test]
fn a_gate_closes() {
    let scratch = Scratch::new();
    let scenario = r#"
        duration = "20s"
        [hosts.client]
        [hosts.server]
        [links.path]
        between = ["client", "server"]
        up.ingress = [{ action = "gate", schedule = [{ open = "1s" }, { closed = "9s" }] }]
        [[traffic]]
        from = "client"
        to = "server"
        constant = "8kbit"
        length = "100 bytes"
        sim-only = true
    "#;
    let file = scratch.write("gate.toml", scenario);
    let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
    let totals = &report["conservation"];
    // Ten packets a second, of which those of the seconds 0 and 10 pass.
    assert_eq!(
        (totals["in_packets"].as_u64(), totals["dropped_packets"].as_u64()),
        (Some(200), Some(180)),
        "{totals}"
    );
}
