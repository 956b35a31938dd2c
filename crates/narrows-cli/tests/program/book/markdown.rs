//! Fenced blocks of the documentation. Behind the language of a block stands what tests have to know, as in
//! `sh,needs=iperf3+curl`, `sh,norun=asks for a password`, `sh,status=75` and `toml,file=office.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Block {
    /// The line of the page at which its text begins.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) text: String,
}

/// The blocks of a page, in order. Panics where one is not closed.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some(opened(number + 2, info)),
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn opened(line: usize, info: &str) -> Block {
    let mut words = info.split(',');
    let language = words.next().unwrap_or_default().to_owned();
    let attributes = words.map(|word| word.split_once('=').unwrap_or((word, "")));
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Block { line, language, attributes, text: String::new() }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository has a root")
}

/// README and the pages below docs, by their names in the repository.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of pages") {
            let name = format!("{folder}/{}", entry.expect("it can be read").file_name().to_string_lossy());
            if root().join(&name).is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                pages.push(name);
            }
        }
    }
    pages.sort();
    pages
}

pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}
