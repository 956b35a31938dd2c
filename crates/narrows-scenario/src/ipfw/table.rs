//! `table N add | delete | list | flush`, and newer ipfw's `create`, `destroy` and `info`.

use std::net::{IpAddr, Ipv4Addr};

use super::address::{self, Context, Family};
use super::lexer::{Word, Words};
use super::numbers;
use super::reader::unknown;
use crate::problem::{Found, Problem};

/// A network in a table. IPv4 is stored as IPv4-mapped IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    /// The address, with zero bits after the prefix.
    pub address: u128,
    /// Prefix length, of 128 bits.
    pub bits: u8,
}

/// As written: `10.0.0.0/8`.
impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let v6 = std::net::Ipv6Addr::from(self.address);
        match v6.to_ipv4_mapped().filter(|_| self.bits >= 96) {
            Some(v4) => write!(f, "{v4}/{}", self.bits - 96),
            None => write!(f, "{v6}/{}", self.bits),
        }
    }
}

/// A command for one table or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableCommand {
    /// Adds entries, or changes the values of existing ones.
    Add {
        /// The table.
        table: String,
        /// The entries with their values, 0 where none is given.
        entries: Vec<(Network, u32)>,
    },
    /// Deletes entries.
    Delete {
        /// The table.
        table: String,
        /// The entries.
        entries: Vec<Network>,
    },
    /// Deletes all entries of this table, or of all tables.
    Flush(Option<String>),
    /// Prints the entries of this table, or of all tables.
    List(Option<String>),
    /// Creates an empty table. Tables are also created on first use.
    Create(String),
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
    const KNOWN: &[&str] = &["add", "delete", "list", "flush", "create", "destroy", "info"];
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
    Ok(match verb.text.as_str() {
        "add" => {
            let table = one(table)?;
            let mut entries = vec![entry(words, context, remarks)?];
            while words.peek().is_some() {
                entries.push(entry(words, context, remarks)?);
            }
            TableCommand::Add { table, entries }
        }
        "delete" => {
            let table = one(table)?;
            let mut entries = vec![network(words.expect("an address or a number")?, context, remarks)?];
            while let Some(word) = words.take() {
                entries.push(network(word, context, remarks)?);
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
        "create" => {
            let table = one(table)?;
            create(words)?;
            TableCommand::Create(table)
        }
        other => {
            const REFUSED: &[(&str, &str)] = &[
                ("modify", "tables of narrows have no options to modify"),
                ("swap", "flush and fill the one table"),
                ("lookup", "list the table"),
                ("lock", "tables of narrows have no locks"),
                ("unlock", "tables of narrows have no locks"),
                ("test", "list the table"),
            ];
            return Err(unknown(verb, other, "command for a table", KNOWN, REFUSED));
        }
    })
}

/// Parses the arguments of `create`: keys are addresses, and entries have one value.
fn create(words: &mut Words<'_>) -> Result<(), Problem> {
    while let Some(word) = words.take() {
        match word.text.as_str() {
            "type" => {
                let kind = words.expect("the type of the table")?;
                if !["addr", "number"].contains(&kind.text.as_str()) {
                    return Err(kind.expected("`addr` or `number`").help(
                        "a table of narrows has addresses, or numbers that stand for ports and code points",
                    ));
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
    Ok(())
}

fn entry(
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<(Network, u32), Problem> {
    let key = network(words.expect("an address or a number")?, context, remarks)?;
    let value = match words.peek() {
        // The next word is a value, unless it is another address.
        Some(word) if !word.text.contains(['/', ':']) => {
            words.take();
            value(word)?
        }
        _ => 0,
    };
    Ok((key, value))
}

/// Parses a number, or an IPv4 address as a number.
fn value(word: &Word) -> Result<u32, Problem> {
    match word.text.parse::<Ipv4Addr>() {
        Ok(address) => Ok(address.into()),
        Err(_) => numbers::integer(word, "a value", u32::MAX),
    }
}

/// Parses `a`, or `a/len`; or a number as an address with these bits, as in C's inet_aton: `lookup` uses
/// such keys for ports and code points.
pub(super) fn network(
    word: &Word,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Network, Problem> {
    let (host, bits) = match word.text.split_once('/') {
        Some((host, bits)) => (word.part(host), Some(word.part(bits))),
        None => (word.clone(), None),
    };
    if host.text == "any" || host.text.contains([',', '{', '(']) {
        return Err(word
            .problem(format!("{} is not an entry of a table", Found(&word.text)))
            .help("an entry is an address or a network, as in 10.0.0.1 or 10.0.0.0/8"));
    }
    let address = match host.text.parse::<u32>() {
        Ok(number) if bits.is_none() => IpAddr::V4(Ipv4Addr::from_bits(number)),
        _ => address::host_address(&host, Family::V4, context, remarks)?,
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => numbers::decimal(&bits, "a number of bits", 0..=most)?,
        None => most,
    };
    let bits = (bits + 128 - most) as u8; // at most 128
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    Ok(Network { address: address::mapped(address) & mask, bits })
}
