//! Ratios against theory, against what was asked, and that a run can be repeated.

use super::*;

fn options(packets: u64) -> DifferentiationOptions {
    DifferentiationOptions { packets, ..DifferentiationOptions::default() }
}

/// The closed form: 1 / (1 − ρ/2) for two classes of 1 to 2, 2.0 in the limit.
#[test]
fn kleinrocks_formula_gives_the_published_ratios() {
    for (load, ratio) in [(70.0, 1.538), (90.0, 1.818), (99.0, 1.980)] {
        let theory = reach::waiting_time_priority(&[1, 2], load);
        assert!((theory[0] - ratio).abs() < 0.001, "{theory:?}");
        assert!((theory[0] - 1.0 / (1.0 - load / 200.0)).abs() < 1e-12);
    }
    // The order of the list is of no account, and equal ones are equal.
    let backwards = reach::waiting_time_priority(&[2, 1], 70.0);
    assert!((backwards[0] * 1.538_461 - 1.0).abs() < 1e-5, "{backwards:?}");
    assert!((reach::waiting_time_priority(&[3, 3, 3], 90.0)[1] - 1.0).abs() < 1e-12);
}

/// With g = 0 and Poisson arrivals the ratios are Kleinrock's, for two and three classes.
#[test]
fn waits_alone_give_what_theory_says() {
    let found = differentiation(&DifferentiationOptions {
        g: vec![0],
        loads: vec![70.0, 90.0],
        traffic: vec![Traffic::Poisson],
        ..options(200_000)
    })
    .unwrap();
    assert_eq!(found.points.len(), 4);
    for point in &found.points {
        for (ratio, theory) in point.ratios().into_iter().zip(point.theory.clone().unwrap()) {
            assert!((ratio / theory - 1.0).abs() < 0.04, "{point:?}");
        }
    }
}

/// With g = 1 they are what was asked, wherever some order of service has that.
#[test]
fn averages_alone_give_what_was_asked_wherever_it_can_be_had() {
    // Bursts at 99 % are a matter of a single busy period in runs as short as these.
    for (traffic, loads) in
        [(Traffic::Poisson, vec![70.0, 80.0, 90.0, 99.0]), (Traffic::Bursts, vec![70.0, 80.0, 90.0])]
    {
        let found = differentiation(&DifferentiationOptions {
            g: vec![1024],
            loads,
            traffic: vec![traffic],
            ..options(100_000)
        })
        .unwrap();
        let reached: Vec<&Point> = found.points.iter().filter(|point| point.within_reach).collect();
        assert!(reached.len() >= 5, "{} of {}", reached.len(), found.points.len());
        for point in reached {
            assert!(point.worst() < 0.05, "{point:?}");
        }
    }
}

/// Between the two, and nearer to what was asked the more there is to wait for.
#[test]
fn ratios_come_near_with_the_load() {
    for traffic in Traffic::ALL {
        let found = differentiation(&DifferentiationOptions {
            ddps: vec![vec![1, 2]],
            g: vec![0, 512],
            loads: vec![70.0, 99.0],
            traffic: vec![traffic],
            ..options(100_000)
        })
        .unwrap();
        for of_g in found.points.chunks(2) {
            let [low, high] = of_g else { panic!("two loads") };
            assert!(high.worst() < low.worst() && high.worst() < 0.06, "{of_g:?}");
        }
    }
}

/// What two classes of 1 to 2 ask cannot be had below a load of one half: half of it is the first one's, and what is on the
/// wire is not interrupted.
#[test]
fn what_cannot_be_had_is_said() {
    let found = differentiation(&DifferentiationOptions {
        ddps: vec![vec![1, 2]],
        g: vec![1024],
        loads: vec![35.0, 65.0],
        traffic: vec![Traffic::Poisson],
        ..options(60_000)
    })
    .unwrap();
    let [below, above] = &found.points[..] else { panic!("two loads") };
    assert!(!below.within_reach && below.worst() > 0.05, "{below:?}");
    assert!(above.within_reach && above.worst() < 0.05, "{above:?}");
}

#[test]
fn a_run_can_be_repeated_and_bursts_are_worse() {
    let small =
        DifferentiationOptions { ddps: vec![vec![1, 4]], g: vec![512], loads: vec![80.0], ..options(20_000) };
    let once = differentiation(&small).unwrap();
    assert_eq!(once.points, differentiation(&small).unwrap().points);
    let [poisson, bursts] = &once.points[..] else { panic!("two kinds of traffic") };
    assert!(bursts.waits[0] > 2.0 * poisson.waits[0], "{once:?}");
    let other = differentiation(&DifferentiationOptions { seed: Seed(2), ..small }).unwrap();
    assert_ne!(other.points, once.points);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |options: DifferentiationOptions| differentiation(&options).unwrap_err().to_string();
    let plain = || options(1_000);
    for (options, text) in [
        (DifferentiationOptions { ddps: vec![vec![1]], ..plain() }, "one was asked for of 1"),
        (DifferentiationOptions { ddps: vec![vec![1; 33]], ..plain() }, "from 2 to 32 classes"),
        (DifferentiationOptions { ddps: vec![vec![1, 0]], ..plain() }, "is at least 1"),
        (DifferentiationOptions { g: vec![1025], ..plain() }, "g is 1025"),
        (DifferentiationOptions { loads: vec![100.0], ..plain() }, "the load is 100 %"),
        (DifferentiationOptions { loads: vec![f64::NAN], ..plain() }, "the load is NaN %"),
        (options(999), "999 packets are too few"),
    ] {
        let found = refused(options);
        assert!(found.contains(text), "{found}");
    }
}

#[test]
fn the_table_the_list_and_the_figure_have_every_run() {
    let found = differentiation(&DifferentiationOptions {
        loads: vec![70.0, 90.0],
        traffic: vec![Traffic::Poisson],
        ..options(2_000)
    })
    .unwrap();
    let text = found.text().to_string();
    assert_eq!(text.lines().filter(|line| line.contains("70.0%")).count(), 6, "{text}");
    assert!(text.contains("poisson, ddp 1:2:4: asked 2.00 and 4.00\n"), "{text}");
    let json = serde_json::to_value(found.json()).unwrap();
    assert_eq!(json["points"].as_array().unwrap().len(), 12);
    let figure = found.figure();
    assert_eq!(figure.panels.len(), 2);
    // Asked, three g, and the theory of one; twice with three classes.
    assert_eq!(figure.panels.iter().map(|panel| panel.lines.len()).collect::<Vec<_>>(), [5, 10]);
}
