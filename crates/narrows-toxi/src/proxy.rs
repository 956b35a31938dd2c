//! A proxy: an address to listen on, an upstream, and toxics.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::body::Refusal;
use crate::listen::{Network, join, listen_address, split};
use crate::shared::{Counts, Served, Shared, Toxics};
use crate::stream::Way;
use crate::toxic::ToxicInUse;
use crate::{tcp, udp};

/// A proxy of a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) name: Arc<str>,
    /// The address as it was given; from the first start on, the one that was bound.
    pub(crate) listen: String,
    pub(crate) upstream: String,
    /// The toxics of each stream, for connections to take up.
    toxics: [watch::Sender<Toxics>; 2],
    pub(crate) counts: Arc<Counts>,
    running: Option<Running>,
    shared: Shared,
}

/// The task that serves clients.
#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// A proxy as the API shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown<'a> {
    name: &'a str,
    listen: &'a str,
    upstream: &'a str,
    enabled: bool,
    toxics: Value,
}

impl Proxy {
    /// A proxy that is not started yet.
    pub(crate) fn new(
        name: &str,
        listen: String,
        upstream: String,
        shared: &Shared,
    ) -> Result<Self, Refusal> {
        check_networks(&listen, &upstream)?;
        let none = || watch::Sender::new(Toxics::from([]));
        Ok(Self {
            name: name.into(),
            listen,
            upstream,
            toxics: [none(), none()],
            counts: Arc::default(),
            running: None,
            shared: shared.clone(),
        })
    }

    pub(crate) fn shown(&self) -> Shown<'_> {
        Shown {
            name: &self.name,
            listen: &self.listen,
            upstream: &self.upstream,
            enabled: self.is_enabled(),
            toxics: self.shown_toxics(),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn network(&self) -> Network {
        split(&self.listen).0
    }

    /// Binds the address and serves clients, if it does not do so already.
    pub(crate) async fn start(&mut self) -> Result<(), Refusal> {
        if self.is_enabled() {
            return Ok(());
        }
        let (network, listen) = split(&self.listen);
        let address = listen_address(listen).await.map_err(|error| refused(network, listen, &error))?;
        let refuse = |error: io::Error| refused(network, &address.to_string(), &error);
        let served = Served {
            shared: self.shared.clone(),
            proxy: self.name.clone(),
            upstream: split(&self.upstream).1.into(),
            toxics: self.toxics.each_ref().map(watch::Sender::subscribe),
            counts: self.counts.clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let (task, bound) = match network {
            Network::Tcp => {
                let listener = TcpListener::bind(address).await.map_err(refuse)?;
                let bound = listener.local_addr().map_err(refuse)?;
                (tokio::spawn(tcp::serve(listener, served, stopped)), bound)
            }
            Network::Udp => {
                let socket = UdpSocket::bind(address).await.map_err(refuse)?;
                let bound = socket.local_addr().map_err(refuse)?;
                (tokio::spawn(udp::serve(socket, served, stopped)), bound)
            }
        };
        self.listen = join(network, bound);
        self.running = Some(Running { stop, task });
        Ok(())
    }

    /// Stops listening and closes all connections. Afterwards the address is free.
    pub(crate) async fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        let _ = running.stop.send(());
        if let Err(error) = running.task.await {
            (self.shared.note)(&format!("proxy {}: {error}", self.name));
        }
    }

    /// Whether another listen address or upstream would need a restart.
    pub(crate) async fn differs(&self, listen: &str, upstream: &str) -> Result<bool, Refusal> {
        if upstream != self.upstream {
            return Ok(true);
        }
        if listen == self.listen {
            return Ok(false);
        }
        let (network, address) = split(listen);
        let resolved: SocketAddr =
            listen_address(address).await.map_err(|error| refused(network, address, &error))?;
        Ok(join(network, resolved) != self.listen)
    }

    /// Changes addresses and state, as far as they differ.
    pub(crate) async fn update(
        &mut self,
        listen: String,
        upstream: String,
        enabled: bool,
    ) -> Result<(), Refusal> {
        check_networks(&listen, &upstream)?;
        if split(&listen).0 != self.network() {
            let why = "a proxy stays one of TCP or of UDP; delete it and create another".to_owned();
            return Err(Refusal::bad_body(format!("listen: found {listen:?}; {why}")));
        }
        if self.differs(&listen, &upstream).await? {
            self.stop().await;
            (self.listen, self.upstream) = (listen, upstream);
        }
        match enabled {
            true => self.start().await,
            false => {
                self.stop().await;
                Ok(())
            }
        }
    }

    /// The toxics of both streams, upstream first.
    pub(crate) fn all_toxics(&self) -> Vec<Arc<ToxicInUse>> {
        self.toxics.iter().flat_map(|toxics| toxics.borrow().to_vec()).collect()
    }

    /// The toxics as the API shows them.
    pub(crate) fn shown_toxics(&self) -> Value {
        self.all_toxics().iter().map(|toxic| json!(**toxic)).collect()
    }

    pub(crate) fn toxic(&self, name: &str) -> Option<Arc<ToxicInUse>> {
        self.all_toxics().into_iter().find(|toxic| toxic.name == name)
    }

    /// Appends a toxic, or replaces the settings of the one with its id.
    pub(crate) fn put(&self, toxic: ToxicInUse) -> Arc<ToxicInUse> {
        let toxic = Arc::new(toxic);
        self.toxics[toxic.way.index()].send_modify(|toxics| {
            let mut all = toxics.to_vec();
            match all.iter_mut().find(|one| one.id == toxic.id) {
                Some(one) => *one = toxic.clone(),
                None => all.push(toxic.clone()),
            }
            *toxics = all.into();
        });
        toxic
    }

    /// Removes the toxics for which `is_unwanted` holds.
    pub(crate) fn remove(&self, is_unwanted: impl Fn(&ToxicInUse) -> bool) {
        for way in Way::BOTH {
            self.toxics[way.index()].send_if_modified(|toxics| {
                let kept: Toxics = toxics.iter().filter(|toxic| !is_unwanted(toxic)).cloned().collect();
                let has_changed = kept.len() != toxics.len();
                *toxics = kept;
                has_changed
            });
        }
    }
}

/// Refuses a proxy that listens on one network and has an upstream on another.
fn check_networks(listen: &str, upstream: &str) -> Result<(), Refusal> {
    let has_scheme = |address: &str| address.contains("://");
    for (field, address) in [("listen", listen), ("upstream", upstream)] {
        if has_scheme(split(address).1) {
            let allowed = "allowed are HOST:PORT and udp://HOST:PORT";
            return Err(Refusal::bad_body(format!("{field}: found {address:?}; {allowed}")));
        }
    }
    if split(upstream).0 == Network::Udp && split(listen).0 == Network::Tcp {
        let why = "an upstream of UDP needs a listen address that starts with udp://";
        return Err(Refusal::bad_body(format!("listen: found {listen:?}; {why}")));
    }
    Ok(())
}

/// Why an address cannot be bound, in the words that Toxiproxy's clients know.
fn refused(network: Network, listen: &str, error: &io::Error) -> Refusal {
    let network = match network {
        Network::Tcp => "tcp",
        Network::Udp => "udp",
    };
    let why = match error.kind() {
        ErrorKind::AddrInUse => "bind: address already in use".into(),
        ErrorKind::PermissionDenied => "bind: permission denied".into(),
        ErrorKind::AddrNotAvailable => "bind: cannot assign requested address".into(),
        _ => error.to_string(),
    };
    Refusal::new(500, format!("listen {network} {listen}: {why}"))
}
