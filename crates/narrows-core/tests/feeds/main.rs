//! What must hold of delays that come from outside: worked by hand, and against a plain model of the rules.

mod by_hand;
mod in_class;
mod plain;
mod stand;
mod two_way;
