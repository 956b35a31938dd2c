//! Waits for new names in a folder.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// A folder that is watched.
#[derive(Debug)]
pub struct FolderWatch(Inotify);

impl FolderWatch {
    /// Watches this folder from now on.
    ///
    /// # Errors
    /// If there is no such folder, or the kernel refuses.
    pub fn on(folder: &Path) -> io::Result<Self> {
        let watch = Inotify::init(InitFlags::IN_CLOEXEC)?;
        let new = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        watch.add_watch(folder, new | AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_ONLYDIR)?;
        Ok(Self(watch))
    }

    /// Waits until there are new names; `None` when the folder is gone.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&mut self) -> io::Result<Option<Vec<OsString>>> {
        let events = self.0.read_events()?;
        let is_gone = events.iter().any(|event| event.mask.contains(AddWatchFlags::IN_DELETE_SELF));
        let names = events.into_iter().filter_map(|event| event.name);
        Ok((!is_gone).then(|| names.collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn new_names_are_told_until_the_folder_is_gone() {
        let folder = std::env::temp_dir().join(format!("narrows-folder-watch-{}", std::process::id()));
        assert!(FolderWatch::on(&folder).is_err());
        fs::create_dir(&folder).unwrap();
        let mut watch = FolderWatch::on(&folder).unwrap();
        fs::write(folder.join("a"), "").unwrap();
        fs::rename(folder.join("a"), folder.join("b")).unwrap();
        assert_eq!(watch.wait().unwrap(), Some(vec!["a".into(), "b".into()]));
        fs::remove_file(folder.join("b")).unwrap();
        fs::remove_dir(&folder).unwrap();
        assert_eq!(watch.wait().unwrap(), None);
    }
}
