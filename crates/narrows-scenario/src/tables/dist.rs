//! NetEm's distribution tables: iproute2's `.dist` files, as `tc` reads them (`tc/q_netem.c`,
//! `get_distribution`) and `maketable` writes them (`netem/maketable.c`).
//!
//! Whole numbers from −32768 to 32767, separated by white space; 8192 stands for one standard deviation.
//! The kernel accepts up to 16,384 numbers and draws each with equal probability, so a sorted table is the
//! inverse of a distribution function. `tc` ignores the rest of a line after the first word that is not a
//! number; here that is an error.

use super::error::TableError;
use super::rows;

/// Maximum length of a table in the kernel (`sch_netem.c`, `NETEM_DIST_MAX`).
pub const MOST_ENTRIES: usize = 16_384;

/// Numbers per line in the output of `maketable`.
const ON_A_LINE: usize = 8;

/// Reads a `.dist` file. `file` is its name, for errors.
///
/// # Errors
/// If a word is not a whole number of 16 bits, or there is no number or more than [`MOST_ENTRIES`].
pub fn read_dist(file: &str, bytes: &[u8]) -> Result<Vec<i16>, TableError> {
    let mut table = Vec::new();
    for (line, text) in rows::lines(rows::text(file, bytes)?) {
        for word in text.split_whitespace() {
            let entry = word.parse().map_err(|_| {
                TableError::found(
                    file,
                    line,
                    word,
                    "a whole number from -32768 to 32767 (8192 is one standard deviation)",
                )
            })?;
            if table.len() == MOST_ENTRIES {
                let what = format!("this is number {}; a table may have {MOST_ENTRIES}", MOST_ENTRIES + 1);
                return Err(TableError::line_of(file, line, what));
            }
            table.push(entry);
        }
    }
    match table.is_empty() {
        true => Err(TableError::whole(file, "there is no number in this table")),
        false => Ok(table),
    }
}

/// The file for a table in the layout of `maketable`: a comment, then eight numbers per line.
pub fn write_dist(comment: &str, table: &[i16]) -> String {
    let mut text: String = comment.lines().map(|line| format!("# {line}\n")).collect();
    for row in table.chunks(ON_A_LINE) {
        let row: Vec<String> = row.iter().map(i16::to_string).collect();
        text += &row.join(" ");
        text.push('\n');
    }
    text
}
