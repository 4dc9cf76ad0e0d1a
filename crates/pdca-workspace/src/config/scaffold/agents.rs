//! The agents that a new workspace builds and reviews with.

use pdca_leaves::{Preset, Role};

use crate::config::Environment;

/// An agent that was asked for by name; `None` for no agent.
pub type Chosen = Option<&'static Preset>;

pub fn parse_builder(name: &str) -> Result<Chosen, String> {
    parse(name, Role::Builder)
}

pub fn parse_reviewer(name: &str) -> Result<Chosen, String> {
    parse(name, Role::Reviewer)
}

fn parse(name: &str, role: Role) -> Result<Chosen, String> {
    if name == "none" {
        return Ok(None);
    }
    let able = || {
        let presets = pdca_leaves::PRESETS.into_iter();
        let names: Vec<&str> =
            presets.filter(|preset| preset.can_fill(role)).map(|preset| preset.name).collect();
        format!("as {role} there are {}, or none", names.join(", "))
    };
    match Preset::named(name) {
        Some(preset) if preset.can_fill(role) => Ok(Some(preset)),
        Some(_) => Err(format!("`{name}` has no preset as {role}; {}", able())),
        None => Err(format!("no preset is named `{name}`; {}", able())),
    }
}

/// The builder and the reviewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentPair {
    pub builder: Option<&'static str>,
    pub reviewer: Option<&'static str>,
}

impl AgentPair {
    /// Takes what was asked for, else what is on PATH: two families where there are two.
    pub fn choose(
        found: &[&'static str],
        builder: Option<Chosen>,
        reviewer: Option<Chosen>,
    ) -> Self {
        let on_path = |role| {
            let presets = found.iter().filter_map(|name| Preset::named(name));
            presets.filter(move |preset| preset.can_fill(role))
        };
        let builder = builder.unwrap_or_else(|| on_path(Role::Builder).next());
        let reviewer = reviewer.unwrap_or_else(|| {
            let is_other = |preset: &&Preset| {
                builder.is_none_or(|builder| {
                    preset.name != builder.name
                        && (preset.family.is_none() || preset.family != builder.family)
                })
            };
            // One that reviews its own family's work is better than none, and `doctor` says so.
            on_path(Role::Reviewer).find(is_other).or_else(|| on_path(Role::Reviewer).next())
        });
        let name = |preset: Chosen| preset.map(|preset| preset.name);
        Self { builder: name(builder), reviewer: name(reviewer) }
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.builder.into_iter().chain(self.reviewer)
    }

    /// Returns what a person should know about the choice.
    pub fn notes(self, environment: Environment<'_>) -> Vec<String> {
        let absent = self.names().filter(|name| environment.find_program(name).is_none());
        let mut notes: Vec<String> = absent
            .map(|name| format!("`{name}` is not on PATH; `pdca doctor` says when it is"))
            .collect();
        notes.dedup();
        if self.builder.is_some() && self.builder == self.reviewer {
            let text = "builder and reviewer are the same agent; one of another family judges more independently";
            notes.push(text.to_owned());
        }
        notes
    }

    /// Returns the agent of a role beside building and reviewing: the builder's, or the reviewer's where that one only
    /// edits files.
    fn helper(self, role: Role) -> Option<&'static str> {
        let can_fill =
            |name: &&str| Preset::named(name).is_some_and(|preset| preset.can_fill(role));
        self.names().find(can_fill)
    }

    /// Renders the tables of the leaves: with an agent, of every role of the cycle.
    pub fn config_text(self) -> String {
        let table = |role: Role, agent: Option<&str>| match agent {
            Some(agent) => format!("[leaves.{role}]\nagent = \"{agent}\"\n\n"),
            None => String::new(),
        };
        let tables: String = [
            (Role::Planner, self.helper(Role::Planner)),
            (Role::Builder, self.builder),
            (Role::Reviewer, self.reviewer),
            (Role::Signoff, self.helper(Role::Signoff)),
            (Role::Publisher, self.helper(Role::Publisher)),
            (Role::Act, self.helper(Role::Act)),
        ]
        .map(|(role, agent)| table(role, agent))
        .concat();
        if tables.is_empty() {
            return "\n".to_owned();
        }
        format!(
            "# The name of an agent is enough; `pdca config show leaves` shows what it stands for, and each key can be replaced.\n{tables}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        found: &[&'static str],
        builder: Option<&str>,
        reviewer: Option<&str>,
    ) -> (Option<&'static str>, Option<&'static str>) {
        let builder = builder.map(|name| parse_builder(name).unwrap());
        let reviewer = reviewer.map(|name| parse_reviewer(name).unwrap());
        let pair = AgentPair::choose(found, builder, reviewer);
        (pair.builder, pair.reviewer)
    }

    #[test]
    fn two_families_are_split_and_what_is_asked_for_is_taken() {
        let all = ["claude", "codex", "gemini", "opencode", "aider"];
        assert_eq!(chosen(&[], None, None), (None, None));
        assert_eq!(chosen(&all, None, None), (Some("claude"), Some("codex")));
        assert_eq!(chosen(&all, Some("codex"), None), (Some("codex"), Some("claude")));
        assert_eq!(chosen(&["claude"], None, None), (Some("claude"), Some("claude")));
        assert_eq!(chosen(&["aider"], None, None), (Some("aider"), None));
        assert_eq!(
            chosen(&["codex", "aider"], Some("aider"), None),
            (Some("aider"), Some("codex"))
        );
        assert_eq!(chosen(&all, Some("none"), Some("none")), (None, None));
        assert_eq!(chosen(&[], Some("claude"), Some("codex")), (Some("claude"), Some("codex")));
    }

    #[test]
    fn an_agent_fills_every_role_of_the_cycle_that_it_can() {
        let agents = |builder, reviewer| {
            let text = AgentPair { builder, reviewer }.config_text();
            let table: toml::Table = text.parse().unwrap();
            let leaves = table.get("leaves").and_then(toml::Value::as_table).cloned();
            let leaves = leaves.unwrap_or_default();
            leaves
                .iter()
                .map(|(role, leaf)| format!("{role}={}", leaf["agent"]))
                .collect::<Vec<_>>()
                .join(" ")
                .replace('"', "")
        };
        assert_eq!(
            agents(Some("claude"), Some("codex")),
            "act=claude builder=claude planner=claude publisher=claude reviewer=codex signoff=claude"
        );
        assert_eq!(
            agents(Some("aider"), Some("codex")),
            "act=codex builder=aider planner=codex publisher=codex reviewer=codex signoff=codex"
        );
        assert_eq!(agents(Some("aider"), None), "builder=aider");
        assert_eq!(agents(None, None), "");
    }

    #[test]
    fn an_agent_that_cannot_review_or_is_none_is_refused_with_those_that_can() {
        let error = parse_reviewer("aider").unwrap_err();
        assert_eq!(
            error,
            "`aider` has no preset as reviewer; as reviewer there are claude, codex, gemini, opencode, or none"
        );
        assert!(
            parse_builder("cluade").unwrap_err().contains("as builder there are aider, claude")
        );
    }
}
