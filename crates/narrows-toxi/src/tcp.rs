//! TCP proxies: connections of clients, each joined to a connection to the upstream.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::chain::{Chain, Out};
use crate::listen::look_up;
use crate::piece::{End, Item, Piece};
use crate::shared::{Held, Served, Toxics};
use crate::stream::Way;
use crate::toxics::Around;

/// Bytes read at once, as Toxiproxy reads.
const READ: usize = 32 << 10;
/// Time to wait when the system has no socket or memory left.
const PAUSE: Duration = Duration::from_millis(50);
/// Time to wait for other connections to give memory back.
const MEMORY_PAUSE: narrows_core::Duration = narrows_core::Duration::from_millis(5);

/// Accepts connections until it is stopped; then closes all of them.
pub(crate) async fn serve(listener: TcpListener, served: Served, mut stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => drop(connections.spawn(connection(client, served.next(), served.clone()))),
                Err(error) => {
                    served.note(&format!("cannot accept a connection: {error}"));
                    sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(client: TcpStream, around: Around, served: Served) {
    let upstream = match connect(&served.upstream).await {
        Ok(upstream) => upstream,
        Err(error) => return served.note(&format!("cannot connect to {}: {error}", served.upstream)),
    };
    // Without it, pieces only take longer.
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let (client_read, client_write) = client.into_split();
    let (upstream_read, upstream_write) = upstream.into_split();
    let (mut client_write, mut upstream_write) = (Some(client_write), Some(upstream_write));
    let up = Carried::new(Way::Upstream, &served, around.clone());
    let down = Carried::new(Way::Downstream, &served, around);
    let ended = tokio::try_join!(
        up.carry(&client_read, &mut upstream_write),
        down.carry(&upstream_read, &mut client_write)
    );
    if ended == Err(End::Reset) {
        // A socket that is closed with a linger time of zero sends RST; a write half that is dropped would send FIN.
        let _ = (client_read.as_ref().set_zero_linger(), upstream_read.as_ref().set_zero_linger());
        client_write.into_iter().chain(upstream_write).for_each(OwnedWriteHalf::forget);
    }
}

async fn connect(upstream: &str) -> io::Result<TcpStream> {
    TcpStream::connect(look_up(upstream).await?).await
}

/// One stream of a connection.
struct Carried {
    way: Way,
    served: Served,
    toxics: watch::Receiver<Toxics>,
    chain: Chain,
    held: Held,
    /// What is being written.
    writing: Bytes,
    source_ended: bool,
}

impl Carried {
    fn new(way: Way, served: &Served, around: Around) -> Self {
        let mut toxics = served.toxics[way.index()].clone();
        let first = toxics.borrow_and_update().clone();
        let chain = Chain::new(&first, served.shared.clock.now(), around);
        let held = Held::none(&served.shared.memory);
        Self { way, served: served.clone(), toxics, chain, held, writing: Bytes::new(), source_ended: false }
    }

    /// Carries bytes until the source has ended, or the connection ends as the error says.
    async fn carry(mut self, source: &OwnedReadHalf, to: &mut Option<OwnedWriteHalf>) -> Result<(), End> {
        loop {
            let now = self.served.shared.clock.now();
            if self.toxics.has_changed().unwrap_or(false) {
                let toxics = self.toxics.borrow_and_update().clone();
                self.chain.adopt(&toxics, now);
            }
            let mut wake = self.chain.advance(now);
            while self.writing.is_empty() {
                match self.chain.take() {
                    Some(Out::Piece(piece)) => self.writing = piece.data,
                    Some(Out::End(End::Half)) => {
                        // Dropped, it sends the end of the stream. The other stream goes on.
                        *to = None;
                        return Ok(());
                    }
                    Some(Out::End(end)) => return Err(end),
                    None => break,
                }
                wake = self.chain.advance(now);
            }
            self.held.set(self.chain.held() + self.writing.len());
            let mut may_read = !self.source_ended && self.chain.has_room();
            if may_read && self.chain.held() > 0 && !self.served.shared.memory.has_room() {
                may_read = false;
                wake = wake.into_iter().chain([now + MEMORY_PAUSE]).min();
            }
            let Some(writer) = to.as_ref() else { return Ok(()) };
            let instant = self.served.shared.clock.instant(wake.unwrap_or(now));
            tokio::select! {
                biased;
                changed = self.toxics.changed() => {
                    // It is seen again above.
                    self.toxics.mark_changed();
                    changed.map_err(|_| End::Close)?;
                }
                ready = writer.writable(), if !self.writing.is_empty() => {
                    ready.map_err(|_| End::Close)?;
                    self.write(writer)?;
                }
                _ = source.readable(), if may_read => self.read(source),
                () = sleep_until(instant), if wake.is_some() => {}
            }
        }
    }

    fn write(&mut self, to: &OwnedWriteHalf) -> Result<(), End> {
        match to.try_write(&self.writing) {
            Ok(written) => {
                self.writing.advance(written);
                self.served.counts.send(self.way, written);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(End::Close),
        }
    }

    fn read(&mut self, source: &OwnedReadHalf) {
        let mut buffer = [0; READ];
        let read = source.try_read(&mut buffer);
        let at = self.served.shared.clock.now();
        let item = match read {
            Ok(0) => Item::End(at, End::Half),
            Ok(length) => {
                self.served.counts.receive(self.way, length);
                Item::Piece(Piece { at, data: Bytes::copy_from_slice(&buffer[..length]) })
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => Item::End(at, End::Close),
        };
        self.source_ended = matches!(item, Item::End(..));
        self.chain.push(item);
    }
}
