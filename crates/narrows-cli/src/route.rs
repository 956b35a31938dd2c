//! `narrows route`.

use narrows_core::Duration;
use narrows_live::route::{self, Rebind, Rebinding, RouteOptions, TranslationOptions};
use narrows_live::run_record::RunKind;
use narrows_scenario::{Way, span_of_time};

use crate::args;
use crate::inline::{capabilities, conclude, prepare};
use crate::output::Failure;

/// Of rebindings: as of the rounds of a timeline.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

pub(crate) fn route(args: &args::Route) -> Result<u8, Failure> {
    if let Some(status) = args.inline.background.detach(args.scenario.as_deref())? {
        return Ok(status);
    }
    // Packets that leave by IF2 have arrived at IF1.
    let devices = [(args.first.as_str(), Way::Down), (args.second.as_str(), Way::Up)];
    let (scenario, inline) = prepare(&devices, args.scenario.as_deref(), RunKind::Route, &args.inline)?;
    let held = capabilities()?;
    if !(held.net_admin && held.net_raw) {
        return Err(Failure::Other(
            "a router needs CAP_NET_ADMIN and CAP_NET_RAW over the interfaces that it joins: run it as root"
                .into(),
        ));
    }
    let interfaces = [args.first.clone(), args.second.clone()];
    let translation = translation(args)?;
    let options = RouteOptions {
        interfaces,
        namespace: args.netns.clone(),
        translation,
        ready: None,
        sniffed: None,
        inline,
    };
    let outcome = route::route(scenario, &options)?;
    conclude(&outcome, &args.inline, "router", "restart the router when it is back")
}

fn translation(args: &args::Route) -> Result<Option<TranslationOptions>, Failure> {
    let rebindings = args.rebind.iter().map(|text| rebinding(text)).collect::<Result<_, _>>()?;
    Ok(args.nat.then(|| TranslationOptions { pool: args.nat_pool.clone(), rebindings }))
}

/// Reads `port=5s` or `address=2s/10s`.
fn rebinding(text: &str) -> Result<Rebinding, Failure> {
    let wrong = || {
        Failure::Other(format!(
            "--rebind: expected port=TIME, port=TIME/PERIOD or the same with address, such as port=5s/10s; found `{text}`"
        ))
    };
    let (what, times) = text.split_once('=').ok_or_else(wrong)?;
    let what = match what {
        "port" => Rebind::Port,
        "address" => Rebind::Address,
        _ => return Err(wrong()),
    };
    let (after, every) = match times.split_once('/') {
        Some((after, every)) => (after, Some(every)),
        None => (times, None),
    };
    let every = every.map(|every| span_of_time("rebind", every)).transpose()?;
    if every.is_some_and(|every| every < SHORTEST_PERIOD) {
        return Err(Failure::Other(format!(
            "--rebind: the period must be {SHORTEST_PERIOD} or more; found `{text}`"
        )));
    }
    Ok(Rebinding { what, after: span_of_time("rebind", after)?, every })
}
