//! `[publish]` of `pdca.toml`.

use pdca_state::{Brief, BundleId};
use serde::{Deserialize, Serialize};

use crate::publish::branch::{Branch, BranchFlaw, check_pattern};

/// Publication of accepted changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublishSettings {
    /// The remote to push branches to.
    pub remote: String,
    /// The pattern of branch names, with `{id}`, `{slug}` and `{run}`.
    pub branch: String,
    /// The pattern for changes that add something, by `Kind` or `Disposition hint` of their brief; `branch` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_branch: Option<String>,
    /// A line for the end of commit messages and pull requests that lack it, with `{id}`: `Fixes #{id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_trailer: Option<String>,
    pub forge: ForgeKind,
    /// The `gh` program.
    pub gh: String,
    /// With `forge = "command"`: an `sh -c` command that speaks with the forge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forge_cmd: Option<String>,
    /// Merges a pull request that is marked as ready, if its checks passed.
    pub merge: bool,
    pub merge_method: MergeMethod,
    /// Lets the builder push its branch and open a draft, which are then adopted.
    pub builder_pushes: bool,
    pub comments: Comments,
    /// With `comments = "command"`: an `sh -c` command that posts its standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment_cmd: Option<String>,
    /// With `comments = "command"`: an `sh -c` command that prints the existing comments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_cmd: Option<String>,
    /// The time limit, in seconds, of one call.
    pub timeout_secs: u64,
}

/// The way pull requests are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeKind {
    /// Through the program `gh`.
    #[default]
    Gh,
    /// Through `forge_cmd`.
    Command,
    /// Not at all: the branch is pushed, and nothing else.
    None,
}

/// The way a pull request is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeMethod {
    /// With a merge commit, which keeps the commits of the change.
    #[default]
    Merge,
    Squash,
    Rebase,
}

impl MergeMethod {
    /// Returns the word for the forge.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
            Self::Rebase => "rebase",
        }
    }
}

/// The way comments are posted to the tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comments {
    /// On the forge's issue whose number is the bundle's id.
    #[default]
    Gh,
    /// Through `comment_cmd` and `list_cmd`.
    Command,
    Off,
}

impl Default for PublishSettings {
    fn default() -> Self {
        Self {
            remote: "origin".to_owned(),
            branch: "pdca/{id}".to_owned(),
            feature_branch: None,
            issue_trailer: None,
            forge: ForgeKind::default(),
            gh: "gh".to_owned(),
            forge_cmd: None,
            merge: false,
            merge_method: MergeMethod::default(),
            builder_pushes: false,
            comments: Comments::default(),
            comment_cmd: None,
            list_cmd: None,
            timeout_secs: 60,
        }
    }
}

/// An invalid value in `[publish]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` in [publish] {fault}")]
pub struct PublishSettingsProblem {
    pub key: &'static str,
    pub fault: SettingsFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    #[error("is empty")]
    Empty,
    /// A program would take the value as an option.
    #[error("begins with `-`")]
    Option,
    #[error("has a control character in it")]
    Control,
    #[error("must be at least 1")]
    Zero,
    #[error("cannot name branches: {0}")]
    Branch(BranchFlaw),
    /// A command is missing. Without `list_cmd` a comment could be posted twice.
    #[error("is needed with `comments = \"command\"`")]
    Needed,
    /// `forge_cmd` is missing, or would never run.
    #[error("goes with `forge = \"command\"`, and neither without the other")]
    ForgeCommand,
    /// Without a forge there is no pull request.
    #[error("has no effect with `forge = \"none\"`")]
    NoForge,
    /// The builder does not know the run that will seal its change.
    #[error("cannot go with `{{run}}` in `branch`, which the builder does not know")]
    RunUnknown,
    /// The command would never run.
    #[error("has no effect without `comments = \"command\"`")]
    Unused,
}

impl PublishSettings {
    /// Returns the way comments are posted: those of `gh` only where `gh` is the forge.
    pub fn comments(&self) -> Comments {
        match (self.comments, self.forge) {
            (Comments::Gh, ForgeKind::Command | ForgeKind::None) => Comments::Off,
            (other, _) => other,
        }
    }

    /// Returns every problem of the settings.
    pub fn validate(&self) -> Vec<PublishSettingsProblem> {
        let mut problems = Vec::new();
        let mut say = |key, fault| problems.push(PublishSettingsProblem { key, fault });
        for (key, text) in [("remote", &self.remote), ("gh", &self.gh)] {
            if let Some(fault) = flaw_of_a_name(text) {
                say(key, fault);
            }
        }
        if let Err(flaw) = check_pattern(&self.branch) {
            say("branch", SettingsFault::Branch(flaw));
        }
        if let Some(Err(flaw)) = self.feature_branch.as_deref().map(check_pattern) {
            say("feature_branch", SettingsFault::Branch(flaw));
        }
        if let Some(fault) = self.issue_trailer.as_deref().and_then(flaw_of_a_name) {
            say("issue_trailer", fault);
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
        let has_command = self.forge_cmd.as_ref().is_some_and(|cmd| !cmd.trim().is_empty());
        if has_command != (self.forge == ForgeKind::Command)
            || (self.forge_cmd.is_some() && !has_command)
        {
            say("forge_cmd", SettingsFault::ForgeCommand);
        }
        if self.merge && self.forge == ForgeKind::None {
            say("merge", SettingsFault::NoForge);
        }
        // The builder must push to the branch that the driver looks at, before any run has sealed the change.
        if self.builder_pushes && self.branch.contains("{run}") {
            say("builder_pushes", SettingsFault::RunUnknown);
        }
        if self.timeout_secs == 0 {
            say("timeout_secs", SettingsFault::Zero);
        }
        problems
    }
}

impl PublishSettings {
    /// Returns the pattern of the branch of a change.
    fn branch_for(&self, brief: Option<&Brief>) -> &str {
        let feature = self.feature_branch.as_deref().filter(|_| brief.is_some_and(adds_something));
        feature.unwrap_or(&self.branch)
    }

    /// Returns the branch of a change that was sealed in `run`.
    pub fn branch_of(
        &self,
        id: &BundleId,
        brief: Option<&Brief>,
        run: &str,
    ) -> Result<Branch, BranchFlaw> {
        let slug = brief.and_then(Brief::slug).unwrap_or_default();
        Branch::of(self.branch_for(brief), id, &slug, run)
    }

    /// Returns a text with the trailer of the bundle at its end, unless the text has that line.
    pub fn with_trailer(&self, text: String, id: &BundleId) -> String {
        let Some(trailer) = &self.issue_trailer else { return text };
        let line = trailer.replace("{id}", id.as_ref());
        if text.lines().any(|other| other.trim().eq_ignore_ascii_case(line.trim())) {
            return text;
        }
        format!("{}\n\n{line}\n", text.trim_end())
    }
}

/// Returns whether a brief asks for something new, rather than for a fix.
fn adds_something(brief: &Brief) -> bool {
    let kind = brief.field("kind").map(|field| field.own_line);
    let kind = kind.or(brief.disposition_hint()).unwrap_or_default().to_lowercase();
    ["enhanc", "feature", "proposal"].iter().any(|word| kind.contains(word))
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
                "`branch` in [publish] cannot name branches: without `{id}` two bundles would share a branch",
                "`comment_cmd` in [publish] has no effect without `comments = \"command\"`",
                "`timeout_secs` in [publish] must be at least 1",
            ]
        );
    }

    #[test]
    fn a_change_that_adds_something_has_a_branch_of_that_pattern() {
        let settings = PublishSettings {
            feature_branch: Some("new/{id}".to_owned()),
            ..PublishSettings::default()
        };
        for (line, expected) in [
            ("- **Kind:** New-Feature", "new/{id}"),
            ("- **Disposition hint:** likely-enhancement", "new/{id}"),
            ("- **Kind:** fix\n- **Disposition hint:** feature", "pdca/{id}"),
            ("- **Slug:** feature", "pdca/{id}"),
        ] {
            assert_eq!(settings.branch_for(Some(&Brief::parse(line))), expected, "{line}");
        }
        assert_eq!(PublishSettings::default().branch_for(None), "pdca/{id}");
    }

    #[test]
    fn a_trailer_is_there_once() {
        let settings = PublishSettings {
            issue_trailer: Some("Fixes #{id}".to_owned()),
            ..PublishSettings::default()
        };
        let id = "7".parse().unwrap();
        let once = settings.with_trailer("subject\n\nbody\n".to_owned(), &id);
        assert_eq!(once, "subject\n\nbody\n\nFixes #7\n");
        assert_eq!(settings.with_trailer(once.clone(), &id), once);
        assert_eq!(PublishSettings::default().with_trailer("s\n".to_owned(), &id), "s\n");
    }

    #[test]
    fn a_forge_command_and_its_forge_go_together() {
        let with = |forge, cmd: Option<&str>| {
            problems(&PublishSettings {
                forge,
                forge_cmd: cmd.map(str::to_owned),
                ..PublishSettings::default()
            })
        };
        let wrong = [
            "`forge_cmd` in [publish] goes with `forge = \"command\"`, and neither without the other",
        ];
        assert_eq!(with(ForgeKind::Command, None), wrong);
        assert_eq!(with(ForgeKind::Command, Some(" ")), wrong);
        assert_eq!(with(ForgeKind::Gh, Some("x")), wrong);
        assert_eq!(with(ForgeKind::Command, Some("x")), Vec::<String>::new());
        let merge =
            PublishSettings { forge: ForgeKind::None, merge: true, ..PublishSettings::default() };
        assert_eq!(
            problems(&merge),
            ["`merge` in [publish] has no effect with `forge = \"none\"`"]
        );
        assert_eq!(merge.comments(), Comments::Off);
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
