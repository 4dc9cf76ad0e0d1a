//! `[flow]` and `[notify]` of `pdca.toml`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `[flow]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowSettings {
    /// What follows an acceptance: `integrate`, `publish`, `both` or `nothing`.
    pub after_accept: AfterAccept,
    /// No new bundle is started while so many are built and wait for a person; 0 means no limit.
    pub max_unsigned: u32,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self { after_accept: AfterAccept::Integrate, max_unsigned: 10 }
    }
}

/// What follows an acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterAccept {
    /// The accepted changes are gated together and land, as `[integrate]` says.
    Integrate,
    /// Each accepted change is published, as `[publish]` says.
    Publish,
    /// Both: published first, then integrated.
    Both,
    /// A person does it.
    Nothing,
}

impl AfterAccept {
    /// Returns true if accepted changes are integrated.
    pub fn integrates(self) -> bool {
        matches!(self, Self::Integrate | Self::Both)
    }

    /// Returns true if accepted changes are published.
    pub fn publishes(self) -> bool {
        matches!(self, Self::Publish | Self::Both)
    }
}

/// `[notify]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySettings {
    /// An `sh -c` command that gets what happened as a JSON object on standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<String>,
    /// The time that the command gets, in seconds.
    pub timeout_secs: u64,
    /// Tells the terminal too, where it is known to show it (OSC 9).
    pub terminal: bool,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self { cmd: None, timeout_secs: 10, terminal: true }
    }
}

impl NotifySettings {
    /// Returns the time that the command gets.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_secs.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_keys_is_the_default_and_unknown_keys_are_errors() {
        assert_eq!(toml::from_str::<FlowSettings>("").unwrap(), FlowSettings::default());
        assert_eq!(toml::from_str::<NotifySettings>("").unwrap(), NotifySettings::default());
        toml::from_str::<FlowSettings>("after_acept = \"nothing\"").unwrap_err();
        toml::from_str::<NotifySettings>("command = \"x\"").unwrap_err();
    }

    #[test]
    fn both_is_integrating_and_publishing() {
        let all =
            [AfterAccept::Integrate, AfterAccept::Publish, AfterAccept::Both, AfterAccept::Nothing];
        let both: Vec<_> = all.map(|after| (after.integrates(), after.publishes())).into();
        assert_eq!(both, [(true, false), (false, true), (true, true), (false, false)]);
    }
}
