//! A web page for runs, and their metrics: a server that is a client of runs' control sockets.
//!
//! It queries runs as `narrows stats` does and changes them as `narrows set` does, so the packet threads need no
//! knowledge of it. [`Server::open`] binds the address and creates the tokens; [`Server::serve`] serves. Not
//! included: encryption (use a tunnel), users beyond one token for changes and one for reading, resources from any
//! other host. With the feature `otlp` the server also sends metrics to an OpenTelemetry collector.
#![forbid(unsafe_code)]

mod access;
mod guard;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
mod packets;
mod routes;
mod runs;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use access::{Access, Tokens};
use axum::Router;
use guard::{Counts, Guard};
use narrows_io::random;
use packets::Inspected;
use routes::Site;
use runs::Runs;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Show only this run; without it, all runs of this user.
    pub run: Option<String>,
    /// Allow no changes.
    pub read_only: bool,
    /// Serve only `/metrics`, without a token.
    pub metrics_only: bool,
    /// Additional host names under which browsers may address this server.
    pub hosts: Vec<String>,
    /// Send metrics to a collector, too.
    #[cfg(feature = "otlp")]
    pub otlp: Option<otlp::Export>,
}

impl Options {
    /// A page for all runs of this user, with changes.
    pub const fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            run: None,
            read_only: false,
            metrics_only: false,
            hosts: Vec::new(),
            #[cfg(feature = "otlp")]
            otlp: None,
        }
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address cannot be bound.
    #[error("cannot listen at {address}: {cause}{}", hint(cause))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        cause: io::Error,
    },
    /// The system provides no random numbers, threads or sockets.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => ": choose another port with --listen, or 0 for any that is free",
        io::ErrorKind::AddrNotAvailable => ": --listen takes an address of this host",
        _ => "",
    }
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
    options: Options,
}

impl Server {
    /// Binds the address and creates tokens.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn open(options: Options) -> Result<Self, WebError> {
        let address = options.listen;
        let failed = |cause| WebError::Listen { address, cause };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true)?;
        let token = || random::bits().map(|bits| format!("{bits:032x}"));
        let tokens = if options.metrics_only {
            None
        } else {
            let editor = if options.read_only { None } else { Some(token()?) };
            Some(Tokens { editor, reader: token()? })
        };
        let access = Access::new(tokens, listener.local_addr()?, &options.hosts);
        let runs = Arc::new(Runs::new(options.run.clone()));
        let (inspected, counts) = (Arc::new(Inspected::default()), Arc::new(Counts::default()));
        let site = Arc::new(Site { access, runs, inspected, counts });
        Ok(Self { listener, site, options })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The URL for users who may make changes; `None` if nobody may.
    pub fn editor_url(&self) -> Option<String> {
        let token = self.site.access.tokens.as_ref()?.editor.as_ref()?;
        Some(format!("{}/?token={token}", self.origin()))
    }

    /// The URL for users who may only read; `None` if no token is needed.
    pub fn reader_url(&self) -> Option<String> {
        Some(format!("{}/?token={}", self.origin(), self.site.access.tokens.as_ref()?.reader))
    }

    /// The URL of the metrics.
    pub fn metrics_url(&self) -> String {
        format!("{}/metrics", self.origin())
    }

    fn origin(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap_or(self.options.listen))
    }

    /// The routes, for a server that accepts connections itself.
    pub fn router(&self) -> Router {
        routes::router(self.site.clone(), self.options.metrics_only)
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// If the system provides no threads or sockets.
    pub fn serve(self) -> Result<(), WebError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(16).build()?;
        let router = self.router();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let guard = Guard::new(listener, self.site.counts.clone());
            #[cfg(feature = "otlp")]
            if let Some(plan) = self.options.otlp {
                tokio::spawn(otlp::export(plan, self.site.runs.clone(), self.site.counts.clone()));
            }
            Ok(axum::serve(guard, router).await?)
        })
    }
}
