//! Maps: memory shared between a program and us.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{Argument, BpfError, Btf, Command, address, bpf, bpf_descriptor, short_name};

/// `BPF_MAP_TYPE_*`.
const ARRAY: u32 = 2;
const XSKMAP: u32 = 17;
/// `BPF_MAP_TYPE_STRUCT_OPS`.
const STRUCT_OPS: u32 = 26;
/// `BPF_F_MMAPABLE`.
const MMAPABLE: u32 = 1 << 10;
/// `BPF_F_LINK`: a struct_ops map takes effect by a link.
const BY_LINK: u32 = 1 << 13;

/// A table in the kernel, freed when neither we nor a program refers to it.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
}

/// The argument of `BPF_MAP_CREATE`.
#[derive(Debug, Default)]
#[repr(C)]
struct Create {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; 16],
    interface: u32,
    btf: u32,
    key_type: u32,
    value_type: u32,
    kernel_value_type: u32,
}

/// What the values of an array hold.
#[derive(Clone, Copy, Debug)]
pub enum MapValue<'a> {
    /// Plain bytes that we may map into our memory ([`super::MappedMap`]).
    Mapped,
    /// Plain bytes.
    Bytes,
    /// A structure with pointers to kernel objects: described by these types, keys by the first number, values by the second.
    Typed(&'a Btf, u32, u32),
}

/// The argument of commands on elements.
#[derive(Debug)]
#[repr(C)]
struct Element {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[expect(unsafe_code, reason = "the kernel reads them as they lie in memory")]
// SAFETY: both are repr(C) and without padding; pointers are set by the calls below, from values that outlive them.
unsafe impl Argument for Create {}
#[expect(unsafe_code, reason = "the kernel reads them as they lie in memory")]
// SAFETY: as above.
unsafe impl Argument for Element {}

impl Map {
    /// A map of AF_XDP sockets, by queue.
    ///
    /// # Errors
    /// If BPF is not allowed.
    pub fn of_sockets(name: &str, entries: u32) -> Result<Self, BpfError> {
        Self::create(XSKMAP, name, 4, entries)
    }

    /// An array of 64-bit numbers, initially zero.
    ///
    /// # Errors
    /// If BPF is not allowed.
    pub fn of_numbers(name: &str, entries: u32) -> Result<Self, BpfError> {
        Self::create(ARRAY, name, 8, entries)
    }

    /// An array of values of this size, initially zero.
    ///
    /// # Errors
    /// If BPF is not allowed, the kernel does not know the types, or there is not enough memory.
    pub fn array(name: &str, value_size: u32, entries: u32, value: MapValue<'_>) -> Result<Self, BpfError> {
        let mut create = Create { kind: ARRAY, value_size, entries, ..Create::default() };
        match value {
            MapValue::Mapped => create.flags = MMAPABLE,
            MapValue::Bytes => {}
            MapValue::Typed(btf, key, value) => {
                create.btf = btf.as_fd().as_raw_fd() as u32;
                (create.key_type, create.value_type) = (key, value);
            }
        }
        Self::create_as(name, create)
    }

    /// A table of functions, with a value of this type of the kernel's. `btf` is any types of ours.
    pub(super) fn of_operations(
        name: &str,
        btf: &Btf,
        kernel_value_type: u32,
        value_size: u32,
    ) -> Result<Self, BpfError> {
        let btf = btf.as_fd().as_raw_fd() as u32;
        let create = Create {
            kind: STRUCT_OPS,
            value_size,
            entries: 1,
            flags: BY_LINK,
            btf,
            kernel_value_type,
            ..Create::default()
        };
        Self::create_as(name, create)
    }

    fn create(kind: u32, name: &str, value_size: u32, entries: u32) -> Result<Self, BpfError> {
        Self::create_as(name, Create { kind, value_size, entries, ..Create::default() })
    }

    fn create_as(name: &str, create: Create) -> Result<Self, BpfError> {
        let mut create = Create { key_size: 4, name: short_name(name), ..create };
        let descriptor = bpf_descriptor(Command::MapCreate, &mut create)
            .map_err(|cause| BpfError::new(format!("make the map `{name}`"), cause))?;
        Ok(Self { descriptor })
    }

    /// Adds a bound AF_XDP socket to a map of sockets. Closing the socket removes it from the map.
    ///
    /// # Errors
    /// If the number is outside the map, or the descriptor is not such a socket.
    pub fn set_socket(&self, number: u32, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.set(number, &socket.as_raw_fd().to_ne_bytes())
    }

    /// Sets a number of an array.
    ///
    /// # Errors
    /// If the index is outside the array.
    pub fn set_number(&self, place: u32, value: u64) -> Result<(), BpfError> {
        self.set(place, &value.to_ne_bytes())
    }

    pub(super) fn set(&self, key: u32, value: &[u8]) -> Result<(), BpfError> {
        let mut element = self.element(&key, value);
        bpf(Command::MapUpdate, &mut element)
            .map(drop)
            .map_err(|cause| BpfError::new(format!("set entry {key} of a map"), cause))
    }

    /// A number of an array.
    ///
    /// # Errors
    /// If the index is outside the array.
    pub fn number(&self, place: u32) -> Result<u64, BpfError> {
        let mut value = [0; 8];
        let mut element = self.element(&place, &[]);
        element.value = value.as_mut_ptr() as u64;
        bpf(Command::MapLookup, &mut element)
            .map_err(|cause| BpfError::new(format!("read entry {place} of a map"), cause))?;
        Ok(u64::from_ne_bytes(value))
    }

    fn element(&self, key: &u32, value: &[u8]) -> Element {
        Element {
            map: self.descriptor.as_raw_fd() as u32,
            zero: 0,
            key: address(key),
            value: address(value),
            flags: 0,
        }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
