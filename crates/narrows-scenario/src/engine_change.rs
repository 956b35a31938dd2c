//! Changes of a running network.

use narrows_core::rules::PreparedRules;
use narrows_core::{BuildError, Change, Engine, LinkConfig, RulesChange, Time};

/// One change of a running network, in the engine's names.
#[derive(Debug)]
pub enum EngineChange {
    /// Changes a link.
    Link {
        /// Name of the link.
        link: String,
        /// The change.
        change: Change,
    },
    /// Adds a link that nothing leads to yet.
    AddLink(Box<LinkConfig>),
    /// Changes rules.
    Rules {
        /// Name of the rules.
        rules: String,
        /// The change.
        change: RulesChange,
    },
    /// Replaces rules with prepared ones.
    ReplaceRules {
        /// Name of the rules.
        rules: String,
        /// The replacement.
        with: Box<PreparedRules>,
    },
}

impl EngineChange {
    /// Applies the change to the engine at `at`. Does nothing if the named link or rules no longer exist.
    /// Returns the replaced rules, so that a time-critical caller can drop them in another thread.
    ///
    /// # Errors
    /// As [`Engine::add_link`] and [`Engine::change_rules`]. A change that comes from a scenario in step
    /// with the engine is always accepted.
    pub fn make<B>(self, engine: &mut Engine<B>, at: Time) -> Result<Option<PreparedRules>, BuildError> {
        match self {
            Self::Link { link, change } => {
                if let Some(link) = engine.link(&link) {
                    engine.change(at, link, change);
                }
            }
            Self::AddLink(config) => drop(engine.add_link(at, *config)?),
            Self::Rules { rules, change } => {
                if let Some(rules) = engine.rules_of(&rules) {
                    engine.change_rules(at, rules, change)?;
                }
            }
            Self::ReplaceRules { rules, with } => {
                return Ok(engine.rules_of(&rules).map(|rules| engine.replace_rules(at, rules, *with)));
            }
        }
        Ok(None)
    }
}
