//! Changes of a running network.

use narrows_core::rules::PreparedRules;
use narrows_core::{BuildError, Change, Engine, LinkConfig, RulesChange, Time};

/// One change of a running network, by the engine's names.
#[derive(Debug)]
pub enum EngineChange {
    /// Of a link.
    Link {
        /// Its name.
        link: String,
        /// What changes.
        change: Change,
    },
    /// A link is added, to which nothing leads yet.
    AddLink(Box<LinkConfig>),
    /// Of rules.
    Rules {
        /// Their name.
        rules: String,
        /// What changes.
        change: RulesChange,
    },
    /// Rules that are ready take the place of others.
    ReplaceRules {
        /// Their name.
        rules: String,
        /// What comes in their place.
        with: Box<PreparedRules>,
    },
}

impl EngineChange {
    /// Makes it in the engine at `at`. Where nothing has that name any more, nothing changes. Gives back the rules that
    /// others have taken the place of: whoever has little time lets another thread drop them.
    ///
    /// # Errors
    /// As [`Engine::add_link`] and [`Engine::change_rules`]; a change that comes from a scenario in step with the engine is
    /// one that it takes.
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
