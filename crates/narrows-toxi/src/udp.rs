//! UDP proxies: a session for each client address, with a socket of its own to the upstream.
//!
//! UDP has no end of a connection. A session ends when nothing has passed for a minute. One that a toxic has closed
//! stays, silent, for as long as its client sends: a new one would start the toxic anew.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use narrows_core::{Duration, Time};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::chain::{Chain, Out};
use crate::listen::look_up;
use crate::piece::Piece;
use crate::shared::{Held, Served, Toxics};
use crate::stream::Way;
use crate::toxics::Around;

/// Sessions of a proxy. Datagrams of further clients are dropped.
const MOST_SESSIONS: usize = 4096;
/// Datagrams of a client that wait for its session. Further ones are dropped, as a full socket buffer drops them.
const MOST_WAITING: usize = 1024;
/// A session without datagrams for this long ends.
const IDLE: Duration = Duration::from_secs(60);
/// Datagrams taken from a socket in one turn.
const BATCH: usize = 64;
/// The longest datagram.
const LONGEST: usize = 65_535;
/// Time to wait when receiving fails.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Serves clients until it is stopped.
pub(crate) async fn serve(socket: UdpSocket, served: Served, mut stop: oneshot::Receiver<()>) {
    // Until it is known to be writable, it sends nothing.
    let _ = socket.writable().await;
    let socket = Arc::new(socket);
    let mut sessions: BTreeMap<SocketAddr, mpsc::Sender<Bytes>> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut is_full = false;
    loop {
        tokio::select! {
            _ = &mut stop => break,
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                if let Ok(client) = ended {
                    sessions.remove(&client);
                    is_full = false;
                }
            }
            _ = socket.readable() => {
                let (taken, result) = receive(&socket);
                for (client, data) in taken {
                    let session = match sessions.get(&client) {
                        Some(session) => session,
                        None if sessions.len() >= MOST_SESSIONS => {
                            if !is_full {
                                served.note(&format!("{MOST_SESSIONS} clients: further ones get no answer"));
                                is_full = true;
                            }
                            continue;
                        }
                        None => {
                            let (sender, receiver) = mpsc::channel(MOST_WAITING);
                            let session = session(client, socket.clone(), receiver, served.next(), served.clone());
                            tasks.spawn(async move {
                                session.await;
                                client
                            });
                            sessions.entry(client).or_insert(sender)
                        }
                    };
                    // Full: lost, as UDP may lose it.
                    let _ = session.try_send(data);
                }
                if let Err(error) = result {
                    served.note(&format!("cannot receive datagrams: {error}"));
                    sleep(PAUSE).await;
                }
            }
        }
    }
    drop(socket);
    tasks.shutdown().await;
}

/// Takes what has arrived, up to a bound.
fn receive(socket: &UdpSocket) -> (Vec<(SocketAddr, Bytes)>, io::Result<()>) {
    let mut buffer = [0; LONGEST];
    let mut taken = Vec::new();
    while taken.len() < BATCH {
        match socket.try_recv_from(&mut buffer) {
            Ok((length, client)) => taken.push((client, Bytes::copy_from_slice(&buffer[..length]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

/// A session, until it is idle.
async fn session(
    client: SocketAddr,
    socket: Arc<UdpSocket>,
    from_client: mpsc::Receiver<Bytes>,
    around: Around,
    served: Served,
) {
    match connect(&served.upstream).await {
        Ok((upstream, address)) => {
            let stream = |way, datagrams| {
                let around = Around { datagrams: Some(datagrams), ..around.clone() };
                Stream::new(way, &served, around)
            };
            let up = stream(Way::Upstream, [client, address]);
            let down = stream(Way::Downstream, [address, client]);
            Session { client, socket, from_client, upstream, up, down, is_closed: false }.run().await;
        }
        Err(error) => {
            served.note(&format!("cannot reach {}: {error}", served.upstream));
            sleep(PAUSE).await;
        }
    }
}

async fn connect(upstream: &str) -> io::Result<(UdpSocket, SocketAddr)> {
    let address = look_up(upstream).await?;
    let any: SocketAddr = if address.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    socket.writable().await?;
    Ok((socket, address))
}

struct Session {
    client: SocketAddr,
    socket: Arc<UdpSocket>,
    from_client: mpsc::Receiver<Bytes>,
    upstream: UdpSocket,
    up: Stream,
    down: Stream,
    /// A toxic has closed it: nothing passes any more.
    is_closed: bool,
}

impl Session {
    async fn run(mut self) {
        let clock = self.up.served.shared.clock;
        let mut active = clock.now();
        loop {
            let now = clock.now();
            let wakes = [self.send_up(now), self.send_down(now)];
            let is_empty = self.up.chain.held() == 0 && self.down.chain.held() == 0;
            if is_empty && now.since(active) >= IDLE {
                return;
            }
            let wake = wakes.into_iter().flatten().chain([active.max(now.before(IDLE)) + IDLE]).min();
            let instant = clock.instant(wake.unwrap_or(now));
            tokio::select! {
                biased;
                changed = self.up.toxics.changed() => {
                    self.up.toxics.mark_changed();
                    if changed.is_err() { return }
                }
                changed = self.down.toxics.changed() => {
                    self.down.toxics.mark_changed();
                    if changed.is_err() { return }
                }
                () = sleep_until(instant) => {}
                data = self.from_client.recv() => {
                    let Some(data) = data else { return };
                    active = clock.now();
                    self.up.take(data, active, self.is_closed);
                    while let Ok(data) = self.from_client.try_recv() {
                        self.up.take(data, clock.now(), self.is_closed);
                    }
                }
                _ = self.upstream.readable() => {
                    if self.receive() {
                        active = clock.now();
                    }
                }
            }
        }
    }

    /// Takes what the upstream has sent. Its errors say that nobody listens there: clients of UDP learn it by silence.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; LONGEST];
        let mut has_received = false;
        for _ in 0..BATCH {
            match self.upstream.try_recv(&mut buffer) {
                Ok(length) => {
                    has_received = true;
                    let data = Bytes::copy_from_slice(&buffer[..length]);
                    let now = self.down.served.shared.clock.now();
                    self.down.take(data, now, self.is_closed);
                }
                Err(_) => break,
            }
        }
        has_received
    }

    fn send_up(&mut self, now: Time) -> Option<Time> {
        let upstream = &self.upstream;
        self.up.send(now, &mut self.is_closed, |data| upstream.try_send(data))
    }

    fn send_down(&mut self, now: Time) -> Option<Time> {
        let (socket, client) = (&self.socket, self.client);
        self.down.send(now, &mut self.is_closed, |data| socket.try_send_to(data, client))
    }
}

/// One stream of a session.
struct Stream {
    way: Way,
    served: Served,
    toxics: watch::Receiver<Toxics>,
    chain: Chain,
    held: Held,
}

impl Stream {
    fn new(way: Way, served: &Served, around: Around) -> Self {
        let mut toxics = served.toxics[way.index()].clone();
        let first = toxics.borrow_and_update().clone();
        let chain = Chain::new(&first, served.shared.clock.now(), around);
        let held = Held::none(&served.shared.memory);
        Self { way, served: served.clone(), toxics, chain, held }
    }

    /// Takes a datagram. Without room it is lost: UDP has no way to slow its sender.
    fn take(&mut self, data: Bytes, at: Time, is_closed: bool) {
        self.served.counts.receive(self.way, data.len());
        let has_memory = self.chain.held() == 0 || self.served.shared.memory.has_room();
        if !is_closed && has_memory {
            self.chain.push_datagram(Piece { at, data });
        }
        self.held.set(self.chain.held());
    }

    /// Sends what is due, and says when more will be.
    fn send(
        &mut self,
        now: Time,
        is_closed: &mut bool,
        send: impl Fn(&[u8]) -> io::Result<usize>,
    ) -> Option<Time> {
        if self.toxics.has_changed().unwrap_or(false) {
            let toxics = self.toxics.borrow_and_update().clone();
            self.chain.adopt(&toxics, now);
        }
        loop {
            let wake = self.chain.advance(now);
            match self.chain.take() {
                // A full socket buffer, or nobody there: lost.
                Some(Out::Piece(piece)) if !*is_closed => {
                    if let Ok(sent) = send(&piece.data) {
                        self.served.counts.send(self.way, sent);
                    }
                }
                Some(Out::Piece(_)) => {}
                Some(Out::End(_)) => *is_closed = true,
                None => {
                    self.held.set(self.chain.held());
                    return wake;
                }
            }
        }
    }
}
