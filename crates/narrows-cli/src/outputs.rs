//! The files that a command writes: no two of them the same, none that it reads, none of scenarios, which people write.
//!
//! [`check_line`] checks the files of every command line. Files that an argument does not name itself are checked by the
//! commands that read them: with [`check_scenario`] those of a scenario, with [`check`] others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, ValueHint};
use narrows_scenario::{Scenario, TrafficSource, preset_trace};

use crate::json::is_stdout;
use crate::output::Failure;

/// A flag, and the file that it names.
pub(crate) type Named<'a> = (&'a str, Option<&'a Path>);

/// The arguments that name an output. All others that name a file are inputs.
const OUTPUTS: &[&str] = &[
    "--capture",
    "--json",
    "--out",
    "--output",
    "--packets",
    "--plot",
    "--record",
    SCENARIO,
    "--series",
    "OUTPUT",
];
/// The output that is a scenario.
const SCENARIO: &str = "--scenario";
/// Files that programs of the run write.
const OF_PROGRAMS: &str = "--write";

/// As [`check`], for all files that a command line names.
pub(crate) fn check_line(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let (mut command, mut matches) = (command, matches);
    let (mut outputs, mut read) = (Vec::new(), Vec::new());
    loop {
        for argument in command.get_arguments().filter(|argument| is_file(argument)) {
            let flag = flag(argument);
            let given = matches.try_get_raw(argument.get_id().as_str()).ok().flatten();
            let given = given.into_iter().flatten().map(Path::new);
            match OUTPUTS.iter().find(|output| **output == flag) {
                Some(output) => outputs.extend(given.map(|path| (*output, Some(path)))),
                None if flag == OF_PROGRAMS => {}
                None => read.extend(given.map(PathBuf::from)),
            }
        }
        let next = matches.subcommand().and_then(|(name, of)| Some((command.find_subcommand(name)?, of)));
        let Some(next) = next else { return check(&outputs, &read) };
        (command, matches) = next;
    }
}

/// Whether an argument names a file: those with a [`PathBuf`] do, and others that complete as such.
fn is_file(argument: &Arg) -> bool {
    matches!(argument.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath)
}

/// The name of an argument, as in [`OUTPUTS`].
fn flag(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument.get_value_names().map(|names| names.concat()).unwrap_or_default(),
    }
}

/// As [`check`], for the files that a scenario names; `file` is its own, if it has one.
pub(crate) fn check_scenario(
    outputs: &[Named<'_>],
    scenario: &Scenario,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let files = scenario.files().into_iter().filter(|file| preset_trace(&file.name).is_none());
    let mut read: Vec<PathBuf> = files.map(|file| folder.join(&*file.name)).collect();
    for traffic in &scenario.traffic {
        if let TrafficSource::Capture { file, .. } = &traffic.source {
            read.push(file.clone());
        }
    }
    check(outputs, &read)
}

/// Fails if two outputs would go to one place, or if one would overwrite a file that is read, or a file of scenarios.
pub(crate) fn check(outputs: &[Named<'_>], read: &[PathBuf]) -> Result<(), Failure> {
    let given: Vec<(&str, &Path)> =
        outputs.iter().filter_map(|(flag, path)| Some((*flag, (*path)?))).collect();
    for (number, (flag, path)) in given.iter().enumerate() {
        let name = path.display();
        if let Some((other, _)) = given[..number].iter().find(|(_, other)| is_same(other, path)) {
            return Err(Failure::Other(match is_stdout(Some(path)) {
                true => format!(
                    "{other} and {flag} would both go to the standard output: name a file for one of them"
                ),
                false => {
                    format!("{other} and {flag} would both go to {name}: name another file for one of them")
                }
            }));
        }
        if read.iter().any(|read| !is_stdout(Some(read)) && read.exists() && is_same(read, path)) {
            return Err(Failure::Other(format!(
                "{flag} {name}: this file is read, and would be overwritten"
            )));
        }
        if path.extension().is_some_and(|end| end == "toml") && *flag != SCENARIO {
            return Err(Failure::Other(match *flag {
                "--json" => format!(
                    "--json {name}: JSON does not go to a file of scenarios; to print it, put the file before the flag: {name} --json"
                ),
                flag => format!("{flag} {name}: results do not go to a file of scenarios"),
            }));
        }
    }
    Ok(())
}

/// Whether two names are those of one file. Devices and pipes may be written by several.
fn is_same(one: &Path, other: &Path) -> bool {
    if is_stdout(Some(one)) || is_stdout(Some(other)) {
        return one == other;
    }
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => new_file(one).is_some_and(|one| Some(one) == new_file(other)),
        _ => false,
    }
}

/// The name without links of a file that could be made.
fn new_file(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::help::command;

    /// Every file that a command line can name, but for the outputs.
    fn inputs(command: &Command, found: &mut BTreeSet<String>) {
        let files = command.get_arguments().filter(|argument| is_file(argument)).map(flag);
        found.extend(files.filter(|flag| !OUTPUTS.contains(&&**flag)));
        command.get_subcommands().for_each(|command| inputs(command, found));
    }

    /// A new argument that names a file fails here: add it to [`OUTPUTS`], or to these.
    #[test]
    fn every_file_is_an_input_or_an_output() {
        let mut found = BTreeSet::new();
        inputs(&command(), &mut found);
        let known = [
            "--batch --bin-dir --cache --conf-dir --config --containerlab --device --file --ipfw --kernel --list --logs",
            "--plugin --replay --source --tc --to --topo --write FILE FILE.conflist FILE.toml FIRST INPUT SAMPLES",
            "SCENARIO SCRIPT SCRIPT|WORDS SECOND SERIES.csv",
        ];
        let found = found.into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(found, known.join(" "));
    }
}
