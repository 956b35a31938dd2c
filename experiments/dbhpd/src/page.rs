//! All of it as one page that needs no other file.

use std::fmt::Write;

use super::chain::ChainTests;
use super::mixes::{MixOptions, Row, Section, milliseconds};
use super::setup::{CLASSES, Contender};
use narrows_lab::plot::Figure;

const STYLE: &str = "\
body{font:16px/1.5 Inter,'Helvetica Neue','DejaVu Sans',Arial,sans-serif;max-width:66rem;margin:2rem auto;padding:0 1rem;\
color:#222;background:#fff}table{border-collapse:collapse;margin:1rem 0;font-size:14px}th,td{padding:.25rem .6rem;\
border-bottom:1px solid #ddd;text-align:right}th:first-child,td:first-child{text-align:left}img{max-width:100%;height:auto}\
h2{margin-top:3rem;border-top:1px solid #ccc;padding-top:1rem}.note{color:#555}td.far{color:#b03a00}\
@media (prefers-color-scheme:dark){body{color:#eee;background:#16181c}th,td{border-color:#444}h2{border-color:#555}\
.note{color:#aaa}td.far{color:#ff9a62}}";

/// The page.
pub fn page(options: &MixOptions, sections: &[Section], chain: &ChainTests) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>DBHPD, judged again</title>\n<style>{STYLE}</style></head><body>\n"
    );
    let mut put = |text: &str| {
        html.push_str(text);
        html.push('\n');
    };
    put("<h1>Delay-bounded hybrid proportional delay, judged again</h1>");
    put(&paragraph(&format!(
        "The traffic simulations and delay tests of O.-P. Lamminen's thesis of 2007, in virtual time: its mixes through its four \
         schedulers with its parameters (tables 5.1, 6.1 and 7.1; CBQ's rate for FTP is 1.5 Mbit/s, where 1.5 kbit/s is \
         printed, for 7.3 + 1.5 + 0.2 are the 9 of the class above). The traffic is of clients and servers with TCP, of {} s \
         each, seed {}. Beside each value stands the thesis's own. The same command writes the same page; each scenario is in \
         the folder, too, and runs by itself with <code>narrows sim</code>.",
        options.span.seconds(),
        options.seed
    )));
    put(&paragraph(
        "The thesis's link was half duplex, with Ethernet's collisions; here <i>half duplex</i> is one queue and one transmitter for both \
         directions, and <i>half duplex with collisions</i> two stations that contend by CSMA/CD, each with the scheduler. How its load generator counts load, how large its pages and files were, and when its \
         clients gave up, the thesis does not say: here loads are bits on the wire, pages have 10 kB in the mean (Pareto, shape \
         1.5), files 250 kB, and a page is given up after 10 s.",
    ));
    put(&overview(sections));
    for section in sections {
        let setting = &section.setting;
        put(&format!("<h2>Mix {}, {}, {}</h2>", setting.mix, setting.name, setting.medium.name()));
        for finding in section.findings() {
            put(&paragraph(&escaped(&finding)));
        }
        put(&table(section));
        put(&picture(&section.figure()));
        if let Some(voip) = section.voip() {
            put(&picture(&voip));
        }
        if section.runs.len() > 4 {
            put(&delays(section));
            put(&picture(&section.tails()));
        }
    }
    put("<h2>Delay tests</h2>");
    for finding in chain.findings() {
        put(&paragraph(&escaped(&finding)));
    }
    put(&chain_table(chain));
    put(&picture(&chain.figure()));
    put("</body></html>");
    html
}

fn overview(sections: &[Section]) -> String {
    let mut html = String::from(
        "<p class=\"note\">Loss of packets, and the delay that 99.9 % of VoIP's packets had at most, of all simulations:</p>\n\
         <table><tr><th>simulation</th><th>offered</th>",
    );
    for contender in Contender::FOUR {
        write!(html, "<th>{}</th>", contender.name()).expect("a string takes everything");
    }
    html.push_str("</tr>\n");
    for section in sections {
        let setting = &section.setting;
        write!(
            html,
            "<tr><td>mix {}, {}, {}</td><td>{:.1} Mbit/s</td>",
            setting.mix,
            setting.name,
            setting.medium.name(),
            section.bits / 1e6
        )
        .expect("a string takes everything");
        for run in section.runs.iter().take(4) {
            let voip = run.classes[0].quantile(0.999).map_or("–".into(), milliseconds);
            write!(html, "<td>{:.1} %, {voip}</td>", run.loss() * 100.0).expect("a string takes everything");
        }
        html.push_str("</tr>\n");
    }
    html + "</table>"
}

/// Tables 7.2 and 7.3: for each scheduler the thesis's value, ours and the difference.
fn table(section: &Section) -> String {
    let with_thesis = section.table();
    let mut html = match with_thesis {
        Some(table) => {
            format!("<p class=\"note\">Table {}, in %: thesis, here, difference.</p>\n", table.number)
        }
        None => "<p class=\"note\">In %; the thesis has no table of this simulation.</p>\n".into(),
    };
    html.push_str("<table><tr><th></th>");
    let columns = if with_thesis.is_some() { 3 } else { 1 };
    for contender in Contender::FOUR {
        write!(html, "<th colspan=\"{columns}\">{}</th>", contender.name())
            .expect("a string takes everything");
    }
    html.push_str("</tr>\n");
    for Row { name, values } in section.rows() {
        write!(html, "<tr><td>{name}</td>").expect("a string takes everything");
        for (theirs, ours) in values {
            let text = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.1}"));
            if with_thesis.is_none() {
                write!(html, "<td>{}</td>", text(ours)).expect("a string takes everything");
                continue;
            }
            let far = theirs.zip(ours).map(|(theirs, ours)| ours - theirs);
            let class = if far.is_some_and(|far| far.abs() >= 2.0) { " class=\"far\"" } else { "" };
            let difference = far.map_or("–".into(), |far| format!("{far:+.1}").replace('-', "−"));
            write!(html, "<td>{}</td><td>{}</td><td{class}>{difference}</td>", text(theirs), text(ours))
                .expect("a string takes everything");
        }
        html.push_str("</tr>\n");
    }
    html + "</table>"
}

/// Delays of each class under all schedulers and arithmetics.
fn delays(section: &Section) -> String {
    let mut html = String::from(
        "<p class=\"note\">Delays (median, 99 %, 99.9 %) with the published arithmetic in HPD's place.</p>\n<table><tr><th></th>",
    );
    for class in CLASSES {
        write!(html, "<th colspan=\"3\">{class}</th>").expect("a string takes everything");
    }
    html.push_str("</tr>\n");
    for run in &section.runs {
        write!(html, "<tr><td>{}</td>", run.name).expect("a string takes everything");
        for delays in &run.classes {
            for q in [0.5, 0.99, 0.999] {
                let text = delays.quantile(q).map_or("–".into(), milliseconds);
                write!(html, "<td>{text}</td>").expect("a string takes everything");
            }
        }
        html.push_str("</tr>\n");
    }
    html + "</table>"
}

fn chain_table(chain: &ChainTests) -> String {
    let mut html = String::from("<table><tr><th>packets of</th><th>scheduler</th><th>classes</th>");
    for hops in 1..=4 {
        let plural = if hops == 1 { "" } else { "s" };
        write!(html, "<th>{hops} hop{plural}</th>").expect("a string takes everything");
    }
    html.push_str("</tr>\n");
    for row in &chain.rows {
        write!(
            html,
            "<tr><td>{} bytes</td><td>{}</td><td>{}</td>",
            row.length,
            row.contender.name(),
            row.classes
        )
        .expect("a string takes everything");
        for mean in row.means {
            write!(html, "<td>{:.0} µs</td>", mean * 1e6).expect("a string takes everything");
        }
        html.push_str("</tr>\n");
    }
    html + "</table>"
}

fn paragraph(text: &str) -> String {
    format!("<p>{text}</p>")
}

/// A figure inside the page. As an image of its own, so that the style sheets of figures do not meet.
fn picture(figure: &Figure) -> String {
    let mut address = String::from("data:image/svg+xml,");
    for character in figure.svg().chars() {
        match character {
            '%' | '#' | '"' | '<' | '>' | '\n' | '&' => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    write!(address, "%{byte:02X}").expect("a string takes everything");
                }
            }
            other => address.push(other),
        }
    }
    format!("<p><img alt=\"{}\" src=\"{address}\"></p>", escaped(&figure.title))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
