//! The compiled program: its functions, made fit for the running kernel.

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
/// The first part of the names of undefined symbols that are places of fields.
const PLACE: &str = "offset_";

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

/// The program.
pub(crate) struct ObjectFile {
    file: ElfFile64<'static>,
}

impl ObjectFile {
    /// The one in this build.
    pub(crate) fn open() -> Result<Self, ProgramError> {
        Ok(Self { file: ElfFile64::parse(OBJECT.ok_or(ProgramError::Absent)?)? })
    }

    /// A function's instructions. `map` finds maps by their names.
    pub(crate) fn function<'a>(
        &self,
        section: &str,
        types: &KernelTypes,
        map: impl Fn(&str) -> Option<&'a Map>,
    ) -> Result<Vec<Instruction>, ProgramError> {
        let damaged = |what: String| ProgramError::Damaged(what);
        let code =
            self.file.section_by_name(section).ok_or_else(|| damaged(format!("no section {section}")))?;
        let mut bytes = code.data()?.to_vec();
        for (at, relocation) in code.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return Err(damaged(format!("a relocation of {section} to no symbol")));
            };
            let symbol = self.file.symbol_by_index(symbol)?;
            let (at, name) = (at as usize, symbol.name()?);
            let first =
                bytes.get(at..at + 8).ok_or_else(|| damaged(format!("a relocation outside {section}")))?;
            let first = Instruction::from_bytes(first.try_into().unwrap_or_default());
            let is_map = match symbol.section() {
                SymbolSection::Section(index) => self.file.section_by_index(index)?.name()? == MAPS,
                _ => false,
            };
            let replaced = match first.wide_load_to() {
                Some(to) if is_map => {
                    let map = map(name).ok_or_else(|| damaged(format!("an unknown map {name}")))?;
                    Instruction::load_map(to, map).to_vec()
                }
                Some(to) => Instruction::load_number(to, place(name, types)?).to_vec(),
                None if first.is_call() => {
                    let lacking = || ProgramError::Lacking(format!("function `{name}` for BPF programs"));
                    vec![Instruction::call_kernel(types.function(name).ok_or_else(lacking)?)]
                }
                None => return Err(damaged(format!("a relocation of {section} to {name}"))),
            };
            for (instruction, at) in replaced.into_iter().zip((at..).step_by(8)) {
                let to = bytes.get_mut(at..at + 8).ok_or_else(|| damaged("a load at the end".into()))?;
                to.copy_from_slice(&instruction.bytes());
            }
        }
        let (instructions, []) = bytes.as_chunks::<8>() else {
            return Err(damaged(format!("{section} ends inside an instruction")));
        };
        Ok(instructions.iter().map(|&bytes| Instruction::from_bytes(bytes)).collect())
    }
}

/// The place that an undefined symbol stands for, such as `offset_Qdisc__q__qlen`.
fn place(symbol: &str, types: &KernelTypes) -> Result<u64, ProgramError> {
    let name = symbol.strip_prefix(PLACE);
    let name = name.ok_or_else(|| ProgramError::Damaged(format!("an undefined symbol {symbol}")))?;
    let mut path = name.split("__");
    let structure = path.next().unwrap_or_default();
    let found = types.place(structure, path);
    let lacking = || ProgramError::Lacking(format!("field `{}`", name.replace("__", ".")));
    found.map(|place| place as u64).ok_or_else(lacking)
}
