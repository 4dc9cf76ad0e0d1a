//! The instruction file of a role: the project's own part of a leaf's prompt.
//!
//! The built-in prompt is the contract of a role: where things are, and what it has to leave. The file says how this project
//! wants the work done. The driver reads it from a commit that the leaf cannot have written, and it becomes the end of the
//! prompt, letter by letter: no placeholder in it is filled in.

use pdca_state::sha256_hex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::role::Role;

/// The directories that may hold the file of a role; the first one that has it counts.
pub const INSTRUCTION_DIRS: [&str; 2] = ["process/leaves", ".claude/agents"];

/// The largest file. A longer one is an error: a prompt that was cut off would pin nothing.
pub const MAX_INSTRUCTIONS: usize = 64 * 1024;

/// Texts that `pdca init` wrote before such files were read by leaves. They speak to an agent that starts `pdca`, and say
/// the opposite of what a leaf has to do; they count as absent.
const OF_EARLIER_INIT: [&str; 5] = [
    "4e67a80d11551f17352a2a776bddce1a653f053267a6153e79c640792db79a90",
    "77e216d1f44cf13828cfd9d6e59a8e2fa8d0efd4ffce1ace40d960f8695592a9",
    "c364ecb11f948a169a5ac62f968af6fc71a7f2fb0c0519abbfc108b3dd503723",
    "5d39477cd0401d152520651c299fdace87073f91181eb2d4d02ddf8cfb4b722a",
    "03d0645db0b1d42ae74bf0ffb2995b9859b68c92ed298f8bebef4f2fefc132b1",
];

/// The instructions of one role, as they were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// The file, relative to the root of the repository, or of the workspace where `commit` is absent.
    pub path: String,
    /// The commit it was read from; absent for a file of a workspace that lies outside the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The sha256 of the whole file.
    pub digest: String,
    /// The text, without the block of settings at its top.
    pub text: String,
}

/// Why a file cannot be the instructions of a role.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InstructionsFlaw {
    /// It is too long.
    #[error("it has {0} bytes, and instructions have at most {MAX_INSTRUCTIONS}")]
    Long(usize),
    /// It is not text.
    #[error("it is not UTF-8")]
    NotText,
}

/// Returns the paths that may hold the instructions of a role, the first one before the others.
///
/// ```
/// use pdca_leaves::{Role, instruction_paths};
///
/// let paths: Vec<String> = instruction_paths(Role::Signoff).collect();
/// assert_eq!(paths[0], "process/leaves/sign-off.md");
/// assert!(paths.contains(&".claude/agents/signoff.md".to_owned()));
/// ```
pub fn instruction_paths(role: Role) -> impl Iterator<Item = String> {
    INSTRUCTION_DIRS.into_iter().flat_map(move |dir| {
        let name = role.as_str();
        let spelled = match role {
            Role::Signoff => "sign-off".to_owned(),
            Role::PlanAdviser
            | Role::Planner
            | Role::Builder
            | Role::Reviewer
            | Role::Adviser
            | Role::Publisher
            | Role::Act
            | Role::Resolver => name.replace('_', "-"),
        };
        let other = (spelled != name).then(|| format!("{dir}/{name}.md"));
        std::iter::once(format!("{dir}/{spelled}.md")).chain(other)
    })
}

impl Instructions {
    /// Reads a file; `None` if there is nothing in it that instructs.
    pub fn parse(
        path: String,
        commit: Option<String>,
        bytes: &[u8],
    ) -> Result<Option<Self>, InstructionsFlaw> {
        if bytes.len() > MAX_INSTRUCTIONS {
            return Err(InstructionsFlaw::Long(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| InstructionsFlaw::NotText)?;
        let digest = sha256_hex(bytes);
        let text = without_settings(text).trim();
        if text.is_empty() || OF_EARLIER_INIT.contains(&digest.as_str()) {
            return Ok(None);
        }
        Ok(Some(Self { path, commit, digest, text: text.to_owned() }))
    }

    /// Whether a file is one that an earlier `pdca init` wrote, which instructs no leaf.
    pub fn is_of_earlier_init(bytes: &[u8]) -> bool {
        OF_EARLIER_INIT.contains(&sha256_hex(bytes).as_str())
    }

    /// The file and the commit, as a person reads them.
    pub fn place(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{} at {commit:.12}", self.path),
            None => format!("{} of the workspace", self.path),
        }
    }

    /// The end of the prompt.
    pub(crate) fn section(&self) -> String {
        format!(
            "\nThe instructions of this project for your role, from `{}`. They add to the text above; where the two contradict each other, the text above counts:\n\n{}\n",
            self.path, self.text
        )
    }
}

/// Leaves out the settings that an agent reads at the top of such a file: `---`, lines, `---`.
fn without_settings(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = text
        .strip_prefix("---")
        .and_then(|rest| rest.trim_start_matches(['\r', ' ']).strip_prefix('\n'))
    else {
        return text;
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        at += line.len();
        if line.trim_end() == "---" {
            return &rest[at..];
        }
    }
    // Without an end it is a rule across the page, and part of the text.
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::ROLES;

    fn parse(text: &str) -> Option<String> {
        Instructions::parse("p".into(), None, text.as_bytes()).unwrap().map(|found| found.text)
    }

    #[test]
    fn settings_at_the_top_are_no_instructions_and_a_rule_across_the_page_is() {
        assert_eq!(parse("---\nname: builder\n---\n\nUse tabs.\n").as_deref(), Some("Use tabs."));
        assert_eq!(parse("---\r\nname: b\r\n---\r\nUse tabs.").as_deref(), Some("Use tabs."));
        assert_eq!(parse("---\nUse tabs.\n").as_deref(), Some("---\nUse tabs."));
        assert_eq!(parse("Use tabs.\n---\nAlways.").as_deref(), Some("Use tabs.\n---\nAlways."));
        assert_eq!(parse("---\nname: builder\n---\n  \n"), None);
    }

    #[test]
    fn a_file_that_is_too_long_or_no_text_is_told() {
        let long = vec![b'a'; MAX_INSTRUCTIONS + 1];
        let flaw = Instructions::parse("p".into(), None, &long).unwrap_err();
        assert_eq!(flaw, InstructionsFlaw::Long(MAX_INSTRUCTIONS + 1));
        let flaw = Instructions::parse("p".into(), None, b"\xff").unwrap_err();
        assert_eq!(flaw, InstructionsFlaw::NotText);
    }

    #[test]
    fn each_role_has_files_of_its_own() {
        let mut all: Vec<String> =
            ROLES.iter().flat_map(|spec| instruction_paths(spec.role)).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.contains(&"process/leaves/plan-adviser.md".to_owned()), "{all:?}");
    }
}
