//! The engine inside a simulator of your own, which has its event loop, its protocol and its timers; the worked example of
//! `docs/embedding.md`. Run it with `cargo run -p narrows-core --example own_simulator`.
//!
//! A sender sends a packet, waits for its acknowledgement, and sends it again when a timer expires. With a loss rate of p one
//! packet takes T = RTT + p / (1 - p) · timeout on average, which the program compares with what it measured.

use narrows_core::model::{Constant, Independent};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Body, BuildError, Duration, Engine, FlowKey, LinkConfig, Loss, NetworkConfig, Packet, PortConfig, PortId,
    Probability, Rate, Seed, Target, Time, Verdict,
};

const PACKETS: u32 = 20_000;
const TIMEOUT: Duration = Duration::from_millis(100);
const LOSS: f64 = 0.02;

/// What a packet carries: anything; the engine only moves it.
#[derive(Clone, Copy, Debug)]
enum Message {
    Data(u32),
    Ack(u32),
}

/// The protocol's two ends.
struct Simulator {
    engine: Engine<Message>,
    sender: PortId,
    receiver: PortId,
    /// The packet that waits for its acknowledgement, and when it is sent again.
    waiting: (u32, Time),
    sent: u64,
}

impl Simulator {
    fn new() -> Result<Self, BuildError> {
        let mut config = NetworkConfig::new(Seed(1));
        for (from, to) in [("sender", "receiver"), ("receiver", "sender")] {
            let mut link = LinkConfig::new(from, Target::Port(to.into()));
            link.service = Box::new(ConstantRate(Rate::from_bits_per_second(10_000_000)));
            link.delay = Box::new(Constant(Duration::from_millis(20)));
            if from == "sender" {
                link.wire_loss = Some(Loss::of(Independent(Probability::nearest(LOSS))));
            }
            config.links.push(link);
            let entry = Target::Link { name: from.into(), lane: 0 };
            config.ports.push(PortConfig { name: from.into(), entry });
        }
        let engine = Engine::new(config)?;
        let port = |name| engine.port(name).expect("it was just configured");
        let (sender, receiver) = (port("sender"), port("receiver"));
        Ok(Self { engine, sender, receiver, waiting: (0, Time::ZERO), sent: 0 })
    }

    /// Hands a packet to the network at an instant.
    fn send(&mut self, at: Time, from: PortId, length: u32, body: Message) {
        let key = FlowKey::default();
        let packet =
            Packet { length, link_header: 0, network_header: 0, headers: Default::default(), key, body };
        self.engine.hand_in(at, from, packet);
    }

    fn send_data(&mut self, at: Time) {
        self.waiting.1 = at + TIMEOUT;
        self.sent += 1;
        self.send(at, self.sender, 1000, Message::Data(self.waiting.0));
    }

    /// The next instant at which anything happens: in the network, or at the timer.
    fn next(&self) -> Time {
        self.engine.next_event().map_or(self.waiting.1, |event| event.min(self.waiting.1))
    }

    /// Runs until all packets are acknowledged; returns when that was.
    fn run(&mut self) -> Time {
        self.send_data(Time::ZERO);
        loop {
            let now = self.next();
            // Everything that the network does up to now, one event a call.
            while let Some((at, port, message)) = self.delivery(now) {
                match message {
                    Message::Data(number) if port == self.receiver => {
                        self.send(at, self.receiver, 40, Message::Ack(number));
                    }
                    Message::Ack(number) if number == self.waiting.0 => {
                        if number + 1 == PACKETS {
                            return at;
                        }
                        self.waiting.0 = number + 1;
                        self.send_data(at);
                    }
                    _ => {}
                }
            }
            if self.waiting.1 <= now {
                self.send_data(now);
            }
        }
    }

    /// The next delivery up to an instant. Lost packets come back, too, with the reason: they are of no interest here.
    fn delivery(&mut self, now: Time) -> Option<(Time, PortId, Message)> {
        while let Some(event) = self.engine.poll(now) {
            if let (Verdict::Delivered(port), Body::Last(message)) = (event.verdict, event.body) {
                return Some((event.at, port, message));
            }
        }
        None
    }
}

fn main() -> Result<(), BuildError> {
    let mut simulator = Simulator::new()?;
    let took = simulator.run().nanos() as f64 / 1e9 / f64::from(PACKETS);
    // 1000 and 40 bytes at 10 Mbit/s, and twice 20 ms.
    let round_trip = 0.8e-3 + 0.032e-3 + 40e-3;
    let repetitions = LOSS / (1.0 - LOSS);
    let expected = round_trip + repetitions * 0.1;
    println!("{PACKETS} packets, sent {} times: {:.3} ms each", simulator.sent, took * 1e3);
    println!("expected: {:.3} ms each", expected * 1e3);
    // Five standard deviations of the mean: the number of repetitions is geometric.
    let deviation = 0.1 * (repetitions / (1.0 - LOSS) / f64::from(PACKETS)).sqrt();
    assert!((took - expected).abs() < 5.0 * deviation);
    Ok(())
}
