//! A queue of Python: its own order, bound and queue management, with a call for each packet that comes and one for each that goes.

use std::collections::BTreeMap;
use std::fmt;

use narrows_core::queue::{Backlog, Bound, Context, Dequeue, Queue};
use narrows_core::{DropReason, FlowKey, PacketList, PacketRef, Pool, Time};
use narrows_sim::{Address, transport};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::FirstError;

/// What a queue is told of a packet.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct QueuedPacket {
    number: u64,
    length: u32,
    now: f64,
    key: FlowKey,
}

#[pymethods]
impl QueuedPacket {
    /// Its number in this queue, from 0: by it the queue says what to send or to drop.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// Bytes from the network header on.
    #[getter]
    fn length(&self) -> u32 {
        self.length
    }

    /// When it comes, in seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.now
    }

    /// `udp`, `tcp` and so on.
    #[getter]
    fn protocol(&self) -> String {
        transport(&self.key).into_owned()
    }

    /// Its source address.
    #[getter]
    fn source(&self) -> String {
        Address::source(&self.key).to_string()
    }

    /// Its destination address.
    #[getter]
    fn destination(&self) -> String {
        Address::destination(&self.key).to_string()
    }

    /// Its source port, or 0.
    #[getter]
    fn source_port(&self) -> u16 {
        self.key.source_port
    }

    /// Its destination port, or 0.
    #[getter]
    fn destination_port(&self) -> u16 {
        self.key.destination_port
    }

    /// DSCP and ECN.
    #[getter]
    fn traffic_class(&self) -> u8 {
        self.key.traffic_class
    }
}

/// The queue, for the engine.
pub(crate) struct PythonQueue {
    object: Py<PyAny>,
    name: String,
    waiting: BTreeMap<u64, PacketRef>,
    bytes: u64,
    next: u64,
    error: FirstError,
}

/// What the queue answers to an arrival.
#[derive(FromPyObject)]
enum Arrival {
    Stays(bool),
    Drops(Vec<u64>),
}

/// And to a free transmitter: what goes, and what is dropped before.
#[derive(FromPyObject)]
enum Departure {
    One(u64),
    Both(Option<u64>, Vec<u64>),
}

fn seconds(at: Time) -> f64 {
    at.nanos() as f64 / 1e9
}

impl PythonQueue {
    pub(crate) fn new(object: Py<PyAny>, name: String, error: FirstError) -> Self {
        Self { object, name, waiting: BTreeMap::new(), bytes: 0, next: 0, error }
    }

    fn take(&mut self, number: u64, pool: &Pool) -> Option<PacketRef> {
        let packet = self.waiting.remove(&number)?;
        self.bytes -= u64::from(pool.get(packet).length);
        Some(packet)
    }

    fn drop_all(&mut self, numbers: &[u64], context: &mut Context<'_>) -> PyResult<()> {
        for &number in numbers {
            let packet = self.take(number, context.pool).ok_or_else(|| self.unknown(number))?;
            context.drop(packet, DropReason::QueueManagement);
        }
        Ok(())
    }

    fn unknown(&self, number: u64) -> PyErr {
        PyValueError::new_err(format!(
            "the queue of {} named packet {number}, which does not wait in it",
            self.name
        ))
    }

    fn wrong(&self, method: &str, error: &PyErr) -> PyErr {
        PyTypeError::new_err(format!(
            "`{method}` of the queue of {} answered something else: {error}",
            self.name
        ))
    }

    fn arrive(&mut self, now: Time, number: u64, context: &mut Context<'_>) -> PyResult<()> {
        let packet = self.waiting[&number];
        let state = context.pool.get(packet);
        let told = QueuedPacket { number, length: state.length, now: seconds(now), key: state.key };
        let answer = Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("enqueue", (told,))?;
            let answer = answer.extract::<Option<Arrival>>();
            answer.map_err(|error| self.wrong("enqueue", &error))
        })?;
        match answer {
            None | Some(Arrival::Stays(true)) => Ok(()),
            Some(Arrival::Stays(false)) => {
                if let Some(packet) = self.take(number, context.pool) {
                    context.drop(packet, DropReason::QueueFull);
                }
                Ok(())
            }
            Some(Arrival::Drops(numbers)) => self.drop_all(&numbers, context),
        }
    }

    fn depart(&mut self, now: Time, context: &mut Context<'_>) -> PyResult<Option<PacketRef>> {
        let answer = Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("dequeue", (seconds(now),))?;
            let answer = answer.extract::<Option<Departure>>();
            answer.map_err(|error| self.wrong("dequeue", &error))
        })?;
        let goes = match answer {
            None => None,
            Some(Departure::One(number)) => Some(number),
            Some(Departure::Both(goes, drops)) => {
                self.drop_all(&drops, context)?;
                goes
            }
        };
        goes.map(|number| self.take(number, context.pool).ok_or_else(|| self.unknown(number))).transpose()
    }
}

impl Queue for PythonQueue {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let number = self.next;
        self.next += 1;
        self.bytes += u64::from(context.pool.get(packet).length);
        self.waiting.insert(number, packet);
        if self.error.is_there() {
            return;
        }
        if let Err(error) = self.arrive(now, number, context) {
            self.error.set(error);
        }
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        if self.waiting.is_empty() {
            return Dequeue::Empty;
        }
        if !self.error.is_there() {
            match self.depart(now, context) {
                Ok(goes) => return goes.map_or(Dequeue::Empty, Dequeue::Packet),
                Err(error) => self.error.set(error),
            }
        }
        // The run is about to be broken off: in order until then.
        let first = self.waiting.keys().next().copied();
        first.and_then(|number| self.take(number, context.pool)).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    fn set_bound(&mut self, _: Bound) {
        // Its bound is its own.
    }

    fn bound(&self) -> Bound {
        Bound::Packets(u64::MAX)
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = PacketList::default();
        for packet in std::mem::take(&mut self.waiting).into_values() {
            all.push_back(packet, pool);
        }
        self.bytes = 0;
        all
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            self.enqueue(now, packet, context);
        }
    }
}

impl fmt::Debug for PythonQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PythonQueue({}, {} packets)", self.name, self.waiting.len())
    }
}
