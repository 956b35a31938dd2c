//! Variables that are around a script: `--env NAME=VALUE`.

use clap::Args;

use crate::output::Failure;

/// What a script is started with beside its arguments.
#[derive(Debug, Args)]
pub(crate) struct Surroundings {
    /// Variable that the script finds in its environment; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<String>,
}

impl Surroundings {
    /// The variables, by name.
    pub(crate) fn variables(&self) -> Result<Vec<(String, String)>, Failure> {
        let of = |text: &String| {
            let is_name = |name: &str| {
                name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
            };
            match text.split_once('=') {
                Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
                _ => Err(Failure::Other(format!(
                    "--env: {text:?} is not a variable: write NAME=VALUE, as in DEV=eth0"
                ))),
            }
        };
        self.variables.iter().map(of).collect()
    }
}
