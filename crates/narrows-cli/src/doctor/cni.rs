//! `narrows doctor --for cni`: what the CNI plugin needs on this node, and what is missing.

use std::path::Path;

use narrows_containers::cni::{ConfigList, PLUGIN};
use narrows_scenario::read_text;

use super::Page;
use super::docker::{attaching, kernel};
use crate::cni::{CONFIGURATIONS, PLUGINS, configurations};

/// The section; its findings begin with yes or no, like those of modes. Whether all is there.
pub(super) fn findings(page: &mut Page) -> bool {
    page.heading("What the CNI plugin needs on a node", "cni");
    let mut all = attaching();
    all.extend([
        ("TCX links", kernel()),
        ("plugin", plugin()),
        ("network", network().unwrap_or_else(|why| format!("no: {why}"))),
    ]);
    all.iter().for_each(|(topic, finding)| page.say(topic, finding));
    page.say("not needed", "privileges in pods, access to the API server, a daemon; the kernel's netem");
    all.iter().all(|(_, finding)| finding.starts_with("yes"))
}

fn plugin() -> String {
    let path = Path::new(PLUGINS).join(PLUGIN);
    match path.is_file() {
        true => format!("yes: {}", path.display()),
        false => format!("no: {} is not there; narrows cni install puts it there", path.display()),
    }
}

/// Whether the plugin is in the chain that runtimes use.
fn network() -> Result<String, String> {
    let all = configurations(Path::new(CONFIGURATIONS)).map_err(|error| error.to_string())?;
    let first = all.first().ok_or_else(|| format!("no network configuration in {CONFIGURATIONS}"))?;
    let (text, name) = read_text(first, "network configuration").map_err(|error| error.to_string())?;
    let list = ConfigList::read(&text, &name).map_err(|error| error.to_string())?;
    match list.ours().map_err(|error| error.to_string())? {
        Some(_) => Ok(format!("yes: {}, by {name}", list.network)),
        None => Err(format!("{name} does not have {PLUGIN}; narrows cni install adds it")),
    }
}
