//! The link flags, one for each key of a link.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use narrows_scenario::{LinkFlag, LinkFlags};

/// A flag for each key of a link, as defined by the scenario parser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkKeys(pub(crate) LinkFlags);

impl Args for LinkKeys {
    fn augment_args(command: Command) -> Command {
        let arg = |flag: LinkFlag| {
            // A file name or NetEm options do not start with a hyphen: such a word is the next flag.
            let may_be_negative = !["FILE", "OPTIONS"].contains(&flag.value);
            let arg = Arg::new(flag.name).long(flag.name).value_name(flag.value).help(flag.help);
            arg.allow_hyphen_values(may_be_negative)
        };
        command.args(LinkFlags::known().into_iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LinkKeys {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |flags: LinkFlags, flag: LinkFlag| {
            flags.given(flag.name, matches.get_one::<String>(flag.name).cloned())
        };
        Ok(Self(LinkFlags::known().into_iter().fold(Default::default(), given)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
