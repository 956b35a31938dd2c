//! Framing overhead of a packet on the wire: `"ip"`, `"frame"`, `"ethernet"`, `"atm"`, `"wlan"`,
//! `"ethernet-frame"`, or a table of its parts.

use std::ops::Range;

use narrows_core::sched::{CsmaCd, Dcf};
use narrows_core::service::{Cells, Overhead};

use crate::keys::compound::{As, Group, Named};
use crate::keys::kind::{Choice, Given, Integer};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;

const NAMES: &[(&str, Overhead)] = &[
    ("ip", Overhead::IP),
    ("frame", Overhead::FRAME),
    ("ethernet", Overhead::ETHERNET),
    ("atm", Overhead::ATM),
    ("wlan", Dcf::OVERHEAD),
    ("ethernet-frame", CsmaCd::OVERHEAD),
];
const BASE: Choice<bool> = Choice { what: "base", choices: &[("ip", false), ("frame", true)] };

/// A number of bytes. The maximum is far above the overhead of any link layer, and far from overflow.
const fn bytes(low: i64) -> Integer {
    Integer { what: "a number of bytes", low, high: 65_536 }
}

/// The keys of its table.
#[derive(Default)]
pub(crate) struct Parts {
    base: bool,
    bytes: i32,
    minimum: u32,
    cells: Option<Cells>,
}

impl Keyed for Parts {
    const ROWS: &'static [Row<Self>] = &[
        row!("base", base, BASE, "Layer from which bytes count."),
        row!("bytes", bytes, bytes(-65_536), "Additional bytes per packet; the sum is never below zero."),
        row!("minimum", minimum, bytes(0), "Minimum length on the wire."),
        row!("cells", cells, Given(CELLS), "Whole cells: payload bytes and total bytes per cell.")
            .default("none"),
    ];
}

pub(crate) const OVERHEAD: Named<Overhead, As<Group<Parts>, Parts, Overhead>> = Named {
    words: "name or table",
    names: Choice { what: "overhead", choices: NAMES },
    table: As {
        kind: Group::new(
            "OverheadParts",
            "In this order: the bytes of the base, plus `bytes`, at least `minimum`, in whole cells.",
            "{ base = \"ip\", bytes = 14, minimum = 64, cells = \"atm\" }",
        ),
        into: |Parts { base, bytes, minimum, cells }| Overhead {
            link_header: base,
            extra: bytes,
            minimum,
            cells,
        },
        from: |&Overhead { link_header, extra, minimum, cells }| Parts {
            base: link_header,
            bytes: extra,
            minimum,
            cells,
        },
    },
};

/// Cells that packets are segmented into.
#[derive(Default)]
pub(crate) struct CellParts {
    payload: u32,
    size: u32,
}

const CELLS: Named<Cells, As<Group<CellParts>, CellParts, Cells>> = Named {
    words: "`\"atm\"` or `{ payload = 48, size = 53 }`, each 1 to 65536",
    names: Choice { what: "kind of cells", choices: &[("atm", Cells { payload: 48, size: 53 })] },
    table: As {
        kind: Group::new("CellParts", "A kind of cells.", "{ payload = 48, size = 53 }"),
        into: |CellParts { payload, size }| Cells { payload, size },
        from: |&Cells { payload, size }| CellParts { payload, size },
    },
};

impl Keyed for CellParts {
    const ROWS: &'static [Row<Self>] = &[
        row!("payload", payload, bytes(1), "Payload bytes per cell.").required(),
        row!("size", size, bytes(1), "Bytes per cell on the wire.").required(),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Self { payload, size } = self;
        if payload > size {
            let title = format!("a payload of {payload} bytes does not fit in a cell of {size}");
            return Err(Problem::new(title).at(place));
        }
        Ok(())
    }
}

/// For display: what counts as the packet's length.
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
