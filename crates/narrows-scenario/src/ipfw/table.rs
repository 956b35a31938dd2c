//! `table N add | delete | list | flush`, and newer ipfw's `create`, `destroy` and `info`.

use std::net::Ipv4Addr;

use narrows_core::rules::FlowFields;

use super::address::{self, Context};
use super::flows::{self, TableKey};
use super::lexer::{Word, Words, full};
use super::network;
use super::numbers;
use super::reader::unknown;
use crate::problem::{Found, Problem};

/// A command for one table or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableCommand {
    /// Adds entries, or changes the values of existing ones.
    Add {
        /// The table.
        table: String,
        /// The entries with their values, 0 where none is given.
        entries: Vec<(TableKey, u32)>,
    },
    /// Deletes entries.
    Delete {
        /// The table.
        table: String,
        /// The entries.
        entries: Vec<TableKey>,
    },
    /// Deletes all entries of this table, or of all tables.
    Flush(Option<String>),
    /// Prints the entries of this table, or of all tables.
    List(Option<String>),
    /// Creates an empty table. Tables are also created on first use.
    Create {
        /// The table.
        table: String,
        /// Its fields, if its entries are flows.
        flow: Option<FlowFields>,
    },
    /// Exchanges the entries of two tables.
    Swap(String, String),
    /// Deletes the table and its entries.
    Destroy(String),
    /// Prints the size of the table.
    Info(Option<String>),
}

/// Parses what follows `table`.
pub(super) fn read(
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<TableCommand, Problem> {
    const KNOWN: &[&str] =
        &["add", "delete", "list", "show", "flush", "create", "destroy", "info", "detail", "swap"];
    let name = words.expect("the number or the name of a table")?;
    let table = match name.text.as_str() {
        "all" => None,
        _ => Some(address::table_name(name)?),
    };
    let verb = words.expect("a command for the table")?;
    let one = |table: Option<String>| {
        table.ok_or_else(|| verb.problem(format!("`{}` is for one table, not for all", verb.text)))
    };
    let verb = match verb.text.as_str() {
        // Each command takes effect as a whole.
        "atomic" => words.expect("`add`")?,
        _ => verb,
    };
    Ok(match full(verb, KNOWN) {
        "add" => {
            let table = one(table)?;
            let mut entries = vec![entry(&table, words, context, remarks)?];
            while words.peek().is_some() {
                entries.push(entry(&table, words, context, remarks)?);
            }
            TableCommand::Add { table, entries }
        }
        "delete" => {
            let table = one(table)?;
            let mut entries = vec![key(&table, words.expect(KEY)?, context, remarks)?];
            while let Some(word) = words.take() {
                entries.push(key(&table, word, context, remarks)?);
            }
            TableCommand::Delete { table, entries }
        }
        "flush" => TableCommand::Flush(table),
        "list" | "show" => TableCommand::List(table),
        "info" | "detail" => TableCommand::Info(table),
        "destroy" => match table {
            Some(table) => TableCommand::Destroy(table),
            // A table that does not exist is an empty one.
            None => TableCommand::Flush(None),
        },
        "swap" => {
            let table = one(table)?;
            let other = words.expect("the number or the name of the other table")?;
            TableCommand::Swap(table, address::table_name(other)?)
        }
        "create" => {
            let table = one(table)?;
            let flow = create(words)?;
            TableCommand::Create { table, flow }
        }
        other => {
            const REFUSED: &[(&str, &str)] = &[
                ("modify", "tables of narrows have no options to modify"),
                ("lookup", "list the table"),
                ("lock", "tables of narrows have no locks"),
                ("unlock", "tables of narrows have no locks"),
                ("test", "list the table"),
            ];
            return Err(unknown(verb, other, "command for a table", KNOWN, REFUSED));
        }
    })
}

/// Parses the arguments of `create`. Entries have one value; what they begin with shows when they are added.
fn create(words: &mut Words<'_>) -> Result<Option<FlowFields>, Problem> {
    let mut flow = None;
    while let Some(word) = words.take() {
        match word.text.as_str() {
            "type" => {
                let kind = words.expect("the type of the table")?;
                flow = flows::fields(kind)?;
                if flow.is_none() && !["addr", "iface", "mac", "number"].contains(&kind.text.as_str()) {
                    return Err(kind.expected("`addr`, `iface`, `mac`, `number` or `flow`"));
                }
            }
            "valtype" => {
                words.expect("the type of values")?;
            }
            "algo" | "limit" => {
                words.expect("a value")?;
            }
            "missing" | "or-flush" => {}
            other => {
                let known = ["type", "valtype", "missing", "or-flush"];
                return Err(unknown(word, other, "option of a new table", &known, &[]));
            }
        }
    }
    Ok(flow)
}

/// What an entry of a table begins with.
const KEY: &str = "an address, a number, an interface or a flow";

/// Parses the key of an entry of this table.
fn key(
    table: &str,
    word: &Word,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<TableKey, Problem> {
    match context.flow_tables.iter().find(|(name, _)| name == table) {
        Some((_, fields)) => Ok(TableKey::Flow(*fields, flows::entry(word, *fields)?)),
        None => network::key(table, word, context, remarks).map(TableKey::Network),
    }
}

fn entry(
    table: &str,
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<(TableKey, u32), Problem> {
    let key = key(table, words.expect(KEY)?, context, remarks)?;
    let is_name = |word: &Word| {
        let names = || context.interfaces.iter().chain(context.outside);
        let starts_as_value = word.text.starts_with(|c: char| c.is_ascii_digit());
        names().any(|name| *name == word.text)
            || context.interface_tables.iter().any(|one| one == table) && !starts_as_value
    };
    let value = match words.peek() {
        Some(word)
            if is_several_values(word) && !context.flow_tables.iter().any(|(name, _)| name == table) =>
        {
            let one = word.part(word.text.split(',').next().unwrap_or_default());
            return Err(word.problem(format!("several values of one entry: {}", Found(&word.text))).help(format!(
                "an entry has one value here, which `tablearg` is in every rule: write {}, and make another table for the others",
                one.text
            )));
        }
        // The next word is a value, unless it is another key.
        Some(word) if !word.text.contains(['/', ':', ',']) && !is_name(word) => {
            words.take();
            value(word)?
        }
        _ => 0,
    };
    Ok((key, value))
}

/// Whether it is the values of a table with several, such as `12000,5`.
fn is_several_values(word: &Word) -> bool {
    let is_value = |one: &str| one.parse::<u32>().is_ok() || one.parse::<Ipv4Addr>().is_ok();
    word.text.contains(',') && word.text.split(',').all(is_value)
}

/// Parses a number, or an IPv4 address as a number.
fn value(word: &Word) -> Result<u32, Problem> {
    match word.text.parse::<Ipv4Addr>() {
        Ok(address) => Ok(address.into()),
        Err(_) => numbers::integer(word, "a value", u32::MAX),
    }
}
