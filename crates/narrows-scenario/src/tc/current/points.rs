//! Conditions that depend on code points only.

use narrows_core::classify::Families;

use crate::tc::bands::Bands;
use crate::value::{DROP, Division, Match, Scheduler, SchedulerKind};

/// The conditions in the order in which they are tried, each with the index of its class.
pub(super) fn rules(scheduler: &Scheduler) -> impl Iterator<Item = (usize, &Match)> {
    let (classes, filters) = match &scheduler.serves {
        Division::Classes { classes, filters, .. } => (&classes[..], &filters[..]),
        _ => (&[][..], &[][..]),
    };
    let of_classes =
        classes.iter().enumerate().flat_map(|(at, class)| class.matches.iter().map(move |one| (at, one)));
    let of_filters = filters.iter().flat_map(move |filter| {
        let at = classes.iter().position(|class| class.name == filter.class);
        filter.matches.iter().filter_map(move |one| Some((at?, one)))
    });
    of_classes.chain(of_filters)
}

/// The index of the class for each of the 64 code points, without the default; `None` if anything other
/// than the code point counts.
pub(super) fn of(scheduler: &Scheduler) -> Option<[Option<usize>; 64]> {
    let mut points = [None; 64];
    if let Division::Classes { filters, .. } = &scheduler.serves
        && filters.iter().any(|filter| filter.class == DROP)
    {
        return None;
    }
    for (class, one) in rules(scheduler) {
        let only = Match { dscps: one.dscps.clone(), ..Match::default() };
        if *one != only || one.dscps.is_empty() {
            return None;
        }
        for point in &one.dscps {
            points.get_mut(usize::from(*point))?.get_or_insert(class);
        }
    }
    Some(points)
}

/// The `priomap` that the last conditions make up, and how many conditions come before them, which are filters. `None` if
/// there is none, not even without any of them.
pub(super) fn priorities(scheduler: &Scheduler, default: Option<usize>) -> Option<(usize, [usize; 16])> {
    let all: Vec<(usize, &Match)> = rules(scheduler).collect();
    let is_of_map = |one: &Match| {
        let only = Match { dscps: one.dscps.clone(), families: vec![Families::IPV4], ..Match::default() };
        *one == only && !one.dscps.is_empty()
    };
    let first = all.len() - all.iter().rev().take_while(|(_, one)| is_of_map(one)).count();
    (first..=all.len()).find_map(|before| {
        let no_map = before > 0 && before == all.len();
        let map = if no_map { [default?; 16] } else { map(&all[before..], default, scheduler)? };
        Some((before, map))
    })
}

/// The equivalent `priomap`; `None` if there is none. Only those entries count that packets get by the
/// low-delay and high-throughput bits of their TOS byte.
fn map(rules: &[(usize, &Match)], default: Option<usize>, scheduler: &Scheduler) -> Option<[usize; 16]> {
    let of_point = |point: u8| {
        let rule = rules.iter().find(|(_, one)| one.dscps.contains(&point));
        rule.map(|(class, _)| *class).or(default)
    };
    let last = scheduler.named().len().saturating_sub(1);
    let mut map = match scheduler.kind {
        SchedulerKind::Ets => [last; 16],
        SchedulerKind::Taprio => [default.unwrap_or(last); 16],
        _ => Bands::MAP.map(|band| usize::from(band).min(last)),
    };
    for (bits, priority) in Bands::OF_POINTS {
        let mut classes = Bands::points(bits).map(of_point);
        let first = classes.next()??;
        if !classes.all(|class| class == Some(first)) {
            return None;
        }
        map[priority] = first;
    }
    // Packets that are not IPv4 have the priority 0.
    (default == Some(map[0])).then_some(map)
}
