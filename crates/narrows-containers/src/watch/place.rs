//! Where a network is.

use narrows_io::link::InterfaceIndex;
use narrows_io::namespace_identity::NamespaceIdentity;

/// An interface of a namespace, wherever that is known from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) namespace: NamespaceIdentity,
    pub(super) index: InterfaceIndex,
}
