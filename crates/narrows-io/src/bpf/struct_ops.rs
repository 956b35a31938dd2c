//! Tables of the kernel's operations whose functions are programs (struct_ops).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::{BpfError, Btf, Link, Map, Program};

/// A table of operations that the kernel knows as long as this lives, and no longer than this process unless its link is pinned.
#[derive(Debug)]
pub struct StructOps {
    link: Link,
    _table: Map,
}

impl StructOps {
    /// Registers a table. `value` is the kernel's structure for it, encoded, of the kernel's type `value_type`; at each of
    /// the given places the program is put in.
    ///
    /// # Errors
    /// If the kernel refuses the table, or has one of this name.
    pub fn register(
        name: &str,
        btf: &Btf,
        value_type: u32,
        mut value: Vec<u8>,
        functions: &[(usize, &Program)],
    ) -> Result<Self, BpfError> {
        for (place, program) in functions {
            let descriptor = program.as_fd().as_raw_fd() as u64;
            if let Some(to) = value.get_mut(*place..place + 8) {
                to.copy_from_slice(&descriptor.to_ne_bytes());
            }
        }
        let table = Map::of_operations(name, btf, value_type, value.len() as u32)?;
        table.set(0, &value)?;
        let link = Link::struct_ops(&table, name)?;
        Ok(Self { link, _table: table })
    }
}

/// The descriptor of its link.
impl AsFd for StructOps {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}
