//! Access control: tokens, cookies, and the origin of requests.
//!
//! A page elsewhere can make a browser send requests here. So each request must name this server as its Host (against
//! DNS names made to point here), requests that change something must come from this server's own page (Origin), and
//! every request needs a token: once in the URL, then in a cookie.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, Method, StatusCode, header};

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Read everything.
    Reader,
    /// Also make changes.
    Editor,
}

/// The tokens that identify clients.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// `None` if nobody may make changes.
    pub(crate) editor: Option<String>,
    pub(crate) reader: String,
}

impl Tokens {
    pub(crate) fn role(&self, token: &str) -> Option<Role> {
        let is = |own: &str| same(own.as_bytes(), token.as_bytes());
        if self.editor.as_deref().is_some_and(is) {
            return Some(Role::Editor);
        }
        is(&self.reader).then_some(Role::Reader)
    }
}

/// Compares in constant time, so that timing reveals nothing.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// The names of a server, and its tokens.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// `None` if everybody who can reach the server may read.
    pub(crate) tokens: Option<Tokens>,
    address: SocketAddr,
    names: BTreeSet<String>,
}

impl Access {
    pub(crate) fn new(tokens: Option<Tokens>, address: SocketAddr, names: &[String]) -> Self {
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { tokens, address, names }
    }

    /// The cookie's name. Cookies ignore ports, and two servers have different tokens.
    pub(crate) fn cookie(&self) -> String {
        format!("narrows-{}", self.address.port())
    }

    /// The client's role, or why the request is refused.
    pub(crate) fn role(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Role, (StatusCode, &'static str)> {
        self.place(method, headers)?;
        let Some(tokens) = &self.tokens else { return Ok(Role::Reader) };
        let unknown = "open the address that narrows web printed: this needs its token";
        let role = token(headers, &self.cookie()).and_then(|token| tokens.role(token));
        let role = role.ok_or((StatusCode::UNAUTHORIZED, unknown))?;
        if method == Method::POST && role == Role::Reader {
            return Err((StatusCode::FORBIDDEN, "this is a read-only link: it changes nothing"));
        }
        Ok(role)
    }

    /// Checks that a request names this server and, where required, comes from its own page.
    pub(crate) fn place(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), (StatusCode, &'static str)> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
            (Some(host), None) if self.is_own(host) => host,
            _ => {
                let why = "this server is not called that: name it with --host, or use its address, with the port that it listens on (--listen)";
                return Err((StatusCode::MISDIRECTED_REQUEST, why));
            }
        };
        let foreign = Err((StatusCode::FORBIDDEN, "requests of other sites are refused"));
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        if method != Method::GET && site.is_some_and(|site| site != "same-origin") {
            return foreign;
        }
        match headers.get(header::ORIGIN).map(|origin| origin.to_str()) {
            Some(Ok(origin)) if origin.eq_ignore_ascii_case(&format!("http://{host}")) => Ok(()),
            Some(_) => foreign,
            // Programs, which have no origin, send their token in a header that no other page can send.
            None if method == Method::GET || bearer(headers).is_some() => Ok(()),
            None => foreign,
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        if port != Some(self.address.port()) {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        // A DNS name can be made to point anywhere, an address cannot.
        let is_address = bare.parse::<IpAddr>().is_ok();
        is_address
            || name.eq_ignore_ascii_case("localhost")
            || self.names.contains(&name.to_ascii_lowercase())
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn token<'a>(headers: &'a HeaderMap, cookie: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    bearer(headers).or_else(|| pairs.find(|(name, _)| *name == cookie).map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let tokens = Tokens { editor: Some("edit".into()), reader: "read".into() };
        Access::new(Some(tokens), "127.0.0.1:8001".parse().unwrap(), &["Lab.example".into()])
    }

    fn asked(method: Method, lines: &[(&'static str, &str)]) -> Result<Role, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        access().role(&method, &headers).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn a_token_says_who_asks() {
        let with = |cookie| asked(Method::GET, &[("host", "localhost:8001"), ("cookie", cookie)]);
        assert_eq!(with("narrows-8001=edit"), Ok(Role::Editor));
        assert_eq!(with("a=b; narrows-8001=read"), Ok(Role::Reader));
        assert_eq!(with("narrows-8001=edi"), Err(401));
        assert_eq!(with("narrows-8002=edit"), Err(401), "that is another server's");
        let bearer = |token| asked(Method::POST, &[("host", "127.0.0.1:8001"), ("authorization", token)]);
        assert_eq!(bearer("Bearer edit"), Ok(Role::Editor));
        assert_eq!(bearer("Bearer read"), Err(403));
        assert_eq!(bearer("Bearer "), Err(401));
    }

    #[test]
    fn only_names_of_this_server_are_taken() {
        let named = |host| asked(Method::GET, &[("host", host), ("authorization", "Bearer read")]);
        for host in ["127.0.0.1:8001", "[::1]:8001", "localhost:8001", "LAB.example:8001", "192.0.2.1:8001"] {
            assert_eq!(named(host), Ok(Role::Reader), "{host}");
        }
        for host in ["evil.example:8001", "localhost:8002", "localhost", "localhost:8001.evil", "", "[::1]"] {
            assert_eq!(named(host), Err(421), "{host}");
        }
        let twice = [("host", "localhost:8001"), ("host", "evil"), ("authorization", "Bearer read")];
        assert_eq!(asked(Method::GET, &twice), Err(421));
    }

    #[test]
    fn changes_come_from_the_server_s_own_page() {
        let from = |origin| {
            let cookie = ("cookie", "narrows-8001=edit");
            asked(Method::POST, &[("host", "localhost:8001"), cookie, ("origin", origin)])
        };
        assert_eq!(from("http://localhost:8001"), Ok(Role::Editor));
        for origin in ["http://localhost:8002", "https://localhost:8001", "http://evil.example", "null"] {
            assert_eq!(from(origin), Err(403), "{origin}");
        }
        let cookie = ("cookie", "narrows-8001=edit");
        assert_eq!(asked(Method::POST, &[("host", "localhost:8001"), cookie]), Err(403));
    }
}
