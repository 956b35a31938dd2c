//! Requests to the servers of `narrows web` and `narrows toxi`, as the bytes of a connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// A stream of events goes on until the client leaves.
const PATIENCE: Duration = Duration::from_millis(20);
/// As much of an answer is read.
const MOST: usize = 1 << 16;

/// Requests to the page of runs, each `HOST` and `TOKEN` replaced by the right one: answered, and with nothing but text.
///
/// # Panics
/// When an answer is none of HTTP.
pub fn web(bytes: &[u8]) {
    static SERVER: OnceLock<(narrows_web::Server, Runtime)> = OnceLock::new();
    let (server, runtime) = SERVER.get_or_init(|| {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // No run has this name.
        let options =
            narrows_web::Options { run: Some("fuzz-none".into()), ..narrows_web::Options::new(listen) };
        (narrows_web::Server::open(options).expect("a port of this host"), runtime())
    });
    let url = server.editor_url().expect("changes are allowed");
    let (host, token) = url["http://".len()..].split_once("/?token=").expect("an address and a token");
    let bytes = replaced(&replaced(bytes, b"HOST", host.as_bytes()), b"TOKEN", token.as_bytes());
    answered(runtime, server.router(), &bytes);
}

/// Requests to the API of Toxiproxy, which knows one proxy, `p`. No other port is opened, and no name is looked up.
///
/// # Panics
/// When an answer is none of HTTP.
pub fn toxi(bytes: &[u8]) {
    let lower = bytes.to_ascii_lowercase();
    if [&b"listen"[..], b"upstream\"", b"\\u"].iter().any(|word| contains(&lower, word)) {
        return;
    }
    let config = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/proxies.json"));
    let options = narrows_toxi::Options {
        host: Ipv4Addr::LOCALHOST.to_string(),
        port: 0,
        config: Some(config),
        seed: 7,
        has_metrics: true,
        note: |_| (),
    };
    let server = narrows_toxi::Server::open(options).expect("a port of this host");
    // What a proxy has started ends with the runtime.
    answered(&runtime(), server.router(), bytes);
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().max_blocking_threads(2).build().expect("a runtime")
}

/// Serves a connection on which these bytes arrive.
fn answered(runtime: &Runtime, router: Router, bytes: &[u8]) {
    let answer = runtime.block_on(async {
        let (mut client, server) = duplex(MOST);
        let connection = http1::Builder::new()
            .half_close(true)
            .serve_connection(TokioIo::new(server), TowerToHyperService::new(router));
        let asks = async {
            // A server may close the connection before it has read all.
            let _ = client.write_all(bytes).await;
            let _ = client.shutdown().await;
            let mut answer = Vec::new();
            let _ = timeout(PATIENCE, (&mut client).take(MOST as u64).read_to_end(&mut answer)).await;
            drop(client);
            answer
        };
        let (answer, _) = tokio::join!(asks, timeout(2 * PATIENCE, connection));
        answer
    });
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{:?}", String::from_utf8_lossy(&answer));
    // Errors of handlers are none of the client.
    assert!(!contains(&answer, b"panicked"));
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

fn replaced(bytes: &[u8], word: &[u8], by: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len() + by.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(word.len()).position(|window| window == word) {
        all.extend_from_slice(&rest[..at]);
        all.extend_from_slice(by);
        rest = &rest[at + word.len()..];
    }
    all.extend_from_slice(rest);
    all
}

fn post(to: &str, headers: &str, body: &str) -> String {
    format!("POST {to} HTTP/1.1\r\nHost: HOST\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Requests to the page.
pub fn pages() -> Vec<Vec<u8>> {
    let bearer = "Authorization: Bearer TOKEN\r\nOrigin: http://HOST\r\n";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: HOST\r\n{bearer}\r\n");
    let mut all = vec![
        "GET /?token=TOKEN&run=1 HTTP/1.1\r\nHost: HOST\r\n\r\n".to_owned(),
        "GET /metrics HTTP/1.1\r\nHost: HOST\r\nSec-Fetch-Site: none\r\nCookie: a=b; narrows-1=TOKEN\r\n\r\n"
            .to_owned(),
        post("/api/set", bearer, r#"{"run":"fuzz-none","assignments":["l.up.rate=1mbit"],"generation":3}"#),
        post("/api/check", bearer, r#"{"run":"other","assignments":[]}"#),
        format!(
            "POST /api/check HTTP/1.1\r\nHost: HOST\r\n{bearer}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"run\r\n0\r\n\r\n"
        ),
    ];
    let paths = ["/", "/api/keys", "/app.js", "/api/scenario.toml?run=fuzz-none", "/api/packets?run=x%20y"];
    all.extend(paths.map(get));
    all.into_iter().map(String::into_bytes).collect()
}

/// Requests to the API.
pub fn calls() -> Vec<Vec<u8>> {
    let latency = r#"{"name":"slow","type":"latency","stream":"downstream","attributes":{"latency":9}}"#;
    let link = r#"{"type":"link","attributes":{"rate":"1mbit","delay":"5ms"}}"#;
    let add = |body: &str| post("/proxies/p/toxics", "", body);
    [
        "GET /version HTTP/1.1\r\nHost: HOST\r\n\r\nGET /proxies HTTP/1.1\r\nHost: HOST\r\n\r\n".to_owned(),
        add(latency) + &post("/proxies/p/toxics/slow", "", r#"{"attributes":{"latency":3,"jitter":1}}"#),
        add(latency) + "DELETE /proxies/p/toxics/slow HTTP/1.1\r\nHost: HOST\r\n\r\n",
        add(link) + "GET /proxies/p/toxics HTTP/1.1\r\nHost: HOST\r\n\r\nGET /metrics HTTP/1.1\r\nHost: HOST\r\n\r\n",
        post("/proxies/p", "", r#"{"enabled":true}"#) + &post("/reset", "", ""),
        post("/populate", "", r#"[{"name":"q"}]"#),
        "DELETE /proxies/p HTTP/1.1\r\nHost: HOST\r\nUser-Agent: Mozilla/5.0\r\n\r\n".to_owned(),
    ]
    .map(String::into_bytes)
    .into()
}

/// Words of both.
pub const WORDS: &[&str] = &[
    "GET /",
    "POST /api/set",
    "PATCH /proxies/p",
    "DELETE ",
    " HTTP/1.1\r\nHost: HOST\r\n",
    " HTTP/1.0\r\n",
    "Authorization: Bearer TOKEN\r\n",
    "Origin: http://HOST\r\n",
    "Cookie: narrows-",
    "Content-Length: 18446744073709551616\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: websocket\r\n",
    "\r\n\r\n",
    "?run=fuzz-none",
    "%00",
    "%ff",
    "/proxies/p/toxics",
    "{\"type\":\"slicer\"}",
    "\"attributes\":{",
];
