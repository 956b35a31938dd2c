//! Puts the program into the kernel.

use narrows_io::bpf::{
    BpfError, Btf, Map, MapValue, MappedMap, Program, ProgramKind, StructOps, StructOpsMember,
};
use narrows_io::kernel_end::{KernelEnd, Layout};
use narrows_io::xdp::is_kernels_clock_ours;

use crate::parameters::Parameters;
use crate::program::{ObjectFile, ProgramError};
use crate::types::{Field, KernelTypes, OwnTypes, TypesError};

/// The directions that the program has room for.
const DIRECTIONS: usize = 2;
/// The length of the ring of records: at a million packets a second, 65 ms.
const RECORDS: u32 = 1 << 16;
/// The packets that fit into the queue and into the delay line: at 10 Gbit/s and 1500 bytes, 157 ms.
const SLOTS: u32 = 1 << 17;
const BYPASS_SLOTS: u32 = 256;
/// The sizes of `struct narrows_waiting`, `struct in_line`, and of a pointer alone.
const WAITING: u32 = 16;
const IN_LINE: u32 = 16;
const BYPASS: u32 = 8;
/// The kernel's table of a qdisc's operations, and the structure around it.
const OPERATIONS: &str = "Qdisc_ops";
const TABLE: &str = "bpf_struct_ops_Qdisc_ops";
/// The functions in it.
const FUNCTIONS: [&str; 5] = ["enqueue", "dequeue", "init", "reset", "destroy"];

/// Why no link can be inside the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The program does not fit, or this build has none.
    #[error("the kernel backend is not available: {0}")]
    Program(#[from] ProgramError),
    /// The kernel's types are unknown.
    #[error("the kernel backend is not available: {0}")]
    Types(#[from] TypesError),
    /// The kernel refuses.
    #[error("the kernel backend is not available: {0}")]
    Bpf(#[from] BpfError),
    /// The instants of the kernel's program would not be ours.
    #[error("the kernel backend is not available in a time namespace, whose clock is not the kernel's")]
    Clock,
}

/// A link inside the kernel. With its end the kernel forgets the qdisc; interfaces that have it keep it until they go.
#[derive(Debug)]
pub struct KernelLink {
    _operations: StructOps,
    orphan: Program,
    kind: String,
    ends: Vec<KernelEnd>,
}

impl KernelLink {
    /// Loads the program for a link with these directions. `name` is the qdisc's in the kernel, where names are the same
    /// in all namespaces; at most 15 bytes.
    ///
    /// # Errors
    /// If this build has no program, or the kernel refuses it.
    pub fn load(name: &str, directions: &[Parameters; DIRECTIONS]) -> Result<Self, LoadError> {
        let file = ObjectFile::open()?;
        let types = KernelTypes::of_this_kernel()?;
        let operations = Operations::find(&types)?;
        if !is_kernels_clock_ours()? {
            return Err(LoadError::Clock);
        }
        let own = MapTypes::load()?;
        let all = |each: u32| each * DIRECTIONS as u32;
        let control = Map::array("control", Layout::DIRECTION as u32, DIRECTIONS as u32, MapValue::Mapped)?;
        let records = Map::array("records", Layout::RECORD as u32, all(RECORDS), MapValue::Mapped)?;
        let departures = Map::array("departures", Layout::DEPARTURE as u32, all(RECORDS), MapValue::Mapped)?;
        let waiting = Map::array("waiting", WAITING, all(SLOTS), MapValue::Bytes)?;
        let in_line = MapValue::Typed(&own.btf, own.key, own.in_line);
        let line = Map::array("line", IN_LINE, all(SLOTS), in_line)?;
        let in_bypass = MapValue::Typed(&own.btf, own.key, own.bypass);
        let bypass = Map::array("bypass", BYPASS, all(BYPASS_SLOTS), in_bypass)?;
        let maps = |name: &str| match name {
            "control" => Some(&control),
            "records" => Some(&records),
            "departures" => Some(&departures),
            "waiting" => Some(&waiting),
            "line" => Some(&line),
            "bypass" => Some(&bypass),
            _ => None,
        };
        let memory = MappedMap::new(&control, Layout::DIRECTION * DIRECTIONS)?;
        for (number, direction) in directions.iter().enumerate() {
            memory.write(number * Layout::DIRECTION, &direction.bytes(SLOTS, RECORDS));
        }
        let mut programs = Vec::new();
        for (function, (place, index)) in FUNCTIONS.iter().zip(&operations.functions) {
            let instructions = file.function(&format!("struct_ops/{function}"), &types, maps)?;
            let member = StructOpsMember { table: operations.structure, index: *index };
            programs.push((*place, Program::load_struct_ops(member, function, &instructions)?));
        }
        let orphan = file.function("classifier", &types, maps)?;
        let orphan = Program::load(ProgramKind::Classifier, "orphan", &orphan)?;
        let functions: Vec<_> = programs.iter().map(|(place, program)| (*place, program)).collect();
        let value = operations.value(name);
        let registered = StructOps::register(name, &own.btf, operations.table, value, &functions)?;
        let ends = (0..DIRECTIONS)
            .map(|number| KernelEnd::new([&control, &records, &departures], number, RECORDS, DIRECTIONS))
            .collect::<Result<_, _>>()?;
        Ok(Self { _operations: registered, orphan, kind: name.to_owned(), ends })
    }

    /// The name of its qdisc.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The handle of the qdisc of a direction.
    pub fn handle(direction: usize) -> u32 {
        (direction as u32 + 1) << 16
    }

    /// The classifier to put before the qdisc.
    pub fn orphan(&self) -> &Program {
        &self.orphan
    }

    /// The directions' ends; once.
    pub fn take_ends(&mut self) -> Vec<KernelEnd> {
        std::mem::take(&mut self.ends)
    }
}

/// The kernel's table of operations.
struct Operations {
    structure: u32,
    table: u32,
    size: usize,
    /// Where the name of the qdisc is.
    id: usize,
    /// The place and the index of each of [`FUNCTIONS`].
    functions: Vec<(usize, u32)>,
}

impl Operations {
    fn find(types: &KernelTypes) -> Result<Self, ProgramError> {
        let lacking = |what: &str| ProgramError::Lacking(what.to_owned());
        let table = types.structure(TABLE).ok_or_else(|| lacking("qdiscs written in BPF"))?;
        let structure = types.structure(OPERATIONS).ok_or_else(|| lacking(OPERATIONS))?;
        let data = types.member(table, "data").ok_or_else(|| lacking(TABLE))?.place;
        let member = |name: &str| {
            types.member(structure, name).ok_or_else(|| lacking(&format!("{OPERATIONS}.{name}")))
        };
        let place = |name: &str| member(name).map(|member| (data + member.place, member.index));
        Ok(Self {
            structure,
            table,
            size: types.size(table).unwrap_or_default(),
            id: place("id")?.0,
            functions: FUNCTIONS.iter().map(|name| place(name)).collect::<Result<_, _>>()?,
        })
    }

    /// The table with nothing but the qdisc's name.
    fn value(&self, name: &str) -> Vec<u8> {
        let mut value = vec![0; self.size];
        let room = value[self.id..].iter_mut().take(15);
        room.zip(name.bytes()).for_each(|(to, byte)| *to = byte);
        value
    }
}

/// The types of maps with pointers to packets.
struct MapTypes {
    btf: Btf,
    key: u32,
    in_line: u32,
    bypass: u32,
}

impl MapTypes {
    fn load() -> Result<Self, BpfError> {
        let mut types = OwnTypes::new();
        let key = types.unsigned("unsigned int", 4);
        let time = types.unsigned("unsigned long long", 8);
        let packet = types.owned_pointer("sk_buff");
        let fields = [Field { name: "due", of: time, place: 0 }, Field { name: "skb", of: packet, place: 8 }];
        let in_line = types.structure("in_line", IN_LINE, &fields);
        let bypass = types.structure("in_bypass", BYPASS, &[Field { name: "skb", of: packet, place: 0 }]);
        Ok(Self { btf: Btf::load(&types.encoded())?, key, in_line, bypass })
    }
}

/// Whether this kernel and this process can do it, tried: loads the program and lets go of it.
///
/// # Errors
/// The reason, if not.
pub fn try_out() -> Result<(), LoadError> {
    use narrows_core::queue::Bound;
    use narrows_core::service::Overhead;
    use narrows_core::{Duration, Rate};
    let plain = Parameters {
        rate: Rate::UNLIMITED,
        delay: Duration::ZERO,
        bound: Bound::Packets(1),
        overhead: Overhead::IP,
        ingress_loss: Default::default(),
        wire_loss: Default::default(),
        origin: 0,
        mtu: 1500,
    };
    KernelLink::load(&qdisc_name(), &[plain.clone(), plain]).map(drop)
}

/// A name for a qdisc of this process: names are known in all namespaces of a kernel.
pub fn qdisc_name() -> String {
    format!("narrows{}", std::process::id())
}
