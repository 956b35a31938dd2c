//! Edits of a kernel's sources: each checks what it replaces, is made once however often it is asked for, and is left out
//! where the tree does not need it.

mod abort;
mod calls;
mod clock;
mod clock_page;
mod input;
mod layout;
mod registers;
mod seed;
mod xstate;

use std::fs;
use std::path::Path;

use super::configuration::OPTIONS;
use super::{KernelError, command};

/// One change of a tree.
pub(super) struct Edit {
    /// What it is for, in a few words.
    pub(super) purpose: &'static str,
    /// Files, and what one of them has where the kernel does by itself what the edit is for, or can do without.
    unneeded: &'static [(&'static str, &'static str)],
    /// The files, in the tree, and in each what is replaced by what: it is there exactly once.
    files: &'static [(&'static str, &'static [(&'static str, &'static str)])],
}

/// All of them, in the order in which they are made.
const EDITS: [&Edit; 10] = [
    &xstate::EDIT,
    &seed::EDIT,
    &layout::EDIT,
    &clock::STEPS,
    &clock::OFFERS,
    &clock_page::EDIT,
    &registers::EDIT,
    &calls::EDIT,
    &input::EDIT,
    &abort::EDIT,
];

/// Stands for everything that narrows adds to a source tree: the configuration, the edits and how the build is called. In
/// hexadecimal digits.
#[must_use]
pub fn recipe_hash() -> String {
    let edits = EDITS.iter().flat_map(|edit| {
        let files = edit.files.iter().flat_map(|&(file, replacements)| {
            [file].into_iter().chain(replacements.iter().flat_map(|&(before, after)| [before, after]))
        });
        edit.unneeded.iter().flat_map(|&(file, mark)| [file, mark]).chain(files)
    });
    let calls = command::MAKE_ARGUMENTS.into_iter();
    format!("{:016x}", fnv_1a([OPTIONS].into_iter().chain(edits).chain(calls)))
}

/// Fowler, Noll and Vo's hash 1a of 64 bits, over texts with an end mark each.
pub(super) fn fnv_1a<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    texts
        .flat_map(|text| text.bytes().chain([0]))
        .fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Makes all edits in a tree; what those are for that were needed.
///
/// # Errors
/// A file is not as an edit expects. What was edited before it is changed then.
pub(super) fn make_all(tree: &Path) -> Result<Vec<String>, KernelError> {
    let mut made = Vec::new();
    for edit in EDITS {
        if edit.make(tree)? {
            made.push(edit.purpose.to_owned());
        }
    }
    Ok(made)
}

impl Edit {
    /// Makes it, be it for the first time or again; whether it is needed.
    fn make(&self, tree: &Path) -> Result<bool, KernelError> {
        let read = |file: &str| {
            fs::read_to_string(tree.join(file))
                .map_err(|cause| self.unexpected(file, format!("which cannot be read: {cause}")))
        };
        for &(file, mark) in self.unneeded {
            if read(file)?.contains(mark) {
                return Ok(false);
            }
        }
        for &(file, replacements) in self.files {
            let text = read(file)?;
            let edited = self.apply(file, replacements, &text)?;
            if edited != text {
                let path = tree.join(file);
                fs::write(&path, edited).map_err(KernelError::file("write", &path))?;
            }
        }
        Ok(true)
    }

    /// A file's text with its replacements made, be it by now or before.
    fn apply(&self, file: &str, replacements: &[(&str, &str)], text: &str) -> Result<String, KernelError> {
        let mut edited = text.to_owned();
        for (before, after) in replacements {
            if edited.contains(after) {
                continue;
            }
            match edited.matches(before).count() {
                1 => edited = edited.replacen(before, after, 1),
                count => {
                    let line = before.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
                    return Err(self.unexpected(
                        file,
                        format!(
                            "where the part that begins with `{line}` is there {count} times in place of once"
                        ),
                    ));
                }
            }
        }
        Ok(edited)
    }

    fn unexpected(&self, file: &str, why: String) -> KernelError {
        KernelError::Edit { file: file.into(), edit: self.purpose, why }
    }
}

#[cfg(test)]
pub(super) mod tests;
