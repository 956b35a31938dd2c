//! `cbs idleslope 20000 sendslope -980000 hicredit 30 locredit -1470`: the credit-based shaper (IEEE 802.1Qav). Slopes are in
//! kilobits per second, credits in bytes.

use narrows_core::{Bytes, Rate};

use super::unit::{missing, number, unknown};
use crate::dialect::{Word, Words};
use crate::keys::kind::text;
use crate::node::Table;
use crate::problem::Problem;
use crate::value::Cbs;

const MOST: i64 = i32::MAX as i64;

/// As keys of the scheduler, and what is assumed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shaper {
    pub(super) keys: Table,
    pub(super) note: Option<&'static str>,
}

pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Shaper, Problem> {
    const EXAMPLE: &str = "cbs idleslope 20000 sendslope -980000 hicredit 30 locredit -1470";
    const KNOWN: &[&str] = &["idleslope", "sendslope", "hicredit", "locredit", "offload"];
    let (mut idle, mut send, mut note) = (0, 0, None);
    // Unlike a scenario's, tc's default is that the credit does not fall below zero.
    let (mut high, mut low) = (0, 0);
    while let Some(word) = words.take() {
        match word.text {
            "idleslope" => idle = number(word, words, 1, MOST)?,
            "sendslope" => send = number(word, words, -MOST, -1)?,
            "hicredit" => high = number(word, words, 0, MOST)?,
            "locredit" => low = number(word, words, -MOST, 0)?,
            "offload" => {
                if number(word, words, 0, MOST)? > 0 {
                    note = Some("`offload 1`: the device would shape; here the link does, by the same rule.");
                }
            }
            _ => return Err(unknown(word, "cbs", KNOWN)),
        }
    }
    if let Some((key, _)) =
        [("idleslope", idle), ("sendslope", send)].into_iter().find(|(_, slope)| *slope == 0)
    {
        return Err(missing(name, key, EXAMPLE));
    }
    if low == 0 {
        return Err(missing(name, "locredit", EXAMPLE)
            .help("without credit below zero, no packet ever waits, in the kernel as here"));
    }
    let slope = |kilobits: i64| text(Rate::from_bits_per_second(kilobits.unsigned_abs() * 1000));
    let credit = |bytes: i64| text(Bytes::new(bytes.unsigned_abs()));
    let mut keys = Table::default();
    keys.put("idle-slope", slope(idle));
    keys.put("send-slope", slope(send));
    keys.put("hi-credit", credit(high));
    keys.put("lo-credit", credit(low));
    Ok(Shaper { keys, note })
}

/// The options of a scenario's shaper on a port of this rate.
pub(super) fn options(cbs: &Cbs, port: Rate) -> String {
    let kilobits = |rate: Rate| rate.bits_per_second() / 1000;
    let rest = || match port {
        Rate::UNLIMITED => Rate::from_bits_per_second(MOST as u64 * 1000),
        port => Rate::from_bits_per_second(
            port.bits_per_second().saturating_sub(cbs.idle_slope.bits_per_second()),
        ),
    };
    let (idle, send) = (kilobits(cbs.idle_slope), kilobits(cbs.send_slope.unwrap_or_else(rest)));
    let low = cbs.low.map_or(MOST as u64, Bytes::get);
    format!("hicredit {} locredit -{low} sendslope -{send} idleslope {idle} offload 0", cbs.high.get())
}
