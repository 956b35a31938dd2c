//! A run in the browser, and its metrics: a server that is a client of runs' control sockets.
//!
//! It asks as `narrows stats` does and sets as `narrows set` does, so that the threads that move packets know nothing of it.
//! [`Server::open`] binds the address and makes the tokens; [`Server::serve`] serves. What is absent: encryption (use a tunnel), users
//! beyond a token that may change and one that may read, anything from another host than this.
#![forbid(unsafe_code)]

mod access;
mod guard;
pub mod metrics;
mod routes;
mod runs;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use access::{Access, Tokens};
use guard::{Counts, Guard};
use narrows_io::random;
use routes::Site;
use runs::Runs;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The only run to show; without it, all of this user.
    pub run: Option<String>,
    /// Nobody may change anything.
    pub read_only: bool,
    /// Only `/metrics`, for whoever reaches it.
    pub metrics_only: bool,
    /// Further names by which browsers may call this host.
    pub hosts: Vec<String>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address cannot be had.
    #[error("cannot listen at {address}: {cause}{}", hint(cause))]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
    /// The system gave no random numbers, threads or sockets.
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

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    site: Site,
    options: Options,
}

impl Server {
    /// Listens, and makes tokens.
    ///
    /// # Errors
    /// When the address cannot be had.
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
        let site = Site { access, runs, counts: Arc::new(Counts::default()) };
        Ok(Self { listener, site, options })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address for those who may change things; nothing where nobody may.
    pub fn editor_url(&self) -> Option<String> {
        let token = self.site.access.tokens.as_ref()?.editor.as_ref()?;
        Some(format!("{}/?token={token}", self.origin()))
    }

    /// The address for those who may only look; nothing where no token is needed.
    pub fn reader_url(&self) -> Option<String> {
        Some(format!("{}/?token={}", self.origin(), self.site.access.tokens.as_ref()?.reader))
    }

    /// The address of the metrics.
    pub fn metrics_url(&self) -> String {
        format!("{}/metrics", self.origin())
    }

    fn origin(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap_or(self.options.listen))
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// When the system gives no threads or sockets.
    pub fn serve(self) -> Result<(), WebError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(16).build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let guard = Guard::new(listener, self.site.counts.clone());
            let router = routes::router(Arc::new(self.site), self.options.metrics_only);
            Ok(axum::serve(guard, router).await?)
        })
    }
}
