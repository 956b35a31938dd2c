use narrows_core::sched::{
    Drr, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Served, Server, Weight,
};
use narrows_core::{PacketRef, Time};
use narrows_scenario::SchedulerKind;

use super::bound::{Bound, wf2q};
use super::drive::server;
use super::measure::Measure;
use super::*;

/// Serves the flow of the highest number, whatever the weights.
#[derive(Debug, Default)]
struct Unfair;

impl Scheduler for Unfair {
    type Flow = ();

    fn join(&mut self, _: FlowConfig) -> Result<(), Refused> {
        Ok(())
    }

    fn leave(&mut self, _: FlowId, _: &mut Flows<()>) {}

    fn set_weight(&mut self, _: Time, _: FlowId, _: Weight, _: &mut Flows<()>) -> Result<(), Refused> {
        Ok(())
    }

    fn enqueue(&mut self, _: Time, _: FlowId, _: &mut Flows<()>) {}

    fn select(&mut self, _: Time, flows: &mut Flows<()>) -> Selection {
        let last = flows.ids().filter(|&flow| flows.packets(flow) > 0).last();
        last.map_or(Selection::Empty, Selection::Flow)
    }

    fn sent(&mut self, _: Time, _: FlowId, _: u32, _: &mut Flows<()>) {}

    fn head_dropped(&mut self, _: Time, _: FlowId, _: &mut Flows<()>) {}
}

fn unfair_trial(pattern: Pattern, bounds: impl Fn(&[FlowConfig]) -> Vec<Bound>) -> Trial {
    let amount = Amount { flows: 5, packets: 500, longest: 1500, heaviest: 16, seed: Seed(1) };
    let mut traffic = Traffic::new(pattern, amount);
    let configs = traffic.flows.clone();
    let mut judge = Judge::new(&configs, None);
    let mut subject = server(Unfair, &configs).unwrap();
    drive(&mut subject, &mut traffic, Rate::from_bits_per_second(8_000_000), &mut judge);
    let (packets, bytes, flows) = judge.conclude(&bounds(&configs));
    let weights = configs.iter().map(|flow| u64::from(flow.weight.get())).sum();
    Trial { algorithm: Algorithm::Of(SchedulerKind::Wf2q), pattern, packets, bytes, weights, flows }
}

#[test]
fn an_unfair_scheduler_breaks_the_bound_that_it_claims() {
    let trial = unfair_trial(Pattern::Burst, wf2q);
    assert_eq!((trial.packets, trial.weights), (500, 8));
    assert_eq!(trial.holds(), Some(false));
    // Four packets of 1500 bytes go first, of which flow 0 should have had half; then one of its own. Its bound is one packet
    // over an interval that ends with one, and half a packet more before that.
    let flow = &trial.flows[0];
    assert_eq!((flow.service.worst, flow.service.bound), (2250.0, Some(1500.0)));
    assert_eq!((flow.shortfall.worst, flow.shortfall.bound), (3000.0, Some(2250.0)));
    assert!(flow.service.broken && flow.shortfall.broken && flow.is_broken());
    let rate = Rate::from_bits_per_second(8_000_000);
    let fairness =
        Fairness { options: FairnessOptions { rate, ..FairnessOptions::default() }, trials: vec![trial] };
    assert!(!fairness.holds());
    let text = fairness.text().to_string();
    let head = "wf2q+, burst: flow 0 (weight 4 of 8, packets of up to 1500 bytes)";
    for sentence in [
        "B-WFI 2250.000 bytes is 750.000 bytes above the bound, from 0.000 us to 7500.000 us",
        "a shortfall of 3000.000 bytes is 750.000 bytes above the bound, from 0.000 us to 6000.000 us",
    ] {
        assert!(text.contains(&format!("{head}: {sentence}")), "{text}");
    }
    assert!(text.contains("BROKEN"));
    let json = serde_json::to_value(fairness.json()).unwrap();
    assert_eq!(json["trials"][0]["holds"], false);
    assert_eq!(json["trials"][0]["broken"][0]["b_wfi"]["worst"], 2250.0);
}

#[test]
fn a_bound_is_broken_by_the_least_excess_and_not_before() {
    // The sum of weights is 8: an eighth of a byte is the least that there is.
    let at_bound = unfair_trial(Pattern::Burst, |flows| {
        flows.iter().map(|_| Bound { service: Some(2250 * 8), ..Bound::default() }).collect()
    });
    assert_eq!(at_bound.holds(), Some(true));
    let below = unfair_trial(Pattern::Burst, |flows| {
        flows.iter().map(|_| Bound { service: Some(2250 * 8 - 1), ..Bound::default() }).collect()
    });
    assert_eq!(below.holds(), Some(false));
    let unbounded = unfair_trial(Pattern::Random, bound::none);
    assert_eq!(unbounded.holds(), None);
}

#[test]
fn bounds_are_those_of_the_formulas() {
    let flow = |weight, longest| FlowConfig {
        weight: Weight::new(weight).unwrap(),
        longest,
        ..FlowConfig::default()
    };
    let flows = [flow(1, 100), flow(3, 1000)];
    // WF2Q+: 100 + 900/4 bytes; 1000. Ahead of a packet 3/4 of 100 and 1/4 of 1000 more; delays 1000 byte-times more.
    assert_eq!(wf2q(&flows).map_values(), [Some(325 * 4), Some(1000 * 4)]);
    let shortfalls: Vec<_> = wf2q(&flows).iter().map(|bound| bound.shortfall).collect();
    assert_eq!(shortfalls, [Some(400 * 4), Some(1250 * 4)]);
    assert_eq!(wf2q(&flows)[1].delay, Some(1000 * 4 + 1000 * 3));
    // DRR with 1000 bytes for weight 1: ¾·(1000 + 99) + ¼·999; ¼·(3000 + 999) + ¾·99.
    assert_eq!(bound::drr(&flows, 1000).map_values(), [Some(3 * 1099 + 999), Some(3999 + 3 * 99)]);
}

trait MapValues {
    fn map_values(&self) -> Vec<Option<i128>>;
}

impl MapValues for Vec<Bound> {
    fn map_values(&self) -> Vec<Option<i128>> {
        self.iter().map(|bound| bound.service).collect()
    }
}

fn options(algorithms: &[Algorithm]) -> FairnessOptions {
    FairnessOptions {
        algorithms: algorithms.to_vec(),
        flows: 24,
        packets: 6000,
        ..FairnessOptions::default()
    }
}

#[test]
fn proven_bounds_hold_under_all_traffic() {
    for (seed, longest) in [(1, 65_536), (2, 1500), (3, 9000)] {
        let options = FairnessOptions { seed: Seed(seed), longest: Bytes::new(longest), ..options(JUDGED) };
        let fairness = fairness(&options).unwrap();
        assert!(fairness.holds(), "{}", fairness.text());
        assert_eq!(fairness.trials.len(), JUDGED.len() * Pattern::ALL.len());
        assert!(fairness.trials.iter().all(|trial| trial.packets == 6000));
    }
}

/// The bound is no larger than it has to be: this comes within a third of a byte of it.
#[test]
fn drr_can_reach_its_bound() {
    let flow = |longest| FlowConfig { longest, ..FlowConfig::default() };
    let flows = [flow(1000), flow(1000), flow(1)];
    let mut server = server(Drr::new(Bytes::new(1000)), &flows).unwrap();
    let mut measure = Measure::new([1, 1, 1]);
    let mut now = 0;
    let join = |now, flow: usize, lengths: &[u32], server: &mut Server<Drr>, measure: &mut Measure| {
        for &length in lengths {
            let id = FlowId::new(flow as u32);
            server.enqueue(Time::from_nanos(now), id, PacketRef::from_number(0), length);
            measure.arrive(now, flow, length);
        }
    };
    let mut send = |server: &mut Server<Drr>, measure: &mut Measure| {
        let Served::Packet(flow, waits) = server.dequeue(Time::from_nanos(now)) else {
            panic!("packets wait")
        };
        measure.begin(now, flow.number() as usize);
        now += u64::from(waits.length);
        (flow.number(), waits.length)
    };
    // Flow 0 sends a byte and has 999 left, too few for its next packet. Flow 2 has its turn, of 1000 bytes; after the first
    // of them flow 1 arrives.
    join(0, 0, &[1, 1000, 999, 1000, 1000], &mut server, &mut measure);
    assert_eq!(send(&mut server, &mut measure), (0, 1));
    join(1, 2, &[1; 2500], &mut server, &mut measure);
    assert_eq!(send(&mut server, &mut measure), (2, 1));
    join(2, 1, &[1, 1000], &mut server, &mut measure);
    // Flow 2 goes on for 999 bytes, flow 0 sends 1999, flow 1 a byte; then 1000 each before flow 1 sends its second packet.
    let order: Vec<(u32, u32)> = std::iter::from_fn(|| Some(send(&mut server, &mut measure)))
        .take_while(|&sent| sent != (1, 1000))
        .collect();
    let bytes = |flow| order.iter().filter(|sent| sent.0 == flow).map(|sent| sent.1).sum::<u32>();
    assert_eq!([0, 1, 2].map(bytes), [2999, 1, 1999]);
    let bound = bound::drr(&flows, 1000)[1].shortfall.unwrap();
    assert_eq!(measure.worst_shortfall(1).value, 4999 - 3);
    assert_eq!(bound, 4999 - 2);
}

#[test]
fn order_of_arrival_knows_no_share() {
    // In a burst 24 packets of the heavy flow and 22 of light ones go before the last light one, whose share is 1/46.
    let options =
        FairnessOptions { patterns: vec![Pattern::Burst], ..options(&[Algorithm::Of(SchedulerKind::Fifo)]) };
    let fairness = fairness(&options).unwrap();
    let trial = &fairness.trials[0];
    assert_eq!(trial.holds(), None);
    assert_eq!(trial.flows[23].shortfall.worst, f64::from(trial.flows[23].longest));
}

/// Bounds are worth something where they are nearly reached: DRR’s by hand, above; the others’ by this
/// traffic.
#[test]
fn measured_indices_come_near_to_their_bounds() {
    let fairness = fairness(&options(&[
        Algorithm::Of(SchedulerKind::Wf2q),
        Algorithm::Of(SchedulerKind::Qfq),
        Algorithm::Of(SchedulerKind::Gfq),
        Algorithm::Of(SchedulerKind::Kps),
    ]))
    .unwrap();
    for (algorithm, at_least) in [
        (Algorithm::Of(SchedulerKind::Wf2q), 0.95),
        (Algorithm::Of(SchedulerKind::Qfq), 0.5),
        (Algorithm::Of(SchedulerKind::Gfq), 0.5),
        (Algorithm::Of(SchedulerKind::Kps), 0.5),
    ] {
        let trials = fairness.trials.iter().filter(|trial| trial.algorithm == algorithm);
        let share = trials.filter_map(|trial| trial.worst_shortfall().shortfall.share()).fold(0.0, f64::max);
        assert!(share > at_least && share <= 1.0, "{algorithm}: {share}");
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let error = fairness(&FairnessOptions { flows: 1, ..options(JUDGED) }).unwrap_err();
    assert_eq!(error.to_string(), "the number of flows is 1: give 2 to 1048576");
    let error = fairness(&FairnessOptions { longest: Bytes::new(20), ..options(JUDGED) }).unwrap_err();
    assert_eq!(error.to_string(), "the longest packet is 20: give 28 to 65536 bytes");
}

#[test]
fn a_figure_has_three_panels_for_each_algorithm() {
    let fairness =
        fairness(&options(&[Algorithm::Of(SchedulerKind::Drr), Algorithm::Of(SchedulerKind::Fifo)])).unwrap();
    let figure = fairness.figure(Pattern::Burst).unwrap();
    assert_eq!((figure.columns, figure.panels.len()), (2, 6));
    assert!(figure.panels.iter().all(|panel| panel.lines.iter().any(|line| line.points.len() > 20)));
    // The worst moment is in the picture: a curve reaches the worst value.
    let trial = fairness.trials.iter().find(|trial| trial.pattern == Pattern::Burst).unwrap();
    let worst = trial.worst_shortfall().shortfall.worst;
    let solid = figure.panels[4].lines.iter().filter(|line| line.style == crate::plot::Style::Solid);
    let most = solid.flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    assert!((most - worst).abs() < 1e-6, "{most} {worst}");
}
