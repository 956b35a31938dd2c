//! A thousand links live at once.

use std::fmt::Write;
use std::fs;
use std::net::Ipv4Addr;

use crate::inside::{offer_links, stay};
use crate::row::{Aim, head, left_out, row};
use crate::way::{narrows, number, scratch};
use crate::{Effort, Outcome};

const LINKS: u32 = 1000;
/// Of each, in bits a second.
const RATE: u32 = 1_000_000;
/// Bytes of IP of each packet.
const LENGTH: usize = 1250;
/// Offered, of the rate.
const LOAD: f64 = 0.9;

/// The server's address on the link of this number.
pub(crate) fn server(link: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 64, 0, 2)) + 4 * link)
}

fn scenario(links: u32) -> String {
    let [mut client, mut server_addresses, mut all] = [const { String::new() }; 3];
    for link in 0..links {
        let far = server(link);
        let near = Ipv4Addr::from(u32::from(far) - 1);
        // Writing to a string cannot fail.
        let _ = write!(client, "l{link} = [\"{near}/30\"], ");
        let _ = write!(server_addresses, "l{link} = [\"{far}/30\"], ");
        let _ = writeln!(
            all,
            "[links.l{link}]\nbetween = [\"client\", \"server\"]\nrate = \"{RATE}bit\"\ndelay = \"1ms\"\nqueue = \"50 packets\""
        );
    }
    format!(
        "[hosts.client]\naddresses = {{ {client} }}\n[hosts.server]\naddresses = {{ {server_addresses} }}\n{all}"
    )
}

pub(crate) fn many(effort: Effort) -> Outcome<()> {
    let rate = (f64::from(LINKS) * f64::from(RATE) * LOAD / (8.0 * LENGTH as f64)) as u32;
    // Sender, receivers and packet threads share the processors.
    let few = std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 8);
    let aim = if few { 1000.0 } else { 50.0 };
    head(&format!("{LINKS} links of 1 Mbit/s at once, {rate} packets a second in all"), "99 %, µs", "");
    let (file, server_file) = (scratch("links.toml"), scratch("server"));
    fs::write(&file, scenario(LINKS))?;
    for flags in ["--sockets own", "", "--wait spin", "--shards 1"] {
        let name = format!("narrows, {LINKS} links {flags}");
        let way = narrows(&format!("{} {flags}", file.display()));
        let client = offer_links(LINKS, effort.seconds, rate, LENGTH)?;
        match way.run(&stay(&server_file)?, &client) {
            Ok(done) => {
                let late = |quantile| done.number(&format!("/sent_lateness/{quantile}")) / 1e3;
                let figure = format!("median {:.2} µs", late("p50_ns"));
                row(&name, late("p99_ns"), Aim::AtMost(aim), &figure);
                let sent = done.json().map_or(f64::NAN, |json| number(&json, "/sent"));
                let delivered = done.number("/conservation/delivered_packets");
                let figure = format!("{delivered:.0} of {sent:.0} delivered");
                row(&name, f64::NAN, Aim::None, &figure);
            }
            Err(why) => left_out(&name, &why),
        }
    }
    let _ = (fs::remove_file(file), fs::remove_file(server_file));
    Ok(())
}
