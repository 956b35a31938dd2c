//! A server with the HTTP API of [Toxiproxy](https://github.com/Shopify/toxiproxy) 2: proxies whose connections toxics
//! slow down, cut up or break. Test suites written for Toxiproxy run against it unchanged.
//!
//! Beyond Toxiproxy, a proxy may carry UDP, and its datagrams may cross a link of the narrows engine. [`Server::open`]
//! binds the address of the API and creates the proxies of a file; [`Server::serve`] serves until a signal.
//!
//! Not included: any protection of the API. Whoever reaches its address can open ports on this host.
#![forbid(unsafe_code)]

mod api;
mod body;
mod chain;
mod clock;
mod listen;
mod piece;
mod proxy;
mod registry;
mod shared;
mod stream;
mod tcp;
mod toxic;
mod toxics;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use narrows_core::Seed;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

use body::{Fields, Refusal};
use clock::Clock;
use registry::Registry;
use shared::Shared;
use stream::Way;
use toxic::Kind;

/// The version of Toxiproxy whose API the server has.
pub const TOXIPROXY_VERSION: &str = api::VERSION;

/// Reads the body of a request as a toxic of each stream and network, and then as a change of it. Returns how often
/// it was one. For tests with any bytes: a server does the same and more.
pub fn read_toxic(body: &[u8]) -> usize {
    let read = |way| -> Result<usize, Refusal> {
        let fields = Fields::of_body(body)?;
        let kind = fields.text("type")?.and_then(|name| Kind::named(&name));
        let Some(kind) = kind else { return Ok(0) };
        let values = kind.read(fields.get("attributes"), None, way)?;
        kind.read(fields.get("attributes"), Some(&values), way)?;
        Ok(1)
    };
    Way::BOTH.into_iter().map(|way| read(way).unwrap_or(0)).sum()
}

/// Options of the server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host to listen on, by name or address.
    pub host: String,
    /// The port to listen on; 0 for any free one.
    pub port: u16,
    /// A JSON file with proxies to create.
    pub config: Option<PathBuf>,
    /// The seed of all random draws.
    pub seed: u64,
    /// Serve counters of the proxies at `/metrics`.
    pub has_metrics: bool,
    /// Tells the user about what no client is told, such as an upstream that refuses connections.
    pub note: fn(&str),
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ToxiError {
    /// The address cannot be bound.
    #[error("cannot listen at {host}:{port}: {cause}{}", hint(cause))]
    Listen {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The cause.
        cause: io::Error,
    },
    /// The file with proxies cannot be read, or is wrong.
    #[error("{}: {why}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system provides no threads, sockets or signals.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => ": choose another port with --port, or 0 for any that is free",
        io::ErrorKind::AddrNotAvailable => ": --host takes a name or an address of this host",
        _ => "",
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    proxies: api::Proxies,
    created: usize,
    has_metrics: bool,
}

impl Server {
    /// Binds the address of the API and creates the proxies of the file.
    ///
    /// # Errors
    /// If the address cannot be bound, or the file is wrong or one of its proxies cannot start.
    pub fn open(options: Options) -> Result<Self, ToxiError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(16).build()?;
        let Options { host, port, config, seed, has_metrics, note } = options;
        let (listener, registry, created) = runtime.block_on(async {
            let shared = Shared { seed: Seed(seed), clock: Clock::start(), memory: Arc::default(), note };
            let mut registry = Registry::new(shared);
            let name = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            let bind = async { TcpListener::bind(listen::look_up(&name).await?).await };
            let listener = bind.await.map_err(|cause| ToxiError::Listen { host, port, cause })?;
            let created = match config {
                Some(file) => create_from(&mut registry, file).await?,
                None => 0,
            };
            Ok::<_, ToxiError>((listener, registry, created))
        })?;
        Ok(Self { runtime, listener, proxies: Arc::new(Mutex::new(registry)), created, has_metrics })
    }

    /// The address of the API.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// How many proxies the file has created.
    pub fn created(&self) -> usize {
        self.created
    }

    /// The API, for a server that accepts connections itself.
    pub fn router(&self) -> Router {
        api::router(self.proxies.clone(), self.has_metrics)
    }

    /// Serves until SIGTERM or SIGINT; then closes all connections and returns.
    ///
    /// # Errors
    /// If the system provides no threads, sockets or signals.
    pub fn serve(self) -> Result<(), ToxiError> {
        let router = self.router();
        let Self { runtime, listener, proxies, .. } = self;
        runtime.block_on(async {
            let (mut terminate, mut interrupt) =
                (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            tokio::select! {
                served = axum::serve(api::Connections::new(listener), router) => served?,
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // A request that is being handled may hold the proxies for as long as a name is looked up.
            if let Ok(mut proxies) = proxies.try_lock() {
                proxies.stop().await;
            }
            Ok(())
        })
    }
}

/// Creates the proxies of a file, all of them or none.
async fn create_from(registry: &mut Registry, file: PathBuf) -> Result<usize, ToxiError> {
    let wrong = |why: String| ToxiError::Config { file: file.clone(), why };
    let text = std::fs::read(&file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match registry.populate(&text).await.refusal {
        None => Ok(registry.proxies().count()),
        Some(refusal) => {
            registry.stop().await;
            Err(wrong(refusal.text))
        }
    }
}
