//! The run's end of the control socket, with clients of every kind.

use std::env;
use std::io::{BufRead, BufReader};

use serde_json::json;

use super::super::client::find;
use super::super::sockets;
use super::*;

const STATS: &[u8] = b"{\"command\":\"stats\"}\n";

fn served(folder: &Path, exchange: impl FnOnce(UnixStream) + Send) {
    let mut socket = ControlSocket::open(folder, &About::default()).unwrap();
    let stream = UnixStream::connect(socket.path()).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            exchange(stream);
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            socket.serve(|request, _| match request {
                Request::Stats {} => ReplyLine::ok(&json!({"packets": 3})),
                Request::Set { assignments, .. } => {
                    Reply::Error(format!("no: {}", assignments.join(" "))).into()
                }
                other => Reply::Error(format!("not here: {other:?}")).into(),
            });
            std::thread::yield_now();
        }
    });
}

fn folder(name: &str) -> PathBuf {
    env::temp_dir().join(format!("narrows-control-{}-{name}", process::id()))
}

#[test]
fn requests_are_answered_in_order_and_the_socket_is_the_owners() {
    let folder = folder("order");
    served(&folder, |mut stream| {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.join(socket_name(process::id()))), 0o600);
        assert_eq!(mode(&folder), 0o700);
        stream.write_all(b"{\"command\":\"stats\"}\n{\"command\":\"set\",\"assign").unwrap();
        stream.write_all(b"ments\":[\"a.rate=1mbit\"]}\nnonsense\n").unwrap();
        let mut lines = BufReader::new(stream).lines();
        let mut next = || lines.next().unwrap().unwrap();
        assert_eq!(next(), r#"{"ok":{"packets":3}}"#);
        assert_eq!(next(), r#"{"error":"no: a.rate=1mbit"}"#);
        assert!(next().contains("not a request"));
    });
    assert!(!folder.exists(), "nothing is left");
}

#[test]
fn an_endless_request_is_refused() {
    let folder = folder("endless");
    served(&folder, |mut stream| {
        let _ = stream.write_all(&vec![b'x'; 2 * LONGEST_REQUEST]);
        let mut answer = String::new();
        let _ = BufReader::new(&stream).read_line(&mut answer);
        assert!(answer.contains("at most"), "{answer}");
    });
}

/// A name of a socket has at most some hundred bytes.
#[test]
fn a_socket_that_cannot_be_made_leaves_no_folder() {
    let folder = folder(&"long".repeat(40));
    let refused = ControlSocket::open(&folder, &About::default());
    assert!(matches!(refused, Err(ControlError::Make { .. })));
    assert!(!folder.exists());
}

/// A socket, and clients of it.
fn connected(name: &str, clients: usize) -> (ControlSocket, Vec<UnixStream>) {
    let socket = ControlSocket::open(&folder(name), &About::default()).unwrap();
    let streams: Vec<_> = (0..clients).map(|_| UnixStream::connect(socket.path()).unwrap()).collect();
    streams.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    (socket, streams)
}

/// Serves a turn; how many requests were taken.
fn turn(socket: &mut ControlSocket, answer: &serde_json::Value) -> usize {
    let mut taken = 0;
    socket.serve(|_, _| {
        taken += 1;
        ReplyLine::ok(answer)
    });
    taken
}

#[test]
fn thousands_of_requests_at_once_are_all_answered() {
    const REQUESTS: usize = 2000;
    let folder = folder("thousands");
    let mut socket = ControlSocket::open(&folder, &About::default()).unwrap();
    let mut stream = UnixStream::connect(socket.path()).unwrap();
    // Far more than a socket holds, and no answer is read before all is asked.
    let answer = json!("x".repeat(6000));
    stream.write_all(&STATS.repeat(REQUESTS)).unwrap();
    let mut most = 0;
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(stream).lines();
        lines.map_while(Result::ok).take_while(|line| line.starts_with("{\"ok\"")).take(REQUESTS).count()
    });
    let mut taken = 0;
    while !reader.is_finished() {
        taken += turn(&mut socket, &answer);
        most = most.max(socket.clients.first().map_or(0, |client| client.answers.len()));
    }
    assert_eq!((taken, reader.join().unwrap()), (REQUESTS, REQUESTS));
    assert!(most <= MOST_UNREAD + 6100, "{most} bytes of answers");
}

#[test]
fn a_turn_is_one_request_of_each_client_and_so_many_bytes() {
    let (mut socket, mut streams) = connected("fair", 2);
    streams[0].write_all(&STATS.repeat(5000)).unwrap();
    streams[1].write_all(STATS).unwrap();
    assert_eq!(turn(&mut socket, &json!(0)), 2, "one of each");
    let asked = socket.clients[0].asked.len();
    assert!(asked <= BYTES_A_TURN, "{asked} bytes were taken of the one");
    assert!(socket.has_requests(), "the others need no new word of the client");
    let mut answer = [0; 64];
    let length = streams[1].read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"{\"ok\":0}\n");
    assert_eq!(turn(&mut socket, &json!(0)), 1);
}

#[test]
fn a_client_that_reads_nothing_is_asked_nothing_more() {
    let (mut socket, mut streams) = connected("deaf", 1);
    let answer = json!("x".repeat(MOST_UNREAD / 4));
    let mut taken = 0;
    for _ in 0..100 {
        let _ = streams[0].write(&STATS.repeat(10));
        taken += turn(&mut socket, &answer);
    }
    assert!((4..10).contains(&taken), "{taken} requests were taken");
    assert!(!socket.has_requests(), "there is nothing to do");
    // It goes on where it was.
    let mut buffer = vec![0; 1 << 16];
    let mut feeds = 0;
    while feeds < 20 {
        turn(&mut socket, &answer);
        let length = streams[0].read(&mut buffer).unwrap_or(0);
        feeds += buffer[..length].iter().filter(|&&byte| byte == b'\n').count();
    }
}

#[test]
fn a_flood_of_newlines_is_one_error() {
    let folder = folder("newlines");
    served(&folder, |mut stream| {
        stream.write_all(&[b"\n\r\n ".repeat(100).as_slice(), STATS].concat()).unwrap();
        let _ = stream.write_all(&vec![b'\n'; LONGEST_REQUEST]);
        let lines: Vec<_> = BufReader::new(stream).lines().map_while(Result::ok).collect();
        assert_eq!(lines.len(), 2, "{:?}", &lines[..lines.len().min(5)]);
        assert_eq!(lines[0], r#"{"ok":{"packets":3}}"#);
        assert!(lines[1].contains("white space"), "{}", lines[1]);
    });
}

#[test]
fn a_connection_too_many_is_told_so() {
    let (mut socket, streams) = connected("many", MOST_CLIENTS + 1);
    while turn(&mut socket, &json!(0)) > 0 {}
    // Accepted in the second turn.
    turn(&mut socket, &json!(0));
    let mut answer = String::new();
    BufReader::new(&streams[MOST_CLIENTS]).read_line(&mut answer).unwrap();
    assert!(answer.contains("32 programs are connected to this run"), "{answer}");
}

#[test]
fn limits_are_those_of_the_documentation() {
    let page = include_str!("../../../../../docs/control-socket.md");
    let limits = [
        ("| a request, with its line feed |", format!("{} MiB", LONGEST_REQUEST >> 20)),
        ("| white space in front of a request, empty lines among it |", format!("{} KiB", MOST_BLANK >> 10)),
        ("| answers that a client leaves unread |", format!("{} MiB", MOST_UNREAD >> 20)),
        ("| connections at once |", MOST_CLIENTS.to_string()),
    ];
    for (what, limit) in limits {
        let row = page.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(row.split('|').nth(2).unwrap().trim(), limit, "{what}");
    }
}

#[test]
fn a_killed_runs_socket_is_known_as_dead() {
    let folder = folder("dead");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("7.sock");
    for other in [".sock", "07.sock", "x.sock", "7.a.b.feed"] {
        drop(UnixListener::bind(folder.join(other)).unwrap());
    }
    fs::write(folder.join("8.sock"), "a file").unwrap();
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(sockets(&folder).unwrap(), [(7, path)]);
    assert!(matches!(find(&folder, Some("7")), Err(ControlError::NoSuchRun { .. })));
    fs::remove_dir_all(&folder).unwrap();
}
