//! Host settings that several runs may need at the same time, reverted when the last one ends.
//!
//! Each run that needs a setting holds a shared lock on its ledger file. A run that ends and finds no other lock
//! restores the old value and removes the file; [`restore_abandoned`] does this for killed runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{Cleared, Existing, LedgerError, PutBack, Record, Turn, clear, lock_shared, try_lock};
use crate::link::{Interface, InterfaceIndex};
use crate::namespace::Namespace;
use crate::namespace_identity::NamespaceIdentity;
use crate::own_folder::Lock;
use crate::route_socket::RouteSocket;
use crate::sysctl::{SysctlError, read_sysctl, write_sysctl};

/// A setting that is raised as long as this value, or the last of its kind on this host, lives.
#[derive(Debug)]
pub struct RaisedSetting {
    namespace: Namespace,
    file: File,
    record: SettingRecord,
    ledger: PathBuf,
    is_released: bool,
}

/// The contents of a ledger file: a line each for the namespace's inode, the setting, its two values, the number of
/// its interface, and the rest of the namespace's identity. By the time the setting is reverted, the interface may
/// have another name, and another interface its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRecord {
    /// The network namespace of the setting.
    pub namespace: NamespaceIdentity,
    /// The setting, such as `net/ipv4/conf/eth0/forwarding`, under its name when it was raised.
    pub key: String,
    /// Its interface, if it has one. Older versions did not record it.
    pub interface: Option<InterfaceIndex>,
    /// Its old value.
    pub before: String,
    /// Its new value.
    pub raised: String,
}

impl RaisedSetting {
    /// Sets `key` to `value` in `namespace`, recording it in `ledger`. `None` if it already had that value and no run
    /// had set it: then it must not be reverted.
    pub fn raise(
        namespace: &Namespace,
        key: &str,
        value: &str,
        ledger: &Path,
    ) -> Result<Option<Self>, LedgerError> {
        let mut record = SettingRecord {
            namespace: NamespaceIdentity::of(namespace)?,
            key: key.to_owned(),
            interface: interface_of(namespace, key)?,
            before: String::new(),
            raised: value.to_owned(),
        };
        let name = record.name();
        let turn = Turn::take(ledger)?;
        let (file, is_new) = match turn.existing::<SettingRecord>(&name, &record.namespace)? {
            Some(Existing::Held(file, there) | Existing::Left(file, there)) => {
                record = there;
                lock_shared(&file, &ledger.join(&name))?;
                (file, false)
            }
            None => {
                record.before = read_sysctl(namespace, key)?;
                if record.before == value {
                    // A file that a killed run may have left is obsolete.
                    turn.remove(&name)?;
                    return Ok(None);
                }
                (turn.write(&record, Lock::Shared)?, true)
            }
        };
        if let Err(error) = write_sysctl(namespace, key, value) {
            if is_new {
                turn.remove(&name)?;
            }
            return Err(error.into());
        }
        let (namespace, ledger) = (namespace.try_clone()?, ledger.into());
        Ok(Some(Self { namespace, file, record, ledger, is_released: false }))
    }

    /// Restores the value if no other run needs it. Dropping does the same silently.
    pub fn release(mut self) -> Result<bool, LedgerError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<bool, LedgerError> {
        // Only once: afterwards a file of that name belongs to another run.
        if std::mem::replace(&mut self.is_released, true) {
            return Ok(false);
        }
        let turn = Turn::take(&self.ledger)?;
        let name = self.record.name();
        if !try_lock(&self.file, &self.ledger.join(&name))? {
            return Ok(false);
        }
        self.record.put_back(&self.namespace)?;
        turn.remove(&name)?;
        Ok(true)
    }
}

impl Drop for RaisedSetting {
    fn drop(&mut self) {
        // If this fails, the file is left for `restore_abandoned`.
        let _ = self.put_back();
    }
}

/// Restores settings that killed runs left in `ledger`: those of `here`, and of namespaces that can still be found,
/// unless a live run needs them.
///
/// # Errors
/// If the ledger cannot be read.
pub fn restore_abandoned(here: &Namespace, ledger: &Path) -> Result<Cleared<SettingRecord>, LedgerError> {
    clear(here, ledger)
}

impl Record for SettingRecord {
    fn name(&self) -> String {
        let key = match self.interface {
            Some(InterfaceIndex(number)) => with_name(&self.key, &number.to_string()),
            None => self.key.clone(),
        };
        format!("{}-{}", self.namespace.inode, key.replace('/', "-"))
    }

    fn namespace(&mut self) -> &mut NamespaceIdentity {
        &mut self.namespace
    }

    fn reference(&self) -> Option<&str> {
        None
    }

    fn text(&self) -> String {
        let Self { namespace, key, interface, before, raised } = self;
        let interface = interface.map_or(String::new(), |index| format!("{INTERFACE}{}\n", index.0));
        format!("{}\n{key}\n{before}\n{raised}\n{interface}{}", namespace.inode, namespace.lines())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let inode = lines.next()?.parse().ok()?;
        let mut namespace = NamespaceIdentity { inode, boot: None, cookie: None };
        let mut line = || lines.next().map(str::to_owned);
        let (key, before, raised) = (line()?, line()?, line()?);
        let mut interface = None;
        let mut read = |line: &str| match line.strip_prefix(INTERFACE).map(str::parse) {
            Some(number) => number.map(|number| interface = Some(InterfaceIndex(number))).is_ok(),
            None => namespace.read_line(line),
        };
        let is_known = lines.all(&mut read);
        is_known.then_some(Self { namespace, key, interface, before, raised })
    }

    /// Writes the old value, unless somebody has set another one since.
    fn put_back(&self, namespace: &Namespace) -> Result<PutBack, LedgerError> {
        let Self { key, before, raised, .. } = self;
        let gone =
            || PutBack::Moot(format!("the interface of the setting {key} is gone, and its settings with it"));
        let Some(key) = self.key_now(namespace)? else { return Ok(gone()) };
        match read_sysctl(namespace, &key) {
            Ok(now) if now == *raised => {
                write_sysctl(namespace, &key, before)?;
                Ok(PutBack::Done)
            }
            Ok(now) if now == *before => Ok(PutBack::Moot(format!("{key} was already {before} again"))),
            Ok(now) => Ok(PutBack::Moot(format!(
                "{key} is now {now}, changed by another program; it was {before}, and {raised} during the run"
            ))),
            Err(SysctlError::Refused { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(gone()),
            Err(error) => Err(error.into()),
        }
    }
}

impl SettingRecord {
    /// The present name of the setting; `None` if its interface is gone.
    fn key_now(&self, namespace: &Namespace) -> Result<Option<String>, LedgerError> {
        let Some(index) = self.interface else { return Ok(Some(self.key.clone())) };
        let all = interfaces(namespace)?;
        Ok(all.iter().find(|interface| interface.index == index).map(|now| with_name(&self.key, &now.name)))
    }
}

/// The prefix of a record's line with the interface's number.
const INTERFACE: &str = "interface ";

/// The part of a setting's path that is an interface name: `eth0` in `net/ipv4/conf/eth0/forwarding`.
fn name_in(key: &str) -> Option<&str> {
    let mut parts = key.split('/').skip(2);
    parts.next().filter(|part| *part == "conf")?;
    parts.next().filter(|part| !["all", "default"].contains(part))
}

/// The same setting for an interface of this name.
fn with_name(key: &str, name: &str) -> String {
    match name_in(key) {
        Some(before) => key.replacen(&format!("/conf/{before}/"), &format!("/conf/{name}/"), 1),
        None => key.into(),
    }
}

/// The interface of a setting.
fn interface_of(namespace: &Namespace, key: &str) -> Result<Option<InterfaceIndex>, LedgerError> {
    let Some(name) = name_in(key) else { return Ok(None) };
    let all = interfaces(namespace)?;
    Ok(all.iter().find(|interface| interface.name == name).map(|interface| interface.index))
}

fn interfaces(namespace: &Namespace) -> Result<Vec<Interface>, LedgerError> {
    let all = RouteSocket::open(namespace).and_then(|mut sockets| sockets.interfaces());
    all.map_err(|error| LedgerError::Interface(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_so_is_what_older_versions_wrote() {
        let namespace = NamespaceIdentity { inode: 7, boot: Some("a-b".into()), cookie: Some(3) };
        let written = SettingRecord {
            namespace,
            key: "net/ipv4/conf/eth0/forwarding".into(),
            interface: Some(InterfaceIndex(4)),
            before: "0".into(),
            raised: "1".into(),
        };
        assert_eq!(SettingRecord::parse(&written.text()), Some(written.clone()));
        // By its number: a second run on the same interface finds it whatever that is called by then.
        assert_eq!(written.name(), "7-net-ipv4-conf-4-forwarding");
        let old = "7\nnet/ipv4/conf/eth0/forwarding\n0\n1\n";
        let namespace = NamespaceIdentity { inode: 7, boot: None, cookie: None };
        let older = SettingRecord { namespace, interface: None, ..written };
        assert_eq!(older.name(), "7-net-ipv4-conf-eth0-forwarding");
        assert_eq!(SettingRecord::parse(old), Some(older));
        for other in [
            "",
            "7\nkey\n0\n1",
            "7\nkey\n0\n",
            "x\nkey\n0\n1\n",
            "7\nkey\n0\n1\nmore\n",
            "7\nkey\n0\n1\ninterface x\n",
        ] {
            assert_eq!(SettingRecord::parse(other), None, "{other:?}");
        }
    }
}
