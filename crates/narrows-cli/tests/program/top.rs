//! `narrows top` on a terminal of its own: what a person sees there, sets, and gets back at the end.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Finished, NARROWS, Scratch, finish, quoted};
use crate::leftovers::RunFolder;

/// A run folder and a state folder of a test's own.
struct Place {
    folder: RunFolder,
    state: Scratch,
}

impl Place {
    /// With a network that is called `lab`.
    fn new() -> Self {
        let place = Self { folder: RunFolder::new(), state: Scratch::new() };
        // The folder stays when no run is active: without it, it would be that of everybody.
        fs::write(place.folder.file("stays"), "").unwrap();
        place.up();
        place
    }

    fn up(&self) {
        finish(&mut self.command(["up", "--name", "lab", "-d", "--rate", "10mbit", "--delay", "1ms"]))
            .expect(0);
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.folder.narrows(arguments);
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    /// A command as a line for the shell.
    fn line(&self, arguments: &str) -> String {
        let command = self.command([]);
        let environment = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, quoted(value?.to_str()?))));
        format!("{} {} {arguments}", environment.collect::<Vec<_>>().join(" "), quoted(NARROWS))
    }

    fn top(&self, arguments: &[&str], steps: &[(&str, &str)]) -> Finished {
        on_a_terminal(&self.command([]), arguments, steps)
    }

    /// What is configured of a direction now.
    fn configured(&self, link: &str) -> String {
        let stats = finish(&mut self.command(["stats", "--run", "lab", "--json"])).expect(0).json();
        let links = stats["now"]["links"].as_array().unwrap();
        let found = links.iter().find(|now| now["link"] == link).map(|now| now["configured"].clone());
        found.as_ref().and_then(Value::as_str).unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.command(["down", "--all", "--quiet"]).status();
    }
}

/// `narrows top` in the environment of a command: each step is what has to be shown, and what is then typed or done.
pub(crate) fn on_a_terminal(within: &Command, arguments: &[&str], steps: &[(&str, &str)]) -> Finished {
    let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/top_terminal.py");
    let environment = within.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new("python3");
    command.envs(environment).env("TERM", "xterm-256color").arg(helper);
    command.args(["24", "80", &json!(steps).to_string(), "--", NARROWS, "top"]).args(arguments);
    finish(&mut command).expect(0)
}

/// That the terminal is as it was.
#[track_caller]
fn restored(ended: &Finished, status: i32) {
    assert!(ended.out.ends_with(&format!("status {status}\nterminal as before\n")), "{ended}");
}

#[test]
#[ignore = "needs namespaces, python3"]
fn top_shows_links_sets_values_and_takes_them_back() {
    let place = Place::new();
    let steps = [
        ("link.down", ""),
        ("10.0M", "j"),
        ("link.down", "e"),
        // What is wrong is said in the run's words, and the line stays to be corrected.
        ("narrows set --run lab link.down.rate=10mbit", "q\r"),
        ("did you mean", "\r"),
        ("Enter: set", "\u{15}link.down.rate=2mbit\r"),
        ("2.00M", "o"),
        ("link.down.outage=true", "\r"),
        ("DOWN", "u"),
        ("taken back: narrows set --run lab link.down.outage=false", "\r"),
        ("settings", "!size 12 60"),
        ("settings", "q"),
    ];
    restored(&place.top(&["lab"], &steps), 0);
    let (down, up) = (place.configured("link.down"), place.configured("link.up"));
    assert!(down.starts_with("2mbit, ") && up.starts_with("10mbit, "), "{down}; {up}");
}

#[test]
#[ignore = "needs namespaces, python3"]
fn top_keeps_the_last_picture_and_finds_a_run_again() {
    let place = Place::new();
    let (down, up) = (place.line("down lab --quiet"), place.line("up --name lab -d --rate 3mbit >/dev/null"));
    let (down, up) = (format!("!shell {down}"), format!("!shell {up}"));
    let steps = [
        ("10.0M", &down[..]),
        ("THE RUN HAS ENDED", "?"),
        ("this page", " "),
        ("link.down", "e"),
        ("narrows set", "\r"),
        ("THE RUN HAS ENDED", "\u{1b}"),
        ("10.0M", &up),
        ("3.00M", "\u{3}"),
    ];
    restored(&place.top(&["--run", "lab"], &steps), 0);
}

#[test]
#[ignore = "needs namespaces, python3"]
fn top_listens_to_keys_while_the_run_does_not_answer() {
    let place = Place::new();
    let runs = finish(&mut place.command(["ls", "--json"])).expect(0).json();
    let number = runs["runs"][0]["run"].as_u64().unwrap();
    let [stop, go_on] = ["STOP", "CONT"].map(|signal| format!("!shell kill -{signal} {number}"));
    let steps = [
        ("10.0M", &stop[..]),
        ("10.0M", "?"),
        ("this page", " "),
        ("NO ANSWER", "/up\r"),
        ("1 of 2", "\u{1b}"),
        ("does not answer within", &go_on),
        // It goes on by itself.
        ("accurate", "!signal SIGTERM"),
    ];
    restored(&place.top(&["lab"], &steps), 0);
    // A terminal that is gone is no error.
    let gone = place.top(&["lab"], &[("accurate", "!hangup")]);
    assert_eq!(gone.out, "status 0\n", "{gone}");
}

#[test]
#[ignore = "needs namespaces"]
fn top_says_what_it_needs_and_which_runs_there_are() {
    let place = Place::new();
    // Neither is the standard output of this test a terminal.
    let err = finish(&mut place.command(["top", "lab"])).expect(2).err;
    assert!(err.contains("narrows stats --watch --run lab"), "{err}");
    let both = finish(&mut place.command(["top", "lab", "--run", "lab"])).expect(2).err;
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
#[ignore = "needs namespaces, python3"]
fn top_of_no_run_leaves_the_terminal_alone() {
    let place = Place::new();
    let ended = place.top(&["lob"], &[]);
    assert!(ended.out.contains("no active run `lob`; active: lab ("), "{ended}");
    restored(&ended, 2);
}
