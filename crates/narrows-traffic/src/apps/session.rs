//! Sessions of all kinds.

use narrows_core::Time;

use super::call::DatagramCall;
use super::connection::Connection;
use super::query::QuerySession;
use super::scene::{Kind, Outcome, Scene, Side};
use crate::body::Frame;
use crate::tcp::Buffers;

/// A transaction in progress, or the rest of its connection.
pub(super) enum Session {
    Tcp(Box<Connection>),
    Query(QuerySession),
    Call(Box<DatagramCall>),
}

impl Session {
    pub(super) fn arrive(&mut self, scene: &mut Scene<'_>, side: Side, message: u32, frame: Option<&Frame>) {
        match (self, frame) {
            (Self::Tcp(connection), Some(frame)) => connection.arrive(scene, side, frame),
            (Self::Tcp(_), None) => {}
            (Self::Query(query), _) => query.arrive(scene, side),
            (Self::Call(call), _) => call.arrive(scene, Kind::of(message)),
        }
    }

    /// When its timer expires.
    pub(super) fn wakes(&self) -> Option<Time> {
        match self {
            Self::Tcp(connection) => connection.wakes(),
            Self::Query(query) => query.wakes(),
            Self::Call(call) => call.wakes(),
        }
    }

    pub(super) fn wake(&mut self, scene: &mut Scene<'_>) {
        match self {
            Self::Tcp(connection) => connection.wake(scene),
            Self::Query(query) => query.wake(scene),
            Self::Call(call) => call.wake(scene),
        }
    }

    /// How the transaction ended, if it has ended.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Tcp(connection) => connection.outcome(),
            Self::Query(query) => query.outcome(),
            Self::Call(call) => call.outcome(),
        }
    }

    /// Gives its memory to sessions to come.
    pub(super) fn release(self, buffers: &mut Buffers) {
        if let Self::Tcp(connection) = self {
            connection.release(buffers);
        }
    }

    /// Nothing more will happen.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_over(),
            Self::Query(query) => query.is_over(),
            Self::Call(call) => call.is_over(),
        }
    }
}
