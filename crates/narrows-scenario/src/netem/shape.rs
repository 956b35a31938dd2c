//! Names of distributions: one of four, or a table's file name.

use super::options::Shape;
use crate::dialect::{Word, Words};
use crate::problem::{Found, Problem, nearest, one_of};

pub(super) fn read(after: Word<'_>, words: &mut Words<'_>) -> Result<Shape, Problem> {
    let name = words.expect(after, "the name of a distribution")?;
    if let Some((_, shape)) = Shape::NAMED.iter().find(|(known, _)| *known == name.text) {
        return Ok(shape.clone());
    }
    // tc searches its own folder for NAME.dist; here the name is that of the file.
    let is_file = name.text.ends_with(".dist") || name.text.contains('/');
    let names = Shape::NAMED.map(|(name, _)| name);
    let close = nearest(name.text, names).filter(|near| strsim::jaro_winkler(near, name.text) > 0.88);
    let problem = name.problem(format!("{} is not a distribution", Found(name.text)));
    let problem = match close {
        _ if is_file => return Ok(Shape::File(name.text.into())),
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if name.text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            return Ok(Shape::File(format!("{}.dist", name.text)));
        }
        None => problem,
    };
    Err(problem
        .help(format!("allowed: {}, or the name of a table's file, such as mine.dist", one_of(&names))))
}
