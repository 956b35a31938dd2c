//! Names of runs after the containers that they are for.

use narrows_live::run_name::LONGEST;

/// A valid name of a run from that of a container, with a tail that is kept.
pub(crate) fn run_name(container: &str, tail: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut name: String = container.chars().map(letter).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "c-");
    }
    let tail: String = tail.chars().map(letter).collect();
    name.truncate(LONGEST.saturating_sub(tail.len()));
    name + &tail
}

#[cfg(test)]
mod tests {
    use narrows_live::run_name::RunName;

    use super::*;

    #[test]
    fn names_of_runs_are_valid() {
        for (container, tail, name) in [
            ("shop-web-1", "", "shop-web-1"),
            ("my_shop.web", "-eth1", "my-shop-web-eth1"),
            ("1st", "", "c-1st"),
            ("", "-2", "c--2"),
        ] {
            assert_eq!(run_name(container, tail), name);
            assert!(name.parse::<RunName>().is_ok(), "{name}");
        }
        let long = run_name(&"x".repeat(99), "-eth1");
        assert!(long.parse::<RunName>().is_ok() && long.ends_with("-eth1"), "{long}");
    }
}
