//! Why an agent did not start, by the exit status of ssh and what it said.

use crate::args::VERSION;

/// One sentence, with a remedy. `program` is ssh, or what stands for it; `lines` is what it said.
pub(super) fn why_gone(machine: &str, program: &str, status: Option<i32>, lines: &[String]) -> String {
    let last = lines.last().map_or("", |line| line.trim().trim_end_matches(['.', '\r']));
    let said = if last.is_empty() { String::new() } else { format!(" ({last})") };
    let has = |word: &str| lines.iter().any(|line| line.to_lowercase().contains(word));
    match status {
        // What ssh returns for errors of its own.
        Some(255) => {
            let remedy =
                SSH_ERRORS.iter().find(|(word, _)| has(word)).map_or(OTHERWISE, |(_, remedy)| remedy);
            format!("`{program}` cannot log in to `{machine}`{said}: {}", remedy.replace("MACHINE", machine))
        }
        // What a shell returns.
        Some(127) => format!(
            "narrows was not found on `{machine}`{said}: install version {VERSION} there, in the PATH of commands that \
             ssh runs"
        ),
        Some(126) => format!(
            "narrows on `{machine}` cannot be executed{said}: install version {VERSION} there, for its processor"
        ),
        _ if has("unrecognized subcommand") => format!(
            "narrows on `{machine}` is too old for --machines, as it has no `agent`: install version {VERSION} there"
        ),
        _ => format!(
            "the agent on `{machine}` did not start{said}: try `{program} {machine} narrows --version`; it may not ask \
             for anything here"
        ),
    }
}

/// Words in messages of OpenSSH, and what helps.
const SSH_ERRORS: [(&str, &str); 8] = [
    ("host key verification failed", "log in once with `ssh MACHINE`, and check its host key"),
    (
        "permission denied",
        "add your public key there (`ssh-copy-id MACHINE`), and load a key with a passphrase into an agent (`ssh-add`)",
    ),
    ("could not resolve", "name it in ~/.ssh/config or /etc/hosts, or write it as DNS knows it"),
    ("connection refused", "start sshd there, or set its port in ~/.ssh/config"),
    ("timed out", UNREACHABLE),
    ("no route to host", UNREACHABLE),
    ("network is unreachable", UNREACHABLE),
    (
        "too many authentication failures",
        "name the key to use in ~/.ssh/config: IdentityFile, IdentitiesOnly",
    ),
];
const UNREACHABLE: &str = "check its address, and that no firewall keeps ssh out";
const OTHERWISE: &str = "try `ssh MACHINE narrows --version`; ssh may not ask for anything here";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_remedy() {
        let why =
            |status, line: &str| why_gone("beta", "ssh", Some(status), &["Warning: …".into(), line.into()]);
        for (status, line, expected) in [
            (255, "root@beta: Permission denied (publickey).", "(`ssh-copy-id beta`)"),
            (
                255,
                "ssh: Could not resolve hostname beta: Name or service not known",
                "~/.ssh/config or /etc/hosts",
            ),
            (
                255,
                "Host key verification failed.\r",
                "(Host key verification failed): log in once with `ssh beta`",
            ),
            (255, "ssh: connect to host beta port 22: Connection refused", "start sshd there"),
            (255, "ssh: connect to host beta port 22: Connection timed out", "no firewall keeps ssh out"),
            (255, "kex_exchange_identification: read: Connection reset", "try `ssh beta narrows --version`"),
            (
                127,
                "bash: line 1: narrows: command not found",
                "narrows was not found on `beta` (bash: line 1",
            ),
            (126, "bash: line 1: /usr/bin/narrows: cannot execute binary file", "for its processor"),
            (2, "error: unrecognized subcommand 'agent'", "is too old for --machines"),
            (1, "odd", "the agent on `beta` did not start (odd): try `ssh beta narrows --version`"),
        ] {
            let said = why(status, line);
            assert!(said.contains(expected), "{said}");
        }
        assert!(why_gone("beta", "ssh", None, &[]).starts_with("the agent on `beta` did not start: try"));
    }
}
