//! Profile of a link: `profile = "802.11b.profile"`, or `"none"`.

use std::sync::Arc;

use narrows_core::{Duration, Rate};

use serde_json::json;

use crate::files::NamedFile;
use crate::keys::kind::{ByHand, Or, text};
use crate::profile::Profile;

/// A link's use of a profile.
#[derive(Clone, Debug)]
pub struct ProfileUse {
    /// The file.
    pub file: NamedFile,
    /// The parsed profile.
    pub profile: Arc<Profile>,
}

/// Uses are equal if their files are.
impl PartialEq for ProfileUse {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

pub(crate) const PROFILE: Or<ByHand<ProfileUse>> = Or(
    "none",
    ByHand {
        words: || "name of a file".into(),
        schema: |_| json!({ "type": "string" }),
        read: |node, around| {
            let read = |file: &NamedFile| Profile::read(&file.name, &file.contents);
            let (file, profile) = around.files.parse(node, read)?;
            Ok(ProfileUse { file, profile: Arc::new(profile) })
        },
        write: |profile| Some(text(&profile.file.name)),
    },
);

impl ProfileUse {
    /// The rate of the profile, if it has one.
    pub fn rate(&self) -> Option<Rate> {
        self.profile.rate()
    }

    /// Mean extra air time.
    pub fn mean(&self) -> Duration {
        self.profile.air_time().mean()
    }
}

/// For display: the extra air time and the loss.
impl std::fmt::Display for ProfileUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let air_time = self.profile.air_time();
        let (least, longest) = (air_time.shortest(), air_time.longest());
        let name = &self.file.name;
        match least == longest {
            true => write!(f, "{least} of air time for each packet ({name})")?,
            false => {
                let mean = air_time.mean();
                write!(f, "{least} to {longest} of air time for each packet, {mean} on average ({name})")?;
            }
        }
        match self.profile.loss() {
            0.0 => Ok(()),
            loss => write!(f, ", after which {:.2} % are lost", loss * 100.0),
        }
    }
}
