//! What `recv`, `xmit` and `via` of a rule say about the direction of a packet, together with `in` and `out`.
//!
//! `in` and `out` are relative to the machine of the interface that a rule names: `in via em0` is `recv em0`,
//! `out via em0` is `xmit em0`. Beside `recv` and `xmit` they add nothing. A router sends on what it has
//! received, so there `out recv em0` is all that em0 receives.

use super::lexer::Word;

/// What a rule says outside of or-blocks and without `not`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Directions {
    recv: bool,
    xmit: bool,
    via: bool,
    incoming: bool,
    outgoing: bool,
}

impl Directions {
    pub(super) fn of(words: &[Word]) -> Self {
        let mut found = Self::default();
        let (mut depth, mut not) = (0_u32, false);
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let counts = depth == 0 && !std::mem::replace(&mut not, matches!(text, "not" | "!"));
            let named = words.get(at + 1).is_some_and(|name| !matches!(name.text.as_str(), "any" | "none"));
            match text {
                "{" | "(" => depth += 1,
                "}" | ")" => depth = depth.saturating_sub(1),
                "recv" => found.recv |= counts && named,
                "xmit" => found.xmit |= counts && named,
                "via" => found.via |= counts && named,
                "in" => found.incoming |= counts,
                "out" => found.outgoing |= counts,
                _ => {}
            }
        }
        found
    }

    /// Whether an interface says what `in` says.
    pub(super) const fn covers_in(self) -> bool {
        self.incoming && (self.recv || self.via && !self.outgoing)
    }

    /// Same for `out`.
    pub(super) const fn covers_out(self) -> bool {
        self.outgoing && (self.recv || self.xmit || self.via && !self.incoming)
    }

    /// Whether the machine sends on what it receives.
    pub(super) const fn forwards(self) -> bool {
        self.recv && (self.outgoing || self.xmit)
    }

    /// What `via` stands for.
    pub(super) fn of_via(self) -> &'static str {
        match (self.incoming, self.outgoing) {
            (true, false) => "recv",
            (false, true) => "xmit",
            _ => "via",
        }
    }
}
