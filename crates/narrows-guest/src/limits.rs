//! The resource limits that a program keeps inside the guest.

use nix::sys::resource::Resource;

/// The limits that have a meaning inside a guest, by their names in a plan. Limits on the user's processes or the
/// host's memory are the guest's own.
pub(crate) const LIMITS: &[(&str, Resource)] = &[
    ("core size", Resource::RLIMIT_CORE),
    ("processor time", Resource::RLIMIT_CPU),
    ("file size", Resource::RLIMIT_FSIZE),
    ("open files", Resource::RLIMIT_NOFILE),
    ("stack", Resource::RLIMIT_STACK),
    ("address space", Resource::RLIMIT_AS),
];
