//! `narrows attach`.

use narrows_io::detour::Diverted;
use narrows_live::attach::{self, AttachOptions, Whereabouts};
use narrows_live::run_record::RunKind;
use narrows_scenario::{Scenario, Way};

use crate::args::{self, BackendName, DirectionName};
use crate::fail::FailName;
use crate::inline::{capabilities, conclude, prepare};
use crate::output::{Failure, say};

pub(crate) fn attach(args: &args::Attach) -> Result<u8, Failure> {
    if let Some(status) = args.inline.background.detach(args.scenario.as_deref())? {
        return Ok(status);
    }
    let whereabouts = match (&args.netns, args.pid, &args.container) {
        (Some(namespace), _, _) => Whereabouts::Namespace(namespace.clone()),
        (_, Some(process), _) => Whereabouts::Process(process),
        (_, _, Some(container)) => Whereabouts::Container(container.clone()),
        (None, None, None) => Whereabouts::Here,
    };
    let devices = [(args.interface.as_str(), Way::Up)];
    let described = match args.remove {
        true => None,
        false => Some(prepare(&devices, args.scenario.as_deref(), RunKind::Attach, &args.inline)?),
    };
    if !capabilities()?.all() {
        return Err(Failure::Other(
            "attaching to an interface needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN over the host, as it loads programs \
             into the kernel: run it as root"
                .into(),
        ));
    }
    let Some((scenario, inline)) = described else { return remove(args, &whereabouts) };
    let diverted = match args.direction {
        DirectionName::In => Diverted::In,
        DirectionName::Out => Diverted::Out,
        DirectionName::Both => Diverted::Both,
    };
    let fails_closed = args.fail == FailName::Closed;
    let (interface, title) = (args.interface.clone(), args.title.clone());
    let options = AttachOptions { interface, whereabouts, diverted, fails_closed, title, inline };
    if args.persist {
        return persist(args, scenario, &options);
    }
    let outcome = attach::attach(scenario, &options)?;
    let remedy = if fails_closed && outcome.gone.is_empty() {
        "nothing passes there now; attach again, or restore traffic with: narrows clean"
    } else {
        "attach again when it is back"
    };
    conclude(&outcome, &args.inline, "network", remedy)
}

/// Leaves the network at the interface.
fn persist(args: &args::Attach, scenario: Scenario, options: &AttachOptions) -> Result<u8, Failure> {
    if !matches!(args.inline.cabling.backend, None | Some(BackendName::Kernel | BackendName::Auto)) {
        return Err(Failure::Other(
            "--persist works with --backend kernel alone, which it takes by itself".into(),
        ));
    }
    let stays = attach::attach_to_stay(scenario, options)?;
    if options.inline.greeting {
        let (interface, place) = (&args.interface, options.whereabouts.flags());
        say(format_args!(
            "narrows: the network stays at {interface}; its queues: ip netns exec {} tc -s qdisc; take it off: narrows attach \
             {interface}{place} --remove",
            stays.namespace
        ));
        stays.notes.iter().for_each(|note| say(format_args!("narrows: {note}")));
    }
    Ok(0)
}

/// Takes off a network that stays.
fn remove(args: &args::Attach, whereabouts: &Whereabouts) -> Result<u8, Failure> {
    if args.inline.link.is_given() || !args.inline.set.is_empty() || args.inline.seed.is_some() {
        return Err(Failure::Other(
            "--remove takes off what --persist left, and needs no description of a network".into(),
        ));
    }
    attach::take_off(whereabouts, &args.interface)?;
    if !args.inline.report.quiet {
        say(format_args!("narrows: the network is off {}", args.interface));
    }
    Ok(0)
}
