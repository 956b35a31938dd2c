//! Proxies with real sockets: what clients and upstreams see. Times are only compared with what must have passed at
//! least, so no test depends on the speed of the machine.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Api, clock};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

impl Api {
    fn ask(&self, request: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.ask_with(request, &[], &body);
        (answer.status, serde_json::from_str(&answer.body).unwrap_or(Value::Null))
    }

    /// Creates a proxy and returns where it listens.
    fn proxy(&self, name: &str, listen: &str, upstream: SocketAddr) -> SocketAddr {
        let given = json!({ "name": name, "listen": listen, "upstream": upstream.to_string() });
        let (status, proxy) = self.ask("POST /proxies", given);
        assert_eq!(status, 201, "{proxy}");
        proxy["listen"].as_str().unwrap().trim_start_matches("udp://").parse().unwrap()
    }

    fn toxic(&self, proxy: &str, toxic: Value) {
        let (status, answer) = self.ask(&format!("POST /proxies/{proxy}/toxics"), toxic);
        assert_eq!(status, 200, "{answer}");
    }
}

/// An upstream whose connections the test gets.
struct Upstream(TcpListener);

impl Upstream {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    fn accept(&self) -> TcpStream {
        patient(self.0.accept().unwrap().0)
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(address).unwrap())
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn read(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    stream.read_exact(&mut data).unwrap();
    data
}

#[test]
fn bytes_pass_both_ways_and_one_end_closes_one_way_only() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let mut client = connect(api.proxy("p", "127.0.0.1:0", upstream.address()));
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut server = upstream.accept();
    let mut question = String::new();
    server.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    // Toxiproxy closes both ways by now.
    server.write_all(&[7; 300_000]).unwrap();
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [7; 300_000]);
}

#[test]
fn toxics_come_change_and_go_while_a_connection_is_open() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let mut client = connect(api.proxy("p", "127.0.0.1:0", upstream.address()));
    let mut server = upstream.accept();
    let mut round = |expected: Duration| {
        let start = clock();
        server.write_all(b"x").unwrap();
        assert_eq!(read(&mut client, 1), b"x");
        assert!(clock() - start >= expected, "{:?}", clock() - start);
    };
    round(Duration::ZERO);
    api.toxic("p", json!({ "type": "latency", "attributes": { "latency": 120 } }));
    round(Duration::from_millis(120));
    let of = "/proxies/p/toxics/latency_downstream";
    assert_eq!(api.ask(&format!("PATCH {of}"), json!({ "attributes": { "latency": 250 } })).0, 200);
    round(Duration::from_millis(250));
    // A delay of an hour ends with the toxic.
    assert_eq!(api.ask(&format!("POST {of}"), json!({ "attributes": { "latency": 3_600_000 } })).0, 200);
    server.write_all(b"held").unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(api.ask(&format!("DELETE {of}"), Value::Null).0, 204);
    assert_eq!(read(&mut client, 4), b"held");
    api.toxic("p", json!({ "type": "latency", "attributes": { "latency": 3_600_000 } }));
    server.write_all(b"reset").unwrap();
    assert_eq!(api.ask("POST /reset", Value::Null).0, 204);
    assert_eq!(read(&mut client, 5), b"reset");
}

#[test]
fn timeout_limit_and_reset_end_connections_as_they_say() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let address = api.proxy("p", "127.0.0.1:0", upstream.address());
    let ends = |toxic: Value, expected: &[u8], error: Option<ErrorKind>| {
        api.toxic("p", toxic.clone());
        let mut client = connect(address);
        let mut server = upstream.accept();
        server.write_all(b"0123456789").unwrap();
        let mut data = Vec::new();
        assert_eq!(client.read_to_end(&mut data).err().map(|error| error.kind()), error, "{toxic}");
        assert_eq!(data, expected, "{toxic}");
        assert_eq!(api.ask("POST /reset", Value::Null).0, 204);
    };
    ends(json!({ "type": "timeout", "attributes": { "timeout": 50 } }), b"", None);
    ends(json!({ "type": "limit_data", "attributes": { "bytes": 4 } }), b"0123", None);
    ends(json!({ "type": "reset_peer" }), b"", Some(ErrorKind::ConnectionReset));
}

#[test]
fn a_timeout_that_is_removed_closes_the_connection() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let mut client = connect(api.proxy("p", "127.0.0.1:0", upstream.address()));
    let mut server = upstream.accept();
    api.toxic("p", json!({ "name": "t", "type": "timeout", "stream": "upstream" }));
    client.write_all(b"lost").unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(api.ask("DELETE /proxies/p/toxics/t", Value::Null).0, 204);
    assert_eq!(server.read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
}

#[test]
fn a_disabled_proxy_refuses_and_its_connections_end() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let address = api.proxy("p", "127.0.0.1:0", upstream.address());
    let mut client = connect(address);
    let server = upstream.accept();
    assert_eq!(api.ask("PATCH /proxies/p", json!({ "enabled": false })).0, 200);
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    drop(server);
    // The same port is used again.
    assert_eq!(api.ask("PATCH /proxies/p", json!({ "enabled": true })).0, 200);
    let mut client = connect(address);
    client.write_all(b"again").unwrap();
    assert_eq!(read(&mut upstream.accept(), 5), b"again");
    assert_eq!(api.ask("DELETE /proxies/p", Value::Null).0, 204);
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn an_upstream_that_is_down_closes_the_client() {
    let api = Api::new();
    let down = Upstream::new().address();
    let mut client = connect(api.proxy("p", "127.0.0.1:0", down));
    assert_eq!(client.read(&mut [0; 9]).unwrap_or(0), 0);
}

#[test]
fn a_reader_that_stops_stops_the_sender() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let mut client = connect(api.proxy("p", "127.0.0.1:0", upstream.address()));
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut server = upstream.accept();
    let (chunk, mut sent) = (vec![5; 1 << 20], 0);
    while let Ok(written) = client.write(&chunk) {
        sent += written;
        assert!(sent < 256 << 20, "the proxy takes everything and keeps it");
    }
    drop(client);
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), sent, "nothing is lost");
}

#[test]
fn many_connections_at_once() {
    let (api, upstream) = (Api::new(), Upstream::new());
    let address = api.proxy("p", "127.0.0.1:0", upstream.address());
    api.toxic("p", json!({ "type": "latency", "attributes": { "latency": 100 } }));
    let echo = thread::spawn(move || {
        let mut servers: Vec<TcpStream> = (0..300).map(|_| upstream.accept()).collect();
        for server in &mut servers {
            let data = read(server, 8);
            server.write_all(&data).unwrap();
        }
        servers
    });
    let mut clients: Vec<TcpStream> = (0..300).map(|_| connect(address)).collect();
    for (number, client) in (0u64..).zip(&mut clients) {
        client.write_all(&number.to_be_bytes()).unwrap();
    }
    for (number, client) in (0u64..).zip(&mut clients) {
        assert_eq!(read(client, 8), number.to_be_bytes());
    }
    drop(echo.join().unwrap());
}

/// A UDP upstream that echoes, and a client of a proxy to it.
fn udp(api: &Api) -> UdpSocket {
    let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 65_535];
        while let Ok((length, from)) = upstream.recv_from(&mut buffer) {
            upstream.send_to(&buffer[..length], from).unwrap();
        }
    });
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(api.proxy("u", "udp://127.0.0.1:0", address)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

fn answer(client: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 65_535];
    let length = client.recv(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

#[test]
fn datagrams_cross_a_link_of_the_engine() {
    let api = Api::new();
    let client = udp(&api);
    client.send(b"plain").unwrap();
    assert_eq!(answer(&client), b"plain");
    client.send(&[9; 60_000]).unwrap();
    assert_eq!(answer(&client), [9; 60_000]);
    api.toxic("u", json!({ "type": "link", "stream": "upstream", "attributes": { "delay": "100ms" } }));
    api.toxic("u", json!({ "type": "link", "attributes": { "delay": "50ms", "duplicate": "100%" } }));
    let start = clock();
    client.send(b"late").unwrap();
    assert_eq!((answer(&client), answer(&client)), (b"late".to_vec(), b"late".to_vec()));
    assert!(clock() - start >= Duration::from_millis(150));
    let of = "PATCH /proxies/u/toxics/link_downstream";
    assert_eq!(api.ask(of, json!({ "attributes": { "loss": "100%", "delay": "0ms" } })).0, 200);
    client.send(b"lost").unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(api.ask("POST /reset", Value::Null).0, 204);
    client.send(b"there").unwrap();
    assert_eq!(answer(&client), b"there");
}

#[test]
fn a_client_address_is_a_session_and_gets_its_own_answers() {
    let api = Api::new();
    let first = udp(&api);
    let second = UdpSocket::bind("127.0.0.1:0").unwrap();
    second.connect(first.peer_addr().unwrap()).unwrap();
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    for round in 0..20u8 {
        first.send(&[1, round]).unwrap();
        second.send(&[2, round]).unwrap();
        assert_eq!((answer(&first), answer(&second)), (vec![1, round], vec![2, round]));
    }
}

#[test]
fn toxics_of_the_wrong_network_are_refused() {
    let api = Api::new();
    let upstream = Upstream::new().address();
    api.proxy("t", "127.0.0.1:0", upstream);
    api.proxy("u", "udp://127.0.0.1:0", upstream);
    for (request, body, words) in [
        ("POST /proxies/t/toxics", json!({ "type": "link" }), &["link is for", "udp://", "latency"][..]),
        ("POST /proxies/u/toxics", json!({ "type": "reset_peer" }), &["reset_peer is for", "TCP", "link"]),
        ("PATCH /proxies/t", json!({ "listen": "udp://127.0.0.1:0" }), &["udp://127.0.0.1:0", "delete it"]),
        ("PATCH /proxies/u", json!({ "listen": "tcp://127.0.0.1:0" }), &["tcp://127.0.0.1:0", "HOST:PORT"]),
        (
            "POST /proxies",
            json!({ "name": "x", "upstream": "udp://127.0.0.1:9" }),
            &["listen", "starts with udp://"],
        ),
        (
            "POST /proxies/t/toxics",
            json!({ "type": "latency", "attributes": { "latency": -5 } }),
            &["attributes.latency", "-5", "from 0"],
        ),
    ] {
        let (status, answer) = api.ask(request, body);
        assert_eq!((status, &answer["status"]), (400, &json!(400)), "{answer}");
        let text = answer["error"].as_str().unwrap();
        words.iter().for_each(|word| assert!(text.contains(word), "does not say {word}: {text}"));
    }
}

#[test]
fn browsers_are_refused_however_they_call_themselves() {
    let api = Api::new();
    for header in ["User-Agent: Mozilla/5.0", "Sec-Fetch-Site: same-origin"] {
        assert_eq!(api.ask_with("GET /proxies", &[header.into()], "").status, 403, "{header}");
    }
}
