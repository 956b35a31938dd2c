//! `narrows bridge`.

use narrows_live::bridge::{self, BridgeOptions};
use narrows_live::run_record::RunKind;
use narrows_scenario::Way;

use crate::args;
use crate::inline::{capabilities, conclude, prepare};
use crate::output::Failure;

pub(crate) fn bridge(args: &args::Bridge) -> Result<u8, Failure> {
    if let Some(status) = args.inline.background.detach(args.scenario.as_deref())? {
        return Ok(status);
    }
    // Packets that leave by IF2 have arrived at IF1.
    let devices = [(args.first.as_str(), Way::Down), (args.second.as_str(), Way::Up)];
    let (scenario, inline) = prepare(&devices, args.scenario.as_deref(), RunKind::Bridge, &args.inline)?;
    let held = capabilities()?;
    if !(held.net_admin && held.net_raw) {
        return Err(Failure::Other(
            "a bridge needs CAP_NET_ADMIN and CAP_NET_RAW over the interfaces that it joins: run it as root"
                .into(),
        ));
    }
    let interfaces = [args.first.clone(), args.second.clone()];
    let options = BridgeOptions { interfaces, namespace: args.netns.clone(), inline };
    let outcome = bridge::bridge(scenario, &options)?;
    conclude(&outcome, &args.inline, "bridge", "restart the bridge when it is back")
}
