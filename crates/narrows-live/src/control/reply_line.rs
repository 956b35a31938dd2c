//! A reply as it is sent: a line of JSON, written in portions between which packet threads can run.

use std::io::{self, Write};
use std::thread;

use serde::Serialize;

use super::Reply;

/// So many bytes are written before packet threads get a turn: some 20 µs of work.
pub(super) const PORTION: usize = 1 << 13;

/// A line of JSON, without the line feed: what a [`Reply`] is read from.
#[derive(Debug)]
pub struct ReplyLine(Vec<u8>);

impl ReplyLine {
    /// Success, with the requested data.
    pub fn ok(data: &impl Serialize) -> Self {
        let mut line = InPortions { line: br#"{"ok":"#.to_vec(), since: 0 };
        match serde_json::to_writer(&mut line, data) {
            Ok(()) => {
                line.line.push(b'}');
                Self(line.line)
            }
            Err(error) => Reply::Error(error.to_string()).into(),
        }
    }

    /// Its bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl From<Reply> for ReplyLine {
    fn from(reply: Reply) -> Self {
        // Keys are strings, which is all that could fail.
        Self(serde_json::to_vec(&reply).unwrap_or_default())
    }
}

/// A line that grows.
struct InPortions {
    line: Vec<u8>,
    since: usize,
}

impl Write for InPortions {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        self.since += bytes.len();
        if self.since >= PORTION {
            self.since = 0;
            thread::yield_now();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_from_it() {
        let text = "x".repeat(3 * PORTION);
        let read = |line: ReplyLine| serde_json::from_slice::<Reply>(&line.into_bytes()).unwrap();
        let data = |line| match read(line) {
            Reply::Ok(data) => data.get().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(data(ReplyLine::ok(&[&text, "y"])), format!("[\"{text}\",\"y\"]"));
        assert_eq!(data(ReplyLine::ok(&())), "null");
        assert!(matches!(read(Reply::Error("no".into()).into()), Reply::Error(why) if why == "no"));
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(matches!(read(ReplyLine::ok(&unwritable)), Reply::Error(why) if why.contains("key")));
    }
}
