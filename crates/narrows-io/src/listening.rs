//! Whether a program in a namespace has begun to listen.

use std::fs;
use std::time::Duration;

use crate::clock::clock_monotonic;
use crate::namespace::{Namespace, NamespaceError};

/// `TCP_LISTEN` of the kernel's tables; a bound UDP socket is shown as `TCP_CLOSE`.
const LISTENS: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// Whether any TCP socket listens, or any UDP socket is bound, in the namespace.
///
/// # Errors
/// When the namespace cannot be entered.
pub fn is_anyone_listening(namespace: &Namespace) -> Result<bool, NamespaceError> {
    namespace.run(|| {
        LISTENS.iter().any(|(table, state)| {
            let rows = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
            rows.lines().skip(1).any(|row| row.split_whitespace().nth(3) == Some(state))
        })
    })
}

/// Waits until someone listens or the patience is at its end; whether someone does.
///
/// # Errors
/// When the namespace cannot be entered.
pub fn wait_until_listening(namespace: &Namespace, patience: Duration) -> Result<bool, NamespaceError> {
    const PAUSE: Duration = Duration::from_millis(5);
    let end = clock_monotonic().as_nanos().saturating_add(patience.as_nanos() as u64);
    loop {
        if is_anyone_listening(namespace)? {
            return Ok(true);
        }
        if clock_monotonic().as_nanos() >= end {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen_in_its_own_namespace_only() {
        let (Ok(a), Ok(b)) = (Namespace::create(), Namespace::create()) else {
            assert!(std::env::var_os("CI").is_none(), "no namespace can be made");
            return eprintln!("left out: no namespace can be made here");
        };
        let listener = a.run(|| std::net::TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        assert!(wait_until_listening(&a, Duration::ZERO).unwrap());
        assert!(!is_anyone_listening(&b).unwrap());
        drop(listener);
        assert!(!is_anyone_listening(&a).unwrap());
    }
}
