//! Kernel settings of one network namespace, as under `/proc/sys/net`.
//!
//! The kernel shows each thread the settings of the thread's namespace, so they are read and written from inside.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::namespace::{Namespace, NamespaceError};

/// Why a setting could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The path is not a network setting.
    #[error("`{key}` is not a network setting: it must be a plain path such as net/ipv4/ip_forward")]
    NotASetting {
        /// The given path.
        key: String,
    },
    /// The file could not be read or written.
    #[error("cannot {verb} the setting {key} in {namespace}: {cause}")]
    Refused {
        /// "read" or "write".
        verb: &'static str,
        /// The setting.
        key: String,
        /// The namespace's label.
        namespace: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Reads a setting such as `net/ipv4/ip_forward`.
pub fn read_sysctl(namespace: &Namespace, key: &str) -> Result<String, SysctlError> {
    let path = path_of(key)?;
    namespace.run(|| read(&path))?.map_err(|cause| refused("read", key, namespace, cause))
}

/// Writes a setting and returns what it was before.
pub fn write_sysctl(namespace: &Namespace, key: &str, value: &str) -> Result<String, SysctlError> {
    let path = path_of(key)?;
    let written = namespace.run(|| {
        let before = read(&path)?;
        if before != value {
            fs::write(&path, value)?;
        }
        Ok(before)
    })?;
    written.map_err(|cause| refused("write", key, namespace, cause))
}

/// Writes several settings. IPv6 settings may be missing: a kernel may have no IPv6, and an interface with an MTU
/// below 1280 has none.
pub(crate) fn write_sysctls<K: AsRef<str> + Sync>(
    namespace: &Namespace,
    settings: &[(K, &str)],
) -> Result<(), SysctlError> {
    namespace.run(|| {
        for (key, value) in settings {
            match write_sysctl(namespace, key.as_ref(), value) {
                Err(error) if is_missing(&error) && key.as_ref().starts_with("net/ipv6/") => {}
                result => drop(result?),
            }
        }
        Ok(())
    })?
}

fn is_missing(error: &SysctlError) -> bool {
    matches!(error, SysctlError::Refused { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
}

fn read(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

fn refused(verb: &'static str, key: &str, namespace: &Namespace, cause: io::Error) -> SysctlError {
    SysctlError::Refused { verb, key: key.into(), namespace: namespace.label().into(), cause }
}

/// Only network settings are per namespace; anything else would affect the whole host.
fn path_of(key: &str) -> Result<PathBuf, SysctlError> {
    let relative = Path::new(key);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || !relative.starts_with("net") {
        return Err(SysctlError::NotASetting { key: key.into() });
    }
    Ok(Path::new("/proc/sys").join(relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_network_settings_are_reached() {
        assert!(path_of("net/ipv4/ip_forward").is_ok());
        for key in ["kernel/hostname", "net/../kernel/hostname", "/net/ipv4/ip_forward", ""] {
            assert!(path_of(key).is_err(), "{key}");
        }
    }
}
