//! Starts of Podman's containers, before its events tell of them.
//!
//! ```text
//! file of the namespace ─▶ interfaces ─▶ process starts ─▶ Podman answers ······▶ event `start` is read
//!         0 ms                              250 ms             260 ms                260 to 510 ms
//! ```
//!
//! Podman reads the file of its events four times a second, so they come late. But before it starts a container, it
//! makes a file for its network namespace, and it answers no question about containers until that one has started. So
//! who asks when the file appears is answered when the container starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use narrows_io::clock::clock_monotonic;
use narrows_io::folder_watch::FolderWatch;

use super::Message;
use super::follow::{News, Source, Unheard, listed};
use crate::event::{Event, Happening};

/// Where Podman keeps network namespaces, until a container shows another folder.
const NAMESPACES: &str = "/run/netns";
/// The wait before an engine or a folder that is not there is looked for again.
const WAIT: Duration = Duration::from_secs(1);

/// Starts the thread, which ends when nobody listens any more, or if the engine is not Podman.
pub(super) fn follow_namespaces(source: Source, to: Sender<Message>) {
    thread::spawn(move || {
        loop {
            match source.engine.is_podman() {
                Ok(true) if once(&source, &to).is_err() => return,
                Ok(false) => return,
                Ok(true) | Err(_) => thread::sleep(WAIT),
            }
        }
    });
}

/// Follows the folder until it or the engine is gone.
fn once(source: &Source, to: &Sender<Message>) -> Result<(), Unheard> {
    let (engine, label) = (&source.engine, source.label());
    let Ok(all) = listed(engine, label) else { return Ok(()) };
    let mut known: BTreeMap<String, Option<PathBuf>> =
        all.into_iter().map(|container| (container.id, container.namespace.map(PathBuf::from))).collect();
    let folder = known.values().flatten().find_map(|path| path.parent());
    let Ok(mut watch) = FolderWatch::on(folder.unwrap_or(Path::new(NAMESPACES))) else { return Ok(()) };
    while let Ok(Some(_)) = watch.wait() {
        let Ok(running) = engine.running(label) else { return Ok(()) };
        let at = clock_monotonic();
        known.retain(|id, _| running.contains(id));
        for id in running {
            // After a restart it has another namespace.
            if known.get(&id).is_some_and(|path| path.as_ref().is_none_or(|path| path.exists())) {
                continue;
            }
            let Ok(Some(container)) = engine.container(&id) else { continue };
            known.insert(id.clone(), container.namespace.clone().map(PathBuf::from));
            let event = Event { happening: Happening::Started, container: id, network: None };
            to.send(Message::News(News::Event(event, at, Some(container))))?;
        }
    }
    Ok(())
}
