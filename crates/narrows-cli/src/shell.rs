//! The interactive shell of `narrows shell`: the user's own shell, with a word in its prompt that shows the
//! host.
//!
//! The user's start files are read as usual. A script that runs after them adds the word to the prompt, and
//! adds it again if something resets the prompt. The script is in a folder that it removes itself.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::output::Failure;
use crate::usage::quoted;

/// The word, for prompts that show it in their own way; in a nested shell together with those of the outer
/// ones.
pub(crate) const ENVIRONMENT: &str = "NARROWS_PROMPT";

/// A shell, ready to start.
pub(crate) struct Shell {
    pub(crate) command: Vec<OsString>,
    pub(crate) environment: Vec<(String, OsString)>,
    /// Removed on drop, if the shell has not read it.
    _folder: Option<Folder>,
}

impl Shell {
    /// `$SHELL`, in a host with this name.
    pub(crate) fn of_user(host: &str) -> Result<Self, Failure> {
        let shell =
            env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
        let outer = env::var(ENVIRONMENT).ok().filter(|outer| !outer.is_empty());
        let place = outer.map_or_else(|| host.to_owned(), |outer| format!("{outer} > {host}"));
        let kind = Kind::of(&shell);
        let folder = match kind {
            Kind::Bash | Kind::Zsh | Kind::Posix => Some(Folder::new()?),
            Kind::Fish | Kind::Other => None,
        };
        let mut environment = vec![(ENVIRONMENT.to_owned(), OsString::from(place))];
        let mut command = vec![shell];
        if let Some(folder) = &folder {
            let file = folder.0.join(kind.file());
            fs::write(&file, kind.start(&folder.0))
                .map_err(|cause| Failure::Write { path: file.clone(), cause })?;
            match kind {
                Kind::Bash => command.extend(["--rcfile".into(), file.into(), "-i".into()]),
                Kind::Zsh => environment.push(("ZDOTDIR".into(), folder.0.clone().into())),
                _ => environment.push(("ENV".into(), file.into())),
            }
        }
        if kind == Kind::Fish {
            command.extend(["--init-command".into(), FISH.into()]);
        }
        Ok(Self { command, environment, _folder: folder })
    }
}

/// Kind of shell, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bash,
    Zsh,
    Fish,
    /// Reads `$ENV`: dash, ash, ksh.
    Posix,
    /// Started without changes.
    Other,
}

impl Kind {
    fn of(shell: &OsStr) -> Self {
        match Path::new(shell).file_name().and_then(OsStr::to_str) {
            Some("bash") => Self::Bash,
            Some("zsh") => Self::Zsh,
            Some("fish") => Self::Fish,
            Some("sh" | "dash" | "ash" | "ksh" | "mksh" | "busybox") => Self::Posix,
            _ => Self::Other,
        }
    }

    fn file(self) -> &'static str {
        if self == Self::Zsh { ".zshenv" } else { "rc" }
    }

    /// The start file.
    fn start(self, folder: &Path) -> String {
        let remove = format!("command rm -rf -- {}\n", quoted(&folder.to_string_lossy()));
        match self {
            Self::Bash => remove + BASH,
            Self::Zsh => remove + &restore("ZDOTDIR") + ZSH,
            _ => remove + &restore("ENV") + POSIX,
        }
    }
}

/// A command that restores a variable.
fn restore(name: &str) -> String {
    match env::var(name) {
        Ok(before) => format!("{name}={}\nexport {name}\n", quoted(&before)),
        Err(_) => format!("unset {name}\n"),
    }
}

/// bash reads this instead of ~/.bashrc, after the host's own.
const BASH: &str = r#"[ -f ~/.bashrc ] && . ~/.bashrc
__narrows_prompt() {
    case $PS1 in "($NARROWS_PROMPT) "*) ;; *) PS1="($NARROWS_PROMPT) $PS1" ;; esac
}
__narrows_prompt
if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == "declare -a"* ]]; then
    PROMPT_COMMAND+=(__narrows_prompt)
elif [ -n "$PROMPT_COMMAND" ]; then
    PROMPT_COMMAND="$PROMPT_COMMAND"$'\n'__narrows_prompt
else
    PROMPT_COMMAND=__narrows_prompt
fi
"#;

/// zsh reads this instead of ~/.zshenv, and then the user's other files, as ZDOTDIR is restored.
const ZSH: &str = r#"[[ -f ${ZDOTDIR:-$HOME}/.zshenv ]] && . ${ZDOTDIR:-$HOME}/.zshenv
__narrows_prompt() {
    [[ $PS1 == "($NARROWS_PROMPT) "* ]] || PS1="($NARROWS_PROMPT) $PS1"
}
typeset -ga precmd_functions
precmd_functions+=(__narrows_prompt)
"#;

/// Shells that read `$ENV` read this, and then the user's.
const POSIX: &str = r#"[ -n "$ENV" ] && [ -f "$ENV" ] && . "$ENV"
PS1="($NARROWS_PROMPT) ${PS1:-\$ }"
"#;

/// fish runs this after its start files.
const FISH: &str = "functions --query fish_prompt; and functions --copy fish_prompt __narrows_outer_prompt; \
function fish_prompt; printf '(%s) ' $NARROWS_PROMPT; \
functions --query __narrows_outer_prompt; and __narrows_outer_prompt; end";

/// A private folder in the temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let wanted =
            |number: u32| env::temp_dir().join(format!("narrows-shell-{}-{number}", std::process::id()));
        for path in (0..100).map(wanted) {
            // An existing folder belongs to somebody else.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(Failure::Write { path, cause }),
            }
        }
        Err(Failure::Other(format!("there is no room for a folder such as {}", wanted(0).display())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The shell has usually removed it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
