//! A loop that another one directs: it moves packets until it is told something.

use std::collections::VecDeque;

use narrows_core::Time;
use narrows_io::privileges::{self, Capability};
use narrows_io::wait::Waiting;
use narrows_report::RunInfo;

use super::crew::{Account, Answer, Order};
use super::host::HostBefore;
use super::{LoopError, Pace, PacketLoop};

/// How often, at the end, a loop looks whether there is still something from before it.
const LAST_LOOKS: usize = 64;

impl PacketLoop {
    /// What the thread of a loop does.
    pub(super) fn serve(&mut self, pace: Pace) -> Result<(), LoopError> {
        self.before = HostBefore::read(self.clock);
        self.keep_own_pace(pace)?;
        // It needs none but for where the sockets of feeds are; and works as well where the kernel lets it give up none.
        let _ = privileges::keep(&[Capability::DacOverride]);
        self.answer_order(Answer::Ready);
        let mut orders = VecDeque::new();
        match self.keep_going(Time::NEVER, |packets, until| packets.attend_to_orders(until, &mut orders)) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.answer_order(Answer::Failed(error));
                self.stand_down(orders)
            }
        }
    }

    /// After a failure: touches no port any more, and says at the end what was until then.
    fn stand_down(&mut self, mut orders: VecDeque<Order>) -> Result<(), LoopError> {
        orders.append(&mut self.orders);
        loop {
            let next = orders.pop_front();
            let next = next.or_else(|| self.mailbox.as_ref().and_then(|mailbox| mailbox.orders.recv().ok()));
            match next.unwrap_or(Order::Quit) {
                // The run is about to end.
                Order::Change(_) => self.answer_order(Answer::Changed(Ok(None))),
                Order::Places => self.answer_order(Answer::Places(self.places())),
                Order::Report(info) => self.answer_order(Answer::Report(Box::new(self.account(&info)))),
                Order::Halt => self.answer_order(Answer::Halted),
                Order::Finish(end, info) => {
                    self.hand_in(end)?;
                    self.release(end)?;
                    self.close_record()?;
                    self.answer_order(Answer::Finished(Box::new(self.account(&info))));
                }
                Order::Quit => return Ok(()),
            }
        }
    }

    /// Sleeps until an instant, a frame or an order. Says when it is to end.
    fn attend_to_orders(
        &mut self,
        until: Time,
        orders: &mut VecDeque<Order>,
    ) -> Result<Option<()>, LoopError> {
        if let Some(called) = self.mailbox.as_ref().map(|mailbox| mailbox.called.clone()) {
            self.sleep(until, &[Waiting::readable(&*called)])?;
            called.clear();
        }
        self.heed();
        orders.append(&mut self.orders);
        while let Some(order) = orders.pop_front() {
            match order {
                Order::Change(change) => self.changes.push_back(change),
                Order::Places => self.answer_order(Answer::Places(self.places())),
                Order::Report(mut info) => {
                    self.turn()?;
                    self.count_lost()?;
                    info.span.1 = self.clock.now();
                    self.answer_order(Answer::Report(Box::new(self.account(&info))));
                }
                Order::Halt => {
                    self.answer_order(Answer::Halted);
                    let next = self.mailbox.as_ref().and_then(|mailbox| mailbox.orders.recv().ok());
                    orders.push_front(next.unwrap_or(Order::Quit));
                }
                Order::Finish(end, info) => {
                    self.settle(end)?;
                    self.count_lost()?;
                    self.close_record()?;
                    self.answer_order(Answer::Finished(Box::new(self.account(&info))));
                }
                Order::Quit => return Ok(Some(())),
            }
        }
        Ok(None)
    }

    /// Looks what there is to be heard. Changes count from this turn on; all else has time.
    pub(super) fn heed(&mut self) {
        let Some(mailbox) = &self.mailbox else { return };
        while let Ok(order) = mailbox.orders.try_recv() {
            match order {
                Order::Change(change) => self.changes.push_back(change),
                other => self.orders.push_back(other),
            }
        }
    }

    /// Does all that is due up to an instant, and nothing that is due after it.
    pub(super) fn settle(&mut self, end: Time) -> Result<(), LoopError> {
        for _ in 0..LAST_LOOKS {
            let complete = self.receive()?.min(end);
            self.receive_values(complete);
            self.hand_in(complete)?;
            self.release(complete)?;
            if complete == end {
                break;
            }
        }
        // What is still in the sockets came too late to be taken.
        self.release(end)?;
        self.tell_feeds();
        self.send()
    }

    /// What this loop has to report; the engine has been brought up to `info.span`.
    pub(super) fn account(&self, info: &RunInfo) -> Account {
        Account {
            // First: figures of many ports take their time, which is not the run's.
            thread: self.thread_report(info),
            part: self.part(info),
            trains: self.trains(),
            backends: self.backends(),
            notes: self.notes(),
            answered: self.ports.iter().map(|port| port.answered).sum(),
        }
    }

    fn answer_order(&self, answer: Answer) {
        if let Some(mailbox) = &self.mailbox {
            mailbox.answer(answer);
        }
    }
}
