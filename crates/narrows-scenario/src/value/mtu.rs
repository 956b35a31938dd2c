//! The longest packet: `1400`, `{ bytes = 1400, policy = "black-hole" }`, or `"none"`.

use narrows_core::{Mtu, MtuPolicy};

use crate::node::{Node, Value};
use crate::problem::Problem;

const POLICIES: &[(&str, MtuPolicy)] =
    &[("fragment", MtuPolicy::Fragment), ("answer", MtuPolicy::Answer), ("black-hole", MtuPolicy::BlackHole)];

/// Reads an MTU.
pub(crate) fn read(node: &Node) -> Result<Option<Mtu>, Problem> {
    match &node.value {
        Value::Table(table) => {
            table.only(&["bytes", "policy"])?;
            let bytes = table.required("bytes", &node.span, bytes)?;
            let policy =
                table.optional("policy", |node| node.choice("policy", POLICIES))?.unwrap_or_default();
            Ok(Some(Mtu { bytes, policy }))
        }
        Value::String(text) if text.trim() == "none" => Ok(None),
        _ => Ok(Some(Mtu { bytes: bytes(node)?, policy: MtuPolicy::default() })),
    }
}

/// Every IPv4 link takes 68 bytes (RFC 791), and no IP packet is longer than 65,535. With the unit or, as MTUs are
/// usually written, without.
fn bytes(node: &Node) -> Result<u32, Problem> {
    let text = match &node.value {
        Value::Integer(text) => text.as_str(),
        Value::String(text) => text.trim().trim_end_matches("bytes"),
        _ => "",
    };
    let bytes = text.trim().parse().ok().filter(|bytes| (68..65_536).contains(bytes));
    bytes.ok_or_else(|| node.expected("a number of bytes from 68 to 65535, such as 1400"))
}

/// As it stands in a file.
pub(crate) fn text(mtu: Mtu) -> String {
    let policy =
        POLICIES.iter().find(|(_, policy)| *policy == mtu.policy).map_or("fragment", |(name, _)| *name);
    format!("{{ bytes = {}, policy = \"{policy}\" }}", mtu.bytes)
}
