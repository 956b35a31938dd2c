//! A network at an interface of a container: a process `narrows attach`, which ends with this one.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::Sender;
use std::{io, thread};

use narrows_io::child_lifetime::end_with_us;
use narrows_io::clock::MonotonicTime;
use narrows_io::process::Signal;
use narrows_live::control::{Client, ControlError, socket_name};
use narrows_live::run_record::Membership;

use super::Message;
use super::place::Place;
use crate::labels::Direction;
use crate::plan::{Addresses, Plan};

/// The maximum length of a line that is kept.
const LONGEST_LINE: u64 = 4096;

/// What to start.
#[derive(Debug)]
pub(super) struct Start<'a> {
    /// The program `narrows`.
    pub(super) program: &'a Path,
    /// The folder that names of files are relative to.
    pub(super) folder: &'a Path,
    pub(super) run: String,
    /// What it is shown as.
    pub(super) title: String,
    pub(super) interface: String,
    /// Its place in the graph of a lab or project.
    pub(super) membership: Option<Membership>,
    /// The flag that says where the interface is, and its value.
    pub(super) at: (&'static str, String),
    pub(super) direction: Direction,
    pub(super) fails_closed: bool,
}

impl Start<'_> {
    /// The arguments of `narrows`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (flag, value) = &self.at;
        let mut all = vec!["attach", &self.interface, "-", flag, value, "--name", &self.run];
        if self.direction != Direction::Both {
            all.extend(["--direction", self.direction.name()]);
        }
        if self.fails_closed {
            all.extend(["--fail", "closed"]);
        }
        // In one word each, so that no title is taken for a flag.
        let title = format!("--title={}", self.title);
        let place = self.membership.as_ref().map(|Membership { group, ends: [from, to] }| {
            [format!("--group={group}"), format!("--ends={from},{to}")]
        });
        all.into_iter().map(str::to_owned).chain([title]).chain(place.into_iter().flatten()).collect()
    }
}

/// A started network.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The container's ID, and its name.
    pub(super) container: String,
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) interface: String,
    pub(super) run: String,
    /// The event that it was started for.
    pub(super) since: MonotonicTime,
    pub(super) is_up: bool,
    pub(super) is_ending: bool,
    tables: Addresses,
    /// Why it could not be told addresses, as it was said last.
    last_refusal: Option<String>,
    child: Child,
}

impl Attachment {
    /// Starts it. What it says and its end are sent as messages with this number.
    pub(super) fn start(
        start: &Start<'_>,
        plan: &Plan,
        addresses: &Addresses,
        about: ((String, String), Place, MonotonicTime),
        number: u64,
        to: Sender<Message>,
    ) -> io::Result<Self> {
        let mut command = Command::new(start.program);
        command.args(start.arguments()).current_dir(start.folder);
        // Ctrl-C is for us, who end all of them.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        // An orderly end opens what must stay closed.
        end_with_us(&mut command, if start.fails_closed { Signal::SIGKILL } else { Signal::SIGTERM });
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stderr.take());
        let ((container, name), place, since) = about;
        let started = Self {
            container,
            name,
            place,
            interface: start.interface.clone(),
            run: start.run.clone(),
            since,
            is_up: false,
            is_ending: false,
            tables: told(plan, addresses),
            last_refusal: None,
            child,
        };
        if let Some(mut input) = input {
            // If it has ended already, it says why.
            let _ = input.write_all(plan.scenario.as_bytes());
        }
        thread::spawn(move || listen(output, number, &to));
        Ok(started)
    }

    /// Asks it to end in an orderly way: what is inside still leaves. One that is not up yet holds nothing.
    pub(super) fn end(&mut self, folder: &Path) {
        if !std::mem::replace(&mut self.is_ending, true)
            && (!self.is_up || self.client(folder).end().is_err())
        {
            self.kill();
        }
    }

    /// Ends it at once; no effect if it has ended.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Waits for its end; its exit status, unless a signal ended it.
    pub(super) fn wait(&mut self) -> Option<i32> {
        self.child.wait().ok().and_then(|status| status.code())
    }

    fn client(&self, folder: &Path) -> Client {
        Client::at(&folder.join(socket_name(self.child.id())))
    }

    /// Tells it the addresses of services that have changed; what the user is to know of a failure, once until it
    /// changes or ends.
    pub(super) fn tell(&mut self, addresses: &Addresses, folder: &Path) -> Option<String> {
        let refusal = match self.try_tell(addresses, folder) {
            // One that is ending says so itself.
            Ok(()) | Err(ControlError::Nobody { .. }) => None,
            Err(error) => Some(error.to_string()),
        };
        news(&mut self.last_refusal, refusal)
            .map(|why| format!("run {}: addresses of services are out of date: {why}", self.run))
    }

    /// Whether it could not be told addresses.
    pub(super) fn is_out_of_date(&self) -> bool {
        self.last_refusal.is_some()
    }

    fn try_tell(&mut self, addresses: &Addresses, folder: &Path) -> Result<(), ControlError> {
        let (commands, now) = updates(&self.tables, addresses, self.is_out_of_date());
        if commands.is_empty() {
            return Ok(());
        }
        self.client(folder).ipfw(None, "addresses of services".into(), commands)?;
        self.tables = now;
        Ok(())
    }
}

/// The commands that bring tables up to date, and what they hold then. All of them take effect at one instant.
/// `whole` also fills tables that should be right: the answer to an earlier update may have been lost.
fn updates(tables: &Addresses, addresses: &Addresses, whole: bool) -> (String, Addresses) {
    let mut commands = String::new();
    let mut now = Addresses::new();
    for (service, before) in tables {
        let after = addresses.get(service).cloned().unwrap_or_default();
        if *before != after || whole {
            commands += &format!("table {service} flush\n");
            after.iter().for_each(|address| commands += &format!("table {service} add {address}\n"));
        }
        now.insert(service.clone(), after);
    }
    (commands, now)
}

/// What is wrong now, unless that was so before.
fn news(before: &mut Option<String>, now: Option<String>) -> Option<String> {
    let is_news = *before != now;
    before.clone_from(&now);
    now.filter(|_| is_news)
}

/// The addresses that a plan looks up.
fn told(plan: &Plan, addresses: &Addresses) -> Addresses {
    let of = |service: &String| (service.clone(), addresses.get(service).cloned().unwrap_or_default());
    plan.tables.iter().map(of).collect()
}

/// Passes on what it says, until it ends.
fn listen(output: Option<ChildStderr>, number: u64, to: &Sender<Message>) {
    if let Some(output) = output {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while let Ok(1..) = output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            let _ = to.send(Message::Said(number, String::from_utf8_lossy(&line).trim_end().to_owned()));
            line.clear();
        }
    }
    let _ = to.send(Message::Ended(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_once_until_it_changes_or_has_ended() {
        let mut before = None;
        let mut told = |now: Option<&str>| news(&mut before, now.map(str::to_owned));
        assert_eq!(told(None), None);
        assert_eq!(told(Some("full")), Some("full".into()));
        assert_eq!(told(Some("full")), None);
        assert_eq!(told(Some("refused")), Some("refused".into()));
        assert_eq!(told(None), None);
        assert_eq!(told(Some("refused")), Some("refused".into()));
    }

    #[test]
    fn tables_are_filled_anew_where_addresses_have_changed_or_are_uncertain() {
        let of = |service: &str, address: &str| (service.to_owned(), [address.parse().unwrap()].into());
        let before: Addresses = [of("db", "10.0.0.2"), of("web", "10.0.0.3")].into();
        let after: Addresses = [of("db", "10.0.0.4"), of("web", "10.0.0.3"), of("other", "10.0.0.5")].into();
        let told: Addresses = [of("db", "10.0.0.4"), of("web", "10.0.0.3")].into();
        assert_eq!(updates(&before, &before, false), (String::new(), before.clone()));
        let db = "table db flush\ntable db add 10.0.0.4\n";
        assert_eq!(updates(&before, &after, false), (db.into(), told.clone()));
        let web = "table web flush\ntable web add 10.0.0.3\n";
        assert_eq!(updates(&told, &after, true), (format!("{db}{web}"), told.clone()));
        let gone = "table db flush\ntable web flush\n";
        assert_eq!(updates(&told, &Addresses::new(), false).0, gone);
    }

    #[test]
    fn a_run_is_shown_as_its_container() {
        let start = Start {
            program: Path::new("narrows"),
            folder: Path::new("."),
            run: "web".into(),
            title: "-web".into(),
            interface: "eth0".into(),
            membership: Some(Membership { group: "shop".into(), ends: ["web:eth0".into(), "net".into()] }),
            at: ("--pid", "7".into()),
            direction: Direction::Both,
            fails_closed: false,
        };
        let arguments = start.arguments().join(" ");
        assert_eq!(
            arguments,
            "attach eth0 - --pid 7 --name web --title=-web --group=shop --ends=web:eth0,net"
        );
    }
}
