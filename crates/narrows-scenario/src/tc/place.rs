//! The place of a device in the network of a script.

use crate::link::Way;
use crate::two_hosts::LINK;

/// Where a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The link that it sends on.
    pub link: String,
    /// The direction of packets that leave by it; arriving packets have the other direction.
    pub way: Way,
    /// The host or router that has it.
    pub at: String,
    /// The host or router at the other end of the link.
    pub beyond: String,
}

impl Place {
    pub(super) fn of_two_hosts(way: Way) -> Self {
        let (at, beyond) = match way {
            Way::Up => ("client", "server"),
            Way::Down => ("server", "client"),
        };
        Self { link: LINK.into(), way, at: at.into(), beyond: beyond.into() }
    }
}

/// A name that a scenario allows, and nothing else has.
pub(super) fn unique(device: &str, taken: &mut Vec<String>) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let plain: String = device.chars().take(40).map(allowed).collect();
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let name =
        std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.push(name.clone());
    name
}
