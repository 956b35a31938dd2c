//! The configuration of a guest kernel.

use super::KernelError;

/// Options on top of `allnoconfig`; options that a version does not know are removed by its own configuration.
pub(super) const OPTIONS: &str = include_str!("guest.config");

/// Options that a guest requires.
const REQUIRED: [&str; 14] = [
    "64BIT",
    "UML_TIME_TRAVEL_SUPPORT",
    "HOSTFS",
    "OVERLAY_FS",
    "TMPFS",
    "DEVTMPFS",
    "HIGH_RES_TIMERS",
    "NET_NS",
    "USER_NS",
    "PID_NS",
    "VETH",
    "PACKET",
    "TUN",
    "NET_SCH_NETEM",
];

/// Checks that the configuration that a tree made of [`OPTIONS`] has the required options.
pub(super) fn check(configuration: &str) -> Result<(), KernelError> {
    let missing: Vec<_> = REQUIRED.into_iter().filter(|option| !is_on(configuration, option)).collect();
    if missing.is_empty() { Ok(()) } else { Err(KernelError::Configuration(missing.join(", "))) }
}

fn is_on(configuration: &str, option: &str) -> bool {
    configuration.lines().any(|line| {
        line.strip_prefix("CONFIG_")
            .and_then(|line| line.strip_prefix(option))
            .is_some_and(|rest| rest == "=y")
    })
}

/// The enabled options with this prefix, without the prefix and in lower case.
pub(super) fn built_in(configuration: &str, prefix: &str) -> Vec<String> {
    let mut names: Vec<_> = configuration
        .lines()
        .filter_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(prefix)?.strip_suffix("=y"))
        .map(str::to_ascii_lowercase)
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_required_is_asked_for() {
        assert!(check(OPTIONS).is_ok());
    }

    #[test]
    fn what_a_tree_does_not_take_is_named() {
        let without =
            OPTIONS.replace("CONFIG_VETH=y\n", "").replace("CONFIG_HOSTFS=y", "# CONFIG_HOSTFS is not set");
        let error = check(&without).unwrap_err().to_string();
        assert!(error.ends_with("it does not take HOSTFS, VETH"), "{error}");
    }

    #[test]
    fn no_option_is_asked_for_twice() {
        let mut options: Vec<_> =
            OPTIONS.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        let all = options.len();
        options.sort_unstable();
        options.dedup();
        assert_eq!(options.len(), all);
    }

    #[test]
    fn built_in_options_are_names() {
        let text = "CONFIG_NET_SCH_FQ_CODEL=y\nCONFIG_NET_SCH_CAKE=m\n# CONFIG_NET_SCH_RED is not set\nCONFIG_NET_SCHED=y\n\
                    CONFIG_NET_SCH_DRR=y\n";
        assert_eq!(built_in(text, "NET_SCH_"), ["drr", "fq_codel"]);
    }
}
