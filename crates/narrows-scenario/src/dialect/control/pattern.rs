//! Patterns of `case`.

/// Whether a word fits a pattern of a shell, with `*` and `?`.
pub(super) fn fits(pattern: &str, word: &str) -> bool {
    let word: Vec<char> = word.chars().collect();
    let alike = |part: &[char], at: &[char]| part.iter().zip(at).all(|(part, c)| *part == '?' || part == c);
    let parts: Vec<Vec<char>> = pattern.split('*').map(|part| part.chars().collect()).collect();
    let [first, middle @ .., last] = &parts[..] else {
        return parts[0].len() == word.len() && alike(&parts[0], &word);
    };
    if word.len() < first.len() + last.len() {
        return false;
    }
    let (start, rest) = word.split_at(first.len());
    let (mut rest, end) = rest.split_at(rest.len() - last.len());
    if !alike(first, start) || !alike(last, end) {
        return false;
    }
    // The first place where each of the others fits leaves most to those behind.
    middle.iter().all(|part| {
        let place = (0..(rest.len() + 1).saturating_sub(part.len())).find(|at| alike(part, &rest[*at..]));
        place.inspect(|at| rest = &rest[at + part.len()..]).is_some()
    })
}
