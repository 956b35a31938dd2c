//! A server in this process, and a plain HTTP client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use narrows_toxi::{Options, Server};

/// A server that goes on until the process ends.
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: Option<String>,
    pub(crate) body: String,
}

impl Api {
    pub(crate) fn new() -> Self {
        let server = Server::open(Options {
            host: "127.0.0.1".into(),
            port: 0,
            config: None,
            seed: 1,
            has_metrics: false,
            note: |_| {},
        })
        .unwrap();
        let address = server.address().unwrap();
        thread::spawn(move || server.serve().unwrap());
        Self { address }
    }

    /// Sends a request, such as `GET /proxies`, and reads the answer.
    pub(crate) fn ask_with(&self, request: &str, headers: &[String], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        let mut text = format!("{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for header in headers {
            text += &format!("{header}\r\n");
        }
        text += &format!("Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        Answer { status, kind: kind.map(String::from), body: body.into() }
    }
}

/// The time since some instant, for what must have taken a time at least.
pub(crate) fn clock() -> std::time::Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap()
}
