//! One scenario across several machines: network namespaces, joined by a cable, with a script in place of ssh.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio, id};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::route_socket::RouteSocket;
use serde_json::Value;

use crate::common::{NARROWS, Scratch, narrows};
use crate::leftovers::{clean, turn};

const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
const MACHINES: &str = "alpha=10.77.0.1,beta=10.77.0.2";
pub(crate) const EXAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/machines/two-sites.toml");

struct Bed {
    scratch: Scratch,
    ssh: PathBuf,
    /// They last as long as they are open.
    _machines: [Namespace; 2],
}

impl Bed {
    /// Two machines, and a cable with this MTU.
    fn new(mtu: u32) -> Self {
        let machines = [(); 2].map(|()| Namespace::create().unwrap());
        let end = |namespace| VethEnd { namespace, name: "wire", mac: None };
        create_veth(&end(&machines[0]), &end(&machines[1]), mtu).unwrap();
        for (machine, address) in machines.iter().zip(ADDRESSES) {
            let mut sockets = RouteSocket::open(machine).unwrap();
            sockets.add_address("wire", IpPrefix::new(address.parse::<IpAddr>().unwrap(), 24)).unwrap();
            sockets.set_up("wire").unwrap();
        }
        RouteSocket::open(&machines[0]).unwrap().wait_for_carrier("wire", Duration::from_secs(60)).unwrap();
        let scratch = Scratch::new();
        let ssh = scratch.file("ssh");
        let [alpha, beta] = machines.each_ref().map(|machine| machine.as_fd().as_raw_fd());
        let script = format!(
            "#!/bin/sh\ncase $1 in alpha) n={alpha};; beta) n={beta};; *) exit 255;; esac\n\
             echo $$ > {}.$1\nexec nsenter --net=/proc/{}/fd/$n {NARROWS} agent\n",
            ssh.display(),
            id()
        );
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        Self { scratch, ssh, _machines: machines }
    }

    fn up(&self, scenario: &str, more: &[&str]) -> Command {
        let mut command = narrows([]);
        command.args(["up", scenario, "--machines", MACHINES, "--ssh"]).arg(&self.ssh).args(more);
        command.stderr(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// The process ID of an agent.
    fn agent(&self, machine: &str) -> String {
        fs::read_to_string(format!("{}.{machine}", self.ssh.display())).unwrap().trim().to_owned()
    }
}

/// A coordinator whose network is up.
pub(crate) struct Up {
    child: Child,
    lines: Receiver<String>,
    /// The names of the runs, of alpha and beta.
    pub(crate) runs: [String; 2],
}

impl Up {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (say, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        let mut runs = [String::new(), String::new()];
        while runs.iter().any(String::is_empty) {
            let line = lines.recv_timeout(Duration::from_secs(90)).expect("the network comes up");
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["narrows", "run", name, "is", "up", .., "alpha"] => runs[0] = name.into(),
                ["narrows", "run", name, "is", "up", .., "beta"] => runs[1] = name.into(),
                _ => panic!("{line}"),
            }
        }
        Self { child, lines, runs }
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }

    /// Waits for the end; the exit status and all that was said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        (status.code(), self.lines.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

pub(crate) fn exec(run: &str, command: &[&str]) -> Output {
    narrows([]).args(["exec", run]).args(command).output().unwrap()
}

fn is_gone(pid: &str) -> bool {
    for _ in 0..300 {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if status.is_empty() || status.contains(") Z ") {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

#[test]
#[ignore = "needs root"]
fn pings_cross_machines_in_the_scenarios_time() {
    let bed = Bed::new(1600);
    let json = bed.scratch.file("report.json");
    let up = Up::start(bed.up(EXAMPLE, &["--json", json.to_str().unwrap()]));
    let ping = exec(&up.runs[0], &["client", "--", "ping", "-c", "40", "-i", "0.05", "-q", "server"]);
    let said = String::from_utf8_lossy(&ping.stdout).into_owned();
    assert!(said.contains(" 0% packet loss"), "{said}");
    let times = said.split(" = ").nth(1).unwrap_or_else(|| panic!("{said}"));
    let times: Vec<f64> = times.split(&['/', ' '][..]).map_while(|word| word.parse().ok()).collect();
    // 1, 20 and 0.2 ms, there and back; what the machines' own network takes is part of the 20 ms. Above, it depends on the load of
    // the machine.
    assert!((42.2..=62.0).contains(&times[0]), "{said}");
    // A host of the other machine is not here.
    assert!(!exec(&up.runs[0], &["server", "--", "true"]).status.success());
    up.signal("-INT");
    let (status, said) = up.end();
    assert!(matches!(status, Some(0 | 75)), "{said}");
    assert!(said.contains("machine alpha") && said.contains("machine beta"), "{said}");
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let of = |machine: &str| report["machines"][machine]["report"]["directions"].to_string();
    assert!(of("alpha").contains("backbone.up") && !of("alpha").contains("backbone.down"), "{}", of("alpha"));
    assert!(of("beta").contains("backbone.down") && !of("beta").contains("office"), "{}", of("beta"));
    assert!(report["machines"]["alpha"]["underlay"]["beta"]["probes"].as_u64() > Some(5), "{report}");
}

#[test]
#[ignore = "needs root"]
fn all_end_when_an_agent_or_the_coordinator_is_killed() {
    let _turn = turn();
    let bed = Bed::new(1600);
    let up = Up::start(bed.up(EXAMPLE, &[]));
    let agents = ["alpha", "beta"].map(|machine| bed.agent(machine));
    kill("-KILL", &agents[0]);
    let (status, said) = up.end();
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("the agent on the machine `alpha` was lost"), "{said}");
    assert!(agents.iter().all(|agent| is_gone(agent)));
    let up = Up::start(bed.up(EXAMPLE, &[]));
    let agents = ["alpha", "beta"].map(|machine| bed.agent(machine));
    up.signal("-KILL");
    assert!(agents.iter().all(|agent| is_gone(agent)));
    let _ = up.end();
    // The end of one part ends the others.
    let up = Up::start(bed.up(EXAMPLE, &[]));
    assert!(narrows([]).args(["down", &up.runs[1]]).output().unwrap().status.success());
    let (status, said) = up.end();
    assert!(matches!(status, Some(0 | 75)), "{said}");
    // What those that were killed have left.
    clean();
}

#[test]
#[ignore = "needs root"]
fn what_cannot_be_carried_is_refused_with_the_numbers() {
    let text = fs::read_to_string(EXAMPLE).unwrap();
    let refused = |bed: &Bed, text: &str, more: &[&str]| {
        let file = bed.scratch.file("scenario.toml");
        fs::write(&file, text).unwrap();
        let output = bed.up(file.to_str().unwrap(), more).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let narrow = Bed::new(1500);
    let said = refused(&narrow, &text, &[]);
    assert!(
        said.contains("the link `backbone` needs packets of 1550 bytes") && said.contains("mtu = 1450"),
        "{said}"
    );
    let bed = Bed::new(1600);
    let said =
        refused(&bed, &text.replace("20ms", "100ns").replace("1ms", "100ns").replace("0.2ms", "100ns"), &[]);
    assert!(said.contains("no link between them can be cut"), "{said}");
    let said = refused(&bed, &text.replace("\"beta\"", "\"gamma\""), &[]);
    assert!(said.contains("`gamma`, which is not among --machines alpha,beta"), "{said}");
    let said = refused(&bed, &text.replace("machine = \"beta\"", ""), &[]);
    assert!(said.contains("host `server` has no machine"), "{said}");
    let said = refused(
        &bed,
        &format!("{text}\n[[timeline]]\nat = \"1s\"\nset = {{ \"backbone.delay\" = \"30ms\" }}\n"),
        &[],
    );
    assert!(said.contains("the delay of `backbone` is fixed during this run"), "{said}");
}
