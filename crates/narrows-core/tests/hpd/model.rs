//! The same algorithm, written plainly and in floating point, on the same input.

use std::collections::VecDeque;

use narrows_core::sched::{ErrorWidth, Estimator, FlowId, Gamma, HpdClass, Per1024, Served};
use narrows_core::{Duration, PacketRef, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{classes, server, states};

/// An average is kept in parts of 2⁻¹⁶ ns, to the nearest.
const ROUNDING: f64 = 1.0 / 131_072.0;
/// Weights are in parts of 2⁻³²: the share of one class is rounded, and what is left of the division by their number cut.
const WEIGHT_ERROR: f64 = 1.5 / 4_294_967_296.0;

#[derive(Clone, Debug)]
struct Class {
    settings: HpdClass,
    arrivals: VecDeque<f64>,
    average: f64,
    /// How far the average of whole numbers may be from it, in nanoseconds.
    error: f64,
    sum: f64,
    samples: u32,
    idle_since: f64,
}

impl Class {
    fn new(settings: HpdClass) -> Self {
        let (average, error) = (0.0, 0.0);
        Self { settings, arrivals: VecDeque::new(), average, error, sum: 0.0, samples: 0, idle_since: 0.0 }
    }

    fn hybrid(&self, now: f64) -> Option<f64> {
        let g = f64::from(self.settings.g.get()) / 1024.0;
        let wait = now - self.arrivals.front()?;
        Some((g * self.average + (1.0 - g) * wait) / f64::from(self.settings.ddp.get()))
    }

    fn arrive(&mut self, now: f64) {
        if let Estimator::EwmaR { cycle, .. } = self.settings.estimator
            && self.arrivals.is_empty()
            && now - self.idle_since >= cycle.nanos() as f64
        {
            (self.average, self.error, self.sum, self.samples) = (0.0, 0.0, 0.0, 0);
        }
        self.arrivals.push_back(now);
    }

    fn gone(&mut self, now: f64) -> f64 {
        let arrival = self.arrivals.pop_front().expect("a packet waits");
        if self.arrivals.is_empty() {
            self.idle_since = now;
        }
        now - arrival
    }

    /// Whether it was clear what n is.
    fn depart(&mut self, now: f64, classes: usize) -> bool {
        let q = self.arrivals.len() as f64;
        let gamma = match self.settings.gamma {
            Gamma::Fixed(parts) => f64::from(parts.get()) / 1024.0,
            Gamma::OfBacklog => (1.0 / (classes as f64 * libm::sqrt(q) * libm::log(q))).min(1.0),
        };
        let delay = self.gone(now);
        let (mut n, mut clear) = (1.0, true);
        match self.settings.estimator {
            Estimator::Ewma => {}
            Estimator::EwmaR { threshold, .. } => {
                if self.samples < threshold {
                    self.samples += 1;
                    self.sum += delay;
                    self.average = self.sum / f64::from(self.samples);
                    self.error = ROUNDING;
                    return true;
                }
            }
            Estimator::EwmaPe { steps, width } => {
                let width = if width == ErrorWidth::Tenth { 0.1 } else { 0.125 };
                let error = if self.average == 0.0 {
                    if delay == 0.0 { 0.0 } else { f64::INFINITY }
                } else {
                    (delay - self.average).abs() / self.average / width
                };
                clear = !error.is_finite() || (error - error.round()).abs() > 1e-4;
                n = error.ceil().clamp(1.0, f64::from(steps));
            }
        }
        let weight = (n * gamma).min(1.0);
        let misweighed = (delay - self.average).abs() * n * WEIGHT_ERROR;
        self.error = (1.0 - weight) * self.error + misweighed + ROUNDING;
        self.average = weight * delay + (1.0 - weight) * self.average;
        clear
    }
}

fn class() -> impl Strategy<Value = HpdClass> {
    let per1024 = || (0u16..=1024).prop_map(|parts| Per1024::new(parts).expect("at most 1024"));
    let estimator = prop_oneof![
        Just(Estimator::Ewma),
        (0u32..30, 0u64..200_000).prop_map(|(threshold, cycle)| Estimator::EwmaR {
            threshold,
            cycle: Duration::from_nanos(cycle)
        }),
        (1u8..12, any::<bool>()).prop_map(|(steps, tenth)| Estimator::EwmaPe {
            steps,
            width: if tenth { ErrorWidth::Tenth } else { ErrorWidth::Eighth }
        }),
    ];
    let gamma = prop_oneof![Just(Gamma::OfBacklog), per1024().prop_map(Gamma::Fixed)];
    // Some have no common multiple of 33 bits.
    let ddp = prop_oneof![4 => 1u32..20, 1 => any::<u32>().prop_map(|ddp| ddp | 1)];
    (ddp, gamma, per1024(), estimator).prop_map(|(ddp, gamma, g, estimator)| HpdClass {
        ddp: ddp.try_into().expect("not 0"),
        gamma,
        g,
        limit: None,
        estimator,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Each choice is the model's, unless that one cannot tell two classes apart; each average is the model's to the
    /// nanosecond to which it is told.
    #[test]
    fn choices_and_averages_are_those_of_the_equations(
        settings in vec(class(), 1..8),
        steps in vec((0u8..10, any::<u32>(), 0u64..100_000), 1..400),
    ) {
        let mut server = server(classes(settings.clone()));
        let mut model: Vec<Class> = settings.iter().copied().map(Class::new).collect();
        let (mut now, mut unclear) = (Time::ZERO, 0);
        for (what, which, wait) in steps {
            now = now + Duration::from_nanos(wait);
            let at = now.nanos() as f64;
            let which = which % settings.len() as u32;
            match what {
                0..5 => {
                    server.enqueue(now, FlowId::new(which), PacketRef::from_number(0), 100);
                    model[which as usize].arrive(at);
                }
                5 => {
                    if server.drop_first(now, FlowId::new(which)).is_some() {
                        model[which as usize].gone(at);
                    }
                }
                _ => {
                    let hybrids: Vec<f64> =
                        model.iter().map(|class| class.hybrid(at).unwrap_or(-1.0)).collect();
                    let most = hybrids.iter().copied().fold(-1.0, f64::max);
                    match server.dequeue(now) {
                        Served::Packet(flow, _) => {
                            let found = flow.number() as usize;
                            let error = model.iter().map(|class| class.error).fold(0.01, f64::max);
                            prop_assert!(hybrids[found] >= most * (1.0 - 1e-9) - error, "{found} of {hybrids:?}");
                            if !model[found].depart(at, settings.len()) {
                                unclear += 1;
                                model[found].average = states(&server, now)[found].average.nanos() as f64;
                            }
                        }
                        Served::Empty => prop_assert_eq!(most, -1.0),
                        other => prop_assert!(false, "{:?}", other),
                    }
                }
            }
            for (class, state) in model.iter().zip(states(&server, now)) {
                let found = state.average.nanos() as f64;
                // It is told in whole nanoseconds; the model reckons with 53 bits.
                let tolerance = 0.5 + class.error + f64::from(unclear) + class.average * 1e-12;
                prop_assert!((found - class.average).abs() <= tolerance, "{found}, {}", class.average);
                let hold = class.arrivals.front().map_or(0.0, |arrival| at - arrival);
                prop_assert_eq!(state.hold.nanos() as f64, hold);
            }
        }
        prop_assert!(unclear < 4, "{unclear} at the boundary of a step by chance");
    }
}
