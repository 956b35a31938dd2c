//! `narrows doctor --for docker`: what `narrows docker watch` and `narrows compose` need, and what is missing.

use narrows_containers::engine::Engine;
use narrows_io::host::Capabilities;
use narrows_io::privileges::in_effect;

use super::Page;

/// The section; its findings begin with yes or no, like those of modes. Whether all is there.
pub(super) fn findings(page: &mut Page) -> bool {
    page.heading("What docker watch and compose need", "docker");
    let mut all = privileges();
    all.extend([("TCX links", kernel()), ("engine", engine())]);
    all.iter().for_each(|(topic, finding)| page.say(topic, finding));
    page.say("not needed", "privileges in containers, or changes to their images; the kernel's netem");
    all.iter().all(|(_, finding)| finding.starts_with("yes"))
}

/// What it takes to attach networks to containers that processes stand for.
pub(super) fn privileges() -> Vec<(&'static str, String)> {
    let mut all = attaching();
    all.push(("CAP_SYS_PTRACE", processes()));
    all
}

/// What it takes to attach networks in namespaces that have a path.
pub(super) fn attaching() -> Vec<(&'static str, String)> {
    let held = Capabilities::effective();
    let capability = |of: fn(&Capabilities) -> bool, why: &str| match &held {
        Ok(held) if of(held) => format!("yes: {why}"),
        Ok(_) => format!("no: {why}; run narrows as root of the host"),
        Err(error) => format!("no: unknown ({error}); run narrows as root of the host"),
    };
    vec![
        ("CAP_NET_ADMIN", capability(|held| held.net_admin, "programs and cables at interfaces")),
        ("CAP_NET_RAW", capability(|held| held.net_raw, "packet sockets")),
        ("CAP_SYS_ADMIN", capability(|held| held.sys_admin, "network namespaces of containers, BPF")),
    ]
}

/// BPF programs at interfaces.
pub(super) fn kernel() -> String {
    match narrows_io::detour::has_tcx() {
        Ok(()) => "yes: BPF programs at interfaces, since Linux 6.6".into(),
        Err(error) => format!("no: {error}"),
    }
}

/// To open the network namespaces of processes of other users.
fn processes() -> String {
    match in_effect() {
        Ok(held) if held.contains(&"CAP_SYS_PTRACE") => "yes: network namespaces of processes of other users".into(),
        Ok(_) => "no: network namespaces of processes of other users; run narrows as root, with the PID namespace of the host".into(),
        Err(error) => format!("no: unknown ({error}); run narrows as root of the host"),
    }
}

/// The engine, and whether it answers.
pub(super) fn engine() -> String {
    match Engine::find(None).and_then(|engine| Ok((engine.running(None)?.len(), engine))) {
        Ok((count, engine)) => {
            let s = if count == 1 { "" } else { "s" };
            format!("yes: {}, {count} container{s} running", engine.socket().display())
        }
        Err(error) => format!("no: {error}"),
    }
}
