//! Routers.

use schemars::JsonSchema;

use super::Addresses;

/// Sends packets on by their destination, by the shortest path unless a route says otherwise.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Router {
    /// Addresses with their prefix; automatic if they are not given.
    addresses: Option<Addresses>,
    /// How packets are spread where several paths are shortest; `none` if it is not given.
    multipath: Option<Multipath>,
    /// Routes that count for more than the shortest paths.
    routes: Option<Vec<Route>>,
}

/// How packets are spread where several paths are shortest.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Multipath {
    /// They are not: the link whose name comes first counts.
    None,
    /// Each flow keeps to one path.
    Flow,
    /// Each packet by itself.
    Packet,
}

/// Where packets go.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Route {
    /// A host, a router, or a network such as `10.0.0.0/8`.
    to: String,
    /// The links by which they leave.
    via: Via,
    /// How much of them leaves by each; the same if it is not given.
    weights: Option<Vec<Weight>>,
    /// How they are spread over several links; as the router's `multipath` says, or else by flow.
    spread: Option<Spread>,
}

/// A weight.
#[derive(JsonSchema)]
struct Weight(#[schemars(range(min = 1, max = 1_000_000))] u32);

/// Links of the router.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Via {
    /// One.
    One(String),
    /// Several.
    Several(#[schemars(length(min = 1, max = 64))] Vec<String>),
}

/// How packets are spread over several links.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Spread {
    /// Each flow keeps to one of them.
    Flow,
    /// Each packet by itself.
    Packet,
}
