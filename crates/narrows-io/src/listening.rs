//! Counts listening programs in a namespace.

use std::fs;

use crate::namespace::{Namespace, NamespaceError};

/// `TCP_LISTEN` in the kernel's tables; a bound UDP socket is shown as `TCP_CLOSE`.
const LISTENS: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// The number of listening TCP sockets and bound UDP sockets in the namespace.
///
/// # Errors
/// If the namespace cannot be entered.
pub fn listeners(namespace: &Namespace) -> Result<usize, NamespaceError> {
    namespace.run(|| count("thread-self"))
}

/// The same for a process's namespace: 0 if it has ended. Enters no namespace and starts no thread, so a packet loop
/// can call it between packets.
pub fn listeners_beside(process: u32) -> usize {
    count(&process.to_string())
}

/// The number of TCP and UDP sockets in use in that namespace, from the kernel's counters. Searching for listeners
/// goes through the tables of all namespaces, which takes milliseconds; if this number is unchanged, there are hardly
/// any new listeners.
pub fn sockets_beside(process: u32) -> usize {
    let of_file = |file: &str| {
        let sums = fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap_or_default();
        let rows = sums.lines().filter(|row| row.starts_with("TCP") || row.starts_with("UDP"));
        // As in `UDP6: inuse 3`.
        rows.filter_map(|row| row.split_whitespace().nth(2)?.parse::<usize>().ok()).sum::<usize>()
    };
    of_file("sockstat") + of_file("sockstat6")
}

/// Whether a program of this process group listens in its leader's namespace.
pub fn group_listens(leader: u32) -> bool {
    let listening = inodes(&leader.to_string());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut members = processes.filter(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // After the name, which may contain anything: state, parent, group.
        let group = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2));
        group.and_then(|group| group.parse().ok()) == Some(leader)
    });
    members.any(|member| {
        let descriptors = fs::read_dir(member.path().join("fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|target| {
            // As in `socket:[4711]`.
            let inode = target.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
            inode.is_some_and(|inode| listening.iter().any(|listens| listens == inode))
        })
    })
}

fn count(process: &str) -> usize {
    inodes(process).len()
}

/// The inode numbers of listening sockets in a process's namespace.
fn inodes(process: &str) -> Vec<String> {
    let of_table = |(table, state): &(&str, &str)| {
        let rows = fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
        let rows = rows.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
        let listen = rows.filter(|row| row.get(3) == Some(state));
        listen.map(|row| row.get(9).copied().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    LISTENS.iter().flat_map(of_table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs root"]
    fn a_listener_is_seen_in_its_own_namespace_only() {
        let (a, b) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        let listener = a.run(|| std::net::TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        assert_eq!(listeners(&a).unwrap(), 1);
        assert_eq!(listeners(&b).unwrap(), 0);
        for (namespace, count) in [(&a, 1), (&b, 0)] {
            let mut sleeper = std::process::Command::new("sleep");
            sleeper.arg("60");
            let mut sleeper = crate::process::spawn(sleeper, namespace).unwrap();
            assert_eq!(listeners_beside(sleeper.id()), count);
            assert_eq!(sockets_beside(sleeper.id()), count);
            assert!(!group_listens(sleeper.id()), "a listener of another process");
            sleeper.signal(nix::sys::signal::Signal::SIGKILL).unwrap();
            sleeper.wait().unwrap();
        }
        drop(listener);
        assert_eq!(listeners(&a).unwrap(), 0);
    }
}
