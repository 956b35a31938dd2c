//! Puts the program into the kernel.

mod maps;

use narrows_io::bpf::{
    BpfError, Btf, FunctionTypes, MappedMap, Pins, Program, ProgramKind, StructOps, StructOpsMember,
};
use narrows_io::clock::clock_monotonic;
use narrows_io::kernel_end::{KernelEnd, Layout};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::qdisc::Way;
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::xdp::is_kernels_clock_ours;

use crate::fit::Fitting;
use crate::parameters::{Delay, Parameters, QueueParameters};
use crate::program::{Code, ObjectFile, ProgramError, Surroundings};
use crate::types::{KernelTypes, OwnTypes, TypesError};
use maps::{MapTypes, Maps};

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
    /// The namespace for the trial cannot be created.
    #[error("the kernel backend is not available: {0}")]
    Namespace(#[from] NamespaceError),
    /// Interfaces do not take it.
    #[error("the kernel backend is not available: {0}")]
    Interface(#[from] NetlinkError),
    /// The instants of the kernel's program would not be ours.
    #[error("the kernel backend is not available in a time namespace, whose clock is not the kernel's")]
    Clock,
}

/// Links inside the kernel. With its end the kernel forgets the qdisc; interfaces that have it keep it until they go.
#[derive(Debug)]
pub struct KernelLinks {
    operations: StructOps,
    orphan: Program,
    change: Option<Program>,
    kind: String,
    ends: Vec<KernelEnd>,
    control: MappedMap,
    directions: usize,
}

impl KernelLinks {
    /// Loads the program for links with these directions. `name` is the qdisc's in the kernel, where names are the same
    /// in all namespaces; at most 15 bytes.
    ///
    /// # Errors
    /// If this build has no program, or the kernel refuses it.
    pub fn load(name: &str, fitting: Fitting) -> Result<Self, LoadError> {
        let Fitting { directions, .. } = fitting;
        let file = ObjectFile::open()?;
        let types = KernelTypes::of_this_kernel()?;
        let operations = Operations::find(&types)?;
        if !is_kernels_clock_ours()? {
            return Err(LoadError::Clock);
        }
        let own = MapTypes::load()?;
        let maps = Maps::new(&directions, &own)?;
        maps.fill(&directions)?;
        let place =
            Surroundings { types: &types, map: &|name| maps.find(name), room: &|name| maps.room(name) };
        let mut programs = Vec::new();
        for (function, (member, index)) in FUNCTIONS.iter().zip(&operations.functions) {
            let code = file.function(&format!("struct_ops/{function}"), &place)?;
            let of = StructOpsMember { table: operations.structure, index: *index };
            let (btf, places) = function_types(&code)?;
            let types = FunctionTypes { btf: &btf, places: &places };
            programs.push((*member, Program::load_struct_ops(of, function, &code.instructions, types)?));
        }
        let classifier = |section: &str, name: &str| -> Result<Program, LoadError> {
            let code = file.function(section, &place)?;
            Ok(Program::load(ProgramKind::Classifier, name, &code.instructions)?)
        };
        let orphan = classifier("classifier", "orphan")?;
        let changes = directions.iter().any(Parameters::changes_packets);
        let change = changes.then(|| classifier("classifier/change", "change")).transpose()?;
        let functions: Vec<_> = programs.iter().map(|(place, program)| (*place, program)).collect();
        let value = operations.value(name);
        let registered = StructOps::register(name, &own.btf, operations.table, value, &functions)?;
        let count = directions.len();
        let control = MappedMap::new(maps.of("control"), Layout::DIRECTION * count)?;
        let ends = maps.ends(directions)?;
        Ok(Self {
            operations: registered,
            orphan,
            change,
            kind: name.to_owned(),
            ends,
            control,
            directions: count,
        })
    }

    /// The name of its qdisc.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The handle of the qdisc of a direction.
    pub const fn handle(direction: usize) -> u32 {
        (direction as u32 + 1) << 16
    }

    /// The classifier to put before the qdisc.
    pub fn orphan(&self) -> &Program {
        &self.orphan
    }

    /// The classifier for what arrives at both ends of a link, if packets are changed there.
    pub fn change(&self) -> Option<&Program> {
        self.change.as_ref()
    }

    /// Packets longer than this are trains of segments from now on.
    pub fn set_mtu(&self, mtu: u32) {
        for direction in 0..self.directions {
            self.control.write(direction * Layout::DIRECTION + Layout::MTU, &mtu.to_ne_bytes());
        }
    }

    /// Leaves the qdiscs and their kind in place, by a pin: from now on nobody need read their records. The delays that were drawn
    /// ahead, as many as the ring has places, are taken again and again.
    ///
    /// # Errors
    /// If it cannot be pinned.
    pub fn keep(&self, pins: &Pins) -> Result<(), BpfError> {
        let now = clock_monotonic().as_nanos();
        for direction in 0..self.directions {
            let at = |place| direction * Layout::DIRECTION + place;
            self.control.set_number(at(Layout::EPOCH), now);
            self.control.set_number(at(Layout::UNWATCHED), 1);
        }
        pins.keep(&self.operations, "qdisc")
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

/// How many numbers the parts of the program have for arguments (`NARROWS_PART` in `bpf`).
pub const PARTS: [(&str, u32); 41] = [
    ("narrows_add", 2),
    ("narrows_arrive", 3),
    ("narrows_catch_up", 2),
    ("narrows_choose", 2),
    ("narrows_classify", 1),
    ("narrows_codel_gap", 2),
    ("narrows_codel_judges", 5),
    ("narrows_correlated_delay", 2),
    ("narrows_dbhpd_joined", 3),
    ("narrows_dbhpd_sent", 4),
    ("narrows_divide", 2),
    ("narrows_drop_first", 3),
    ("narrows_drops_arrival", 4),
    ("narrows_drops_departure", 3),
    ("narrows_drr_select", 1),
    ("narrows_fed_delay", 2),
    ("narrows_forget", 1),
    ("narrows_is_lost", 3),
    ("narrows_largest", 2),
    ("narrows_leave", 1),
    ("narrows_multiply", 2),
    ("narrows_of_whole", 1),
    ("narrows_overtake", 3),
    ("narrows_pie_catch_up", 4),
    ("narrows_pie_judges", 5),
    ("narrows_pie_update", 3),
    ("narrows_pop_overtaking", 1),
    ("narrows_red_judges", 4),
    ("narrows_red_observes", 3),
    ("narrows_red_probability", 2),
    ("narrows_red_remains", 1),
    ("narrows_select", 2),
    ("narrows_sent", 1),
    ("narrows_skip_rounds", 1),
    ("narrows_start", 2),
    ("narrows_violator", 2),
    ("narrows_wf2q_catch_up", 1),
    ("narrows_wf2q_joined", 2),
    ("narrows_wf2q_select", 1),
    ("narrows_wf2q_sent", 3),
    ("narrows_whole", 1),
];

/// The types of a program's functions. The kernel calls the first one.
fn function_types(code: &Code) -> Result<(Btf, Vec<[u32; 2]>), LoadError> {
    let mut types = OwnTypes::new();
    let number = types.unsigned("unsigned long long", 8);
    let mut places = Vec::new();
    for function in &code.functions {
        let part = PARTS.iter().find(|(name, _)| *name == function.name);
        let (name, arguments) = match (part, function.at) {
            (_, 0) => ("main", 1),
            (Some(&(name, arguments)), _) => (name, arguments),
            (None, _) => return Err(ProgramError::Damaged(format!("no type of {}", function.name)).into()),
        };
        places.push([function.at as u32, types.function_of(name, number, arguments)]);
    }
    Ok((Btf::load(&types.encoded())?, places))
}

/// Whether this kernel and this process can do it, tried: loads the program, puts it at an interface in a namespace of its own,
/// and lets go of both.
///
/// # Errors
/// The reason, if not.
pub fn try_out() -> Result<(), LoadError> {
    use narrows_core::queue::Bound;
    use narrows_core::service::Overhead;
    use narrows_core::{Duration, Rate};
    let plain = || Parameters {
        rate: Rate::UNLIMITED,
        delay: Delay::Constant(Duration::ZERO),
        keeps_order: true,
        queue: QueueParameters::fifo(Bound::Packets(1)),
        overhead: Overhead::IP,
        losses: Default::default(),
        corruption: None,
        origin: 0,
        mtu: 1500,
    };
    let fitting = Fitting { directions: vec![plain(), plain()], links: vec![[0, 1]] };
    let links = KernelLinks::load(&qdisc_name(), fitting)?;
    let namespace = Namespace::create()?;
    let end = |name| VethEnd { namespace: &namespace, name, mac: None };
    create_veth(&end("left"), &end("right"), 1500)?;
    let mut sockets = RouteSocket::open(&namespace)?;
    sockets.set_longest_train("left", 1)?;
    sockets.add_root_qdisc_as("left", links.kind(), KernelLinks::handle(0), &[])?;
    Ok(sockets.add_classifier("left", Way::Out, "narrows", links.orphan())?)
}

/// A name for a qdisc: names are known in all namespaces of a kernel, where processes may have the same number, and the kernel forgets a
/// name some time after its program.
pub fn qdisc_name() -> String {
    let random = narrows_io::random::bits().unwrap_or_else(|_| std::process::id().into());
    format!("narrows{:08x}", random as u32)
}
