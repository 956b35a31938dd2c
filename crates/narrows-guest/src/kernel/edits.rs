//! Edits of a kernel's sources: each checks what it replaces, is made once however often it is asked for, and is left out
//! where the tree does not need it.

mod abort;
mod clock;
mod layout;
mod seed;
mod xstate;

use std::fs;
use std::path::Path;

use super::configuration::OPTIONS;
use super::{KernelError, command};

/// One change of one file.
pub(super) struct Edit {
    /// What it is for, in a few words.
    pub(super) purpose: &'static str,
    /// The file, in the tree.
    file: &'static str,
    /// What the file has where the kernel does by itself what the edit is for.
    unneeded: Option<&'static str>,
    /// What is replaced by what; each is there exactly once.
    replacements: &'static [(&'static str, &'static str)],
}

/// All of them, in the order in which they are made.
const EDITS: [&Edit; 8] = [
    &xstate::EDIT,
    &seed::EDIT,
    &layout::EDIT,
    &clock::STEPS,
    &clock::LOOKS,
    &clock::FAILURES,
    &clock::OFFERS,
    &abort::EDIT,
];

/// Stands for everything that narrows adds to a source tree: the configuration, the edits and how the build is called. In
/// hexadecimal digits.
#[must_use]
pub fn recipe_hash() -> String {
    let edits = EDITS.iter().flat_map(|edit| {
        let texts = edit.replacements.iter().flat_map(|(before, after)| [*before, *after]);
        [edit.file, edit.unneeded.unwrap_or_default()].into_iter().chain(texts)
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
/// A file is not as an edit expects. The files of edits before it are changed then.
pub(super) fn make_all(tree: &Path) -> Result<Vec<String>, KernelError> {
    let mut made = Vec::new();
    for edit in EDITS {
        let path = tree.join(edit.file);
        let text = fs::read_to_string(&path)
            .map_err(|cause| edit.unexpected(format!("which cannot be read: {cause}")))?;
        if let Some(edited) = edit.apply(&text)? {
            if edited != text {
                fs::write(&path, edited).map_err(KernelError::file("write", &path))?;
            }
            made.push(edit.purpose.to_owned());
        }
    }
    Ok(made)
}

impl Edit {
    /// The text with the edit made, be it by now or before; nothing where it is not needed.
    fn apply(&self, text: &str) -> Result<Option<String>, KernelError> {
        if self.unneeded.is_some_and(|mark| text.contains(mark)) {
            return Ok(None);
        }
        let mut edited = text.to_owned();
        for (before, after) in self.replacements {
            if edited.contains(after) {
                continue;
            }
            match edited.matches(before).count() {
                1 => edited = edited.replacen(before, after, 1),
                count => {
                    let line = before.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
                    return Err(self.unexpected(format!(
                        "where the part that begins with `{line}` is there {count} times in place of once"
                    )));
                }
            }
        }
        Ok(Some(edited))
    }

    fn unexpected(&self, why: String) -> KernelError {
        KernelError::Edit { file: self.file.into(), edit: self.purpose, why }
    }
}

#[cfg(test)]
pub(super) mod tests;
