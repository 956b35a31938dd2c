//! `narrows web`: metrics that a parser takes, a page in a browser, and clients that mean no good.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::iter::repeat;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Scratch, Started, eventually, finish, python, start};
use crate::leftovers::RunFolder;

/// A network called `lab`, and a server of its page.
struct Place {
    folder: RunFolder,
    state: Scratch,
}

impl Place {
    fn new() -> Self {
        let place = Self::empty();
        place.up(&[]);
        place
    }

    fn empty() -> Self {
        let place = Self { folder: RunFolder::new(), state: Scratch::new() };
        // The folder stays when no run is active: without it, it would be that of everybody.
        fs::write(place.folder.file("stays"), "").unwrap();
        place
    }

    fn up(&self, further: &[&str]) {
        let flags = ["up", "--name", "lab", "-d", "--rate", "10mbit", "--delay", "1ms"];
        finish(self.command(flags).args(further)).expect(0);
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.folder.narrows(arguments);
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn web(&self, arguments: &[&str]) -> Web {
        Web::start(&mut self.command([]), arguments)
    }

    fn rate(&self) -> Value {
        let stats = finish(&mut self.command(["stats", "--run", "lab", "--json"])).expect(0).json();
        let links = stats["now"]["links"].as_array().unwrap();
        links.iter().find(|link| link["link"] == "link.down").unwrap()["configured"].clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.command(["down", "--all", "--quiet"]).status();
    }
}

/// A server that goes on until this is dropped.
pub(crate) struct Web {
    started: Started,
    address: String,
    editor: Option<String>,
    reader: Option<String>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.started.signal("KILL");
    }
}

impl Web {
    /// Starts it in the environment of a command.
    pub(crate) fn start(command: &mut Command, arguments: &[&str]) -> Self {
        let mut started = start(command.args(["web", "--listen", "127.0.0.1:0"]).args(arguments));
        let said = started.until_it_says("/metrics");
        let url = |head: &str| said.lines().find_map(|line| Some(line.strip_prefix(head)?.trim().to_owned()));
        let metrics = url("metrics:").unwrap();
        let address = metrics.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Self { started, address, editor: url("page:"), reader: url("read-only:") }
    }

    /// The address of the page for readers.
    pub(crate) fn page(&self) -> &str {
        self.reader.as_ref().unwrap()
    }

    /// What a reader of the page gets there.
    pub(crate) fn read(&self, path: &str) -> Value {
        let answer = self.get(path, token(self.reader.as_ref()));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    /// Sends a request as it stands here, and reads the answer, or what comes of it.
    fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request =
            format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes();
        // A server that refuses may have closed before all is sent.
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn status(&self, head: &str, body: &str) -> u16 {
        let answer = self.ask(head, body);
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    fn get(&self, path: &str, token: &str) -> String {
        let address = &self.address;
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}"), "")
    }
}

fn token(url: Option<&String>) -> &str {
    url.unwrap().split("token=").nth(1).unwrap()
}

#[test]
#[ignore = "needs namespaces, python3"]
fn metrics_are_text_that_a_parser_takes() {
    let place = Place::new();
    let web = place.web(&["--metrics-only"]);
    let answer = web.get("/metrics", "");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    for line in [
        "narrows_up{run=\"lab\"} 1",
        "narrows_link_rate_bytes_per_second{run=\"lab\",link=\"link\",direction=\"down\"} 1250000",
        "narrows_link_delay_seconds{run=\"lab\",link=\"link\",direction=\"up\"} 0.001",
        "narrows_link_up{run=\"lab\",link=\"link\",direction=\"up\"} 1",
        "# EOF",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    let file = place.state.write("metrics", text);
    if let Some(found) = python("web_metrics.py", &[file.to_str().unwrap()]) {
        assert!(found.contains("narrows_link_delivered_bytes"), "{found}");
    }
    let page = web.get("/", "");
    assert!(page.starts_with("HTTP/1.1 404"), "metrics alone: {page}");
    finish(&mut place.command(["down", "lab", "--quiet"])).expect(0);
    eventually("no run in the metrics", || !web.get("/metrics", "").contains("narrows_up{"));
}

/// A collector that is overloaded at first. Hands on what it gets.
fn collector() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for status in ["503 Service Unavailable"].into_iter().chain(repeat("200 OK")) {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line).unwrap();
                length =
                    line.strip_prefix("content-length: ").map_or(length, |text| text.trim().parse().unwrap());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
            if sender.send(String::from_utf8(body).unwrap()).is_err() {
                return;
            }
        }
    });
    (address, bodies)
}

#[test]
#[ignore = "needs namespaces"]
fn the_metrics_are_sent_to_a_collector() {
    let (place, (address, bodies)) = (Place::new(), collector());
    let web = place.web(&["--metrics-only", "--otlp", &address, "--otlp-interval", "5s"]);
    let next = || bodies.recv_timeout(Duration::from_secs(30)).unwrap();
    let first = next();
    assert_eq!(first, next(), "the same again, as the collector was overloaded");
    let (first, later): (Value, Value) =
        (serde_json::from_str(&first).unwrap(), serde_json::from_str(&next()).unwrap());
    // Of the run, by name.
    let metrics = |message: &Value| -> BTreeMap<String, Value> {
        let resources = message["resourceMetrics"].as_array().unwrap().iter();
        let all = resources.flat_map(|one| one["scopeMetrics"][0]["metrics"].as_array().unwrap().clone());
        all.map(|metric| (metric["name"].as_str().unwrap().to_owned(), metric)).collect()
    };
    let (first, later) = (metrics(&first), metrics(&later));
    let start = |metrics: &BTreeMap<String, Value>| {
        metrics["narrows.link.offered_packets"]["sum"]["dataPoints"][0]["startTimeUnixNano"].clone()
    };
    assert_eq!(start(&first), start(&later));
    assert_eq!(later["narrows.up"]["gauge"]["dataPoints"][0]["asInt"], "1");
    assert_eq!(later["narrows.link.rate"]["gauge"]["dataPoints"][0]["asDouble"], 1_250_000.0);
    assert_eq!(later["narrows.web.otlp_exports"]["sum"]["dataPoints"][0]["asInt"], "1");
    // The same set as for Prometheus.
    let text = web.get("/metrics", "");
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for name in later.keys() {
        let theirs = name.trim_end_matches(".info").replace('.', "_");
        assert!(families.iter().any(|family| family.starts_with(&theirs)), "{name}: {text}");
    }
    assert_eq!(families.len(), later.len(), "{families:?} {:?}", later.keys());

    // Nobody listens at the discard port.
    let mut away = place.web(&["--metrics-only", "--otlp", "http://127.0.0.1:9", "--otlp-interval", "1s"]);
    away.started.until_it_complains("OTLP: cannot send metrics to http://127.0.0.1:9/v1/metrics: ");
    eventually("the failures are counted", || {
        let text = away.get("/metrics", "");
        text.contains("narrows_web_otlp_failed_exports_total ") && !text.contains("failed_exports_total 0\n")
    });
    for (flags, why) in [
        (&["--otlp", "https://c:4318"][..], "https is not supported"),
        (&["--otlp", "http://c", "--otlp-interval", "10ms"], "--otlp-interval 10ms: at least 1s"),
        (&["--otlp-interval", "10s"], "--otlp"),
    ] {
        let refused = finish(place.command(["web"]).args(flags));
        assert!(refused.code() == 2 && refused.err.contains(why), "{refused}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_hostile_client_changes_nothing_and_keeps_nobody_out() {
    let place = Place::new();
    let web = place.web(&["lab"]);
    let (host, editor, reader) = (&web.address, token(web.editor.as_ref()), token(web.reader.as_ref()));
    let port = host.split(':').nth(1).unwrap();
    let change = json!({ "run": "lab", "assignments": ["link.down.rate=2mbit"] }).to_string();
    let set = |lines: &str| web.status(&format!("POST /api/set HTTP/1.1\r\n{lines}"), &change);
    let cookie = |token: &str| format!("Cookie: narrows-{port}={token}");
    let own = format!("Host: {host}\r\nOrigin: http://{host}");
    assert_eq!(set(&format!("Host: evil.example:{port}\r\n{}", cookie(editor))), 421);
    assert_eq!(set(&format!("Host: {host}\r\nOrigin: http://evil.example\r\n{}", cookie(editor))), 403);
    assert_eq!(set(&format!("Host: {host}\r\n{}", cookie(editor))), 403, "no origin");
    assert_eq!(set(&own), 401);
    assert_eq!(set(&format!("{own}\r\n{}", cookie(reader))), 403);
    let huge = "x".repeat(200_000);
    let head = format!("POST /api/set HTTP/1.1\r\n{own}\r\n{}", cookie(editor));
    assert_eq!(web.status(&head, &huge), 413);
    let other = change.replace("lab", "other");
    assert_eq!(web.status(&head, &other), 404, "a run that this server does not show");
    assert_eq!(web.status(&head, &change.replace("2mbit", "soon")), 422);
    let named = change.replace("rate=2mbit", "trace=/etc/passwd");
    let answer = web.ask(&head, &named);
    assert!(answer.contains(" 422 ") && answer.contains("only files that the scenario uses"), "{answer}");
    assert!(!answer.contains("root:"), "{answer}");
    assert!(place.rate().as_str().unwrap().starts_with("10mbit, "), "nothing was changed");

    // Most of a thousand connections are closed; those that are open do nothing.
    let crowd: Vec<_> = (0..1000).filter_map(|_| TcpStream::connect(host).ok()).collect();
    drop(crowd);
    eventually("room for others", || web.get("/metrics", reader).contains("narrows_up{run=\"lab\"} 1"));
    let metrics = web.get("/metrics", reader);
    let refused =
        metrics.lines().find_map(|line| line.strip_prefix("narrows_web_refused_connections_total "));
    assert!(refused.unwrap().parse::<u64>().unwrap() > 500, "{metrics}");

    let stream =
        web.ask(&format!("GET /api/stream?run=lab HTTP/1.0\r\nHost: evil\r\n{}", cookie(reader)), "");
    assert!(stream.contains(" 421 "), "{stream}");
    assert_eq!(set(&format!("{own}\r\n{}", cookie(editor))), 200);
    assert!(place.rate().as_str().unwrap().starts_with("2mbit, "));
}

/// The stream's reader takes nothing for so long that it is dropped, and counted.
#[test]
#[ignore = "needs namespaces"]
fn a_slow_reader_is_dropped_and_counted() {
    let place = Place::new();
    let web = place.web(&["lab"]);
    let reader = token(web.reader.as_ref());
    let mut slow = TcpStream::connect(&web.address).unwrap();
    // Requests whose answers nobody reads fill the buffers of both ends soon; a stream would need minutes.
    let request =
        format!("GET /uPlot.js HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {reader}\r\n\r\n", web.address);
    for _ in 0..400 {
        slow.write_all(request.as_bytes()).unwrap();
    }
    eventually("a slow reader is counted", || {
        web.get("/metrics", reader).contains("narrows_web_slow_readers_total 1\n")
    });
    let _ = slow.shutdown(Shutdown::Both);
}

#[test]
#[ignore = "needs namespaces"]
fn check_changes_nothing_and_says_what_takes_it_back() {
    let place = Place::new();
    let web = place.web(&["lab"]);
    let head = format!(
        "POST /api/check HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}",
        web.address,
        token(web.editor.as_ref())
    );
    let change = json!({ "run": "lab", "assignments": ["link.down.rate=2mbit"] }).to_string();
    let answer = web.ask(&head, &change);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap();
    assert_eq!(answer, json!({ "generation": 0, "undo": ["link.down.rate=10mbit"] }));
    assert!(place.rate().as_str().unwrap().starts_with("10mbit, "));
    let stale = json!({ "run": "lab", "assignments": ["link.down.rate=2mbit"], "generation": 7 });
    assert_eq!(web.status(&head.replace("check", "set"), &stale.to_string()), 409);
}

#[test]
#[ignore = "needs namespaces, python3"]
fn a_person_sees_and_changes_a_run_in_a_browser() {
    let place = Place::empty();
    place.up(&["--queue", "5 packets", "--traffic", "up:constant=11mbit"]);
    let web = place.web(&["lab"]);
    let (editor, reader) = (web.editor.as_ref().unwrap(), web.reader.as_ref().unwrap());
    let Some(said) = python("web_browser.py", &[editor, reader]) else { return };
    assert!(said.contains("all seen"), "{said}");
    assert!(place.rate().as_str().unwrap().starts_with("10mbit, "), "set, and undone");
}

#[test]
#[ignore = "needs namespaces"]
fn a_port_in_use_is_said() {
    let place = Place::new();
    let web = place.web(&["--metrics-only"]);
    let ended = finish(&mut place.command(["web", "--listen", &web.address])).expect(2);
    assert!(ended.err.contains("choose another port with --listen"), "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_page_beside_a_network_ends_with_it() {
    let place = Place::new();
    let mut up = start(&mut place.command(["up", "--name", "seen", "--web=127.0.0.1:0"]));
    let said = up.until_it_says("/metrics");
    let metrics = said.lines().find_map(|line| line.strip_prefix("metrics:")).unwrap().trim();
    let address = metrics.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    eventually("the network is up", || finish(&mut place.command(["ls", "seen"])).code() == 0);
    finish(&mut place.command(["down", "seen", "--quiet"])).expect(0);
    eventually("the page is gone", || TcpStream::connect(&address).is_err());
}
