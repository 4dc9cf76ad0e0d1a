//! Coding agents that `agent = "<name>"` is enough for.
//!
//! A preset is data: the arguments for each kind of role, the channel of the prompt, the protocol of the output, the state
//! in the home directory and the hook of the builder guard. [`Preset::stanza`] gives the keys of `[leaves.<role>]` that
//! follow from it; a configuration lays its own keys over them, one by one.

mod aider;
mod claude;
mod codex;
mod gemini;
mod opencode;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    config::{LeafMode, PromptVia},
    protocol::Protocol,
    role::{ROLES, Role},
};

/// All presets, by name.
pub static PRESETS: [&Preset; 5] =
    [&aider::PRESET, &claude::PRESET, &codex::PRESET, &gemini::PRESET, &opencode::PRESET];

/// The settings that have Claude Code ask the guard before each tool call.
pub const CLAUDE_GUARD: &str = include_str!("preset/guard/claude.json");
/// The settings that have Gemini CLI ask the guard.
pub const GEMINI_GUARD: &str = include_str!("preset/guard/gemini.json");
/// The policy that has Gemini CLI refuse what the guard refuses foremost, with the reason. The
/// settings above are not enough: Gemini CLI skips them unless root owns the file, and it reads a
/// policy from any owner.
const GEMINI_POLICY: &str = include_str!("preset/guard/gemini-policy.toml");
/// The plugin that has opencode ask the guard.
pub const OPENCODE_GUARD: &str = include_str!("preset/guard/opencode.js");

/// One agent as data.
#[derive(Debug)]
pub struct Preset {
    /// The name, as in `agent = "<name>"`. It is the program's name too.
    pub name: &'static str,
    /// Whose models it speaks to, where it speaks to one vendor's alone.
    pub family: Option<&'static str>,
    /// The version that the preset was tested with.
    pub tested: &'static str,
    /// The form of its output.
    pub protocol: Protocol,
    /// Whether it edits files of a checkout and does nothing else.
    pub edits_only: bool,
    /// State below the home directory that it writes. A name that ends in `.json` is a file.
    pub home: &'static [&'static str],
    /// The arguments in every role, the program apart.
    args: &'static [&'static str],
    /// Further arguments of a builder or resolver: the guard.
    guard_args: &'static [&'static str],
    /// Further arguments of a reviewer or adviser: the checkout's own agent configuration is not loaded.
    independent_args: &'static [&'static str],
    model_args: &'static [&'static str],
    effort_args: &'static [&'static str],
    /// What has it go on in an earlier session.
    resume_args: &'static [&'static str],
    prompt_via: PromptVia,
    env: &'static [(&'static str, &'static str)],
    guard_env: &'static [(&'static str, &'static str)],
    independent_env: &'static [(&'static str, &'static str)],
}

/// The keys of a leaf that a preset gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stanza {
    mode: LeafMode,
    argv: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    model_args: &'static [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    effort_args: &'static [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    resume_args: &'static [&'static str],
    prompt_via: PromptVia,
    protocol: Protocol,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<&'static str, &'static str>,
}

impl Preset {
    /// The preset of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.into_iter().find(|preset| preset.name == name)
    }

    /// The name of the preset that was probably meant.
    pub fn nearest(name: &str) -> Option<&'static str> {
        let name = name.to_lowercase();
        let near = PRESETS.map(|preset| (strsim::damerau_levenshtein(&name, preset.name), preset));
        let near = near.into_iter().filter(|(distance, _)| *distance <= (name.len() / 3).min(2));
        near.min_by_key(|(distance, _)| *distance).map(|(_, preset)| preset.name)
    }

    /// Returns the roles that the agent can fill, in the order of the cycle.
    pub fn roles(&self) -> impl Iterator<Item = Role> {
        ROLES.iter().map(|spec| spec.role).filter(|role| self.can_fill(*role))
    }

    /// Returns whether the agent can fill a role.
    pub fn can_fill(&self, role: Role) -> bool {
        role.spec().edits_checkout || !self.edits_only
    }

    /// The keys of the leaf of a role; none where the agent cannot fill it.
    pub fn stanza(&self, role: Role) -> Option<Stanza> {
        if !self.can_fill(role) {
            return None;
        }
        let mut argv = vec![self.name];
        argv.extend(self.args);
        let mut env: BTreeMap<_, _> = self.env.iter().copied().collect();
        // The roles with a checkout whose commits count. The others change nothing that is kept.
        if role.spec().edits_checkout {
            argv.extend(self.guard_args);
            env.extend(self.guard_env.iter().copied());
        }
        if role.is_independent() {
            argv.extend(self.independent_args);
            env.extend(self.independent_env.iter().copied());
        }
        Some(Stanza {
            mode: LeafMode::Command,
            argv,
            model_args: self.model_args,
            effort_args: self.effort_args,
            resume_args: if role.may_resume() { self.resume_args } else { &[] },
            prompt_via: self.prompt_via,
            protocol: self.protocol,
            family: self.family,
            env,
        })
    }
}

/// The files of the guard as they lie below `{guard}`, asking `program`.
pub(crate) fn guard_files(program: &str) -> [(&'static str, String); 4] {
    let gemini = GEMINI_GUARD.replace("pdca guard", &format!("{program} guard"));
    let opencode = OPENCODE_GUARD.replace("\"pdca\"", &format!("\"{program}\""));
    let policy = GEMINI_POLICY.to_owned();
    // opencode writes this file where it is missing, and does not start where it cannot.
    let ignored =
        "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore\n".to_owned();
    [
        ("gemini.json", gemini),
        ("opencode/plugin/pdca-guard.js", opencode),
        ("gemini.toml", policy),
        ("opencode/.gitignore", ignored),
    ]
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use insta::assert_snapshot;

    use super::*;
    use crate::config::{LeafConfig, Leaves};

    fn leaf(preset: &Preset, role: Role) -> LeafConfig {
        let stanza = serde_json::to_value(preset.stanza(role).unwrap()).unwrap();
        serde_json::from_value(stanza).unwrap()
    }

    #[test]
    fn every_stanza_is_a_leaf_that_nothing_is_wrong_with() {
        for preset in PRESETS {
            for role in preset.roles() {
                let leaf = LeafConfig { id: Some("a".into()), ..leaf(preset, role) };
                let leaves = Leaves { advisory: vec![leaf], ..Leaves::default() };
                assert_eq!(leaves.validate(), [], "{} as {role}", preset.name);
            }
        }
    }

    #[test]
    fn the_arguments_of_each_agent() {
        let mut text = String::new();
        for preset in PRESETS {
            for role in [Role::Builder, Role::Reviewer] {
                if let Some(stanza) = preset.stanza(role) {
                    let argv = stanza.argv.join(" ");
                    let env: Vec<String> =
                        stanza.env.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                    writeln!(text, "{role}: {argv}{}", env.concat()).unwrap();
                }
            }
        }
        assert_snapshot!(text, @r#"
        builder: aider --message-file {prompt_file} --read {brief} --yes-always --no-gitignore --no-auto-commits --no-dirty-commits --no-check-update --no-show-release-notes --no-show-model-warnings --no-suggest-shell-commands --analytics-disable --no-pretty --no-stream --map-tokens 0 --chat-history-file {bundle}/.aider.chat.history.md --input-history-file {bundle}/.aider.input.history COLUMNS=1000 LITELLM_LOCAL_MODEL_COST_MAP=True
        builder: claude -p --permission-mode bypassPermissions --output-format stream-json --verbose --settings {{"hooks":{{"PreToolUse":[{{"matcher":"Bash|Write|Edit|MultiEdit|NotebookEdit","hooks":[{{"type":"command","command":"{pdca} guard builder --agent claude || exit 2"}}]}}]}}}} CLAUDE_CODE_MAX_RETRIES=2 DISABLE_AUTOUPDATER=1 IS_SANDBOX=1
        reviewer: claude -p --permission-mode bypassPermissions --output-format stream-json --verbose --setting-sources user --strict-mcp-config CLAUDE_CODE_MAX_RETRIES=2 DISABLE_AUTOUPDATER=1 IS_SANDBOX=1
        builder: codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json --dangerously-bypass-hook-trust -c hooks.PreToolUse=[{{matcher="Bash|apply_patch",hooks=[{{type="command",command="{pdca} guard builder --agent codex || exit 2"}}]}}]
        reviewer: codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json -c project_doc_max_bytes=0
        builder: gemini --approval-mode yolo --skip-trust --output-format stream-json --include-directories {inputs} --policy {guard}/gemini.toml GEMINI_CLI_SYSTEM_SETTINGS_PATH={guard}/gemini.json
        reviewer: gemini --approval-mode yolo --skip-trust --output-format stream-json --include-directories {inputs}
        builder: opencode run --auto --format json --print-logs --log-level ERROR OPENCODE_CONFIG_DIR={guard}/opencode OPENCODE_DISABLE_AUTOUPDATE=1
        reviewer: opencode run --auto --format json --print-logs --log-level ERROR --pure OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_PROJECT_CONFIG=1
        "#);
    }

    #[test]
    fn aider_is_not_asked_for_a_file_outside_its_checkout() {
        for role in aider::PRESET.roles() {
            let prompt = crate::prompt::built_in(role, leaf(&aider::PRESET, role).protocol);
            assert!(!prompt.contains("{output}"), "{prompt}");
            assert!(prompt.contains("an edit of any other file voids all of them"), "{prompt}");
        }
    }

    #[test]
    fn a_guard_is_in_force_for_those_who_change_code_alone() {
        for preset in PRESETS.into_iter().filter(|preset| preset.name != "aider") {
            let text = |role| serde_json::to_string(&preset.stanza(role).unwrap()).unwrap();
            for role in [Role::Builder, Role::Resolver] {
                assert!(text(role).contains("guard"), "{} as {role}", preset.name);
            }
            for role in [Role::Reviewer, Role::Planner] {
                assert!(!text(role).contains("guard"), "{} as {role}", preset.name);
            }
        }
    }

    #[test]
    fn a_name_that_is_near_is_found_and_a_far_one_is_not() {
        assert_eq!(Preset::nearest("cluade"), Some("claude"));
        assert_eq!(Preset::nearest("Codex"), Some("codex"));
        assert_eq!(Preset::nearest("reviewer"), None);
        assert_eq!(Preset::nearest("g"), None);
    }

    #[test]
    fn the_guards_of_claude_on_the_command_line_and_in_a_file_are_the_same() {
        let inline = claude::PRESET.guard_args[1].replace("{{", "{").replace("}}", "}");
        let inline = inline.replace("{pdca}", "pdca");
        let inline: serde_json::Value = serde_json::from_str(&inline).unwrap();
        assert_eq!(inline, serde_json::from_str::<serde_json::Value>(CLAUDE_GUARD).unwrap());
    }

    #[test]
    fn the_files_of_the_guard_ask_the_program_that_drives() {
        let files = guard_files("/opt/pdca");
        assert!(files[0].1.contains("\"/opt/pdca guard builder --agent gemini || exit 2\""));
        assert!(files[1].1.contains("spawnSync(\"/opt/pdca\", "));
    }
}
