//! `docs/writing-a-scheduler.md` quotes its example to the letter.

const DOCUMENT: &str = include_str!("../../../../docs/writing-a-scheduler.md");
const EXAMPLE: &str = include_str!("../../examples/weighted_round_robin.rs");

#[test]
fn every_block_of_code_is_part_of_the_example() {
    let mut blocks = 0;
    for block in DOCUMENT.split("```rust\n").skip(1) {
        let (code, _) = block.split_once("```").expect("a block ends");
        assert!(EXAMPLE.contains(code), "not in the example:\n{code}");
        blocks += 1;
    }
    assert!(blocks >= 10, "there are {blocks}");
}

/// The scheduler is there from its first line to its last.
#[test]
fn the_whole_scheduler_is_quoted() {
    let start = EXAMPLE.find("/// Weighted round robin: flows").expect("it is described");
    let end = EXAMPLE.find("/// By itself").expect("it is tried");
    let quoted: String = DOCUMENT
        .split("```rust\n")
        .skip(1)
        .filter_map(|block| block.split_once("```"))
        .map(|(code, _)| code)
        .collect();
    for line in EXAMPLE[start..end].lines().filter(|line| !line.is_empty()) {
        assert!(quoted.contains(line), "not quoted: {line}");
    }
}
