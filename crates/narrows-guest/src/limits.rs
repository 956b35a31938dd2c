//! The resource limits that a program keeps across the border.

use nix::sys::resource::Resource;

/// Those that mean something inside a guest, by the names that a plan has for them. What bounds processes of the user or
/// memory of the host is the guest's own.
pub(crate) const LIMITS: &[(&str, Resource)] = &[
    ("core size", Resource::RLIMIT_CORE),
    ("processor time", Resource::RLIMIT_CPU),
    ("file size", Resource::RLIMIT_FSIZE),
    ("open files", Resource::RLIMIT_NOFILE),
    ("stack", Resource::RLIMIT_STACK),
    ("address space", Resource::RLIMIT_AS),
];
