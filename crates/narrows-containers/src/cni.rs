//! The contract of a CNI plugin (Container Network Interface, versions 0.3.0 to 1.1.0), chained behind one that has
//! made the interface.
//!
//! A container runtime starts the plugin for each attachment of a container to a network: variables say what to do at
//! which interface, standard input has the network's configuration. The result of the plugin before is passed on
//! unchanged, as the network at the interface changes none of it.
//!
//! Source: the CNI specification (github.com/containernetworking/cni, SPEC.md); pod annotations come as the capability
//! `io.kubernetes.cri.pod-annotations` of containerd and CRI-O, and Kubernetes' bandwidth annotations as `bandwidth`.

mod config;
mod list;

use std::ffi::OsString;
use std::fmt;

pub use config::{Config, ConfigError};
pub use list::ConfigList;
use serde_json::json;

use crate::labels::Wish;
use crate::run_names::run_name;

/// The name of the plugin's program, which configurations have as `type`.
pub const PLUGIN: &str = "narrows-cni";
/// The versions of the specification that have chains.
pub const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
/// What the owners of our runs begin with.
const OWNER: &str = "cni";

/// What the plugin is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Add a network to an interface.
    Add,
    /// Check that it is there.
    Check,
    /// Remove it.
    Del,
    /// Remove networks of attachments that are gone.
    Gc,
    /// Say whether [`Add`](Self::Add) can work.
    Status,
    /// Name the versions.
    Version,
}

impl Verb {
    const ALL: [(&str, Self); 6] = [
        ("ADD", Self::Add),
        ("CHECK", Self::Check),
        ("DEL", Self::Del),
        ("GC", Self::Gc),
        ("STATUS", Self::Status),
        ("VERSION", Self::Version),
    ];
}

/// One attachment of a container to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The container's ID.
    pub container: String,
    /// The interface's name in the container.
    pub interface: String,
    /// The path of its network namespace; may be missing when it is removed.
    pub namespace: Option<String>,
    /// The pod, as `namespace/name`, if the runtime is Kubernetes'.
    pub pod: Option<String>,
}

/// What the variables of the plugin say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What to do.
    pub verb: Verb,
    /// Where, for those verbs that are about one attachment.
    pub attachment: Option<Attachment>,
}

impl Asked {
    /// Reads the variables; `None` if this is not called as a plugin.
    ///
    /// # Errors
    /// If they are incomplete or malformed.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, CniError> {
        let wrong = |name: &str, found: &str, allowed: &str| {
            CniError::new(Code::Environment, format!("{name}=`{found}`: {allowed}"))
        };
        let text = |name: &str| match variable(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(Err(raw)) => Err(wrong(name, &raw.to_string_lossy(), "not UTF-8")),
        };
        let Some(verb) = text("CNI_COMMAND")? else { return Ok(None) };
        let known = Verb::ALL.iter().find(|(name, _)| *name == verb);
        let Some((_, verb)) = known else {
            let all = Verb::ALL.map(|(name, _)| name).join(", ");
            return Err(wrong("CNI_COMMAND", &verb, &format!("expected one of {all}")));
        };
        let verb = *verb;
        if !matches!(verb, Verb::Add | Verb::Check | Verb::Del) {
            return Ok(Some(Self { verb, attachment: None }));
        }
        let needed = |name: &str| {
            text(name)?
                .ok_or_else(|| CniError::new(Code::Environment, format!("the variable {name} is not set")))
        };
        let container = needed("CNI_CONTAINERID")?;
        let is_known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !container.starts_with(|c: char| c.is_ascii_alphanumeric()) || !container.chars().all(is_known) {
            let allowed = "expected letters, digits, `_`, `.` and `-`, a letter or digit first";
            return Err(wrong("CNI_CONTAINERID", &container, allowed));
        }
        let interface = needed("CNI_IFNAME")?;
        let is_bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        if interface.len() > 15 || interface == "." || interface == ".." || interface.contains(is_bad) {
            let allowed = "expected an interface's name: at most 15 characters, no `/`, `:` or space";
            return Err(wrong("CNI_IFNAME", &interface, allowed));
        }
        let namespace = match verb {
            Verb::Del => text("CNI_NETNS")?,
            _ => Some(needed("CNI_NETNS")?),
        };
        let arguments = text("CNI_ARGS")?.unwrap_or_default();
        let argument = |name: &str| {
            let mut all = arguments.split(';').filter_map(|pair| pair.split_once('='));
            all.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let pod = argument("K8S_POD_NAMESPACE").zip(argument("K8S_POD_NAME"));
        let pod = pod.map(|(namespace, name)| format!("{namespace}/{name}"));
        Ok(Some(Self { verb, attachment: Some(Attachment { container, interface, namespace, pod }) }))
    }
}

impl Attachment {
    /// Who owns the run at this attachment to a network.
    pub fn owner(&self, network: &str) -> String {
        owner(network, &self.container, &self.interface)
    }

    /// The names that its run may have, best first.
    pub fn run_names(&self) -> [String; 2] {
        let base =
            self.pod.as_ref().and_then(|pod| pod.split_once('/')).map_or(&*self.container, |(_, name)| name);
        let tail = if self.interface == "eth0" { String::new() } else { format!("-{}", self.interface) };
        let short: String = self.container.chars().take(8).collect();
        [run_name(base, &tail), run_name(base, &format!("-{short}{tail}"))]
    }
}

impl fmt::Display for Attachment {
    /// What people know it by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pod {
            Some(pod) => write!(f, "pod {pod}"),
            None => write!(f, "container {}", self.container.chars().take(12).collect::<String>()),
        }
    }
}

/// Who owns a run: no part has a slash.
fn owner(network: &str, container: &str, interface: &str) -> String {
    format!("{OWNER}/{network}/{container}/{interface}")
}

/// Whether this owner of a run is an attachment to this network, apart from `valid` ones (container and interface).
pub fn is_stale(run_owner: &str, network: &str, valid: &[(String, String)]) -> bool {
    run_owner.starts_with(&format!("{OWNER}/{network}/"))
        && !valid.iter().any(|(container, interface)| owner(network, container, interface) == run_owner)
}

/// What the plugin has found of its task.
#[derive(Clone, Debug)]
pub struct Task {
    /// The network at the interface, if there is to be one.
    pub wish: Option<Wish>,
    /// Whether the interface is blocked if narrows is killed.
    pub fails_closed: bool,
}

/// Codes of errors: those of the specification, and from 100 on our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The version of the specification is unknown.
    Version = 1,
    /// A variable is missing or malformed.
    Environment = 4,
    /// Something cannot be read or written.
    System = 5,
    /// The configuration is no JSON.
    Decode = 6,
    /// The configuration has errors.
    Config = 7,
    /// It may work later.
    TryAgain = 11,
    /// The plugin cannot work on this host.
    NotAvailable = 50,
    /// A network cannot be attached.
    Attach = 100,
    /// A network is not there any more.
    Gone = 101,
}

/// An error, as a runtime reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CniError {
    /// What kind.
    pub code: Code,
    /// One line.
    pub message: String,
    /// More lines, or nothing.
    pub details: String,
}

impl CniError {
    /// An error from a text: its first line, and the others as details.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        let text = text.trim_end().trim_start_matches("error: ").trim_start_matches("narrows: ");
        let (message, details) = text.split_once('\n').unwrap_or((text, ""));
        Self { code, message: message.trim().into(), details: details.into() }
    }

    /// The error as the specification has it.
    pub fn json(&self, version: &str) -> String {
        let mut all = json!({ "cniVersion": version, "code": self.code as u32, "msg": self.message });
        if !self.details.is_empty() {
            all["details"] = json!(self.details);
        }
        all.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Asked>, String> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Asked::read(find).map_err(|error| error.to_string())
    }

    const ADD: [(&str, &str); 5] = [
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", "0123456789abcdef"),
        ("CNI_NETNS", "/run/netns/x"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-7d9f"),
    ];

    #[test]
    fn variables_say_what_to_do_where() {
        assert_eq!(read(&[]), Ok(None));
        let asked = read(&ADD).unwrap().unwrap();
        let attachment = asked.attachment.unwrap();
        assert_eq!(asked.verb, Verb::Add);
        assert_eq!(attachment.to_string(), "pod default/web-7d9f");
        assert_eq!(attachment.run_names(), ["web-7d9f".to_owned(), "web-7d9f-01234567".into()]);
        assert_eq!(attachment.owner("net"), "cni/net/0123456789abcdef/eth0");
        let status = read(&[("CNI_COMMAND", "STATUS")]).unwrap().unwrap();
        assert_eq!(status, Asked { verb: Verb::Status, attachment: None });
    }

    #[test]
    fn variables_with_errors_are_named() {
        for (variable, value, part) in [
            ("CNI_COMMAND", "MOVE", "CNI_COMMAND=`MOVE`: expected one of ADD, CHECK, DEL"),
            ("CNI_CONTAINERID", "../x", "CNI_CONTAINERID=`../x`: expected letters"),
            ("CNI_IFNAME", "a/b", "CNI_IFNAME=`a/b`: expected an interface's name"),
            ("CNI_NETNS", "", "the variable CNI_NETNS is not set"),
        ] {
            let changed = ADD.map(|(name, before)| (name, if name == variable { value } else { before }));
            let error = read(&changed).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn only_attachments_of_the_network_that_are_not_listed_are_stale() {
        let valid = [("a".to_owned(), "eth0".to_owned())];
        for (owner, stale) in [
            ("cni/net/a/eth0", false),
            ("cni/net/a/eth1", true),
            ("cni/net/b/eth0", true),
            ("cni/network/b/eth0", false),
            ("cni/ne/b/eth0", false),
            ("", false),
        ] {
            assert_eq!(is_stale(owner, "net", &valid), stale, "{owner}");
        }
    }

    #[test]
    fn an_error_has_its_first_line_apart() {
        let error = CniError::new(Code::Config, "error: unknown key `dealy`\n  --> link\n");
        assert_eq!(
            error.json("1.1.0"),
            r#"{"cniVersion":"1.1.0","code":7,"details":"  --> link","msg":"unknown key `dealy`"}"#
        );
    }
}
