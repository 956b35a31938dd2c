//! `narrows doctor --for ssh`: what `narrows up --machines` needs here and on each machine, and what is missing.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

use narrows_io::host::{self, Capabilities};

use super::Page;
use crate::args::{AskedMachines, VERSION};
use crate::machines::ask;

/// The sections; their findings begin with yes or no, like those of modes. Whether all is there.
pub(super) fn findings(page: &mut Page, asked: &AskedMachines) -> bool {
    page.heading("What up --machines needs here", "ssh");
    let mut all = vec![("UDP", udp())];
    if asked.command.is_none() {
        all.extend([("ssh", client()), ("keys", keys())]);
    }
    // Needed only where this host is a machine of the run, but it is what the others need, too.
    all.push(("agent", agent()));
    all.push(("MTU", mtu()));
    all.iter().for_each(|(topic, finding)| page.say(topic, finding));
    page.say("not needed", "an open port beyond sshd's, privileges of the coordinator, clocks that agree");
    let mut works = all.iter().all(|(_, finding)| finding.starts_with("yes"));
    if !asked.machines.is_empty() {
        page.heading("The machines", "machines");
        for machine in &asked.machines {
            let answer = ask(machine, asked.command.as_deref());
            works &= answer.is_ok();
            let name = machine.split('=').next().unwrap_or(machine);
            let finding = match answer {
                Ok((user, is_privileged)) => {
                    format!("yes: narrows {VERSION}, {}", acts_as(user, is_privileged))
                }
                Err(failure) => format!("no: {failure}"),
            };
            page.say(name, finding);
        }
    }
    works
}

fn acts_as(user: u32, is_privileged: bool) -> String {
    match (user, is_privileged) {
        (0, true) => "as root".into(),
        (_, true) => format!("as user {user}, with capabilities"),
        (_, false) => format!("as user {user}, in a user namespace"),
    }
}

fn client() -> String {
    let mut command = Command::new("ssh");
    command.arg("-V").stdin(Stdio::null());
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            format!("yes: {}", said.split(',').next().unwrap_or_default().trim())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "no: not found in PATH; install OpenSSH's client, or use `narrows up --ssh COMMAND`".into()
        }
        Err(error) => format!("no: cannot be started ({error})"),
    }
}

/// A key that ssh can use without a question.
fn keys() -> String {
    let mut command = Command::new("ssh-add");
    command.arg("-l").stdin(Stdio::null());
    if let Ok(output) = command.output()
        && output.status.success()
    {
        let count = String::from_utf8_lossy(&output.stdout).lines().count();
        let s = if count == 1 { "" } else { "s" };
        return format!("yes: {count} key{s} in the agent");
    }
    let folder = home().join(".ssh");
    let names = ["id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk"];
    if let Some(key) = names.iter().map(|name| folder.join(name)).find(|key| key.exists()) {
        return format!("yes: {} (it may have no passphrase, as no agent holds it)", key.display());
    }
    let config = fs::read_to_string(folder.join("config")).unwrap_or_default().to_lowercase();
    if config.contains("identityfile") {
        return format!("yes: as {} says", folder.join("config").display());
    }
    format!(
        "no: neither in an agent nor in {}; make one (`ssh-keygen -t ed25519`), and add it to each machine (`ssh-copy-id \
         MACHINE`)",
        folder.display()
    )
}

fn home() -> PathBuf {
    env::var_os("HOME").map_or_else(|| Path::new("/").into(), PathBuf::from)
}

fn agent() -> String {
    match (Capabilities::effective(), host::user_namespaces()) {
        (Ok(held), _) if held.all() => {
            format!("yes: this host can be a machine of a run, {}", acts_as(host::user(), true))
        }
        (_, Ok(())) => format!("yes: this host can be a machine of a run, {}", acts_as(host::user(), false)),
        (_, Err(error)) => format!(
            "no: this host can be no machine of a run: without user namespaces ({error}) it needs root, or these \
             capabilities: CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN"
        ),
    }
}

fn udp() -> String {
    match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) {
        Ok(_) => {
            "yes: on ports that the system chooses; firewalls must let it pass between the machines".into()
        }
        Err(error) => format!("no: cannot open a socket ({error})"),
    }
}

/// What a tunnel leaves of the largest packets of this host's interfaces.
fn mtu() -> String {
    let names = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name != "lo");
    let mut all: Vec<(u32, String)> = names
        .filter_map(|name| {
            let text = fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok()?;
            Some((text.trim().parse().ok()?, name))
        })
        .collect();
    all.sort();
    match (all.first(), all.last()) {
        (Some((least, name)), Some((most, other))) => {
            let range = if least == most {
                format!("{name} has {least}")
            } else {
                format!("{name} has {least}, {other} {most}")
            };
            format!(
                "yes: {range}; a link between machines has at most 50 bytes less than the path (70 over IPv6): `mtu = {}`, \
                 where the path has {least}",
                least.saturating_sub(50)
            )
        }
        _ => "no: there is no interface but lo".into(),
    }
}
