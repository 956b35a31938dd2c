//! Patches in unified format, as `diff -u` writes and `patch -p1` reads them.
//!
//! A hunk's line numbers are those of one kernel version. Here its position is found by its lines alone, which must
//! occur in the file exactly once: so one patch works for every kernel with those lines, and their absence is an
//! error. Hunks therefore have only as many context lines as needed to be unique, which `patch -p1 -F3` accepts as
//! well.

/// A patch.
#[derive(Debug)]
pub(super) struct Patch<'a> {
    pub(super) files: Vec<FileChange<'a>>,
}

/// The changes of a patch in one file.
#[derive(Debug)]
pub(super) struct FileChange<'a> {
    /// The path of the file in the tree.
    pub(super) file: &'a str,
    hunks: Vec<Hunk<'a>>,
}

/// Lines, and their replacement.
#[derive(Debug, Default)]
struct Hunk<'a> {
    before: Vec<&'a str>,
    after: Vec<&'a str>,
}

/// The changes of a patch, without the explanation at its head.
pub(super) fn changes(text: &str) -> &str {
    text.find("--- a/").map_or("", |start| &text[start..])
}

impl<'a> Patch<'a> {
    /// Parses a patch.
    ///
    /// # Errors
    /// The invalid line, and why it is invalid.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut files: Vec<FileChange<'a>> = Vec::new();
        let mut lines = changes(text).lines();
        while let Some(line) = lines.next() {
            if let Some(file) = line.strip_prefix("--- a/") {
                match lines.next().and_then(|line| line.strip_prefix("+++ b/")) {
                    Some(after) if after == file => files.push(FileChange { file, hunks: Vec::new() }),
                    _ => return Err(format!("where `{line}` is not followed by the same file's `+++ b/`")),
                }
                continue;
            }
            let change = files.last_mut().ok_or("which names no file")?;
            let (before, after) = lengths(line)
                .ok_or_else(|| format!("where `{line}` is neither a file's name nor a hunk's"))?;
            let hunk = Hunk::take(&mut lines, before, after)
                .ok_or_else(|| format!("where the hunk `{line}` has other numbers of lines"))?;
            change.hunks.push(hunk);
        }
        match files.iter().find(|change| change.hunks.is_empty()) {
            Some(change) => Err(format!("which has no hunk for {}", change.file)),
            None if files.is_empty() => Err("which names no file".into()),
            None => Ok(Self { files }),
        }
    }
}

/// The numbers of lines before and after from a hunk's head: `@@ -13,2 +13,7 @@`.
fn lengths(head: &str) -> Option<(usize, usize)> {
    let (before, after) = head.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(before)?, length(after)?))
}

impl<'a> Hunk<'a> {
    /// Takes a hunk with this many lines before and after from the lines of a patch; `None` if they do not match, or
    /// if nothing could be searched for.
    fn take(lines: &mut impl Iterator<Item = &'a str>, before: usize, after: usize) -> Option<Self> {
        let mut hunk = Self::default();
        while hunk.before.len() < before || hunk.after.len() < after {
            let line = lines.next()?;
            match line.split_at_checked(1) {
                Some(("-", line)) => hunk.before.push(line),
                Some(("+", line)) => hunk.after.push(line),
                Some((" ", line)) => hunk.keep(line),
                // An empty line whose blank an editor has removed.
                None => hunk.keep(line),
                Some(_) => return None,
            }
        }
        (hunk.before.len() == before && hunk.after.len() == after && before > 0).then_some(hunk)
    }

    fn keep(&mut self, line: &'a str) {
        self.before.push(line);
        self.after.push(line);
    }

    /// Applies it to a file's lines, unless it was applied before.
    fn apply(&self, lines: &mut Vec<&'a str>) -> Result<(), String> {
        if places(lines, &self.after).next().is_some() {
            return Ok(());
        }
        let found: Vec<usize> = places(lines, &self.before).collect();
        let [place] = found[..] else {
            let line = self.before.iter().find(|line| !line.trim().is_empty()).unwrap_or(&"").trim();
            let count = found.len();
            return Err(format!(
                "where the part that begins with `{line}` is there {count} times in place of once"
            ));
        };
        lines.splice(place..place + self.before.len(), self.after.iter().copied());
        Ok(())
    }
}

/// The positions of these lines in all lines.
fn places<'a>(lines: &'a [&str], part: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    let windows = lines.windows(part.len()).enumerate();
    windows.filter(move |(_, window)| *window == part).map(|(place, _)| place)
}

impl FileChange<'_> {
    /// The file's text with all hunks applied, now or before.
    ///
    /// # Errors
    /// If the lines of a hunk do not occur exactly once.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        let mut lines: Vec<&str> = text.split('\n').collect();
        for hunk in &self.hunks {
            hunk.apply(&mut lines)?;
        }
        Ok(lines.join("\n"))
    }
}

#[cfg(test)]
mod tests;
