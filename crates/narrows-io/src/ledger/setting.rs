//! Settings of the host that several runs need at once, put back when the last one has ended.
//!
//! Each run that needs a setting holds a shared lock on its file in the ledger. Whoever ends and finds that nobody else
//! holds it puts the old value back and removes the file; so does [`restore_abandoned`] for runs that were killed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{Cleared, Existing, LedgerError, Record, Turn, clear, lock_shared, try_lock};
use crate::namespace::Namespace;
use crate::namespace_identity::NamespaceIdentity;
use crate::own_folder::Lock;
use crate::sysctl::{SysctlError, read_sysctl, write_sysctl};

/// A setting raised for as long as this value lives, or the last of its kind on this host.
#[derive(Debug)]
pub struct RaisedSetting {
    namespace: Namespace,
    file: File,
    record: SettingRecord,
    ledger: PathBuf,
    is_released: bool,
}

/// What a file of the ledger says: a line each for the namespace's inode, the setting, its two values, and what else tells
/// the namespace from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRecord {
    /// The network namespace whose setting it is.
    pub namespace: NamespaceIdentity,
    /// The setting, such as `net/ipv4/conf/eth0/forwarding`.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// Its value since.
    pub raised: String,
}

impl RaisedSetting {
    /// Sets `key` to `value` in `namespace`, remembering it in `ledger`. `None` if it had that value and
    /// nobody of ours had set it: then it is not ours to put back.
    pub fn raise(
        namespace: &Namespace,
        key: &str,
        value: &str,
        ledger: &Path,
    ) -> Result<Option<Self>, LedgerError> {
        let mut record = SettingRecord {
            namespace: NamespaceIdentity::of(namespace)?,
            key: key.to_owned(),
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
                    // What a killed run may have left of it is about nothing.
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

    /// Puts the value back if nobody else needs it. Dropping does the same, in silence.
    pub fn release(mut self) -> Result<bool, LedgerError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<bool, LedgerError> {
        // Once only: afterwards a file of that name is somebody else's.
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
        // What fails here is left in the ledger for `restore_abandoned`.
        let _ = self.put_back();
    }
}

/// Puts back the settings that killed runs left in `ledger`: those of `here`, and of namespaces that can still be found,
/// that no live run holds.
///
/// # Errors
/// When the ledger cannot be read.
pub fn restore_abandoned(here: &Namespace, ledger: &Path) -> Result<Cleared<SettingRecord>, LedgerError> {
    clear(here, ledger)
}

impl Record for SettingRecord {
    fn name(&self) -> String {
        format!("{}-{}", self.namespace.inode, self.key.replace('/', "-"))
    }

    fn namespace(&mut self) -> &mut NamespaceIdentity {
        &mut self.namespace
    }

    fn reference(&self) -> Option<&str> {
        None
    }

    fn text(&self) -> String {
        let Self { namespace, key, before, raised } = self;
        format!("{}\n{key}\n{before}\n{raised}\n{}", namespace.inode, namespace.lines())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let inode = lines.next()?.parse().ok()?;
        let mut namespace = NamespaceIdentity { inode, boot: None, cookie: None };
        let mut line = || lines.next().map(str::to_owned);
        let (key, before, raised) = (line()?, line()?, line()?);
        lines.all(|line| namespace.read_line(line)).then_some(Self { namespace, key, before, raised })
    }

    /// Writes the old value, unless somebody has set another one since.
    fn put_back(&self, namespace: &Namespace) -> Result<(), LedgerError> {
        match read_sysctl(namespace, &self.key) {
            Ok(now) if now == self.raised => drop(write_sysctl(namespace, &self.key, &self.before)?),
            // Another value is somebody else's doing; no such setting: its interface is gone.
            Ok(_) => {}
            Err(SysctlError::Refused { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
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
            before: "0".into(),
            raised: "1".into(),
        };
        assert_eq!(SettingRecord::parse(&written.text()), Some(written.clone()));
        assert_eq!(written.name(), "7-net-ipv4-conf-eth0-forwarding");
        let old = "7\nnet/ipv4/conf/eth0/forwarding\n0\n1\n";
        let namespace = NamespaceIdentity { inode: 7, boot: None, cookie: None };
        assert_eq!(SettingRecord::parse(old), Some(SettingRecord { namespace, ..written }));
        for other in ["", "7\nkey\n0\n1", "7\nkey\n0\n", "x\nkey\n0\n1\n", "7\nkey\n0\n1\nmore\n"] {
            assert_eq!(SettingRecord::parse(other), None, "{other:?}");
        }
    }
}
