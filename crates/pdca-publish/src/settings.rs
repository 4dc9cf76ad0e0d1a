//! `[publish]` of `pdca.toml`.

use serde::{Deserialize, Serialize};

use crate::branch::{BranchFlaw, check_pattern};

/// How accepted changes become known outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublishSettings {
    /// Where branches are pushed to.
    pub remote: String,
    /// The name of a branch, with `{id}`, `{slug}` and `{run}`.
    pub branch: String,
    /// The program that speaks with the forge.
    pub gh: String,
    /// Who is told in the tracker, and how.
    pub comments: Comments,
    /// With `comments = "command"`: a text for `sh -c` that posts its standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment_cmd: Option<String>,
    /// With `comments = "command"`: a text for `sh -c` that prints the comments there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_cmd: Option<String>,
    /// How long one call of such a program may take, in seconds.
    pub timeout_secs: u64,
}

/// How a comment comes to the tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comments {
    /// As a comment on the forge's own issue, where the bundle's id is its number.
    #[default]
    Gh,
    /// By commands of the project.
    Command,
    /// Not at all.
    Off,
}

impl Default for PublishSettings {
    fn default() -> Self {
        Self {
            remote: "origin".to_owned(),
            branch: "pdca/{id}".to_owned(),
            gh: "gh".to_owned(),
            comments: Comments::default(),
            comment_cmd: None,
            list_cmd: None,
            timeout_secs: 60,
        }
    }
}

/// A value of `[publish]` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` in [publish] {fault}")]
pub struct SettingsProblem {
    /// The key.
    pub key: &'static str,
    /// What is wrong with it.
    pub fault: SettingsFault,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    /// Nothing is there.
    #[error("is empty")]
    Empty,
    /// A program would take it for an option.
    #[error("begins with `-`")]
    Option,
    /// It has a character that no name has.
    #[error("has a control character in it")]
    Control,
    /// A number that cannot be meant.
    #[error("must be at least 1")]
    Zero,
    /// The pattern makes no branch.
    #[error("cannot name branches: {0}")]
    Branch(BranchFlaw),
    /// A command is missing without which a comment might be posted twice.
    #[error("is needed with `comments = \"command\"`")]
    Needed,
    /// A command is there that nobody runs.
    #[error("has no effect without `comments = \"command\"`")]
    Unused,
}

impl PublishSettings {
    /// Everything that is wrong.
    pub fn validate(&self) -> Vec<SettingsProblem> {
        let mut problems = Vec::new();
        let mut say = |key, fault| problems.push(SettingsProblem { key, fault });
        for (key, text) in [("remote", &self.remote), ("gh", &self.gh)] {
            if let Some(fault) = flaw_of_a_name(text) {
                say(key, fault);
            }
        }
        if let Err(flaw) = check_pattern(&self.branch) {
            say("branch", SettingsFault::Branch(flaw));
        }
        let commands = [("comment_cmd", &self.comment_cmd), ("list_cmd", &self.list_cmd)];
        for (key, command) in commands {
            match (command, self.comments) {
                (Some(text), _) if text.trim().is_empty() => say(key, SettingsFault::Empty),
                (Some(_), Comments::Gh | Comments::Off) => say(key, SettingsFault::Unused),
                (None, Comments::Command) => say(key, SettingsFault::Needed),
                (Some(_), Comments::Command) | (None, Comments::Gh | Comments::Off) => {}
            }
        }
        if self.timeout_secs == 0 {
            say("timeout_secs", SettingsFault::Zero);
        }
        problems
    }
}

fn flaw_of_a_name(text: &str) -> Option<SettingsFault> {
    if text.trim().is_empty() {
        Some(SettingsFault::Empty)
    } else if text.starts_with('-') {
        Some(SettingsFault::Option)
    } else if text.contains(char::is_control) {
        Some(SettingsFault::Control)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(settings: &PublishSettings) -> Vec<String> {
        settings.validate().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_so_by_default_is_right() {
        assert_eq!(problems(&PublishSettings::default()), Vec::<String>::new());
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let settings = PublishSettings {
            remote: "--upload-pack=evil".to_owned(),
            branch: "main".to_owned(),
            gh: " ".to_owned(),
            comment_cmd: Some("post".to_owned()),
            timeout_secs: 0,
            ..PublishSettings::default()
        };
        assert_eq!(
            problems(&settings),
            [
                "`remote` in [publish] begins with `-`",
                "`gh` in [publish] is empty",
                "`branch` in [publish] cannot name branches: without `{id}` two bundles would have the same",
                "`comment_cmd` in [publish] has no effect without `comments = \"command\"`",
                "`timeout_secs` in [publish] must be at least 1",
            ]
        );
    }

    #[test]
    fn commands_come_as_a_pair() {
        let settings = PublishSettings {
            comments: Comments::Command,
            comment_cmd: Some("post".to_owned()),
            ..PublishSettings::default()
        };
        assert_eq!(
            problems(&settings),
            ["`list_cmd` in [publish] is needed with `comments = \"command\"`"]
        );
    }
}
