//! `narrows toxi`: the program around the server, and a client library of Toxiproxy.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::common::{Finished, Scratch, Started, finish, narrows, start};

/// A server that goes on until this is dropped, and the address of its API.
struct Toxi {
    started: Option<Started>,
    address: String,
}

impl Toxi {
    fn new(further: &[&str]) -> Self {
        let mut started = start(narrows(["toxi", "--port", "0"]).args(further));
        let said = started.until_it_says("seed:");
        let address = said.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        Self { started: Some(started), address }
    }

    fn signal(&self, name: &str) {
        self.started.iter().for_each(|started| started.signal(name));
    }

    fn ask(&self, request: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        let head =
            format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}");
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Toxi {
    fn drop(&mut self) {
        self.signal("KILL");
    }
}

/// Where a proxy of this name listens.
fn listen(answer: &str, proxy: &str) -> String {
    let of = answer.split(&format!("\"{proxy}\":")).nth(1).unwrap();
    of.split("\"listen\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[test]
fn a_file_of_proxies_is_served_and_counted() {
    let scratch = Scratch::new();
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let file = scratch.write(
        "proxies.json",
        &format!(
            r#"[{{ "name": "one", "listen": "127.0.0.1:0", "upstream": "{address}" }},
                {{ "name": "two", "listen": "udp://127.0.0.1:0", "upstream": "{address}", "enabled": false }}]"#
        ),
    );
    let toxi = Toxi::new(&["--config", file.to_str().unwrap(), "--proxy-metrics", "--seed", "7"]);
    let said = toxi.started.as_ref().unwrap().out();
    assert!(
        said.contains("proxies:  2") && said.contains("/metrics") && said.contains("seed:     7"),
        "{said}"
    );
    let index = toxi.ask("GET /proxies", "");
    let mut client = TcpStream::connect(listen(&index, "one")).unwrap();
    client.write_all(b"12345").unwrap();
    let mut server = upstream.accept().unwrap().0;
    server.read_exact(&mut [0; 5]).unwrap();
    let metrics = toxi.ask("GET /metrics", "");
    let counted = format!("direction=\"upstream\",listener=\"{}\",proxy=\"one\"", listen(&index, "one"));
    let line = metrics.lines().find(|line| line.contains(&counted) && line.contains("received")).unwrap();
    assert!(line.starts_with("toxiproxy_proxy_received_bytes_total{") && line.ends_with(" 5"), "{line}");
}

#[test]
fn a_signal_ends_it_at_once_with_all_connections() {
    for signal in ["TERM", "INT"] {
        let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut toxi = Toxi::new(&[]);
        let body = format!(
            r#"{{"name":"p","listen":"127.0.0.1:0","upstream":"{}"}}"#,
            upstream.local_addr().unwrap()
        );
        toxi.ask("POST /proxies", &body);
        // Nothing that is on its way holds the end up.
        toxi.ask("POST /proxies/p/toxics", r#"{"type":"latency","attributes":{"latency":3600000}}"#);
        let mut clients: Vec<TcpStream> = (0..20)
            .map(|_| TcpStream::connect(listen(&toxi.ask("GET /proxies", ""), "p")).unwrap())
            .collect();
        let mut servers: Vec<TcpStream> = (0..20).map(|_| upstream.accept().unwrap().0).collect();
        servers.iter_mut().for_each(|server| server.write_all(b"late").unwrap());
        toxi.signal(signal);
        for client in &mut clients {
            let end = client.read(&mut [0; 9]);
            assert!(
                matches!(end, Ok(0)) || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
            );
        }
        let Some(started) = toxi.started.take() else { continue };
        let ended = started.wait().expect(0);
        assert!(ended.err.is_empty(), "{ended}");
    }
}

#[test]
fn what_is_wrong_at_the_start_is_said() {
    let scratch = Scratch::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let config = |text: &str| scratch.write("bad.json", text).to_str().unwrap().to_owned();
    let in_use = format!(r#"[{{"name":"p","listen":"127.0.0.1:{port}","upstream":"127.0.0.1:9"}}]"#);
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["--port", &port], "", &["cannot listen at 127.0.0.1", "in use", "--port, or 0"]),
        (&["--port", "70000"], "", &["70000"]),
        (&["--host", "192.0.2.1", "--port", "0"], "", &["192.0.2.1", "--host takes"]),
        (&["--port", "0"], "{", &["bad.json", "bad request body"]),
        (&["--port", "0"], "{}", &["bad.json", "expected a list of proxies"]),
        (&["--port", "0"], r#"[{"name":"p"}]"#, &["bad.json", "missing required field: upstream at proxy 1"]),
        (&["--port", "0"], r#"[{"name":7}]"#, &["bad.json", "name: found 7, expected a string"]),
        (&["--port", "0"], &in_use, &["bad.json", &port, "address already in use"]),
    ];
    for (flags, text, words) in cases {
        let mut command = narrows(["toxi"]);
        command.args(*flags);
        if !text.is_empty() {
            command.args(["--config", &config(text)]);
        }
        let ended: Finished = finish(&mut command);
        assert_eq!(ended.code(), 2, "{ended}");
        assert!(ended.out.is_empty(), "{ended}");
        words.iter().for_each(|word| assert!(ended.err.contains(word), "does not say `{word}`: {ended}"));
    }
    let ended = finish(narrows(["toxi", "--config", "no/such.json"]).args(["--port", "0"]));
    assert!(ended.code() == 2 && ended.err.contains("no/such.json: cannot be read"), "{ended}");
}

#[test]
#[ignore = "needs node, npm, npm registry"]
fn the_client_library_for_node_is_content() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let install = ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    let mut npm = Command::new("npm");
    npm.args(install).arg("toxiproxy-node-client@4.1.0").current_dir(folder);
    finish(&mut npm).expect(0);
    let script = include_str!("toxi_client.cjs");
    fs::write(folder.join("client.cjs"), script).unwrap();
    let toxi = Toxi::new(&[]);
    let mut node = Command::new("node");
    node.arg("client.cjs").arg(format!("http://{}", toxi.address)).current_dir(folder);
    let ended = finish(&mut node).expect(0);
    assert!(ended.out.contains("all as expected"), "{ended}");
}
