use super::*;

fn overload() -> Part {
    part(1, 0.35, &TailOptions { seed: Seed(1), span: Duration::from_secs(4) })
}

fn number(name: &str) -> usize {
    SUBJECTS.iter().position(|subject| subject.name == name).unwrap()
}

/// What the page says of the faults: the class with a limit keeps it in every arithmetic, for the limit does not ask the
/// averages, but not by the clock of jiffies; the average that is never divided lengthens the tail of FTP under overload;
/// what the other faults do alone, does not.
#[test]
fn the_faults_do_what_the_page_says() {
    let part = overload();
    let fifo = lost(&part.runs[0]);
    assert!((fifo - part.loss).abs() < 0.02, "{fifo} of {}", part.loss);
    for (subject, run) in SUBJECTS.iter().zip(&part.runs) {
        let Contender::Published(_, clock) = subject.contender else { continue };
        // The limit, a packet of 1538 bytes on the wire, and the own burst: a packet of every call.
        let most = run[0].quantile(1.0).unwrap();
        let limit = if clock == Clock::Jiffies { 0.010 } else { 0.002 };
        let calls = (part.offered * shares(part.mix)[0] / 100 / 95_200).max(1) as f64;
        assert!(most < limit + 0.001_25 + calls * 0.000_191, "{}: {most} s", subject.name);
    }
    let most = |name: &str| part.runs[number(name)][0].quantile(1.0).unwrap();
    assert!(most("published, no fault") < 0.006 && most("no fault, jiffies") > 0.009);
    let tail = |name: &str, class: usize| part.runs[number(name)][class].quantile(0.99).unwrap();
    assert!(tail("average never divided", 2) > 2.0 * tail("published, no fault", 2));
    for name in ["remainder for quotient", "idle when all are", "limit forgets its wait", "32 bits"] {
        for (class, called) in CLASSES.iter().enumerate() {
            let ratio = tail(name, class) / tail("published, no fault", class);
            assert!((0.8..1.25).contains(&ratio), "{name}, {called}: {ratio}");
        }
    }
}

#[test]
fn a_load_grows_with_the_loss_that_is_asked_for() {
    let options = TailOptions { seed: Seed(1), span: Duration::from_secs(2) };
    let [little, much] = [0.05, 0.35].map(|loss| load_for(2, loss, &options, Time::ZERO));
    // Of what is offered, 65 % is about what 10 Mbit/s can carry.
    assert!(little < 11_000_000 && (12_000_000..20_000_000).contains(&much), "{little}, {much}");
}
