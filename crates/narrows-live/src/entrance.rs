//! Entrances to the hosts of a run, for programs started later: what `narrows exec` asks the run for.
//!
//! The run holds a descriptor of each host's namespace. Whoever may inspect the run's process can open it by number:
//! the same user and root, nobody else. The environment and the files of `/etc` are those of the run's programs.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;

use narrows_io::address::IpPrefix;
use narrows_io::etc_files::EtcFiles;

use crate::control::{self, ControlSocket, Entrance, HostOfRun, InterfaceOfRun};
use crate::feeds::capitals;
use crate::names::Names;
use crate::renumber::{NETWORKS_ENVIRONMENT, networks_around};
use crate::run_record::{self, NAME_ENVIRONMENT, RUN_ENVIRONMENT};
use crate::testbed::{Host, Testbed, one_of_each};

/// The entrances to all hosts of a run.
#[derive(Debug)]
pub struct Entrances {
    hosts: Vec<Way>,
    /// Environment variables in every host.
    environment: Vec<(String, OsString)>,
}

/// The entrance to one host.
#[derive(Debug)]
struct Way {
    host: HostOfRun,
    namespace: i32,
    environment: Vec<(String, OsString)>,
    files: Option<Arc<EtcFiles>>,
}

impl Entrances {
    /// The entrances to the hosts of a run, which exist as long as the run.
    pub(crate) fn new(testbed: &Testbed, names: &Names, control: &ControlSocket) -> Self {
        let way = |host: &Host| Way {
            host: HostOfRun::of(host),
            namespace: host.namespace.as_fd().as_raw_fd(),
            environment: own_environment(testbed, host),
            files: names.of(host).cloned(),
        };
        let environment = common_environment(testbed, control);
        Self { hosts: testbed.hosts.iter().map(way).collect(), environment }
    }

    /// The hosts.
    pub fn hosts(&self) -> Vec<&HostOfRun> {
        self.hosts.iter().map(|way| &way.host).collect()
    }

    /// The entrance to a host, with the environment variables for feeds; or the reason why there is none.
    pub fn of(&self, host: &str, feeds: Vec<(String, PathBuf)>) -> Result<Entrance, String> {
        let Some(way) = self.hosts.iter().find(|way| way.host.host == host) else {
            let all: Vec<_> = self.hosts.iter().map(|way| format!("`{}`", way.host.host)).collect();
            return Err(format!("no host `{host}`: the run has {}", all.join(", ")));
        };
        let text = |(name, value): (String, OsString)| (name, value.to_string_lossy().into_owned());
        let own = self.environment.iter().chain(&way.environment).cloned();
        let feeds = feeds.into_iter().map(|(name, path)| (name, path.into_os_string()));
        let files = way.files.iter().flat_map(|files| files.contents());
        Ok(Entrance {
            namespace: way.namespace,
            environment: own.chain(feeds).map(text).collect(),
            files: files
                .map(|(name, text)| (name.to_owned(), String::from_utf8_lossy(text).into_owned()))
                .collect(),
            hides_services: way.files.as_ref().is_some_and(|files| files.hides_services()),
        })
    }
}

impl HostOfRun {
    fn of(host: &Host) -> Self {
        let address = |prefix: &IpPrefix| prefix.address.to_string();
        let interfaces = host.interfaces.iter().map(|interface| InterfaceOfRun {
            name: interface.name.clone(),
            addresses: interface.addresses.iter().map(address).collect(),
            peer: interface.joined_to.clone(),
        });
        Self { host: host.name.clone(), interfaces: interfaces.collect() }
    }
}

/// Environment variables of the run's programs in this host: how to reach the hosts and the run.
pub(crate) fn environment(
    testbed: &Testbed,
    host: &Host,
    control: &ControlSocket,
) -> Vec<(String, OsString)> {
    let mut all = common_environment(testbed, control);
    all.extend(own_environment(testbed, host));
    all
}

/// Environment variables in every host.
fn common_environment(testbed: &Testbed, control: &ControlSocket) -> Vec<(String, OsString)> {
    let mut all = vec![
        (RUN_ENVIRONMENT.to_owned(), std::process::id().to_string().into()),
        (NAME_ENVIRONMENT.to_owned(), control.name().to_string().into()),
        (run_record::ENVIRONMENT.to_owned(), control.run_id().to_string().into()),
        (control::ENVIRONMENT.to_owned(), control.path().into()),
    ];
    if let Some(outer) = std::env::var_os("NARROWS_SERVER") {
        all.push(("NARROWS_OUTER_SERVER".to_owned(), outer));
    }
    let mut networks = networks_around();
    networks.extend(testbed.networks());
    let networks: Vec<_> = networks.iter().map(IpPrefix::to_string).collect();
    all.push((NETWORKS_ENVIRONMENT.to_owned(), networks.join(",").into()));
    for host in &testbed.hosts {
        if let Some(interface) = host.interfaces.first() {
            add(&mut all, &format!("HOST_{}", capitals(&host.name)), &interface.addresses);
        }
    }
    all
}

/// Environment variables in one host: its own address, and that of the other end.
fn own_environment(testbed: &Testbed, host: &Host) -> Vec<(String, OsString)> {
    let mut all = Vec::new();
    if let Some(interface) = host.interfaces.first() {
        add(&mut all, "CLIENT", &interface.addresses);
    }
    if let Some((_, interface)) = testbed.server_of(host) {
        add(&mut all, "SERVER", &interface.addresses);
    }
    all
}

fn add(all: &mut Vec<(String, OsString)>, name: &str, addresses: &[IpPrefix]) {
    for (address, suffix) in one_of_each(addresses).into_iter().zip(["", "6"]) {
        all.extend(address.map(|address| (format!("NARROWS_{name}{suffix}"), address.to_string().into())));
    }
}
