//! What a packet costs on the wire: `"ip"`, `"frame"`, `"ethernet"`, `"atm"`, `"wlan"`, or a table of its parts.

use narrows_core::sched::Dcf;
use narrows_core::service::{Cells, Overhead};

use crate::node::{Node, Value};
use crate::problem::Problem;

const NAMES: &[(&str, Overhead)] = &[
    ("ip", Overhead::IP),
    ("frame", Overhead::FRAME),
    ("ethernet", Overhead::ETHERNET),
    ("atm", Overhead::ATM),
    ("wlan", Dcf::OVERHEAD),
];
const BASES: &[(&str, bool)] = &[("ip", false), ("frame", true)];
const ATM: Cells = Cells { payload: 48, size: 53 };

/// Far more than any link layer adds, and far from overflowing.
const MOST: i64 = 65_536;

/// Reads an overhead.
pub(crate) fn read(node: &Node) -> Result<Overhead, Problem> {
    let Value::Table(table) = &node.value else {
        return node.choice("overhead", NAMES).map_err(|p| {
            p.help("or a table of its parts: { base = \"ip\", bytes = 14, minimum = 64, cells = \"atm\" }")
        });
    };
    table.only(&["base", "bytes", "minimum", "cells"])?;
    Ok(Overhead {
        link_header: table.optional("base", |node| node.choice("base", BASES))?.unwrap_or_default(),
        extra: table.optional("bytes", |node| number(node, -MOST))?.unwrap_or_default() as i32,
        minimum: table.optional("minimum", |node| number(node, 0))?.unwrap_or_default() as u32,
        cells: table.optional("cells", cells)?,
    })
}

fn cells(node: &Node) -> Result<Cells, Problem> {
    let Value::Table(table) = &node.value else {
        return node
            .choice("kind of cells", &[("atm", ATM)])
            .map_err(|p| p.help("or { payload = 48, size = 53 }"));
    };
    table.only(&["payload", "size"])?;
    let payload = table.required("payload", &node.span, |node| number(node, 1))? as u32;
    let size = table.required("size", &node.span, |node| number(node, 1))? as u32;
    if payload > size {
        return Err(Problem::new(format!("a payload of {payload} bytes does not fit in a cell of {size}"))
            .at(&node.span));
    }
    Ok(Cells { payload, size })
}

fn number(node: &Node, least: i64) -> Result<i64, Problem> {
    node.integer("a number of bytes", least..MOST + 1)
}

/// As it stands in a file.
pub(crate) fn text(overhead: Overhead) -> String {
    if let Some((name, _)) = NAMES.iter().find(|(_, known)| *known == overhead) {
        return format!("\"{name}\"");
    }
    let Overhead { link_header, extra, minimum, cells } = overhead;
    let base = if link_header { "frame" } else { "ip" };
    let cells = match cells {
        None => String::new(),
        Some(ATM) => ", cells = \"atm\"".into(),
        Some(Cells { payload, size }) => format!(", cells = {{ payload = {payload}, size = {size} }}"),
    };
    format!("{{ base = \"{base}\", bytes = {extra}, minimum = {minimum}{cells} }}")
}

/// For people: what counts.
pub(crate) fn words(overhead: Overhead) -> String {
    let name = NAMES.iter().find(|(_, known)| *known == overhead).map(|(name, _)| *name);
    match name {
        Some("ip") => return "ip: the IP packet alone".into(),
        Some("frame") => return "frame: the IP packet and its link header (14 bytes for Ethernet)".into(),
        Some("ethernet") => {
            return "ethernet: the frame with its check sequence, preamble and gap (38 bytes), at least 84 bytes".into();
        }
        Some("atm") => return "atm: AAL5, 8 bytes more, in cells of 48 bytes that take 53".into(),
        Some("wlan") => {
            return "wlan: the IP packet with LLC and SNAP, and the header and check sequence of 802.11 (36 bytes)".into();
        }
        _ => {}
    }
    let Overhead { link_header, extra, minimum, cells } = overhead;
    let mut words =
        String::from(if link_header { "the IP packet and its link header" } else { "the IP packet" });
    if extra != 0 {
        words += &format!(" {} {} bytes", if extra < 0 { "−" } else { "+" }, extra.unsigned_abs());
    }
    if minimum > 0 {
        words += &format!(", at least {minimum} bytes");
    }
    if let Some(Cells { payload, size }) = cells {
        words += &format!(", in cells of {payload} bytes that take {size}");
    }
    words
}
