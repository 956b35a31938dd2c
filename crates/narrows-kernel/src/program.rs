//! The compiled program: its functions, made fit for the running kernel.

use std::ops::Range;

use narrows_io::bpf::{Instruction, Map};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolSection};

use crate::types::KernelTypes;

/// The object file, if this build has it.
#[cfg(feature = "program")]
const OBJECT: Option<&[u8]> = {
    /// Its numbers are read where they lie.
    #[repr(align(8))]
    struct Aligned<T: ?Sized>(T);
    const FILE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/qdisc.bpf.o")));
    Some(&FILE.0)
};
#[cfg(not(feature = "program"))]
const OBJECT: Option<&[u8]> = None;

/// Whether this build can put links into a kernel.
pub const IS_THERE: bool = OBJECT.is_some();

/// The section whose symbols are maps.
const MAPS: &str = "maps";
/// The section with functions that others call.
const PARTS: &str = ".text";
/// The first part of the names of undefined symbols that are places of fields.
const PLACE: &str = "offset_";
/// The same of lengths of rings.
const ROOM: &str = "room_";

/// Why the program does not fit the kernel.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// This build has none.
    #[error(
        "this build of narrows has no program for it: it was built without the feature `kernel-backend`, which needs clang 19"
    )]
    Absent,
    /// The object file is not as expected.
    #[error("the compiled program is damaged: {0}")]
    Damaged(String),
    /// The kernel lacks something that the program uses.
    #[error("this kernel has no {0}; BPF qdiscs need Linux 6.16 or later with CONFIG_NET_SCH_BPF")]
    Lacking(String),
}

impl From<object::Error> for ProgramError {
    fn from(error: object::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// What undefined symbols stand for.
pub(crate) struct Surroundings<'a> {
    /// The running kernel's types.
    pub(crate) types: &'a KernelTypes,
    /// Finds maps by their names.
    pub(crate) map: &'a dyn Fn(&str) -> Option<&'a Map>,
    /// Finds lengths of rings by their names.
    pub(crate) room: &'a dyn Fn(&str) -> Option<u32>,
}

/// The program.
pub(crate) struct ObjectFile {
    file: ElfFile64<'static>,
}

impl ObjectFile {
    /// The one in this build.
    pub(crate) fn open() -> Result<Self, ProgramError> {
        Ok(Self { file: ElfFile64::parse(OBJECT.ok_or(ProgramError::Absent)?)? })
    }

    /// A function, with all that it calls behind it.
    pub(crate) fn function(&self, section: &str, around: &Surroundings<'_>) -> Result<Code, ProgramError> {
        let damaged = |what: String| ProgramError::Damaged(what);
        let found =
            |name| self.file.section_by_name(name).ok_or_else(|| damaged(format!("no section {name}")));
        let (main, parts) = (found(section)?, found(PARTS)?);
        let mut code = Code::default();
        // What is called is appended when it is called first.
        let mut calls = self.append(&mut code, section, &main, 0..main.size(), around)?;
        while let Some(call) = calls.pop() {
            let known = code.functions.iter().find(|function| function.name == call.of);
            let begins = match known {
                Some(function) => function.at,
                None => {
                    let symbol = self.file.symbol_by_name(&call.of);
                    let symbol = symbol.ok_or_else(|| damaged(format!("no function {}", call.of)))?;
                    let range = symbol.address()..symbol.address() + symbol.size();
                    let at = code.instructions.len();
                    calls.extend(self.append(&mut code, &call.of, &parts, range, around)?);
                    at
                }
            };
            code.instructions[call.at] = Instruction::call_at(begins as i32 - call.at as i32 - 1);
        }
        Ok(code)
    }

    /// Appends the code in a range of a section. Returns its calls of other functions of the program.
    fn append(
        &self,
        code: &mut Code,
        name: &str,
        section: &impl ObjectSection<'static>,
        range: Range<u64>,
        around: &Surroundings<'_>,
    ) -> Result<Vec<Call>, ProgramError> {
        let damaged = |what: &str| ProgramError::Damaged(format!("{name}: {what}"));
        let places = range.start as usize..range.end as usize;
        let bytes = section.data()?.get(places).ok_or_else(|| damaged("outside its section"))?;
        let (instructions, []) = bytes.as_chunks::<8>() else { return Err(damaged("half an instruction")) };
        let begins = code.instructions.len();
        code.functions.push(Function { name: name.to_owned(), at: begins });
        code.instructions.extend(instructions.iter().map(|&bytes| Instruction::from_bytes(bytes)));
        let mut calls = Vec::new();
        for (at, relocation) in section.relocations().filter(|(at, _)| range.contains(at)) {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return Err(damaged("a relocation to no symbol"));
            };
            let symbol = self.file.symbol_by_index(symbol)?;
            let of = symbol.name()?;
            let at = begins + (at - range.start) as usize / 8;
            let first = code.instructions[at];
            let place = match symbol.section() {
                SymbolSection::Section(index) => self.file.section_by_index(index)?.name()?.to_owned(),
                _ => String::new(),
            };
            match first.wide_load_to() {
                Some(to) => {
                    let halves = match place == MAPS {
                        true => {
                            let map = (around.map)(of).ok_or_else(|| damaged("an unknown map"))?;
                            Instruction::load_map(to, map)
                        }
                        false => Instruction::load_number(to, number(of, around)?),
                    };
                    let both = code.instructions.get_mut(at..at + 2).ok_or_else(|| damaged("half a load"))?;
                    both.copy_from_slice(&halves);
                }
                None if first.is_call() && place == PARTS => calls.push(Call { at, of: of.to_owned() }),
                None if first.is_call() => {
                    let lacking = || ProgramError::Lacking(format!("function `{of}` for BPF programs"));
                    let function = around.types.function(of).ok_or_else(lacking)?;
                    code.instructions[at] = Instruction::call_kernel(function);
                }
                None => return Err(damaged(&format!("a relocation to {of}"))),
            }
        }
        Ok(calls)
    }
}

/// The instructions of a function and of those that it calls.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    /// The functions in it, itself first.
    pub(crate) functions: Vec<Function>,
}

/// A function, and at which instruction it begins.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) at: usize,
}

/// A call of a function of the program, at an instruction.
struct Call {
    at: usize,
    of: String,
}

/// The number that an undefined symbol stands for: a place, such as `offset_Qdisc__q__qlen`, or a length, such as `room_slots`.
fn number(symbol: &str, around: &Surroundings<'_>) -> Result<u64, ProgramError> {
    let undefined = || ProgramError::Damaged(format!("an undefined symbol {symbol}"));
    if let Some(name) = symbol.strip_prefix(ROOM) {
        return (around.room)(name).map(u64::from).ok_or_else(undefined);
    }
    let name = symbol.strip_prefix(PLACE).ok_or_else(undefined)?;
    let mut path = name.split("__");
    let structure = path.next().unwrap_or_default();
    let found = around.types.place(structure, path);
    let lacking = || ProgramError::Lacking(format!("field `{}`", name.replace("__", ".")));
    found.map(|place| place as u64).ok_or_else(lacking)
}
