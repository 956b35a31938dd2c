//! Values that shell completion offers.

use clap::Command;
use clap::builder::{PossibleValue, TypedValueParser};
use narrows_scenario::LinkFlags;

/// Any text, with values that shell completion offers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offered {
    /// Hosts of a network described by flags.
    Hosts,
    /// Keys of its link that can be changed.
    Keys,
}

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        match self {
            Self::Hosts => Some(Box::new(["client", "server"].into_iter().map(PossibleValue::new))),
            Self::Keys => {
                let keys = LinkFlags::known().into_iter().filter(|flag| !flag.name.starts_with("netem"));
                Some(Box::new(keys.map(|flag| PossibleValue::new(format!("link.{}", flag.name)))))
            }
        }
    }
}
