//! The proxies of a server, by name, and what the API does to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::body::{Fields, Refusal, first_value};
use crate::proxy::Proxy;
use crate::shared::Shared;
use crate::stream::Way;
use crate::toxic::{Kind, ToxicInUse};

/// The most proxies, and the most toxics of a proxy.
const MOST: usize = 1000;

/// All proxies.
#[derive(Debug)]
pub(crate) struct Registry {
    proxies: BTreeMap<String, Proxy>,
    shared: Shared,
    /// The id of the next toxic.
    next: u64,
}

/// What a request to populate came to: the proxies so far, and why it went no further.
#[derive(Debug)]
pub(crate) struct Populated {
    names: Vec<String>,
    pub(crate) refusal: Option<Refusal>,
}

impl Registry {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { proxies: BTreeMap::new(), shared, next: 0 }
    }

    pub(crate) fn proxies(&self) -> impl Iterator<Item = (&String, &Proxy)> {
        self.proxies.iter()
    }

    pub(crate) fn proxy(&self, name: &str) -> Result<&Proxy, Refusal> {
        self.proxies.get(name).ok_or_else(|| Refusal::new(404, "proxy not found"))
    }

    fn proxy_mut(&mut self, name: &str) -> Result<&mut Proxy, Refusal> {
        self.proxies.get_mut(name).ok_or_else(|| Refusal::new(404, "proxy not found"))
    }

    pub(crate) async fn create(&mut self, body: &[u8]) -> Result<&Proxy, Refusal> {
        let Given { name, listen, upstream, enabled } = Given::read(&Fields::of_body(body)?, "")?;
        if self.proxies.contains_key(&name) {
            return Err(Refusal::new(409, "proxy already exists"));
        }
        self.check_room()?;
        let mut proxy = Proxy::new(&name, listen, upstream, &self.shared)?;
        if enabled {
            proxy.start().await?;
        }
        Ok(self.proxies.entry(name).or_insert(proxy))
    }

    fn check_room(&self) -> Result<(), Refusal> {
        if self.proxies.len() < MOST {
            return Ok(());
        }
        Err(Refusal::new(409, format!("there are {MOST} proxies already, and no more are allowed")))
    }

    pub(crate) async fn update(&mut self, name: &str, body: &[u8]) -> Result<&Proxy, Refusal> {
        let proxy = self.proxy_mut(name)?;
        let fields = Fields::of_body(body)?;
        let listen = fields.text("listen")?.unwrap_or_else(|| proxy.listen.clone());
        let upstream = fields.text("upstream")?.unwrap_or_else(|| proxy.upstream.clone());
        let enabled = fields.flag("enabled")?.unwrap_or(proxy.is_enabled());
        proxy.update(listen, upstream, enabled).await?;
        Ok(proxy)
    }

    pub(crate) async fn delete(&mut self, name: &str) -> Result<(), Refusal> {
        self.proxy_mut(name)?.stop().await;
        self.proxies.remove(name);
        Ok(())
    }

    /// Creates the proxies of a list. Those that exist stay, if nothing differs, or are replaced.
    pub(crate) async fn populate(&mut self, body: &[u8]) -> Populated {
        let mut names = Vec::new();
        let refusal = self.populate_all(body, &mut names).await.err();
        Populated { names, refusal }
    }

    async fn populate_all(&mut self, body: &[u8], names: &mut Vec<String>) -> Result<(), Refusal> {
        let list = match first_value(body)? {
            Value::Array(list) => list,
            Value::Null => Vec::new(),
            other => return Err(Refusal::bad_body(format!("found {other}, expected a list of proxies"))),
        };
        let mut all = Vec::new();
        for (index, entry) in list.into_iter().enumerate() {
            let number = index + 1;
            let Value::Object(entry) = entry else {
                return Err(Refusal::bad_body(format!(
                    "found {entry} at proxy {number}, expected an object"
                )));
            };
            all.push(Given::read(&Fields::new(entry, ""), &format!(" at proxy {number}"))?);
        }
        for Given { name, listen, upstream, enabled } in all {
            if let Some(existing) = self.proxies.get_mut(&name) {
                if !existing.differs(&listen, &upstream).await? {
                    names.push(name);
                    continue;
                }
            } else {
                self.check_room()?;
            }
            let mut proxy = Proxy::new(&name, listen, upstream, &self.shared)?;
            if let Some(existing) = self.proxies.get_mut(&name) {
                existing.stop().await;
            }
            if enabled {
                proxy.start().await?;
            }
            self.proxies.insert(name.clone(), proxy);
            names.push(name);
        }
        Ok(())
    }

    /// The answer to a request to populate.
    pub(crate) fn populated(&self, populated: &Populated) -> Value {
        let shown = |name| self.proxies.get(name).map(|proxy| json!(proxy.shown()));
        let proxies: Vec<Value> = populated.names.iter().filter_map(shown).collect();
        let mut answer = populated.refusal.as_ref().map_or(json!({}), Refusal::json);
        // Toxiproxy says null for none.
        answer["proxies"] = if proxies.is_empty() { Value::Null } else { Value::Array(proxies) };
        answer
    }

    /// Enables all proxies and removes all toxics.
    pub(crate) async fn reset(&mut self) -> Result<(), Refusal> {
        for proxy in self.proxies.values_mut() {
            proxy.start().await?;
            proxy.remove(|_| true);
        }
        Ok(())
    }

    /// Stops all proxies.
    pub(crate) async fn stop(&mut self) {
        for proxy in self.proxies.values_mut() {
            proxy.stop().await;
        }
    }

    pub(crate) fn toxic(&self, proxy: &str, toxic: &str) -> Result<Arc<ToxicInUse>, Refusal> {
        let found = self.proxy(proxy)?.toxic(toxic);
        found.ok_or_else(|| Refusal::new(404, "toxic not found"))
    }

    pub(crate) fn add_toxic(&mut self, proxy: &str, body: &[u8]) -> Result<Arc<ToxicInUse>, Refusal> {
        let id = self.next;
        let proxy = self.proxy(proxy)?;
        let fields = Fields::of_body(body)?;
        let kind = fields.text("type")?.unwrap_or_default();
        let stream = fields.text("stream")?.unwrap_or_else(|| Way::Downstream.name().into());
        let toxicity = fields.fraction("toxicity")?.unwrap_or(1.0);
        let name = fields.text("name")?.unwrap_or_default();
        let Some(way) = Way::read(&stream) else {
            let text = "stream was invalid, can be either upstream or downstream";
            return Err(Refusal::new(400, text));
        };
        let name = if name.is_empty() { format!("{kind}_{stream}") } else { name };
        let kind = Kind::named(&kind).ok_or_else(|| Refusal::new(400, "invalid toxic type"))?;
        if proxy.toxic(&name).is_some() {
            return Err(Refusal::new(409, "toxic already exists"));
        }
        if proxy.all_toxics().len() >= MOST {
            return Err(Refusal::new(409, format!("the proxy has {MOST} toxics, and no more are allowed")));
        }
        kind.check(proxy.network())?;
        let values = kind.read(fields.get("attributes"), None, way)?;
        let toxic = ToxicInUse { id, change: 0, kind, name, way, stream, toxicity, values };
        let added = proxy.put(toxic);
        self.next += 1;
        Ok(added)
    }

    pub(crate) fn update_toxic(
        &mut self,
        proxy: &str,
        toxic: &str,
        body: &[u8],
    ) -> Result<Arc<ToxicInUse>, Refusal> {
        let before = self.toxic(proxy, toxic)?;
        let fields = Fields::of_body(body)?;
        let toxicity = fields.fraction("toxicity")?.unwrap_or(before.toxicity);
        let values = before.kind.read(fields.get("attributes"), Some(&before.values), before.way)?;
        let toxic = ToxicInUse { change: before.change + 1, toxicity, values, ..ToxicInUse::clone(&before) };
        Ok(self.proxy(proxy)?.put(toxic))
    }

    pub(crate) fn remove_toxic(&mut self, proxy: &str, toxic: &str) -> Result<(), Refusal> {
        let id = self.toxic(proxy, toxic)?.id;
        self.proxy(proxy)?.remove(|one| one.id == id);
        Ok(())
    }
}

/// A proxy as a request gives it.
struct Given {
    name: String,
    listen: String,
    upstream: String,
    enabled: bool,
}

impl Given {
    /// Reads it; `place` says where it is in a list.
    fn read(fields: &Fields, place: &str) -> Result<Self, Refusal> {
        let given = Self {
            name: fields.text("name")?.unwrap_or_default(),
            listen: fields.text("listen")?.unwrap_or_default(),
            upstream: fields.text("upstream")?.unwrap_or_default(),
            enabled: fields.flag("enabled")?.unwrap_or(true),
        };
        match (&given.name[..], &given.upstream[..]) {
            ("", _) => Err(Refusal::missing(format_args!("name{place}"))),
            (_, "") => Err(Refusal::missing(format_args!("upstream{place}"))),
            _ => Ok(given),
        }
    }
}
