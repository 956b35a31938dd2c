//! The pages that explain an example quote it to the letter.

const SCHEDULER: (&str, &str) = (
    include_str!("../../../docs/writing-a-scheduler.md"),
    include_str!("../examples/weighted_round_robin.rs"),
);
const SIMULATOR: (&str, &str) =
    (include_str!("../../../docs/embedding.md"), include_str!("../examples/own_simulator.rs"));

/// The blocks of code of a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```rust\n").skip(1).map(|block| block.split_once("```").expect("a block ends").0)
}

#[test]
fn every_block_of_code_is_part_of_the_example() {
    for ((page, example), least) in [(SCHEDULER, 10), (SIMULATOR, 5)] {
        blocks(page).for_each(|code| assert!(example.contains(code), "not in the example:\n{code}"));
        assert!(blocks(page).count() >= least, "there are {}", blocks(page).count());
    }
}

/// The scheduler is there from its first line to its last.
#[test]
fn the_whole_scheduler_is_quoted() {
    let (page, example) = SCHEDULER;
    let start = example.find("/// Weighted round robin: flows").expect("it is described");
    let end = example.find("/// By itself").expect("it is tried");
    let quoted: String = blocks(page).collect();
    for line in example[start..end].lines().filter(|line| !line.is_empty()) {
        assert!(quoted.contains(line), "not quoted: {line}");
    }
}
