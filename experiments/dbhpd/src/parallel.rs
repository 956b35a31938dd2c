//! Runs that do not depend on one another, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What a function makes of each of a list, in its order; how many processors there are changes nothing else.
pub(super) fn each<T: Sync, R: Send>(list: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(list.len());
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(list.len()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = list.get(number)
                {
                    let result = make(item);
                    made.lock().expect("a worker that panics ends the scope").push((number, result));
                }
            });
        }
    });
    let mut made = made.into_inner().expect("a worker that panics ends the scope");
    made.sort_by_key(|&(number, _)| number);
    made.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_list() {
        let list: Vec<u64> = (0..200).collect();
        let squares = each(&list, |&number| number * number);
        assert_eq!(squares, list.iter().map(|number| number * number).collect::<Vec<_>>());
        assert!(each(&[] as &[u64], |&number| number).is_empty());
    }
}
