//! The files that a command writes: no two of them the same, none that it reads, none of scenarios, which people write.

use std::fs;
use std::path::{Path, PathBuf};

use crate::json::is_stdout;
use crate::output::Failure;

/// A flag, and the file that it names.
pub(crate) type Named<'a> = (&'a str, Option<&'a Path>);

/// Fails if two outputs would go to one place, or if one would overwrite a file that is read, or a file of scenarios.
pub(crate) fn check(outputs: &[Named<'_>], read: &[&Path]) -> Result<(), Failure> {
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
        if read.iter().any(|read| !is_stdout(Some(read)) && is_same(read, path)) {
            return Err(Failure::Other(format!(
                "{flag} {name}: this file is read, and would be overwritten"
            )));
        }
        if path.extension().is_some_and(|end| end == "toml") {
            return Err(Failure::Other(format!("{flag} {name}: results do not go to a file of scenarios")));
        }
    }
    Ok(())
}

/// Whether two names are those of one file. Devices and pipes may be written by several.
fn is_same(one: &Path, other: &Path) -> bool {
    if is_stdout(Some(one)) || is_stdout(Some(other)) {
        return one == other;
    }
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// The name without links, of a file that exists or could be made; `None` for what is no file.
fn whole(path: &Path) -> Option<PathBuf> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => None,
        Ok(_) => fs::canonicalize(path).ok(),
        Err(_) => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
        }
    }
}
