//! Forwards DNS queries of a run's hosts to this host's resolver, if that listens on a loopback address, such as
//! systemd-resolved's 127.0.0.53.
//!
//! ```text
//! program ── link ── far host: 100.64.x.y port 53 ──(this)── the namespace of narrows: 127.0.0.53 port 53
//! ```
//!
//! A query crosses the link like one to any other server; then this process forwards it, so that no firewall rule of
//! the host interferes. UDP and TCP messages are forwarded unchanged, except that UDP queries get an ID of ours on
//! the way. If the resolver cannot be reached, the answer is an immediate failure.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_io::confinement::{self, Work};
use narrows_io::namespace::Namespace;
use narrows_io::wait::{Waiting, wait};
use narrows_io::waker::Waker;

const PORT: u16 = 53;
/// The maximum number of pending UDP queries; the oldest is dropped for a new one.
const MOST_WAITING: usize = 512;
/// The maximum number of concurrent connections; further ones are refused.
const MOST_CONNECTIONS: usize = 32;
/// How long a connection may be idle.
const SILENCE: Duration = Duration::from_secs(10);
/// The header of a message (RFC 1035, 4.1.1).
const HEADER: usize = 12;

/// Forwards queries as long as this value lives.
#[derive(Debug)]
pub(crate) struct Forwarder {
    address: IpAddr,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    /// Listens at `address` in `inside`, and queries `server` from the calling thread's namespace.
    ///
    /// # Errors
    /// If port 53 is in use there, or there is no route to the server.
    pub(crate) fn start(inside: &Namespace, address: IpAddr, server: IpAddr) -> io::Result<Self> {
        let here = SocketAddr::from((address, PORT));
        let listen = || -> io::Result<_> { Ok((UdpSocket::bind(here)?, TcpListener::bind(here)?)) };
        let (queries, connections) = inside.run(listen).map_err(io::Error::other)??;
        let any: IpAddr = match server {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let server = SocketAddr::from((server, PORT));
        let answers = UdpSocket::bind((any, 0))?;
        answers.connect(server)?;
        for socket in [&queries, &answers] {
            socket.set_nonblocking(true)?;
        }
        connections.set_nonblocking(true)?;
        let waker = Arc::new(Waker::new()?);
        let mut service = Service {
            queries,
            answers,
            connections,
            server,
            waiting: VecDeque::new(),
            next: 0,
            open: Arc::default(),
        };
        let called = waker.clone();
        let thread = thread::Builder::new().name("names".into()).spawn(move || {
            // Its sockets are open; those to servers are new.
            let _ = confinement::to(Work::Connections);
            service.run(&called);
        })?;
        Ok(Self { address, waker, thread: Some(thread) })
    }

    /// The address that programs of the run query.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It returns nothing.
            let _ = thread.join();
        }
    }
}

struct Service {
    queries: UdpSocket,
    answers: UdpSocket,
    connections: TcpListener,
    server: SocketAddr,
    waiting: VecDeque<Query>,
    next: u16,
    open: Arc<AtomicUsize>,
}

/// A pending query.
struct Query {
    number: u16,
    from: SocketAddr,
    /// The original message.
    message: Vec<u8>,
}

impl Service {
    fn run(&mut self, called: &Waker) {
        let mut buffer = vec![0; 65_536];
        loop {
            let mut sources = [
                Waiting::readable(called),
                Waiting::readable(&self.queries),
                Waiting::readable(&self.answers),
                Waiting::readable(&self.connections),
            ];
            if wait(&mut sources, None).is_err() || sources[0].is_ready() {
                return;
            }
            while let Ok((length, from)) = self.queries.recv_from(&mut buffer) {
                self.ask(&mut buffer[..length], from);
            }
            loop {
                match self.answers.recv(&mut buffer) {
                    Ok(length) => self.answer(&mut buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Nobody listens there.
                    Err(_) => self.fail(),
                }
            }
            while let Ok((connection, _)) = self.connections.accept() {
                self.connect(connection);
            }
        }
    }

    fn ask(&mut self, message: &mut [u8], from: SocketAddr) {
        if message.len() < HEADER {
            return;
        }
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.next = self.next.wrapping_add(1);
        self.waiting.push_back(Query { number: self.next, from, message: message.to_vec() });
        message[..2].copy_from_slice(&self.next.to_be_bytes());
        if self.answers.send(message).is_err() {
            self.fail();
        }
    }

    fn answer(&mut self, message: &mut [u8]) {
        let Some(&number) = message.first_chunk::<2>() else { return };
        let number = u16::from_be_bytes(number);
        let Some(place) = self.waiting.iter().position(|query| query.number == number) else { return };
        if let Some(query) = self.waiting.remove(place) {
            message[..2].copy_from_slice(&query.message[..2]);
            // A client that no longer listens does not need it.
            let _ = self.queries.send_to(message, query.from);
        }
    }

    /// Tells all clients with pending queries that the server failed.
    fn fail(&mut self) {
        for Query { from, mut message, .. } in self.waiting.drain(..) {
            message[2] |= IS_ANSWER;
            message[3] = message[3] & !RESULT | SERVER_FAILURE;
            let _ = self.queries.send_to(&message, from);
        }
    }

    /// Forwards a connection to the server, in threads of its own.
    fn connect(&self, connection: TcpStream) {
        if self.open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let (server, open) = (self.server, self.open.clone());
        let led = thread::Builder::new().name("names".into()).spawn(move || {
            // If it breaks off for any reason, the program asks again.
            let _ = lead(&connection, server);
            open.fetch_sub(1, Ordering::Relaxed);
        });
        if led.is_err() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

const IS_ANSWER: u8 = 0x80;
const RESULT: u8 = 0x0f;
const SERVER_FAILURE: u8 = 2;

/// Alternating queries and answers, each preceded by its length (RFC 1035, 4.2.2).
fn lead(mut connection: &TcpStream, server: SocketAddr) -> io::Result<()> {
    connection.set_nonblocking(false)?;
    let mut server = TcpStream::connect_timeout(&server, SILENCE)?;
    for stream in [connection, &server] {
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
    }
    loop {
        let query = message(&mut connection)?;
        server.write_all(&query)?;
        let answer = message(&mut server)?;
        connection.write_all(&answer)?;
    }
}

/// One message, preceded by its length.
fn message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 2];
    from.read_exact(&mut message)?;
    let length = usize::from(u16::from_be_bytes([message[0], message[1]]));
    message.resize(2 + length, 0);
    from.read_exact(&mut message[2..])?;
    Ok(message)
}
