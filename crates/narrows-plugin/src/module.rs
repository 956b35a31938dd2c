//! Parses, checks and compiles a module.

use std::fmt;
use std::sync::Arc;

use wasmi::{
    CompilationMode, Config, Engine, ExternType, FuncType, Instance, Linker, Store, StoreLimits,
    StoreLimitsBuilder, TypedFunc, ValType, WasmParams, WasmResults,
};

use crate::abi::{ABI, LONGEST_MODULE, MOST_MEMORY, PARAMETER};
use crate::scheduler::{Calls, Loaded, refuel};

/// A compiled module. Cheap to clone; each scheduler made from it has separate memory.
#[derive(Clone)]
pub struct Module {
    engine: Engine,
    module: Arc<wasmi::Module>,
    parameters: Arc<[String]>,
}

/// The values of parameters, by their names.
pub type Parameters = [(String, i64)];

/// Why a module cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It exceeds the maximum size.
    #[error("the module has {found} bytes, the maximum is {most}")]
    TooLong {
        /// Its size.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// It is not valid WebAssembly, or uses disallowed features.
    #[error("this is no WebAssembly module that can be used: {0}")]
    Invalid(String),
    /// It imports something.
    #[error(
        "the module imports `{module}.{name}`: a scheduler gets nothing from outside, no clock, file or random number"
    )]
    Imports {
        /// The module imported from.
        module: String,
        /// The imported name.
        name: String,
    },
    /// It lacks a required function.
    #[error("the module does not export the function `{name}{signature}`")]
    Missing {
        /// Its name.
        name: &'static str,
        /// Its parameters and results.
        signature: String,
    },
    /// A function has the wrong parameters or results.
    #[error("the module's `{name}` is `{found}`, expected `{name}{expected}`")]
    Signature {
        /// The function.
        name: String,
        /// Its signature.
        found: String,
        /// The expected signature.
        expected: String,
    },
    /// It was built for another version of the interface.
    #[error("the module has version {found} of the interface, this is version {ABI}")]
    Version {
        /// Its version.
        found: i32,
    },
    /// No module was given.
    #[error("no module is given")]
    NoModule,
    /// A call failed during loading.
    #[error("the module failed when it was loaded, in `{call}`: {why}")]
    Failed {
        /// The function called.
        call: String,
        /// The error.
        why: String,
    },
    /// It has no such parameter.
    #[error("the module has no parameter `{name}`: {}", listed(.known))]
    NoParameter {
        /// The requested name.
        name: String,
        /// Its parameters.
        known: Vec<String>,
    },
    /// It rejects a parameter's value.
    #[error("the module refuses `{name} = {value}`, with code {code}")]
    Refused {
        /// The parameter.
        name: String,
        /// Its value.
        value: i64,
        /// The code that it returned.
        code: i32,
    },
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "it has none".into(),
        names => {
            let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("it has {}", quoted.join(", "))
        }
    }
}

/// A function of the interface.
struct Function {
    name: &'static str,
    takes: &'static [ValType],
    gives: &'static [ValType],
    required: bool,
}

const I: ValType = ValType::I32;
const L: ValType = ValType::I64;

const FUNCTIONS: &[Function] = &[
    Function { name: "abi_version", takes: &[], gives: &[I], required: true },
    Function { name: "enqueue", takes: &[L, I, I, I], gives: &[], required: true },
    Function { name: "select", takes: &[L], gives: &[L], required: true },
    Function { name: "sent", takes: &[L, I, I, I, I], gives: &[], required: true },
    Function { name: "dropped", takes: &[L, I, I, I], gives: &[], required: true },
    Function { name: "join", takes: &[I, I, I, I], gives: &[I], required: false },
    Function { name: "leave", takes: &[I], gives: &[], required: false },
    Function { name: "set_weight", takes: &[L, I, I], gives: &[I], required: false },
    Function { name: "set_rate", takes: &[L, L], gives: &[], required: false },
];

fn signature(takes: &[ValType], gives: &[ValType]) -> String {
    let name = |ty: &ValType| match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "f32",
        ValType::F64 => "f64",
        _ => "other",
    };
    let takes: Vec<&str> = takes.iter().map(name).collect();
    let gives: Vec<&str> = gives.iter().map(name).collect();
    let gives = if gives.is_empty() { String::new() } else { format!(" -> {}", gives.join(", ")) };
    format!("({}){gives}", takes.join(", "))
}

fn check(name: &str, found: Option<ExternType>, function: &Function) -> Result<(), LoadError> {
    let expected = || signature(function.takes, function.gives);
    let wrong = |found: String| Err(LoadError::Signature { name: name.into(), found, expected: expected() });
    match found {
        None if function.required => Err(LoadError::Missing { name: function.name, signature: expected() }),
        None => Ok(()),
        Some(ExternType::Func(found)) if is(&found, function) => Ok(()),
        Some(ExternType::Func(found)) => {
            wrong(format!("{name}{}", signature(found.params(), found.results())))
        }
        Some(_) => wrong("no function".into()),
    }
}

fn is(found: &FuncType, function: &Function) -> bool {
    found.params() == function.takes && found.results() == function.gives
}

impl Module {
    /// Parses and compiles a module, and checks its version. All errors of the module itself are found here.
    ///
    /// # Errors
    /// If the module is invalid.
    pub fn new(bytes: &[u8]) -> Result<Self, LoadError> {
        if bytes.len() > LONGEST_MODULE {
            return Err(LoadError::TooLong { found: bytes.len(), most: LONGEST_MODULE });
        }
        let mut config = Config::default();
        config.consume_fuel(true).floats(false).compilation_mode(CompilationMode::Eager);
        let engine = Engine::new(&config);
        let invalid = |error: wasmi::Error| LoadError::Invalid(error.to_string());
        // Before it is translated: the translator holds some things about valid modules that invalid ones break.
        wasmi::Module::validate(&engine, bytes).map_err(invalid)?;
        let module = wasmi::Module::new(&engine, bytes).map_err(invalid)?;
        if let Some(import) = module.imports().next() {
            return Err(LoadError::Imports { module: import.module().into(), name: import.name().into() });
        }
        for function in FUNCTIONS {
            check(function.name, module.get_export(function.name), function)?;
        }
        let takes_value = Function { name: "", takes: &[L], gives: &[I], required: false };
        let mut parameters = Vec::new();
        for export in module.exports() {
            if let Some(name) = export.name().strip_prefix(PARAMETER) {
                check(export.name(), Some(export.ty().clone()), &takes_value)?;
                parameters.push(name.to_owned());
            }
        }
        let module = Self { engine, module: Arc::new(module), parameters: parameters.into() };
        let (mut store, instance) = module.instance(crate::abi::FUEL)?;
        let version = typed::<(), i32>(&store, &instance, "abi_version")?;
        let found = version.call(&mut store, ()).map_err(|error| failed("abi_version", &error))?;
        if found != ABI {
            return Err(LoadError::Version { found });
        }
        Ok(module)
    }

    /// The names of its parameters.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// A scheduler without flows, with this fuel for each call.
    ///
    /// # Errors
    /// If the module rejects the parameters.
    pub fn scheduler(&self, parameters: &Parameters, fuel: u64) -> Result<Loaded, LoadError> {
        let (mut store, instance) = self.instance(fuel)?;
        for (name, value) in parameters {
            if !self.parameters.contains(name) {
                return Err(LoadError::NoParameter { name: name.clone(), known: self.parameters.to_vec() });
            }
            let full = format!("{PARAMETER}{name}");
            let set = typed::<i64, i32>(&store, &instance, &full)?;
            refuel(&mut store, fuel);
            let code = set.call(&mut store, *value).map_err(|error| failed(&full, &error))?;
            if code != 0 {
                return Err(LoadError::Refused { name: name.clone(), value: *value, code });
            }
        }
        let there = |name| instance.get_func(&store, name).is_some();
        let calls = Calls {
            enqueue: typed(&store, &instance, "enqueue")?,
            select: typed(&store, &instance, "select")?,
            sent: typed(&store, &instance, "sent")?,
            dropped: typed(&store, &instance, "dropped")?,
            join: there("join").then(|| typed(&store, &instance, "join")).transpose()?,
            leave: there("leave").then(|| typed(&store, &instance, "leave")).transpose()?,
            set_weight: there("set_weight").then(|| typed(&store, &instance, "set_weight")).transpose()?,
            set_rate: there("set_rate").then(|| typed(&store, &instance, "set_rate")).transpose()?,
        };
        Ok(Loaded::new(store, calls, fuel))
    }

    /// An instance with its own memory, in the module's initial state.
    fn instance(&self, fuel: u64) -> Result<(Store<StoreLimits>, Instance), LoadError> {
        let limits =
            StoreLimitsBuilder::new().memory_size(MOST_MEMORY).memories(1).tables(4).table_elements(10_000);
        let mut store = Store::new(&self.engine, limits.build());
        store.limiter(|limits| limits);
        refuel(&mut store, fuel);
        let linker = Linker::<StoreLimits>::new(&self.engine);
        let instance = linker
            .instantiate_and_start(&mut store, &self.module)
            .map_err(|error| failed("start", &error))?;
        Ok((store, instance))
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

fn failed(call: &str, error: &wasmi::Error) -> LoadError {
    LoadError::Failed { call: call.into(), why: error.to_string() }
}

fn typed<P: WasmParams, R: WasmResults>(
    store: &Store<StoreLimits>,
    instance: &Instance,
    name: &str,
) -> Result<TypedFunc<P, R>, LoadError> {
    // The types were checked when the module was parsed.
    instance.get_typed_func(store, name).map_err(|error| failed(name, &error))
}
