//! Offloads switched off and put back.

use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload::{self, features, plain_packets};

use crate::lab::privileged;

#[test]
#[ignore = "needs namespaces"]
fn offloads_go_off_and_are_put_back() {
    privileged("offloads::offloads_go_off_and_are_put_back", || {
        let here = Namespace::create().unwrap();
        let end = |name| VethEnd { namespace: &here, name, mac: None };
        create_veth(&end("a"), &end("b"), 1500).unwrap();
        let before = features(&here, "a").unwrap();
        let active = |name: &str| {
            features(&here, "a").unwrap().into_iter().any(|feature| feature.name == name && feature.active)
        };
        let usual =
            ["tx-checksum-ip-generic", "tx-scatter-gather", "tx-tcp-segmentation", "tx-generic-segmentation"];
        assert!(usual.iter().all(|name| active(name)), "{before:?}");

        let record = plain_packets(&here, "a").unwrap();
        assert_eq!(record.stuck, Vec::<String>::new());
        assert!(record.before.len() >= usual.len(), "{record:?}");
        assert!(!usual.iter().any(|name| active(name)));
        assert!(plain_packets(&here, "a").unwrap().before.is_empty(), "nothing is left to do");

        record.restore(&here).unwrap();
        assert_eq!(features(&here, "a").unwrap(), before);
    });
}

#[test]
#[ignore = "needs namespaces"]
fn unknown_interfaces_are_named_and_unknown_features_passed_over() {
    privileged("offloads::unknown_interfaces_are_named_and_unknown_features_passed_over", || {
        let here = Namespace::create().unwrap();
        let error = plain_packets(&here, "eth9").unwrap_err();
        assert!(error.to_string().contains("eth9"), "{error}");
        let record = offload::set(&here, "lo", &[("no-such-feature".into(), true)]).unwrap();
        assert!(record.before.is_empty());
    });
}
