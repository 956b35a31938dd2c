//! `narrows attach`.

use narrows_io::detour::Diverted;
use narrows_live::attach::{self, AttachOptions, Whereabouts};
use narrows_live::run_record::RunKind;
use narrows_scenario::Way;

use crate::args::{self, DirectionName};
use crate::fail::FailName;
use crate::inline::{capabilities, conclude, prepare};
use crate::output::Failure;

pub(crate) fn attach(args: &args::Attach) -> Result<u8, Failure> {
    if let Some(status) = args.inline.background.detach(args.scenario.as_deref())? {
        return Ok(status);
    }
    let devices = [(args.interface.as_str(), Way::Up)];
    let (scenario, inline) = prepare(&devices, args.scenario.as_deref(), RunKind::Attach, &args.inline)?;
    if !capabilities()?.all() {
        return Err(Failure::Other(
            "attaching to an interface needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN over the host, as it loads programs \
             into the kernel: run it as root"
                .into(),
        ));
    }
    let whereabouts = match (&args.netns, args.pid, &args.container) {
        (Some(namespace), _, _) => Whereabouts::Namespace(namespace.clone()),
        (_, Some(process), _) => Whereabouts::Process(process),
        (_, _, Some(container)) => Whereabouts::Container(container.clone()),
        (None, None, None) => Whereabouts::Here,
    };
    let diverted = match args.direction {
        DirectionName::In => Diverted::In,
        DirectionName::Out => Diverted::Out,
        DirectionName::Both => Diverted::Both,
    };
    let fails_closed = args.fail == FailName::Closed;
    let (interface, title) = (args.interface.clone(), args.title.clone());
    let options = AttachOptions { interface, whereabouts, diverted, fails_closed, title, inline };
    let outcome = attach::attach(scenario, &options)?;
    let remedy = if fails_closed && outcome.gone.is_empty() {
        "nothing passes there now; attach again, or restore traffic with: narrows clean"
    } else {
        "attach again when it is back"
    };
    conclude(&outcome, &args.inline, "network", remedy)
}
