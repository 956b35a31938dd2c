//! Limits on connections: their number and idle time.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::metrics::{ExportCounts, ServerCounts};

/// The maximum number of concurrent connections.
const MOST: usize = 64;
/// A client that reads nothing for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection without activity for this long is closed. A stream sends something each second.
const IDLE: Duration = Duration::from_secs(30);

/// Counters for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connections: AtomicU64,
    refused: AtomicU64,
    slow: AtomicU64,
    pub(crate) refused_requests: AtomicU64,
    /// Set by the export, if there is one.
    pub(crate) otlp: Mutex<Option<ExportCounts>>,
}

impl Counts {
    pub(crate) fn read(&self) -> ServerCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ServerCounts {
            connections: read(&self.connections),
            refused_connections: read(&self.refused),
            slow_readers: read(&self.slow),
            refused_requests: read(&self.refused_requests),
            otlp: *self.otlp.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Accepts connections, up to a maximum.
pub(crate) struct Guard {
    listener: TcpListener,
    free: Arc<Semaphore>,
    counts: Arc<Counts>,
}

impl Guard {
    pub(crate) fn new(listener: TcpListener, counts: Arc<Counts>) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(MOST)), counts }
    }
}

impl Listener for Guard {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => match self.free.clone().try_acquire_owned() {
                    Ok(permit) => {
                        self.counts.connections.fetch_add(1, Ordering::Relaxed);
                        // Without it, connections are only slower.
                        let _ = stream.set_nodelay(true);
                        return (Guarded::new(stream, permit, self.counts.clone()), from);
                    }
                    // Closed at once, so that the client gets a response.
                    Err(_) => drop(self.counts.refused.fetch_add(1, Ordering::Relaxed)),
                },
                // For example too many open files: temporary.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that is closed when it is inactive.
pub(crate) struct Guarded {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
    counts: Arc<Counts>,
    idle: Pin<Box<Sleep>>,
    /// Since when the client has not read.
    full: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    fn new(stream: TcpStream, permit: OwnedSemaphorePermit, counts: Arc<Counts>) -> Self {
        Self { stream, _permit: permit, counts, idle: Box::pin(sleep(IDLE)), full: None }
    }

    fn happened(&mut self) {
        self.idle.as_mut().reset(Instant::now() + IDLE);
    }

    fn wrote(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.full = None;
            self.happened();
            return result;
        }
        let full = self.full.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + PATIENCE)));
        if full.as_mut().poll(cx).is_ready() {
            self.counts.slow.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not read")));
        }
        Poll::Pending
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if result.is_ready() {
            self.happened();
            return result;
        }
        if self.idle.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "nothing happens")));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, data);
        self.wrote(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, data);
        self.wrote(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
