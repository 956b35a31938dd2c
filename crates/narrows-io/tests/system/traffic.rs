//! UDP and TCP between two hosts through packet sockets: once each way, as on a wire.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::Received;

use crate::lab::{CLIENT4, CLIENT6, Lab, PATIENCE, SERVER4, SERVER6, privileged, timed_out};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;

#[test]
#[ignore = "needs namespaces"]
fn udp_crosses_once_each_way_with_its_checksum() {
    privileged("traffic::udp_crosses_once_each_way_with_its_checksum", || {
        for (client, server) in [(CLIENT4, SERVER4), (CLIENT6, SERVER6)] {
            let lab = Lab::new(1500);
            let ((), crossed) = lab.forwarding(|| echo_numbers(&lab, client, server));
            for frames in crossed {
                let mut seen = BTreeMap::new();
                for packet in frames.iter().filter_map(|received| Packet::parse(&received.frame)) {
                    assert!(packet.checksum_holds(), "{packet:x?}");
                    if packet.protocol == UDP {
                        *seen.entry(packet.body[8..].to_vec()).or_insert(0) += 1;
                    }
                }
                assert_eq!(seen.len(), 100);
                assert!(seen.values().all(|count| *count == 1), "{seen:?}");
            }
        }
    });
}

/// The client sends a hundred numbered datagrams, the server sends each back.
fn echo_numbers(lab: &Lab, client: &str, server: &str) {
    let near = bound(&lab.client, client);
    let far = bound(&lab.server, server);
    near.connect(far.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 2000];
    for number in 0..100u32 {
        near.send(&number.to_be_bytes()).unwrap();
        let (length, from) = far.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..length], number.to_be_bytes());
        far.send_to(&buffer[..length], from).unwrap();
        let length = near.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], number.to_be_bytes());
    }
    near.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(timed_out(&near.recv(&mut buffer).unwrap_err()), "a second copy came");
}

fn bound(namespace: &Namespace, address: &str) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_nanos(PATIENCE))).unwrap();
    socket
}

#[test]
#[ignore = "needs namespaces"]
fn tcp_crosses_in_wire_sized_packets_with_checksums() {
    privileged("traffic::tcp_crosses_in_wire_sized_packets_with_checksums", || {
        for (mtu, server) in [(1500, SERVER4), (1500, SERVER6), (9000, SERVER4)] {
            let lab = Lab::new(mtu);
            let ((), crossed) = lab.forwarding(|| exchange_a_megabyte(&lab, server));
            for frames in crossed {
                assert!(frames.len() > 20);
                frames.iter().for_each(|received| as_on_the_wire(received, mtu as usize));
            }
        }
    });
}

fn as_on_the_wire(received: &Received, mtu: usize) {
    assert!(received.frame.len() <= mtu + 14, "{} bytes in one frame", received.frame.len());
    assert_eq!(received.original_length, received.frame.len());
    assert!(!received.partial_checksum);
    assert!(received.stamp.is_some(), "TCP's own departure stamps must not hide the kernel's");
    if let Some(packet) = Packet::parse(&received.frame) {
        assert!(packet.checksum_holds(), "{packet:x?}");
    }
}

fn exchange_a_megabyte(lab: &Lab, server: &str) {
    let bytes: Vec<u8> = (0..1_000_000u32).map(|number| (number % 251) as u8).collect();
    let listener = lab.server.run(|| TcpListener::bind((server, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = vec![0; bytes.len()];
            stream.read_exact(&mut received).unwrap();
            stream.write_all(&received).unwrap();
        });
        let mut stream = lab.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
        stream.set_read_timeout(Some(Duration::from_nanos(PATIENCE))).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut received = vec![0; bytes.len()];
        stream.read_exact(&mut received).unwrap();
        assert!(received == bytes, "the bytes came back changed");
    });
}

/// An IP packet, taken apart as far as its transport checksum needs.
#[derive(Debug)]
struct Packet<'a> {
    addresses: &'a [u8],
    protocol: u8,
    body: &'a [u8],
    header: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    fn parse(frame: &'a [u8]) -> Option<Self> {
        let packet = &frame[14..];
        match u16::from_be_bytes([frame[12], frame[13]]) {
            IPV4 => {
                let header = usize::from(packet[0] & 15) * 4;
                let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
                Some(Self {
                    addresses: &packet[12..20],
                    protocol: packet[9],
                    body: &packet[header..total],
                    header: Some(&packet[..header]),
                })
            }
            IPV6 => {
                let total = 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]));
                Some(Self {
                    addresses: &packet[8..40],
                    protocol: packet[6],
                    body: &packet[40..total],
                    header: None,
                })
            }
            _ => None,
        }
    }

    /// The checksums of the IPv4 header and of UDP or TCP; anything else is taken as it is.
    fn checksum_holds(&self) -> bool {
        if self.header.is_some_and(|header| sum(&[header]) != 0xffff) {
            return false;
        }
        if ![TCP, UDP].contains(&self.protocol) {
            return true;
        }
        let tail = [&(self.body.len() as u32).to_be_bytes()[..], &[0, 0, 0, self.protocol]].concat();
        sum(&[self.addresses, &tail, self.body]) == 0xffff
    }
}

/// The ones' complement sum of 16-bit words; every part but the last has an even length.
fn sum(parts: &[&[u8]]) -> u32 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}
