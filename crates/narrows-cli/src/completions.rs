//! `narrows completions`: shell completion. clap generates completion of words and files; this module adds
//! the names of runs and of their hosts, as `narrows ls` reports them at that moment.

use crate::args::{Completions, ShellName};
use crate::help::command;
use crate::output::{Failure, print};

pub(crate) fn completions(args: &Completions) -> Result<u8, Failure> {
    print(&script(args.shell))?;
    Ok(0)
}

/// The completion script for a shell.
pub(crate) fn script(shell: ShellName) -> String {
    let kind = match shell {
        ShellName::Bash => clap_complete::Shell::Bash,
        ShellName::Zsh => clap_complete::Shell::Zsh,
        ShellName::Fish => clap_complete::Shell::Fish,
    };
    let mut made = Vec::new();
    clap_complete::generate(kind, &mut command(), "narrows", &mut made);
    let made = String::from_utf8_lossy(&made);
    // Internal commands are not for typing, but clap would offer them.
    let is_for_all =
        |line: &&str| !line.contains("In the background:") && !line.contains("In the background\\:");
    let made: String = made.lines().filter(is_for_all).map(|line| format!("{line}\n")).collect();
    let made = made.replace(" --ready --output", "");
    match shell {
        ShellName::Bash => made.replace("-F _narrows ", "-F _narrows_or_names ") + BASH,
        ShellName::Fish => made + FISH,
        ShellName::Zsh => {
            let named = |line: &str| {
                let is_of_runs = ["':run -- ", "'::run -- ", "'::which -- Run, ", "'*::runs -- "]
                    .iter()
                    .any(|start| line.starts_with(start));
                let line =
                    if is_of_runs { line.replace(":_default'", ":_narrows_runs'") } else { line.to_owned() };
                let line = line.replace(":RUN:_default'", ":RUN:_narrows_runs'");
                let is_of_hosts = line.starts_with("':host -- ");
                if is_of_hosts { line.replace(":_default'", ":_narrows_hosts'") } else { line }
            };
            let (head, rest) = made.split_once('\n').unwrap_or((&made, ""));
            let lines: Vec<_> = rest.lines().map(named).collect();
            format!("{head}\n{ZSH}{}\n", lines.join("\n"))
        }
    }
}

/// Appended to clap's script.
const BASH: &str = r#"
_narrows_or_names() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} names=
    case "$cur:$prev:${COMP_WORDS[1]}:$COMP_CWORD" in
        -*) ;;
        *:--run:*) names=$(narrows ls --quiet 2>/dev/null) ;;
        *:exec:2 | *:ls:2 | *:events:2 | *:top:2 | *:web:2 | *:down:*) names=$(narrows ls --quiet 2>/dev/null) ;;
        *:exec:3) names=$(narrows ls --quiet -- "$prev" 2>/dev/null) ;;
    esac
    if [[ -n $names ]]; then
        COMPREPLY=($(compgen -W "$names" -- "$cur"))
        return 0
    fi
    _narrows "$@"
}
"#;

/// Prepended to clap's script.
const ZSH: &str = r#"
_narrows_runs() {
    local -a names
    names=(${(f)"$(narrows ls --quiet 2>/dev/null)"})
    _describe 'run' names
}
_narrows_hosts() {
    local -a names
    names=(${(f)"$(narrows ls --quiet -- ${words[CURRENT-1]} 2>/dev/null)"})
    _describe 'host' names
}
"#;

const FISH: &str = r#"
complete -c narrows -n "__fish_narrows_using_subcommand exec; and test (count (commandline -opc)) -eq 2" -f -a "(narrows ls --quiet 2>/dev/null)" -d 'run'
complete -c narrows -n "__fish_narrows_using_subcommand exec; and test (count (commandline -opc)) -eq 3" -f -a "(narrows ls --quiet -- (commandline -opc)[3] 2>/dev/null)" -d 'host'
complete -c narrows -n "__fish_narrows_using_subcommand down; or __fish_narrows_using_subcommand ls; or __fish_narrows_using_subcommand events; or __fish_narrows_using_subcommand top" -f -a "(narrows ls --quiet 2>/dev/null)" -d 'run'
complete -c narrows -n "not __fish_narrows_needs_command" -l run -r -f -a "(narrows ls --quiet 2>/dev/null)"
"#;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What bash offers for the last of these words.
    fn offered(words: &[&str]) -> String {
        let fake = r#"narrows() { case "$*" in "ls --quiet") echo lab; echo lob ;; "ls --quiet -- lab") echo router-a ;; esac }"#;
        let array: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let ask = format!(
            "COMP_WORDS=({}); COMP_CWORD={}; _narrows_or_names narrows '{}' '{}'; echo ${{COMPREPLY[*]}}",
            array.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2]
        );
        let file = std::env::temp_dir().join(format!("narrows-offered-{}", std::process::id()));
        std::fs::write(&file, format!("{}\n{fake}\n{ask}", script(ShellName::Bash))).unwrap();
        let done = Command::new("bash").arg(&file).output().unwrap();
        std::fs::remove_file(file).unwrap();
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    #[test]
    #[ignore = "needs bash"]
    fn bash_offers_the_names_of_runs_and_hosts() {
        for (words, wanted) in [
            (&["narrows", "exec", ""][..], "lab lob"),
            (&["narrows", "exec", "la"], "lab"),
            (&["narrows", "exec", "lab", ""], "router-a"),
            (&["narrows", "down", "lab", "lo"], "lob"),
            (&["narrows", "top", ""], "lab lob"),
            (&["narrows", "stats", "--run", "l"], "lab lob"),
            (&["narrows", "ls", "--js"], "--json"),
            (&["narrows", "exe"], "exec"),
        ] {
            assert_eq!(offered(words), wanted, "{words:?}");
        }
    }

    #[test]
    fn zsh_and_fish_ask_for_names_where_they_belong() {
        let zsh = script(ShellName::Zsh);
        assert!(zsh.starts_with("#compdef narrows\n"), "{}", &zsh[..80]);
        // exec, events, down, ls; top, which has a default; and the host of exec.
        assert_eq!(zsh.matches("or number:_narrows_runs'").count(), 4);
        assert_eq!(zsh.matches("around this shell\\]:_narrows_runs'").count(), 1);
        assert!(zsh.contains("':host -- Host:_narrows_hosts'"));
        assert!(zsh.contains(":RUN:_narrows_runs'") && !zsh.contains(":RUN:_default'"));
        assert_eq!(script(ShellName::Fish).matches("narrows ls --quiet").count(), 4);
        let [bash, fish] = [ShellName::Bash, ShellName::Fish].map(script);
        assert!(
            bash.contains("--ttl") && !bash.contains("--report --ready"),
            "what is hidden is not offered"
        );
        assert!(!zsh.contains("'--ready=") && !fish.contains("-l ready "));
    }
}
