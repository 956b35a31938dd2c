//! `kernel`: whose sch_netem exact mode is. Not a word of tc's.

use narrows_core::netem::Generation;

use super::options::Netem;
use super::release::Linux;
use super::row::Row;
use crate::problem::{Found, Problem};

pub(super) const KERNEL: Row<Netem> = Row {
    words: &["kernel"],
    read: |netem, word, reader| {
        let release = reader.words.expect(word, "a release of Linux")?;
        netem.kernel = Some(Linux::parse(release.text).ok_or_else(|| {
            release
                .problem(format!(
                    "found {}, expected a release of Linux from 5.10 to 7.3",
                    Found(release.text)
                ))
                .help("major and minor alone, such as 6.1; sch_netem of other releases has not been compared")
        })?);
        Ok(())
    },
    show: |netem| netem.kernel.map(|linux| linux.to_string()),
    explain: |netem| {
        let Some(linux) = netem.kernel else { return Vec::new() };
        let does = match linux.generation() {
            Generation::Linux5_10 => {
                "a duplicate takes a place of its own before its packet does, and packets of an inner discipline do not count against the limit"
            }
            Generation::Linux6_11 => "packets of an inner discipline do not count against the limit",
            Generation::Linux6_13 => {
                "reordered packets and those of an inner discipline do not count against the limit"
            }
            Generation::Linux7_1 => "all packets inside count against the limit",
        };
        let mut said = vec![format!("As Linux {linux} was when it came out, in exact mode: {does}.")];
        if linux.generation() < Generation::Linux7_1 {
            said.push("Its late stable kernels decide as 7.1 does.".into());
        }
        said
    },
};

/// The two queues of a scenario's link are no kernel's.
pub(super) fn refuse(netem: &Netem) -> Result<(), Problem> {
    match netem.kernel {
        None => Ok(()),
        Some(linux) => Err(Problem::new(format!("`kernel {linux}` without exact mode"))
            .help("two queues are as in no kernel; --exact-netem has the single queue of each release")),
    }
}
