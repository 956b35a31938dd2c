//! Containers, as an engine describes them (`GET /containers/ID/json`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

/// Labels that Docker Compose and podman-compose give each container.
pub const PROJECT: &str = "com.docker.compose.project";
const SERVICE: &str = "com.docker.compose.service";

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its first process, while it runs.
    pub process: Option<u32>,
    /// Where its network namespace is, or will be before its first process starts.
    pub namespace: Option<String>,
    /// The container or host whose network it shares: `host`, `container:ID`.
    pub shares: Option<String>,
    /// Its networks by name.
    pub networks: BTreeMap<String, Endpoint>,
}

/// A container in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The address of its interface, in lower-case letters.
    pub mac: Option<String>,
}

impl Container {
    /// Parses the engine's description.
    ///
    /// # Errors
    /// If it is not the description of a container.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        let Described { id, name, state, config, host, network } = serde_json::from_slice(text)?;
        let networks = network.networks.unwrap_or_default().into_iter().map(|(name, joined)| {
            let joined = joined.unwrap_or_default();
            let addresses = [joined.ip, joined.ip6];
            let addresses = addresses.into_iter().filter_map(|address| address.parse().ok()).collect();
            let mac = Some(joined.mac.to_lowercase()).filter(|mac| !mac.is_empty());
            (name, Endpoint { addresses, mac })
        });
        let is_shared = |mode: &String| mode == "host" || mode.starts_with("container:");
        Ok(Self {
            id,
            name: name.trim_start_matches('/').to_owned(),
            labels: config.labels.unwrap_or_default(),
            process: Some(state.process).filter(|process| state.running && *process > 0),
            namespace: Some(network.namespace).filter(|path| path.starts_with('/')),
            shares: Some(host.network_mode).filter(is_shared),
            networks: networks.collect(),
        })
    }

    /// A container that is about to start in a network, from the engine's list of containers and its description of
    /// the network: while a container starts, Docker gives no description of the container itself. `None` if it is in
    /// neither, or runs already.
    ///
    /// # Errors
    /// If one of them is something else.
    pub fn parse_starting(id: &str, list: &[u8], network: &[u8]) -> Result<Option<Self>, serde_json::Error> {
        let listed: Vec<Listed> = serde_json::from_slice(list)?;
        let network: Joining = serde_json::from_slice(network)?;
        let Some(listed) = listed.into_iter().find(|listed| listed.id == id && listed.state != "running")
        else {
            return Ok(None);
        };
        let Some(joined) = network.containers.unwrap_or_default().remove(id) else { return Ok(None) };
        let addresses = [joined.ip, joined.ip6];
        let address = |text: &String| text.split('/').next().and_then(|address| address.parse().ok());
        let endpoint = Endpoint {
            addresses: addresses.iter().filter_map(address).collect(),
            mac: Some(joined.mac.to_lowercase()).filter(|mac| !mac.is_empty()),
        };
        Ok(Some(Self {
            id: listed.id,
            name: listed
                .names
                .first()
                .map(|name| name.trim_start_matches('/').to_owned())
                .unwrap_or_default(),
            labels: listed.labels.unwrap_or_default(),
            process: None,
            namespace: None,
            shares: None,
            networks: [(network.name, endpoint)].into(),
        }))
    }

    /// The compose project that it belongs to.
    pub fn project(&self) -> Option<&str> {
        self.labels.get(PROJECT).map(String::as_str)
    }

    /// The compose service that it runs.
    pub fn service(&self) -> Option<&str> {
        self.labels.get(SERVICE).map(String::as_str)
    }
}

/// The relevant parts of the description.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    state: State,
    #[serde(default)]
    config: Config,
    #[serde(default, rename = "HostConfig")]
    host: Host,
    #[serde(default, rename = "NetworkSettings")]
    network: Network,
}

/// A container in the engine's list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    state: String,
}

/// A network, with its containers by ID.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Joining {
    #[serde(default)]
    name: String,
    #[serde(default)]
    containers: Option<BTreeMap<String, InNetwork>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InNetwork {
    #[serde(rename = "MacAddress")]
    mac: String,
    #[serde(rename = "IPv4Address")]
    ip: String,
    #[serde(rename = "IPv6Address")]
    ip6: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct State {
    running: bool,
    #[serde(rename = "Pid")]
    process: u32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Host {
    network_mode: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Network {
    #[serde(rename = "SandboxKey")]
    namespace: String,
    networks: Option<BTreeMap<String, Option<Joined>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Joined {
    #[serde(rename = "IPAddress")]
    ip: String,
    #[serde(rename = "GlobalIPv6Address")]
    ip6: String,
    #[serde(rename = "MacAddress")]
    mac: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_of_docker_is_read() {
        let text = r#"{"Id":"f00d","Name":"/shop-web-1","State":{"Status":"running","Running":true,"Pid":4711},
            "Config":{"Labels":{"com.docker.compose.project":"shop","com.docker.compose.service":"web"}},
            "HostConfig":{"NetworkMode":"shop_default"},"NetworkSettings":{"SandboxKey":"/run/docker/netns/1a",
            "Networks":{"shop_default":{"IPAddress":"172.18.0.2","GlobalIPv6Address":"","MacAddress":"02:42:AC:12:00:02"},
            "gone":null}}}"#;
        let container = Container::parse(text.as_bytes()).unwrap();
        assert_eq!((container.name.as_str(), container.process), ("shop-web-1", Some(4711)));
        assert_eq!((container.project(), container.service()), (Some("shop"), Some("web")));
        assert_eq!(container.namespace.as_deref(), Some("/run/docker/netns/1a"));
        assert_eq!(container.shares, None);
        let joined = &container.networks["shop_default"];
        assert_eq!(joined.addresses, ["172.18.0.2".parse::<IpAddr>().unwrap()]);
        assert_eq!(joined.mac.as_deref(), Some("02:42:ac:12:00:02"));
    }

    #[test]
    fn a_container_that_starts_is_read_from_list_and_network() {
        let list = br#"[{"Id":"7d","Names":["/web"],"Labels":{"narrows.delay":"20ms"},"State":"created"}]"#;
        let network = br#"{"Name":"net1","Id":"46","Containers":{"7d":{"Name":"web","EndpointID":"aa",
            "MacAddress":"02:42:ac:12:00:02","IPv4Address":"172.18.0.2/16","IPv6Address":""}}}"#;
        let container = Container::parse_starting("7d", list, network).unwrap().unwrap();
        assert_eq!((container.name.as_str(), container.labels.len()), ("web", 1));
        assert_eq!(container.networks["net1"].addresses, ["172.18.0.2".parse::<IpAddr>().unwrap()]);
        assert_eq!(container.networks["net1"].mac.as_deref(), Some("02:42:ac:12:00:02"));
        assert_eq!(Container::parse_starting("8e", list, network).unwrap(), None);
        let running = br#"[{"Id":"7d","State":"running"}]"#;
        assert_eq!(Container::parse_starting("7d", running, network).unwrap(), None);
        assert!(Container::parse_starting("7d", b"{}", network).is_err());
    }

    #[test]
    fn what_is_missing_is_nothing() {
        let bare = Container::parse(
            br#"{"Id":"f0","State":{"Running":false,"Pid":0},"HostConfig":{"NetworkMode":"host"}}"#,
        );
        let bare = bare.unwrap();
        assert_eq!((bare.process, bare.shares.as_deref()), (None, Some("host")));
        assert!(Container::parse(b"{}").is_err());
        assert!(Container::parse(br#"{"Id":"x","State":{"Pid":-1}}"#).is_err());
    }
}
