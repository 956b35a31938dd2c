//! A question as sent to the writer of a two-way feed: 72 bytes, little-endian.
//!
//! | offset | field | type |
//! |---|---|---|
//! | 0 | −4 | i64 |
//! | 8 | its number, from 0 | u64 |
//! | 16 | when the packet entered the delay line: `CLOCK_MONOTONIC`, in nanoseconds | u64 |
//! | 24 | deadline of the answer: the same clock | u64 |
//! | 32 | source address as IPv6; IPv4 as `::ffff:192.0.2.1` | 16 bytes |
//! | 48 | destination address | 16 bytes |
//! | 64 | the packet's length from the IP header on | u16 |
//! | 66 | source port, or the ICMP type and code | u16 |
//! | 68 | destination port, or the ICMP identifier | u16 |
//! | 70 | IP protocol number; 0 if not IP | u8 |
//! | 71 | TOS or traffic class: DSCP in the upper six bits, ECN in the lower two | u8 |

use narrows_core::Question;
use narrows_io::clock::MonotonicTime;

use super::protocol::{QUESTION, QUESTION_MARKER};

/// Encodes a question as a record.
pub(super) fn encode(question: &Question, at: MonotonicTime, until: MonotonicTime) -> [u8; QUESTION] {
    let key = &question.key;
    let mut record = [0; QUESTION];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &QUESTION_MARKER.to_le_bytes());
    put(8, &question.number.to_le_bytes());
    put(16, &at.as_nanos().to_le_bytes());
    put(24, &until.as_nanos().to_le_bytes());
    put(32, &key.source);
    put(48, &key.destination);
    put(64, &u16::try_from(question.length).unwrap_or(u16::MAX).to_le_bytes());
    put(66, &key.source_port.to_le_bytes());
    put(68, &key.destination_port.to_le_bytes());
    put(70, &[key.transport, key.traffic_class]);
    record
}
