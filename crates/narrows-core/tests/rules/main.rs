//! Rule sets: by hand, and against an interpreter that is as plain as can be.

mod bounds;
mod compare;
mod generate;
mod labels;
mod manual;
mod oracle;
mod oracle_states;
