//! `tests/link.c`, compiled for this host.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use narrows_kernel::Parameters;
use narrows_kernel::parameters::{Delay, MOST_RANGES, Room};

/// The bytes of a frame that the program sees.
pub(crate) const HEAD: usize = 136;
const ROOM: Room = Room { slots: 65_536, records: 65_536, decisions: 65_536 };
const RULES: usize = 1024;
/// When runs start, by the program's clock.
const EPOCH: u64 = 77_777_777_777;
const RULE: usize = 112;

/// A verdict, its time, and the number of the bit that is flipped, plus 1.
pub(crate) type Decided = (u64, u64, u64);

/// A frame, and when it arrives.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) at: u64,
    pub(crate) frame: Vec<u8>,
}

/// The program; removed at the end.
pub(crate) struct Harness(PathBuf);

impl Harness {
    pub(crate) fn new(name: &str) -> Self {
        let program = std::env::temp_dir().join(format!("narrows-link-{name}-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/link.c");
        let done = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(source)
            .status();
        assert!(done.unwrap().success());
        Self(program)
    }

    /// What it writes if it is told to do this.
    pub(crate) fn run(&self, arguments: &[&str], input: Vec<u8>) -> Vec<u8> {
        let mut child = Command::new(&self.0)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        output.stdout
    }

    /// What is decided about these arrivals: (verdict, time, flipped bit plus 1). Values are fed (from when they count, delay).
    pub(crate) fn decide(
        &self,
        parameters: &Parameters,
        fed: &[(u64, i64)],
        arrivals: &[Arrival],
    ) -> Vec<Decided> {
        let mut input = parameters.bytes(ROOM);
        let mut put = |bytes: Vec<u8>, length: usize| {
            assert!(bytes.len() <= length);
            input.extend(bytes.iter().chain(std::iter::repeat(&0)).take(length));
        };
        let longs = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        put(longs(&[EPOCH]), 8);
        put(longs(&parameters.weights(ROOM.slots)), 8 * (ROOM.slots as usize + 1));
        for loss in &parameters.losses {
            let places: Vec<u64> = loss.ranges().iter().flat_map(|range| [range.start, range.end]).collect();
            put(longs(&places), 16 * MOST_RANGES);
        }
        let rules = parameters.queue.rules.iter().flat_map(|rule| rule.bytes()).collect();
        put(rules, RULE * RULES);
        put(longs(&[fed.len() as u64]), 8);
        let values: Vec<u64> = fed.iter().flat_map(|&(from, delay)| [EPOCH + from, delay as u64]).collect();
        put(longs(&values), 16 * fed.len());
        put(longs(&[arrivals.len() as u64]), 8);
        for (Arrival { at, frame }, number) in arrivals.iter().zip(0..) {
            let delay = match &parameters.delay {
                Delay::Constant(delay) => delay.nanos(),
                Delay::Drawn(drawn) => drawn.of(number),
                Delay::Correlated(correlated) => correlated.of(number),
                Delay::Fed { .. } => 0,
            };
            put(longs(&[EPOCH + *at, delay]), 16);
            put((frame.len() as u32).to_ne_bytes().to_vec(), 4);
            put(frame.iter().copied().take(HEAD).collect(), HEAD + 4);
        }
        let output = self.run(&[], input);
        let (numbers, []) = output.as_chunks::<24>() else { panic!("half a decision") };
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
        let decided = |all: &[u8; 24]| (number(&all[..8]), number(&all[8..16]) - EPOCH, number(&all[16..]));
        numbers.iter().map(decided).collect()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Random numbers of its own.
pub(crate) struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }
}

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// One of these.
    pub(crate) fn of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize]
    }

    /// A frame with a UDP datagram, of one of several classes.
    pub(crate) fn udp(&mut self) -> Vec<u8> {
        let length = 28 + self.below(1473) as usize;
        let mut frame = vec![0; 14 + length];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[15] = self.of(&[0, 10, 10, 20, 21, 46]) << 2 | self.below(4) as u8;
        frame[16..18].copy_from_slice(&(length as u16).to_be_bytes());
        (frame[22], frame[23]) = (64, 17);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&[0x13, 0x88, self.below(3) as u8, 53]);
        frame[38..40].copy_from_slice(&(length as u16 - 20).to_be_bytes());
        frame
    }
}
