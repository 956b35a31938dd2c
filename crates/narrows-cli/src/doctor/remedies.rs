//! Obstacles to live runs on this host, each with the command that removes it.

use std::fs;
use std::path::Path;

use narrows_io::host;

/// Properties of the host.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether the user has the capabilities.
    pub(super) privileged: bool,
    /// Whether user namespaces can be created.
    pub(super) namespaces: bool,
    /// Kernel settings, if they exist.
    unprivileged_clone: Option<u64>,
    most_namespaces: Option<u64>,
    apparmor_restricts: Option<u64>,
    container: bool,
    /// Version such as `6.6`.
    kernel: Option<(u32, u32)>,
    wsl: bool,
}

/// The first kernel with all features (TCX links, for `attach`).
const COMPLETE: (u32, u32) = (6, 6);

impl Facts {
    pub(super) fn find(privileged: bool, namespaces: bool) -> Self {
        let release = host::kernel_release().unwrap_or_default();
        let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok();
        let marks = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];
        Self {
            privileged,
            namespaces,
            unprivileged_clone: setting("kernel/unprivileged_userns_clone"),
            most_namespaces: setting("user/max_user_namespaces"),
            apparmor_restricts: setting("kernel/apparmor_restrict_unprivileged_userns"),
            container: marks.iter().any(|mark| Path::new(mark).exists()),
            kernel: version(&release),
            wsl: release.to_lowercase().contains("microsoft"),
        }
    }

    /// Each problem in a word or two, and its remedy.
    pub(super) fn remedies(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        let mut say = |problem, remedy: &str| all.push((problem, remedy.to_owned()));
        if !self.privileged && !self.namespaces {
            let mut is_known = false;
            for (found, command) in [
                (self.unprivileged_clone == Some(0), "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
                (self.most_namespaces == Some(0), "sudo sysctl -w user.max_user_namespaces=15000"),
                (
                    self.apparmor_restricts == Some(1),
                    "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
                ),
            ] {
                if found {
                    is_known = true;
                    say(
                        "no user namespaces",
                        &format!("{command} (until the next boot), or run narrows as root"),
                    );
                }
            }
            match (is_known, self.container) {
                (true, _) => {}
                (false, true) => say(
                    "container",
                    "docker run --cap-add NET_ADMIN --cap-add NET_RAW --cap-add SYS_ADMIN --security-opt apparmor=unconfined \
                     --security-opt seccomp=unconfined … (or --privileged): this container allows no namespaces",
                ),
                (false, false) => say("no root", "sudo narrows …, or setcap as said at capabilities"),
            }
        } else if !self.privileged {
            say(
                "no root",
                "sudo narrows …: for --internet, bridge, attach and existing namespaces; all else works",
            );
        }
        if self.wsl && self.kernel.is_some_and(|kernel| kernel < COMPLETE) {
            say(
                "WSL2 kernel",
                "wsl --update (in Windows), then wsl --shutdown: newer kernels have what attach needs",
            );
        } else if self.kernel.is_some_and(|kernel| kernel < COMPLETE) {
            say(
                "older kernel",
                "attach needs Linux 6.6: install a newer kernel; all else works as said above",
            );
        }
        all
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(facts: &Facts) -> Vec<&'static str> {
        facts.remedies().into_iter().map(|(problem, _)| problem).collect()
    }

    #[test]
    fn the_setting_that_forbids_namespaces_is_named() {
        let none = || Facts { kernel: Some((6, 8)), ..Facts::default() };
        for (facts, setting) in [
            (Facts { unprivileged_clone: Some(0), ..none() }, "kernel.unprivileged_userns_clone=1"),
            (Facts { most_namespaces: Some(0), ..none() }, "user.max_user_namespaces=15000"),
            (
                Facts { apparmor_restricts: Some(1), ..none() },
                "kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        ] {
            let remedies = facts.remedies();
            assert!(matches!(&remedies[..], [(_, remedy)] if remedy.contains(setting)), "{remedies:?}");
            assert_eq!(
                problems(&Facts { namespaces: true, ..facts }),
                ["no root"],
                "they can be made all the same"
            );
        }
        assert_eq!(problems(&Facts { container: true, ..none() }), ["container"]);
        assert_eq!(problems(&none()), ["no root"]);
        assert_eq!(problems(&Facts { privileged: true, ..none() }), Vec::<&str>::new());
    }

    #[test]
    fn an_older_kernel_is_said() {
        let facts = |release| Facts { privileged: true, kernel: version(release), ..Facts::default() };
        assert_eq!(problems(&facts("5.15.0-91-generic")), ["older kernel"]);
        assert_eq!(problems(&facts("6.6.87")), Vec::<&str>::new());
        let wsl = Facts { wsl: true, ..facts("5.15.153.1-microsoft-standard-WSL2") };
        assert_eq!(problems(&wsl), ["WSL2 kernel"]);
        assert_eq!(version("odd"), None);
    }
}
