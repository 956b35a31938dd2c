//! `cake bandwidth 20mbit diffserv4 dual-srchost rtt 30ms docsis`: shaping, tins, and fairness of hosts and flows.

use narrows_core::Bytes;

use crate::dialect::{Effect, Follows, Opt, Options, Read, Unit, number, shown_as_is};
use crate::keys::kind::text;
use crate::netem::units;
use crate::problem::Found;
use crate::tc::unit::{BYTES, RATE, SIZE, TIME, whole};

use Effect::{Add, Number, Text};

pub(super) const OPTIONS: Options = Options(&[OWN, ROUND_TRIPS, FRAMINGS]);

const OWN: &[Opt] = &[
    Opt::value(&["bandwidth"], "bandwidth", RATE),
    Opt::several(&["unlimited"], &[Text("bandwidth", "unlimited")]),
    Opt::switch(&["autorate-ingress"], &[], "autorate").remark(
        "With `autorate-ingress`, 15 sixteenths of the rate at which packets arrive become the bandwidth, in place of the one that is given.",
    ),
    Opt::word(&["besteffort"], "tins", "besteffort"),
    Opt::word(&["precedence"], "tins", "precedence"),
    Opt::word(&["diffserv8"], "tins", "diffserv8"),
    Opt::word(&["diffserv4", "diffserv"], "tins", "diffserv4"),
    Opt::word(&["diffserv3"], "tins", "diffserv3"),
    Opt::word(&["flowblind"], "isolation", "flowblind"),
    Opt::word(&["srchost"], "isolation", "srchost"),
    Opt::word(&["dsthost"], "isolation", "dsthost"),
    Opt::word(&["hosts"], "isolation", "hosts"),
    Opt::word(&["flows"], "isolation", "flows"),
    Opt::word(&["dual-srchost"], "isolation", "dual-srchost"),
    Opt::word(&["dual-dsthost"], "isolation", "dual-dsthost"),
    Opt::word(&["triple-isolate"], "isolation", "triple-isolate"),
    Opt::nothing(&["nat"], Follows::Nothing).remark(
        "`nat` has no effect: no address is translated on the way to this queue, so packets have the addresses of their hosts.",
    ),
    Opt::nothing(&["nonat"], Follows::Nothing),
    Opt::switch(&["wash"], &["nowash"], "wash"),
    Opt::switch(&["ingress"], &["egress"], "ingress"),
    Opt::word(&["no-ack-filter"], "ack-filter", "off"),
    Opt::word(&["ack-filter"], "ack-filter", "on"),
    Opt::word(&["ack-filter-aggressive"], "ack-filter", "aggressive"),
    Opt::nothing(&["split-gso"], Follows::Nothing),
    Opt::nothing(&["no-split-gso"], Follows::Nothing)
        .remark("`no-split-gso` has no effect: packets here are segments already."),
    Opt::value(&["fwmark"], MARKS, MASK).zero_is_none(),
    Opt::value(&["rtt"], "rtt", TIME).zero_is_none(),
    Opt::word(&["atm"], "cells", "atm"),
    Opt::word(&["ptm"], "cells", "ptm"),
    Opt::word(&["noatm"], "cells", "none"),
    Opt::several(&["raw"], &[Text("cells", "none"), Text("overhead", "raw")]),
    Opt::value(&["overhead"], "overhead", whole::<-64, 256>()),
    Opt::value(&["mpu"], "mpu", MPU).zero_is_none(),
    Opt::value(&["memlimit"], "bound", SIZE).zero_is_none().remark(
        "`memlimit` counts the bytes of IP packets; the kernel counts the memory of its buffers, 2304 bytes for a frame of 1000.",
    ),
];

/// In tc only: the bits of marks that choose a tin.
pub(super) const MARKS: &str = "fwmark";

const MASK: Unit = Unit {
    what: "a mask of marks",
    read: |word, _| {
        let (digits, radix) = match word.text.strip_prefix("0x").or_else(|| word.text.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (word.text, 10),
        };
        let mask = u32::from_str_radix(digits, radix).map_err(|_| {
            word.problem(format!("{} is not a mask of marks", Found(word.text)))
                .help("a number below 2^32, decimal, or hexadecimal with 0x: fwmark 0xff")
        })?;
        Ok(Read::plain(number(i64::from(mask))))
    },
    show: shown_as_is,
};

const MPU: Unit = Unit {
    what: "a number of bytes",
    read: |word, _| {
        let bytes = units::integer(word, "a number of bytes", 0, 256)?;
        Ok(Read::plain(text(Bytes::new(bytes as u64)))) // not below 0
    },
    show: BYTES.show,
};

/// Names of round-trip times.
const ROUND_TRIPS: &[Opt] = &[
    Opt::several(&["datacentre"], &[Text("rtt", "100us")]),
    Opt::several(&["lan"], &[Text("rtt", "1ms")]),
    Opt::several(&["metro"], &[Text("rtt", "10ms")]),
    Opt::several(&["regional"], &[Text("rtt", "30ms")]),
    Opt::several(&["internet"], &[Text("rtt", "100ms")]),
    Opt::several(&["oceanic"], &[Text("rtt", "300ms")]),
    Opt::several(&["satellite"], &[Text("rtt", "1s")]),
    Opt::several(&["interplanetary"], &[Text("rtt", "1000s")]),
];

/// Names of link layers, as tc has them: what they add to a packet is counted together.
const FRAMINGS: &[Opt] = &[
    Opt::several(&["conservative"], &[ATM, Number("overhead", 48)]),
    Opt::several(&["ipoa-vcmux"], &[ATM, Add("overhead", 8)]),
    Opt::several(&["ipoa-llcsnap"], &[ATM, Add("overhead", 16)]),
    Opt::several(&["bridged-vcmux"], &[ATM, Add("overhead", 24)]),
    Opt::several(&["bridged-llcsnap"], &[ATM, Add("overhead", 32)]),
    Opt::several(&["pppoa-vcmux"], &[ATM, Add("overhead", 10)]),
    Opt::several(&["pppoa-llc"], &[ATM, Add("overhead", 14)]),
    Opt::several(&["pppoe-vcmux"], &[ATM, Add("overhead", 32)]),
    Opt::several(&["pppoe-llcsnap"], &[ATM, Add("overhead", 40)]),
    Opt::several(&["pppoe-ptm"], &[PTM, Add("overhead", 30)]),
    Opt::several(&["bridged-ptm"], &[PTM, Add("overhead", 22)]),
    Opt::nothing(&["via-ethernet"], Follows::Nothing),
    Opt::several(&["ethernet"], &[Add("overhead", 38), Text("mpu", "84 bytes")]),
    Opt::several(&["ether-vlan"], &[Add("overhead", 4)]),
    Opt::several(&["docsis"], &[Text("cells", "none"), Add("overhead", 18), Text("mpu", "64 bytes")]),
];

const ATM: Effect = Text("cells", "atm");
const PTM: Effect = Text("cells", "ptm");
