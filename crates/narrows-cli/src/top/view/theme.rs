//! Colours, if enabled. No information is conveyed by colour alone.

use ratatui::style::{Color, Modifier, Style};

/// Style.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Theme {
    /// Whether to use colours: <https://no-color.org>.
    pub(in super::super) colours: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(super) fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red)
    }

    pub(super) fn bar(self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn not_selected(self) -> Style {
        Style::new().remove_modifier(Modifier::REVERSED)
    }
}
