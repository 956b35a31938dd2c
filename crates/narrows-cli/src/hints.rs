//! Hints for problems with `$NARROWS_SERVER` on CMD's command line. The variable exists only in CMD's
//! environment: neither the caller's shell nor narrows expands it.

use std::ffi::OsString;
use std::path::Path;

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"];
/// Programs that need a server address.
const CLIENTS: [&str; 18] = [
    "ping",
    "ping6",
    "traceroute",
    "traceroute6",
    "tracepath",
    "mtr",
    "iperf",
    "iperf3",
    "netperf",
    "nuttcp",
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "telnet",
    "ssh",
    "nmap",
];

/// A hint for an argument that contains the variable, if no shell expands it.
pub(crate) fn unexpanded(command: &[OsString], server: &str) -> Option<String> {
    if command.iter().any(|word| SHELLS.contains(&program(word).as_str())) {
        return None;
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let literal =
        words.iter().skip(1).find(|word| word.contains("$NARROWS_") || word.contains("${NARROWS_"))?;
    let line = words.join(" ");
    Some(format!(
        "narrows: no shell expands `{literal}`: write sh -c '{line}', or use the host name `{server}`"
    ))
}

/// A hint if CMD failed and seems to lack an address because the caller's shell expanded the variable to
/// nothing. Signs: a URL without a host, or only flags and numbers for a program that needs an address.
pub(crate) fn expanded_to_nothing(command: &[OsString], server: &str) -> Option<String> {
    let (name, arguments) = command.split_first()?;
    let name = program(name);
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let lacks_host = |word: &str| {
        word.is_empty()
            || word.split_once("://").is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(['/', ':']))
    };
    let is_flag = |word: &str| word.starts_with('-');
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains(['.', ':']);
    let is_client = CLIENTS.contains(&name.as_str());
    let lacks_address = words.iter().all(|word| is_flag(word) || is_number(word));
    let serves = words.iter().any(|word| ["-s", "-l", "--server", "--listen"].contains(&word.as_ref()));
    let asks = words.iter().any(|word| ["-h", "--help", "-V", "--version"].contains(&word.as_ref()));
    // ping's `-s` is a size.
    let serves = serves && !name.starts_with("ping");
    let likely = is_client && lacks_address && !serves && !asks
        || words
            .iter()
            .any(|word| lacks_host(word) && (is_client || !word.is_empty()) && !word.starts_with("file:"));
    likely.then(|| {
        format!(
            "narrows: {name} failed without an address: your shell may have expanded $NARROWS_SERVER, which is set only inside CMD; write sh -c '{name} … $NARROWS_SERVER' in single quotes, or use the host name `{server}`"
        )
    })
}

fn program(word: &OsString) -> String {
    Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_literal_variable_is_seen_where_no_shell_is() {
        for line in
            ["ping $NARROWS_SERVER", "curl http://${NARROWS_SERVER}/", "/usr/bin/ping -c 1 $NARROWS_HOST_WEB"]
        {
            let hint = unexpanded(&words(line), "web").expect(line);
            assert!(hint.contains(&format!("sh -c '{line}'")) && hint.contains("`web`"), "{hint}");
        }
        for line in
            ["sh -c ping $NARROWS_SERVER", "sudo /bin/bash -c $NARROWS_SERVER", "ping server", "echo $HOME"]
        {
            assert_eq!(unexpanded(&words(line), "web"), None, "{line}");
        }
    }

    #[test]
    fn a_client_without_an_address_is_seen() {
        for line in [
            "ping",
            "ping -c 5",
            "ping -s 1000",
            "iperf3 -t 5 -c",
            "curl http:///file",
            "/bin/nc  80",
            "wget http://:80/x",
        ] {
            assert!(expanded_to_nothing(&words(line), "server").is_some(), "{line}");
        }
        for line in [
            "ping server",
            "ping 10.0.0.1",
            "curl http://server/",
            "false",
            "iperf3 -s",
            "ping -V",
            "python3 file:///x",
        ] {
            assert_eq!(expanded_to_nothing(&words(line), "server"), None, "{line}");
        }
    }
}
