//! Modules in WebAssembly's text format, by the functions in which they differ from one that serves flow 0.

use narrows_plugin::{LoadError, Module, abi};

/// What a module has that serves the flows 0 and 1, the lowest first.
const USUAL: [(&str, &str); 5] = [
    ("abi_version", "(result i32) (i32.const 1)"),
    ("enqueue", "(param i64 i32 i32 i32) (i32.store (i32.shl (local.get 1) (i32.const 2)) (local.get 3))"),
    (
        "select",
        "(param i64) (result i64)
         (if (i32.load (i32.const 0)) (then (return (i64.const 0))))
         (if (i32.load (i32.const 4)) (then (return (i64.const 1))))
         (i64.const -1)",
    ),
    ("sent", "(param i64 i32 i32 i32 i32) (i32.store (i32.shl (local.get 1) (i32.const 2)) (local.get 4))"),
    ("dropped", "(param i64 i32 i32 i32) (i32.store (i32.shl (local.get 1) (i32.const 2)) (local.get 3))"),
];

/// The text of a module with these functions instead, or more; nothing as a body leaves one out. `more` stands before them.
pub(crate) fn text(more: &str, others: &[(&str, &str)]) -> String {
    let usual = USUAL.into_iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name));
    let all = usual.chain(others.iter().copied()).filter(|(_, body)| !body.is_empty());
    let functions: Vec<String> =
        all.map(|(name, body)| format!("(func (export \"{name}\") {body})")).collect();
    format!("(module {more} (memory (export \"memory\") 1) {})", functions.join("\n"))
}

pub(crate) fn load(text: &str) -> Result<Module, LoadError> {
    Module::new(&wat::parse_str(text).unwrap_or_else(|error| panic!("{error}")))
}

pub(crate) fn module(others: &[(&str, &str)]) -> Module {
    load(&text("", others)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn scheduler(others: &[(&str, &str)]) -> narrows_plugin::Loaded {
    module(others).scheduler(&[], abi::FUEL).unwrap()
}
