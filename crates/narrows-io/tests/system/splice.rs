//! Two interfaces joined through a veth pair: the hosts behind them reach each other through it, and no longer without it.

use std::net::UdpSocket;
use std::time::Duration;

use narrows_io::bpf::{Map, Program, ProgramKind, TCX_NEXT};
use narrows_io::route_socket::RouteSocket;
use narrows_io::splice::Splice;

use crate::bpf::counting;
use crate::lab::{Lab, SERVER4, eventually, privileged};

#[test]
#[ignore = "needs root, bpf"]
fn what_arrives_at_one_interface_leaves_by_the_other() {
    privileged("splice::what_arrives_at_one_interface_leaves_by_the_other", || {
        let lab = Lab::new(1500);
        let bind = |place: &narrows_io::namespace::Namespace| {
            place.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap()
        };
        let (client, server) = (bind(&lab.client), bind(&lab.server));
        let port = server.local_addr().unwrap().port();
        for socket in [&client, &server] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        }
        let mut byte = [0];
        // There and back again.
        let mut crosses = || {
            let _ = client.send_to(b"x", (SERVER4, port));
            let Ok((_, from)) = server.recv_from(&mut byte) else { return false };
            server.send_to(b"y", from).is_ok() && client.recv(&mut byte).is_ok()
        };
        let seen = Map::of_numbers("seen", 1).unwrap();
        let program = Program::load(ProgramKind::Classifier, "count", &counting(&seen, TCX_NEXT)).unwrap();
        let mut splice = Splice::lay(&lab.wire, ["client", "server"], 1500).unwrap();
        assert!(!crosses(), "nothing crosses before it is joined");
        splice.join(Some(&program)).unwrap();
        eventually("an answer", &mut crosses);
        assert!(seen.number(0).unwrap() >= 2, "the classifier comes before frames leave the pair");
        let sent =
            |name| RouteSocket::open(&lab.wire).unwrap().interface(name).unwrap().statistics.sent_packets;
        assert!(splice.ends().into_iter().all(|end| sent(end) > 0), "both ends carry one way");
        assert_eq!(splice.dropped().unwrap(), 0);
        drop(splice);
        eventually("an end of it", || !crosses());
    });
}
