//! Runs a module as a scheduler, and handles its failure.
//!
//! A [`Fifo`] tracks every packet alongside the module. If the module fails, the packets waiting and all later ones
//! are served in order of arrival across flows. This costs a push and a count for each packet.
//!
//! An answer is cached until something changes: at the same instant the module is not called again.

use std::fmt;

use narrows_core::Time;
use narrows_core::queue::Wire;
use narrows_core::sched::{
    ClassState, Failure, Fault, Fifo, FifoFlow, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection,
    Weight,
};
use wasmi::{Store, StoreLimits, TrapCode, TypedFunc, WasmParams, WasmResults};

use crate::abi::{EMPTY, PUT_OFFS};

/// The functions of a module.
pub(crate) struct Calls {
    pub(crate) enqueue: TypedFunc<(i64, i32, i32, i32), ()>,
    pub(crate) select: TypedFunc<i64, i64>,
    pub(crate) sent: TypedFunc<(i64, i32, i32, i32, i32), ()>,
    pub(crate) dropped: TypedFunc<(i64, i32, i32, i32), ()>,
    pub(crate) join: Option<TypedFunc<(i32, i32, i32, i32), i32>>,
    pub(crate) leave: Option<TypedFunc<i32, ()>>,
    pub(crate) set_weight: Option<TypedFunc<(i64, i32, i32), i32>>,
    pub(crate) set_rate: Option<TypedFunc<(i64, i64), ()>>,
}

/// A scheduler loaded at run time. Its answers are checked; after the first invalid one, or if the module traps or
/// exceeds its fuel, packets are served in order of arrival.
pub struct Loaded {
    store: Store<StoreLimits>,
    calls: Calls,
    fuel: u64,
    arrivals: Fifo,
    /// Numbers of flows that have left; the last one is reused first, as in [`Flows`].
    free: Vec<u32>,
    /// How many numbers have ever been assigned.
    numbers: u32,
    /// The last answer and its instant, while nothing has changed since.
    answer: Option<(Time, Selection)>,
    /// The instant until which it has deferred packets, and how often in a row it deferred again at that instant.
    put_off: (Time, u32),
    failure: Option<Failure>,
}

impl Loaded {
    pub(crate) fn new(store: Store<StoreLimits>, calls: Calls, fuel: u64) -> Self {
        Self {
            store,
            calls,
            fuel,
            arrivals: Fifo::default(),
            free: Vec::new(),
            numbers: 0,
            answer: None,
            put_off: (Time::ZERO, 0),
            failure: None,
        }
    }

    /// The violation that disabled it, if any.
    pub const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Calls a function; `None` if the module has failed earlier or fails in this call.
    #[inline]
    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        now: Time,
        name: &'static str,
        function: impl FnOnce(&Calls) -> Option<&TypedFunc<P, R>>,
        arguments: P,
    ) -> Option<R> {
        if self.failure.is_some() {
            return None;
        }
        let function = function(&self.calls)?;
        refuel(&mut self.store, self.fuel);
        match function.call(&mut self.store, arguments) {
            Ok(result) => Some(result),
            Err(error) => {
                self.fail(now, name, fault(&error, self.fuel));
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, at: Time, call: &'static str, why: Fault) {
        self.failure.get_or_insert(Failure { at, call, why });
        self.answer = None;
    }

    /// Something has changed: the cached answer may be out of date.
    const fn changed(&mut self) {
        self.answer = None;
        self.put_off.1 = 0;
    }

    /// Checks an answer and converts it into a selection.
    fn judge(&mut self, now: Time, answer: i64, flows: &Flows<FifoFlow>) -> Result<Selection, Fault> {
        if answer >= 0 {
            let number = u32::try_from(answer).map_err(|_| Fault::NoFlow(answer.unsigned_abs()))?;
            let flow = FlowId::new(number);
            if number >= self.numbers || !flows.contains(flow) {
                return Err(Fault::NoFlow(number.into()));
            }
            return if flows.packets(flow) > 0 {
                Ok(Selection::Flow(flow))
            } else {
                Err(Fault::IdleFlow(number))
            };
        }
        if flows.waiting() == 0 {
            return Ok(Selection::Empty);
        }
        if answer == EMPTY {
            return Err(Fault::Forgets(flows.waiting()));
        }
        let at = Time::from_nanos((EMPTY - answer).unsigned_abs());
        if at <= now {
            return Err(Fault::Past(at));
        }
        if now >= self.put_off.0 {
            self.put_off.1 += 1;
            if self.put_off.1 > PUT_OFFS {
                return Err(Fault::PutsOff(PUT_OFFS));
            }
        }
        self.put_off.0 = at;
        Ok(Selection::NotBefore(at))
    }
}

fn fault(error: &wasmi::Error, fuel: u64) -> Fault {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => Fault::OutOfFuel(fuel),
        Some(TrapCode::UnreachableCodeReached) => Fault::Trap("it gave up (`unreachable`)"),
        Some(TrapCode::MemoryOutOfBounds) => Fault::Trap("a memory access out of bounds"),
        Some(TrapCode::TableOutOfBounds) => Fault::Trap("a table access out of bounds"),
        Some(TrapCode::IntegerDivisionByZero) => Fault::Trap("a division by zero"),
        Some(TrapCode::IntegerOverflow) => Fault::Trap("an integer overflow"),
        Some(TrapCode::StackOverflow) => Fault::Trap("a stack overflow"),
        Some(TrapCode::IndirectCallToNull | TrapCode::BadSignature) => Fault::Trap("a bad indirect call"),
        _ => Fault::Trap("another error"),
    }
}

/// An instant in the type of the interface: unsigned here, signed there, with the same bits.
const fn nanos(at: Time) -> i64 {
    at.nanos().cast_signed()
}

const fn int(number: u32) -> i32 {
    number.cast_signed()
}

fn next(flow: FlowId, flows: &Flows<FifoFlow>) -> (i32, i32) {
    (int(flows.first(flow).map_or(0, |first| first.length)), int(flows.packets(flow)))
}

impl Scheduler for Loaded {
    type Flow = FifoFlow;

    fn join(&mut self, flow: FlowConfig) -> Result<FifoFlow, Refused> {
        let number = self.free.last().copied().unwrap_or(self.numbers);
        let arguments = (int(number), int(flow.weight.get()), int(flow.longest), int(flow.band));
        if let Some(code @ (1.. | ..=-1)) =
            self.call(Time::ZERO, "join", |calls| calls.join.as_ref(), arguments)
        {
            return Err(Refused::Declined(code));
        }
        if let Some(Failure { why, call: "join", .. }) = self.failure {
            return Err(Refused::Failed(why));
        }
        self.changed();
        if self.free.pop().is_none() {
            self.numbers += 1;
        }
        self.arrivals.join(flow)
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        self.arrivals.leave(flow, flows);
        self.free.push(flow.number());
        self.changed();
        self.call(Time::ZERO, "leave", |calls| calls.leave.as_ref(), int(flow.number()));
    }

    fn set_weight(
        &mut self,
        now: Time,
        flow: FlowId,
        weight: Weight,
        _flows: &mut Flows<FifoFlow>,
    ) -> Result<(), Refused> {
        if self.calls.set_weight.is_none() {
            return Err(Refused::NoWeights);
        }
        self.changed();
        let arguments = (nanos(now), int(flow.number()), int(weight.get()));
        match self.call(now, "set_weight", |calls| calls.set_weight.as_ref(), arguments) {
            Some(code @ (1.. | ..=-1)) => Err(Refused::Declined(code)),
            _ => Ok(()),
        }
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        self.arrivals.enqueue(now, flow, flows);
        self.changed();
        let (_, last) = flows.state_and_last(flow);
        let length = last.map_or(0, |last| last.length);
        let arguments = (nanos(now), int(flow.number()), int(length), int(flows.packets(flow)));
        self.call(now, "enqueue", |calls| Some(&calls.enqueue), arguments);
    }

    fn select(&mut self, now: Time, flows: &mut Flows<FifoFlow>) -> Selection {
        if let Some((at, answer)) = self.answer
            && at == now
        {
            return answer;
        }
        if let Some(answer) = self.call(now, "select", |calls| Some(&calls.select), nanos(now)) {
            match self.judge(now, answer, flows) {
                Ok(selection) => {
                    self.answer = Some((now, selection));
                    return selection;
                }
                Err(why) => self.fail(now, "select", why),
            }
        }
        self.arrivals.select(now, flows)
    }

    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<FifoFlow>) {
        // In order of arrival, it was not this one's turn.
        self.arrivals.head_dropped(now, flow, flows);
        self.changed();
        let (next, packets) = next(flow, flows);
        let arguments = (nanos(now), int(flow.number()), int(length), next, packets);
        self.call(now, "sent", |calls| Some(&calls.sent), arguments);
    }

    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        self.arrivals.head_dropped(now, flow, flows);
        self.changed();
        let (next, packets) = next(flow, flows);
        self.call(
            now,
            "dropped",
            |calls| Some(&calls.dropped),
            (nanos(now), int(flow.number()), next, packets),
        );
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.changed();
        let rate = wire.rate.bits_per_second().cast_signed();
        self.call(now, "set_rate", |calls| calls.set_rate.as_ref(), (nanos(now), rate));
    }

    /// Empty unless the module has failed.
    fn states(&self, _now: Time, _flows: &Flows<FifoFlow>) -> Vec<ClassState> {
        self.failure.map(ClassState::Failed).into_iter().collect()
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("fuel", &self.fuel)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Sets the fuel for the next call.
#[inline]
pub(crate) fn refuel(store: &mut Store<StoreLimits>, fuel: u64) {
    // The only possible error is that fuel metering is off.
    let counted = store.set_fuel(fuel);
    debug_assert!(counted.is_ok());
}
