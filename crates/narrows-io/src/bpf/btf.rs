//! Types in the kernel's format (BTF): they tell it what the values of a map hold.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Argument, BpfError, Command, address, bpf_descriptor};

/// Types in the kernel's format (BTF), loaded.
#[derive(Debug)]
pub struct Btf {
    descriptor: OwnedFd,
}

/// The argument of `BPF_BTF_LOAD`.
#[derive(Debug, Default)]
#[repr(C)]
struct Load {
    types: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    zero: u32,
}

#[expect(unsafe_code, reason = "the kernel reads it as it lies in memory")]
// SAFETY: it is repr(C) and without padding; its pointer is set below, from a value that outlives it.
unsafe impl Argument for Load {}

impl Btf {
    /// Loads types, encoded.
    ///
    /// # Errors
    /// If BPF is not allowed, or the kernel finds an error in the encoding.
    pub fn load(types: &[u8]) -> Result<Self, BpfError> {
        let mut load = Load { types: address(types), size: types.len() as u32, ..Load::default() };
        let descriptor = bpf_descriptor(Command::BtfLoad, &mut load)
            .map_err(|cause| BpfError::new("describe the types of a map", cause))?;
        Ok(Self { descriptor })
    }
}

impl AsFd for Btf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
