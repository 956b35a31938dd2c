//! Rebindings of the router's address translation at a client's request: `nat.rebind=port` among the assignments of `set`.
//!
//! They are no settings of the scenario: the network sees addresses from inside only, and a replay has no translation.

use narrows_frame::nat::Rebind;

use super::Director;
use crate::control::Happening;
use crate::data::orders::Order;

/// The key.
const KEY: &str = "nat.rebind";

impl Director {
    /// Takes rebindings out of assignments. Without address translation there are none.
    ///
    /// # Errors
    /// If a value is not possible here.
    pub(super) fn take_rebindings(&self, assignments: &mut Vec<String>) -> Result<Vec<Rebind>, String> {
        if self.rebindable.is_empty() {
            return Ok(Vec::new());
        }
        let mut taken = Vec::new();
        for value in assignments.iter().filter_map(|text| value_of(text)) {
            let possible: Vec<_> = self.rebindable.iter().map(|&what| word(what)).collect();
            match self.rebindable.iter().find(|&&what| word(what) == value) {
                Some(&what) => taken.push(what),
                None => {
                    let possible = possible.join(" or ");
                    return Err(format!("{KEY} is {possible} in this run, not `{value}`"));
                }
            }
        }
        assignments.retain(|text| value_of(text).is_none());
        Ok(taken)
    }

    /// Makes the router's address translation forget its mappings.
    pub(super) fn rebind(&mut self, rebindings: &[Rebind]) {
        for &what in rebindings {
            self.pool.tell(|_| Order::Rebind(what));
            self.pool.call();
            self.happened(Happening::Changed, format!("{KEY}={}", word(what)));
        }
    }
}

/// The value of such an assignment.
fn value_of(assignment: &str) -> Option<&str> {
    let (key, value) = assignment.split_once('=')?;
    (key.trim() == KEY).then(|| value.trim().trim_matches('"'))
}

fn word(what: Rebind) -> &'static str {
    match what {
        Rebind::Port => "port",
        Rebind::Address => "address",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_that_key_is_taken() {
        assert_eq!(value_of("nat.rebind=port"), Some("port"));
        assert_eq!(value_of(" nat.rebind = \"address\" "), Some("address"));
        for other in ["nat.rate=1mbit", "link.nat.rebind=port", "nat.rebind"] {
            assert_eq!(value_of(other), None, "{other}");
        }
    }
}
