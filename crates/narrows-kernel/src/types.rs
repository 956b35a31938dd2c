//! The types of the running kernel (BTF, `/sys/kernel/btf/vmlinux`): places of fields, numbers of functions and structures.
//!
//! The format is in the kernel's `Documentation/bpf/btf.rst`: a header, types one after the other, then their names.

use std::collections::BTreeMap;
use std::path::Path;

/// Where the kernel shows its types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

/// Why the kernel's types cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TypesError {
    /// They cannot be read.
    #[error("this kernel does not describe its types ({KERNEL_TYPES}: {0}); it needs CONFIG_DEBUG_INFO_BTF")]
    Absent(std::io::Error),
    /// They are not in the expected format.
    #[error("{KERNEL_TYPES} is damaged: {0}")]
    Damaged(&'static str),
}

/// Kinds of types (`BTF_KIND_*`).
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC: u32 = 12;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

#[derive(Clone, Copy, Debug)]
struct Type {
    name: u32,
    information: u32,
    size_or_type: u32,
    /// Where its members begin in the bytes.
    members: usize,
}

impl Type {
    fn kind(self) -> u32 {
        self.information >> 24 & 0x1f
    }

    fn count(self) -> usize {
        (self.information & 0xffff) as usize
    }
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its index.
    pub index: u32,
    /// Its place in bytes.
    pub place: usize,
    of: u32,
}

/// The types of a kernel.
#[derive(Debug)]
pub struct KernelTypes {
    bytes: Vec<u8>,
    /// Where the names begin.
    names: usize,
    /// By number; the first is "void".
    types: Vec<Type>,
    structures: BTreeMap<String, u32>,
    functions: BTreeMap<String, u32>,
}

impl KernelTypes {
    /// Those of the running kernel.
    ///
    /// # Errors
    /// If it does not show them, or in another format.
    pub fn of_this_kernel() -> Result<Self, TypesError> {
        Self::parse(std::fs::read(Path::new(KERNEL_TYPES)).map_err(TypesError::Absent)?)
    }

    /// Those in these bytes.
    ///
    /// # Errors
    /// If they are in another format.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, TypesError> {
        let word = |at: usize| word(&bytes, at).ok_or(TypesError::Damaged("it ends too soon"));
        if word(0)? as u16 != MAGIC {
            return Err(TypesError::Damaged("it begins with another number"));
        }
        let header = word(4)? as usize;
        let start = header + word(8)? as usize;
        let end = start + word(12)? as usize;
        let names = header + word(16)? as usize;
        let void = Type { name: 0, information: 0, size_or_type: 0, members: 0 };
        let (mut types, mut at) = (vec![void], start);
        while at < end {
            let found = Type {
                name: word(at)?,
                information: word(at + 4)?,
                size_or_type: word(at + 8)?,
                members: at + 12,
            };
            at = found.members
                + match found.kind() {
                    kind::INT | kind::VAR | kind::DECL_TAG => 4,
                    kind::ARRAY => 12,
                    kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * found.count(),
                    kind::ENUM | kind::FUNC_PROTO => 8 * found.count(),
                    // Pointers, forward declarations, modifiers, functions, floats.
                    2 | 7..=12 | 16 | kind::TYPE_TAG => 0,
                    _ => {
                        return Err(TypesError::Damaged(
                            "it has a kind of type that this version does not know",
                        ));
                    }
                };
            types.push(found);
        }
        let mut read = Self { bytes, names, types, structures: BTreeMap::new(), functions: BTreeMap::new() };
        let (mut structures, mut functions) = (BTreeMap::new(), BTreeMap::new());
        for (found, number) in read.types.iter().zip(0..) {
            let into = match found.kind() {
                kind::STRUCT => &mut structures,
                kind::FUNC => &mut functions,
                _ => continue,
            };
            into.entry(read.name(found.name).to_owned()).or_insert(number);
        }
        (read.structures, read.functions) = (structures, functions);
        Ok(read)
    }

    fn name(&self, at: u32) -> &str {
        let rest = self.bytes.get(self.names + at as usize..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    /// The number of a structure.
    pub fn structure(&self, name: &str) -> Option<u32> {
        self.structures.get(name).copied()
    }

    /// The size of a structure in bytes.
    pub fn size(&self, structure: u32) -> Option<usize> {
        self.types.get(structure as usize).map(|found| found.size_or_type as usize)
    }

    /// The number of a function.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }

    /// A member of a structure or union by name, also inside unnamed members.
    pub fn member(&self, structure: u32, name: &str) -> Option<Member> {
        let found = self.types.get(structure as usize)?;
        if !matches!(found.kind(), kind::STRUCT | kind::UNION) {
            return None;
        }
        // The upper bits of a place are the size of a bit field, if the structure has any.
        let mask = if found.information >> 31 == 1 { 0xff_ffff } else { u32::MAX };
        for index in 0..found.count() {
            let at = found.members + 12 * index;
            let (called, of) = (word(&self.bytes, at)?, word(&self.bytes, at + 4)?);
            let place = ((word(&self.bytes, at + 8)? & mask) / 8) as usize;
            let called = self.name(called);
            if called == name {
                return Some(Member { index: index as u32, place, of });
            }
            if called.is_empty()
                && let Some(inner) = self.member(self.resolved(of)?, name)
            {
                return Some(Member { place: place + inner.place, ..inner });
            }
        }
        None
    }

    /// The place of a field such as `q.qlen` in a structure.
    pub fn place<'a>(&self, structure: &str, path: impl IntoIterator<Item = &'a str>) -> Option<usize> {
        let (mut at, mut place) = (self.structure(structure)?, 0);
        for name in path {
            let member = self.member(self.resolved(at)?, name)?;
            (at, place) = (member.of, place + member.place);
        }
        Some(place)
    }

    /// A type without its names and modifiers.
    fn resolved(&self, mut number: u32) -> Option<u32> {
        // No chain is longer than this.
        for _ in 0..32 {
            let found = self.types.get(number as usize)?;
            match found.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    number = found.size_or_type;
                }
                _ => return Some(number),
            }
        }
        None
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

/// Types of our own, in the same format: what the kernel must know about maps with pointers to packets.
#[derive(Debug, Default)]
pub(crate) struct OwnTypes {
    types: Vec<u8>,
    names: Vec<u8>,
    count: u32,
}

/// A type of 64 bits, or another by its number: of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) of: u32,
    /// In bytes.
    pub(crate) place: u32,
}

impl OwnTypes {
    pub(crate) fn new() -> Self {
        Self { names: vec![0], ..Self::default() }
    }

    fn add(&mut self, name: &str, kind: u32, count: u32, size_or_type: u32, rest: &[u32]) -> u32 {
        let name = self.call(name);
        for word in [name, kind << 24 | count, size_or_type].iter().chain(rest) {
            self.types.extend_from_slice(&word.to_ne_bytes());
        }
        self.count += 1;
        self.count
    }

    fn call(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let at = self.names.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        at
    }

    pub(crate) fn unsigned(&mut self, name: &str, bytes: u32) -> u32 {
        self.add(name, kind::INT, 0, bytes, &[bytes * 8])
    }

    /// A pointer to a structure of the kernel's that the map owns.
    pub(crate) fn owned_pointer(&mut self, structure: &str) -> u32 {
        const POINTER: u32 = 2;
        let of = self.add(structure, kind::STRUCT, 0, 0, &[]);
        let tagged = self.add("kptr", kind::TYPE_TAG, 0, of, &[]);
        self.add("", POINTER, 0, tagged, &[])
    }

    pub(crate) fn structure(&mut self, name: &str, size: u32, fields: &[Field]) -> u32 {
        let mut rest = Vec::new();
        for field in fields {
            let name = self.call(field.name);
            rest.extend([name, field.of, field.place * 8]);
        }
        self.add(name, kind::STRUCT, fields.len() as u32, size, &rest)
    }

    /// A function with this many numbers as arguments, which returns a number.
    pub(crate) fn function_of(&mut self, name: &str, number: u32, arguments: u32) -> u32 {
        const GLOBAL: u32 = 1;
        let argument = self.call("number");
        let all: Vec<u32> = (0..arguments).flat_map(|_| [argument, number]).collect();
        let prototype = self.add("", kind::FUNC_PROTO, arguments, number, &all);
        self.add(name, kind::FUNC, GLOBAL, prototype, &[])
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        const HEADER: u32 = 24;
        let (types, names) = (self.types.len() as u32, self.names.len() as u32);
        let words = [u32::from(MAGIC) | 1 << 16, HEADER, 0, types, types, names];
        let mut all: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        all.extend_from_slice(&self.types);
        all.extend_from_slice(&self.names);
        all
    }
}
