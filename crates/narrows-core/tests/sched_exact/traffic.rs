//! Traffic that is hard on a fair scheduler.

use crate::compare::{Numbers, Step};

/// Random, with spells: flows that have much, flows that come and go, flows with a packet now and then; long packets, short
/// ones, and either by turns.
pub(crate) fn random(longest: &[u32], seed: u64, steps: usize) -> Vec<Step> {
    let mut numbers = Numbers::new(seed);
    let mut habits: Vec<(u64, u64)> = longest.iter().map(|_| (numbers.below(4), numbers.below(4))).collect();
    let mut steps_taken = Vec::new();
    let mut waiting = 0_i64;
    // Mostly more than nothing waits, and not ever more.
    let level = 1 + numbers.below(20 * longest.len() as u64) as i64;
    for at in 0..steps {
        if numbers.below(200) == 0 {
            let flow = numbers.below(longest.len() as u64) as usize;
            habits[flow] = (numbers.below(4), numbers.below(4));
        }
        if waiting > 0 && (waiting > level || numbers.below(2) == 0) {
            steps_taken.push(Step::Dequeue);
            waiting -= 1;
            continue;
        }
        let flow = numbers.below(longest.len() as u64) as usize;
        let (rate, kind) = habits[flow];
        if numbers.below(1 << (2 * rate)) > 0 {
            continue;
        }
        let most = u64::from(longest[flow]);
        let length = match kind {
            0 => most,
            1 => 1,
            2 if at % 2 == 0 => most,
            _ => 1 + numbers.below(most),
        };
        steps_taken.push(Step::Enqueue(flow, length as u32));
        waiting += 1;
    }
    steps_taken
}

/// Flow 0 gets ahead as far as rounding lets it while the others have not begun, just before a boundary of its slots; then all
/// others come, whose starts are spread, and its next packet is tiny and takes it onto the boundary.
///
/// Meant for flow 0 of weight 1 and all with packets of up to `longest`, a power of two. `alone` packets leave before the
/// others come: its first two, and what flow 1 sends meanwhile.
pub(crate) fn head_start(flows: usize, longest: u32, alone: usize, seed: u64) -> Vec<Step> {
    let mut numbers = Numbers::new(seed);
    let mut steps: Vec<Step> = [longest - 1, longest, 1].map(|length| Step::Enqueue(0, length)).into();
    steps.extend([Step::Enqueue(0, longest); 8]);
    steps.extend([Step::Enqueue(1, longest); 12]);
    steps.extend(std::iter::repeat_n(Step::Dequeue, alone));
    for flow in 1..flows {
        let lengths = (0..200).map(|_| longest - numbers.below(u64::from(longest) / 8) as u32);
        steps.extend(lengths.map(|length| Step::Enqueue(flow, length)));
    }
    steps.extend(std::iter::repeat_n(Step::Dequeue, 100 * flows));
    steps
}

/// Flows of low weight wait with long packets. Flows of high weight and short packets come in waves, just after a long one
/// has been taken out.
pub(crate) fn waves(longest: &[u32], seed: u64, rounds: usize) -> Vec<Step> {
    let mut numbers = Numbers::new(seed);
    let long: Vec<usize> = (0..longest.len()).filter(|&flow| longest[flow] > 1000).collect();
    let short: Vec<usize> = (0..longest.len()).filter(|&flow| longest[flow] <= 1000).collect();
    let mut steps = Vec::new();
    for _ in 0..rounds {
        for &flow in &long {
            for _ in 0..numbers.below(3) {
                steps.push(Step::Enqueue(flow, longest[flow] - numbers.below(2) as u32));
            }
        }
        steps.extend(std::iter::repeat_n(Step::Dequeue, 1 + numbers.below(3) as usize));
        for &flow in &short {
            for _ in 0..numbers.below(30) {
                steps.push(Step::Enqueue(flow, 1 + numbers.below(longest[flow].into()) as u32));
            }
        }
        steps.extend(std::iter::repeat_n(Step::Dequeue, numbers.below(1 + 20 * short.len() as u64) as usize));
    }
    steps
}
