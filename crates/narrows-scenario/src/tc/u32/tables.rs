//! Ways through hash tables: each is a filter in the root table, links, and a filter in the last table.

use std::collections::BTreeMap;

use narrows_core::classify::Families;

use super::header::{self, Unknown};
use super::pattern::{Field, Pattern};
use super::{Offset, U32};
use crate::problem::Problem;
use crate::value::Match;

/// The number of buckets of each table.
pub(in crate::tc) type Divisors = BTreeMap<u16, u16>;

/// The filters of a table: what each stands for, by its bucket, in the order in which they are tried.
type Tables<'a, T> = BTreeMap<u16, Vec<(&'a U32, T)>>;

/// The links that the kernel follows before it gives up (`TC_U32_MAXDEPTH`).
const DEEPEST: usize = 8;
/// The most filters that are looked at on all ways through the tables of one place.
const MOST: usize = 1 << 21;

/// What has matched on the way to a table.
#[derive(Clone)]
struct Before {
    pattern: Pattern,
    families: Families,
    /// Where offsets count from.
    base: i32,
    /// Where the next header is, from there.
    next: i32,
}

impl Before {
    const fn new() -> Self {
        Self { pattern: Pattern::new(), families: Families::ALL, base: 0, next: 0 }
    }

    /// With the keys of a filter; `None` if no packet has these and those before.
    fn with(&self, filter: &U32) -> Option<Self> {
        let mut all = self.clone();
        all.families = all.families.and(filter.families);
        let possible = !all.families.is_empty()
            && filter.keys.iter().all(|key| {
                let next = if key.next { self.next } else { 0 };
                all.pattern.add(self.base + key.at + next, key.bytes, key.field)
            });
        possible.then_some(all)
    }

    /// Behind a link with an `offset`.
    fn moved(mut self, offset: Option<Offset>) -> Self {
        if let Some(Offset { plus, header, eats }) = offset {
            self.next = (plus + if header { 20 } else { 0 } + 3) & !3;
            if eats {
                (self.base, self.next) = (self.base + self.next, 0);
            }
        }
        self
    }
}

/// The filters of this kind at one place.
pub(in crate::tc) struct Ways<'a, T> {
    tables: Tables<'a, T>,
    divisors: &'a Divisors,
    /// How many steps may still be made.
    left: usize,
}

impl<'a, T: Copy> Ways<'a, T> {
    /// `all` has them in the order in which they are tried.
    pub(in crate::tc) fn new(all: impl IntoIterator<Item = (&'a U32, T)>, divisors: &'a Divisors) -> Self {
        let mut tables: Tables<'a, T> = BTreeMap::new();
        for (filter, what) in all {
            if let Some((table, _)) = filter.table {
                tables.entry(table).or_default().push((filter, what));
            }
        }
        Self { tables, divisors, left: MOST }
    }

    /// The conditions that a filter in the root table stands for, in order, each with the filter where it
    /// ends. `ends` says whether a filter ends there: one with a `link` alone does not.
    ///
    /// # Errors
    /// The problem, and the filter that has it.
    pub(in crate::tc) fn of(
        &mut self,
        first: (&'a U32, T),
        ends: impl Fn(T) -> bool + Copy,
    ) -> Result<Vec<(Match, T)>, (Problem, T)> {
        let mut found = Vec::new();
        self.walk(first, &Before::new(), ends, 0, &mut found)?;
        Ok(found)
    }

    fn walk(
        &mut self,
        (filter, what): (&'a U32, T),
        before: &Before,
        ends: impl Fn(T) -> bool + Copy,
        depth: usize,
        found: &mut Vec<(Match, T)>,
    ) -> Result<(), (Problem, T)> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            (Problem::new(format!("more than {MOST} ways through the tables of u32")), what)
        })?;
        let Some(here) = before.with(filter) else { return Ok(()) };
        if let Some(link) = filter.link {
            let Some(divisor) = self.divisors.get(&link) else { return Err((no_table(link), what)) };
            if depth == DEEPEST {
                let problem =
                    Problem::new(format!("more than {DEEPEST} links, which the kernel does not follow"));
                return Err((problem, what));
            }
            let inside = self.tables.get(&link).map_or(Vec::new(), Clone::clone);
            for (inner, end) in inside {
                let bucket = inner.table.map_or(0, |(_, bucket)| bucket);
                let Some(before) = in_bucket(&here, filter, *divisor, bucket) else { continue };
                self.walk((inner, end), &before.moved(filter.offset), ends, depth + 1, found)?;
            }
        }
        if ends(what) {
            match header::condition(here.pattern, here.families) {
                Ok(condition) => found.extend(condition.map(|condition| (condition, what))),
                Err(Unknown { problem, .. }) => return Err((*problem, what)),
            }
        }
        Ok(())
    }
}

fn no_table(table: u16) -> Problem {
    Problem::new(format!("there is no table {table:x}: of u32"))
        .help(format!("make it first, as in: handle {table:x}: u32 divisor 256"))
}

/// Checks that a filter's table is there, with its bucket.
pub(in crate::tc) fn check_table(filter: &U32, divisors: &Divisors) -> Result<(), Problem> {
    let Some((table, bucket)) = filter.table else { return Ok(()) };
    let buckets = *divisors.get(&table).ok_or_else(|| no_table(table))?;
    if u16::from(bucket) < buckets {
        return Ok(());
    }
    Err(Problem::new(format!("the bucket {bucket:x} of the table {table:x}:"))
        .help(format!("it has {buckets}, from 0 to {:x}", buckets - 1)))
}

/// With the bits that lead to a bucket; `None` if no packet has them and those before.
fn in_bucket(here: &Before, filter: &U32, divisor: u16, bucket: u8) -> Option<Before> {
    let mut here = here.clone();
    let Some((mask, at)) = filter.hash else {
        // Without a key, all packets are in the first bucket.
        return (bucket == 0).then_some(here);
    };
    let shift = mask.trailing_zeros();
    let counted = (u32::from(divisor) - 1).checked_shl(shift).unwrap_or(0) & mask;
    let value = u32::from(bucket).checked_shl(shift).unwrap_or(0);
    if value & !counted != 0 {
        return None;
    }
    here.pattern.add(here.base + at, 4, Field { mask: counted, value }).then_some(here)
}
