//! Deficit round robin as a narrows plugin: the algorithm of the built-in `drr`, through the interface for modules.
//!
//!     cargo build --release --target wasm32-unknown-unknown
//!
//! Backlogged flows take turns. At its turn a flow's deficit grows by its quantum, and it sends while its first packet fits
//! into the deficit.
#![no_std]

use core::cell::UnsafeCell;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// More flows are refused.
const FLOWS: usize = 4096;
/// The default quantum for weight 1.
const QUANTUM: i64 = 1500;
/// Links hold the flow number plus one, so that the initial state is all zeros and needs no space in the module.
const NONE: u16 = 0;

#[derive(Clone, Copy)]
struct Flow {
    quantum: i64,
    deficit: i64,
    /// The length of its first packet.
    first: i32,
    /// The next flow in turn.
    after: u16,
    active: bool,
}

struct State {
    flows: [Flow; FLOWS],
    /// The flow whose turn it is, and the last flow in the list.
    front: u16,
    back: u16,
    /// Whether the deficit of the front flow has grown in this turn.
    granted: bool,
    /// The quantum of weight 1; 0 for the default.
    quantum: i64,
}

/// A module has one thread.
struct Global(UnsafeCell<State>);
unsafe impl Sync for Global {}

static STATE: Global = Global(UnsafeCell::new(State {
    flows: [Flow { quantum: 0, deficit: 0, first: 0, after: NONE, active: false }; FLOWS],
    front: NONE,
    back: NONE,
    granted: false,
    quantum: 0,
}));

fn state() -> &'static mut State {
    // SAFETY: one thread, and no function that holds it calls another that takes it.
    unsafe { &mut *STATE.0.get() }
}

impl State {
    fn push(&mut self, flow: u16) {
        self.flows[flow as usize].after = NONE;
        match self.back {
            NONE => self.front = flow + 1,
            back => self.flows[back as usize - 1].after = flow + 1,
        }
        self.back = flow + 1;
    }

    fn pop(&mut self) {
        self.front = self.flows[self.front as usize - 1].after;
        if self.front == NONE {
            self.back = NONE;
        }
        self.granted = false;
    }

    /// The flow has become empty.
    fn deactivate(&mut self, flow: u16) {
        (self.flows[flow as usize].active, self.flows[flow as usize].deficit) = (false, 0);
        if self.front == flow + 1 {
            return self.pop();
        }
        // Only queue management empties a flow that is not at its turn.
        let mut before = self.front;
        while before != NONE && self.flows[before as usize - 1].after != flow + 1 {
            before = self.flows[before as usize - 1].after;
        }
        if before != NONE {
            self.flows[before as usize - 1].after = self.flows[flow as usize].after;
            if self.back == flow + 1 {
                self.back = before;
            }
        }
    }

    fn now_first(&mut self, flow: i32, next: i32, packets: i32) {
        let flow = flow as u16;
        self.flows[flow as usize].first = next;
        if packets == 0 && self.flows[flow as usize].active {
            self.deactivate(flow);
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn abi_version() -> i32 {
    1
}

/// The key `parameters = { quantum = 1500 }`.
#[unsafe(no_mangle)]
pub extern "C" fn parameter_quantum(bytes: i64) -> i32 {
    if !(1..=1 << 30).contains(&bytes) {
        return 1;
    }
    state().quantum = bytes;
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn join(flow: i32, weight: i32, _longest: i32, _band: i32) -> i32 {
    let state = state();
    let base = if state.quantum == 0 { QUANTUM } else { state.quantum };
    let quantum = base * i64::from(weight as u32);
    match state.flows.get_mut(flow as usize) {
        Some(place) => {
            *place = Flow { quantum, deficit: 0, first: 0, after: NONE, active: false };
            0
        }
        None => 1,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn set_weight(_now: i64, flow: i32, weight: i32) -> i32 {
    let state = state();
    let base = if state.quantum == 0 { QUANTUM } else { state.quantum };
    state.flows[flow as usize].quantum = base * i64::from(weight as u32);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn enqueue(_now: i64, flow: i32, length: i32, packets: i32) {
    let state = state();
    let place = &mut state.flows[flow as usize];
    if packets == 1 {
        place.first = length;
    }
    if !place.active {
        place.active = true;
        state.push(flow as u16);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn select(_now: i64) -> i64 {
    let state = state();
    loop {
        let front = state.front;
        if front == NONE {
            return -1;
        }
        let flow = &mut state.flows[front as usize - 1];
        if !state.granted {
            flow.deficit += flow.quantum;
            state.granted = true;
        }
        if i64::from(flow.first) <= flow.deficit {
            return i64::from(front) - 1;
        }
        state.pop();
        state.push(front - 1);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn sent(_now: i64, flow: i32, length: i32, next: i32, packets: i32) {
    let state = state();
    state.flows[flow as usize].deficit -= i64::from(length);
    state.now_first(flow, next, packets);
}

#[unsafe(no_mangle)]
pub extern "C" fn dropped(_now: i64, flow: i32, next: i32, packets: i32) {
    state().now_first(flow, next, packets);
}
