//! Connections to the API, up to a maximum.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// The maximum number of concurrent connections; further ones are closed at once. Clients keep idle ones open.
const MOST: usize = 1024;
/// Time to wait when the system has no socket or memory left.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections.
pub(crate) struct Connections {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl Connections {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(MOST)) }
    }
}

impl Listener for Connections {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    if let Ok(permit) = self.free.clone().try_acquire_owned() {
                        // Without it, answers only take longer.
                        let _ = stream.set_nodelay(true);
                        return (Counted { stream, _permit: permit }, from);
                    }
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that counts while it is open.
pub(crate) struct Counted {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
