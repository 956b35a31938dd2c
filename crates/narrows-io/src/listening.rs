//! How many programs in a namespace listen.

use std::fs;

use crate::namespace::{Namespace, NamespaceError};

/// `TCP_LISTEN` of the kernel's tables; a bound UDP socket is shown as `TCP_CLOSE`.
const LISTENS: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// How many TCP sockets listen and UDP sockets are bound in the namespace.
///
/// # Errors
/// When the namespace cannot be entered.
pub fn listeners(namespace: &Namespace) -> Result<usize, NamespaceError> {
    namespace.run(|| {
        let count = |(table, state): &(&str, &str)| {
            let rows = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
            rows.lines().skip(1).filter(|row| row.split_whitespace().nth(3) == Some(state)).count()
        };
        LISTENS.iter().map(count).sum()
    })
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
        assert_eq!(listeners(&a).unwrap(), 1);
        assert_eq!(listeners(&b).unwrap(), 0);
        drop(listener);
        assert_eq!(listeners(&a).unwrap(), 0);
    }
}
