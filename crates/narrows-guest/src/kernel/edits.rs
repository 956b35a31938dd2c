//! Edits of kernel sources: patches in [unified format](patch), each with its reasons. Each edit checks what it
//! replaces, is idempotent, and is skipped if the tree does not need it.

mod patch;

use std::fs;
use std::path::Path;

use super::configuration::OPTIONS;
use super::{KernelError, command};
use patch::Patch;

/// An edit of a tree.
struct Edit {
    /// Its purpose, in a few words.
    purpose: &'static str,
    /// Files, each with text that is present if the kernel has the feature itself or can do without.
    unneeded: &'static [(&'static str, &'static str)],
    /// The text of the patch.
    patch: &'static str,
}

/// All edits, in the order in which they are applied: a later patch may depend on an earlier one.
const EDITS: [Edit; 10] = [
    Edit {
        purpose: "hosts with AMX",
        unneeded: &[("arch/x86/um/os-Linux/registers.c", "host_fp_size")],
        patch: include_str!("edits/xstate.patch"),
    },
    Edit { purpose: "seeded randomness", unneeded: &[], patch: include_str!("edits/seed.patch") },
    Edit {
        purpose: "the same memory at every boot",
        unneeded: &[("arch/um/os-Linux/main.c", "PER_LINUX | ADDR_NO_RANDOMIZE")],
        patch: include_str!("edits/layout.patch"),
    },
    Edit { purpose: "a clock of nanoseconds", unneeded: &[], patch: include_str!("edits/clock.patch") },
    Edit {
        purpose: "kernel loops that wait for others",
        unneeded: &[],
        patch: include_str!("edits/offers.patch"),
    },
    Edit {
        purpose: "a clock that programs read by themselves",
        unneeded: &[],
        patch: include_str!("edits/clock_page.patch"),
    },
    Edit {
        purpose: "floating-point registers that stay where they are",
        unneeded: &[
            ("arch/um/os-Linux/skas/process.c", "using_seccomp"),
            ("arch/um/os-Linux/skas/process.c", "copy_context_skas0"),
        ],
        patch: include_str!("edits/registers.patch"),
    },
    Edit {
        purpose: "several system calls made as one",
        unneeded: &[],
        patch: include_str!("edits/calls.patch"),
    },
    Edit {
        purpose: "input that comes while the kernel waits",
        unneeded: &[("arch/um/kernel/irq.c", "pending_event")],
        patch: include_str!("edits/input.patch"),
    },
    Edit { purpose: "a panic that ends", unneeded: &[], patch: include_str!("edits/abort.patch") },
];

/// Identifies everything that narrows adds to a source tree: the configuration, the edits and the arguments of the
/// build. In hexadecimal digits.
#[must_use]
pub fn recipe_hash() -> String {
    let edits = EDITS.iter().flat_map(|edit| {
        let marks = edit.unneeded.iter().flat_map(|&(file, mark)| [file, mark]);
        marks.chain([patch::changes(edit.patch)])
    });
    let calls = command::MAKE_ARGUMENTS.into_iter();
    format!("{:016x}", fnv_1a([OPTIONS].into_iter().chain(edits).chain(calls)))
}

/// The 64-bit Fowler-Noll-Vo hash 1a, over texts with an end mark each.
pub(super) fn fnv_1a<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    texts
        .flat_map(|text| text.bytes().chain([0]))
        .fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Applies all edits to a tree; returns the purposes of those that were needed.
///
/// # Errors
/// If a file is not as an edit expects. Files edited before it stay changed.
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
    /// Applies the edit, for the first time or again; returns whether it is needed.
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
        let patch = Patch::parse(self.patch).map_err(|why| self.unexpected("the patch", why))?;
        for change in &patch.files {
            let text = read(change.file)?;
            let edited = change.apply(&text).map_err(|why| self.unexpected(change.file, why))?;
            if edited != text {
                let path = tree.join(change.file);
                fs::write(&path, edited).map_err(KernelError::file("write", &path))?;
            }
        }
        Ok(true)
    }

    fn unexpected(&self, file: &str, why: String) -> KernelError {
        KernelError::Edit { file: file.into(), edit: self.purpose, why }
    }
}

#[cfg(test)]
pub(super) mod tests;
