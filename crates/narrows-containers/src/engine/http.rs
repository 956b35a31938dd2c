//! Answers of HTTP/1: the head, and bodies that end with the connection or come in chunks.

use std::io::{self, BufRead, Read};

/// Maximum length of a head, and of a line in it.
const LONGEST_HEAD: u64 = 64 << 10;

/// A body, without the framing of chunks.
#[derive(Debug)]
pub(super) struct Body<R> {
    from: R,
    chunks: Option<Chunk>,
}

/// The progress within a body in chunks.
#[derive(Debug)]
enum Chunk {
    /// The length of the next chunk comes first; true behind a chunk, which ends with a line break.
    Next(bool),
    /// Bytes left of the present chunk.
    Left(u64),
    Over,
}

/// Reads the head of an answer: its status, and its body.
pub(super) fn answer<R: BufRead>(mut from: R) -> io::Result<(u16, Body<R>)> {
    let mut head = Vec::new();
    let mut limited = from.by_ref().take(LONGEST_HEAD);
    loop {
        let start = head.len();
        limited.read_until(b'\n', &mut head)?;
        match &head[start..] {
            b"\r\n" | b"\n" => break,
            line if line.ends_with(b"\n") => {}
            _ => return Err(no_answer("the head of the answer does not end")),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines();
    let first = lines.next().filter(|line| line.starts_with("HTTP/1."));
    let status = first.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| no_answer("no answer of HTTP"))?;
    let is_chunked = lines.filter_map(|line| line.split_once(':')).any(|(name, value)| {
        name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked")
    });
    Ok((status, Body { from, chunks: is_chunked.then_some(Chunk::Next(false)) }))
}

fn no_answer(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl<R> Body<R> {
    /// Where it comes from.
    pub(super) fn source(&self) -> &R {
        &self.from
    }
}

impl<R: BufRead> Body<R> {
    /// A line, such as the length of a chunk in hexadecimal digits.
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.from.by_ref().take(LONGEST_HEAD).read_until(b'\n', &mut line)?;
        match line.ends_with(b"\n") {
            true => Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The length of the chunk that follows.
    fn chunk(&mut self, behind_another: bool) -> io::Result<u64> {
        if behind_another && !self.line()?.is_empty() {
            return Err(no_answer("a chunk of the answer is longer than it says"));
        }
        let line = self.line()?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16).map_err(|_| no_answer("a chunk of the answer has no length"))
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = match self.chunks {
                None => return self.from.read(into),
                Some(Chunk::Over) => return Ok(0),
                Some(Chunk::Left(left)) if left > 0 => left,
                Some(Chunk::Left(_)) => {
                    self.chunks = Some(Chunk::Next(true));
                    continue;
                }
                Some(Chunk::Next(behind_another)) => {
                    let length = self.chunk(behind_another)?;
                    self.chunks = Some(if length == 0 { Chunk::Over } else { Chunk::Left(length) });
                    continue;
                }
            };
            let most = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let count = self.from.read(&mut into[..most])?;
            if count == 0 && most > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.chunks = Some(Chunk::Left(left - count as u64));
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(u16, String), String> {
        let (status, mut body) = answer(text.as_bytes()).map_err(|error| error.to_string())?;
        let mut all = String::new();
        body.read_to_string(&mut all).map_err(|error| error.to_string())?;
        Ok((status, all))
    }

    #[test]
    fn a_body_ends_with_the_connection_or_its_last_chunk() {
        assert_eq!(read("HTTP/1.0 200 OK\r\nA: b\r\n\r\n[]\n"), Ok((200, "[]\n".into())));
        let chunked = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n";
        assert_eq!(read(chunked), Ok((404, "{\"a\":1}".into())));
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for (text, what) in [
            ("", "does not end"),
            ("SSH-2.0-server\r\n\r\n", "no answer of HTTP"),
            ("HTTP/1.1 x\r\n\r\n", "no answer of HTTP"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "has no length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than it says"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", "end of file"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
