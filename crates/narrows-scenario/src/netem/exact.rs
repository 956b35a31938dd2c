//! NetEm's single queue for the engine: all numbers as tc passes them to the kernel.

use narrows_core::model::builtin_table;
use narrows_core::netem as exact;

use super::options::{Chance, DEFAULT_LIMIT, LossOption, Netem, Shape, SlotGap};
use super::release::Linux;
use crate::files::Files;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::tables;
use crate::units::Share;

impl Netem {
    /// The options in the kernel's units. The rate is in whole bytes per second, as in tc, and the seed is
    /// the scenario's. `node` is the place of the options.
    ///
    /// # Errors
    /// If a table cannot be read, or the kernel would reject a value.
    pub(crate) fn exact(&self, node: &Node, files: &Files) -> Result<exact::Netem, Problem> {
        let table = |shape: &Shape| table(shape, node, files);
        // tc sends a correlation of duplication only together with another correlation.
        let correlates = !self.delay_correlation.is_zero()
            || !self.reorder.correlation.is_zero()
            || !self.corrupt.correlation.is_zero()
            || matches!(self.loss, Some(LossOption::Random(chance)) if !chance.correlation.is_zero());
        let duplicate = match correlates {
            true => self.duplicate,
            false => Chance { correlation: Share::ZERO, ..self.duplicate },
        };
        let (reorder, gap) = self.reordering().unwrap_or_default();
        let slots = self.slot.as_ref().filter(|slot| slot.is_some());
        Ok(exact::Netem {
            generation: self.kernel.map_or_else(Default::default, Linux::generation),
            limit: u32::try_from(self.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(u32::MAX),
            delay: self.delay,
            jitter: self.jitter,
            delay_correlation: share(self.delay_correlation),
            table: self.distribution.as_ref().map(table).transpose()?.flatten(),
            loss: self.loss.map_or(exact::Loss::Random(exact::Chance::NEVER), loss),
            ecn: self.ecn,
            duplication: chance(duplicate),
            corruption: chance(self.corrupt),
            reorder: chance(reorder),
            gap,
            rate: self.rate.filter(|rate| rate.rate.bits_per_second() >= 8).map(|rate| exact::Rate {
                bytes_per_second: rate.rate.bits_per_second() / 8,
                packet_overhead: rate.packet_overhead,
                cell_size: rate.cell_size,
                cell_overhead: rate.cell_overhead,
            }),
            slots: slots
                .map(|slot| {
                    Ok(exact::Slots {
                        gap: match &slot.gap {
                            SlotGap::Between { low, high } => exact::SlotGap::Between(*low, *high),
                            SlotGap::Distribution { shape, delay, jitter } => match table(shape)? {
                                Some(table) => {
                                    exact::SlotGap::Table { table, delay: *delay, jitter: *jitter }
                                }
                                None => {
                                    exact::SlotGap::Between(delay.saturating_sub(*jitter), *delay + *jitter)
                                }
                            },
                        },
                        packets: slot.packets,
                        bytes: slot.bytes,
                    })
                })
                .transpose()?,
        })
    }
}

/// The table of a distribution; `None` for a uniform one, which NetEm computes.
fn table(shape: &Shape, node: &Node, files: &Files) -> Result<Option<exact::Table>, Problem> {
    let values = match shape {
        Shape::Uniform => return Ok(None),
        Shape::File(name) => {
            let name = Node { span: node.span.clone(), value: Value::String(name.clone()) };
            files.table(&name, |file| tables::read_dist(&file.name, &file.contents))?.1
        }
        named => builtin_table(named.word()).expect("every other shape has a table"),
    };
    exact::Table::new(values).map(Some).map_err(|error| Problem::new(error.to_string()).at(&node.span))
}

fn loss(loss: LossOption) -> exact::Loss {
    match loss {
        LossOption::Random(random) => exact::Loss::Random(chance(random)),
        LossOption::State { p13, p31, p32, p23, p14 } => exact::Loss::States {
            p13: share(p13),
            p31: share(p31),
            p32: share(p32),
            p23: share(p23),
            p14: share(p14),
        },
        LossOption::GilbertElliott { p, r, loss_bad, loss_good } => exact::Loss::GilbertElliott {
            p: share(p),
            r: share(r),
            h: share(loss_bad).complement(),
            loss_in_good: share(loss_good),
        },
    }
}

fn chance(Chance { share: probability, correlation }: Chance) -> exact::Chance {
    exact::Chance { share: share(probability), correlation: share(correlation) }
}

/// Converts as tc does, from the double nearest to the percentage.
fn share(share: Share) -> exact::Share {
    exact::Share::from_percent(share.as_f64() * 100.0).expect("a share is between 0 and 1")
}
