//! Parsing a tool call in the JSON of an agent, and rendering the answer in that agent's protocol.
//!
//! | agent | event | source of the format |
//! |---|---|---|
//! | Claude Code | `PreToolUse` | `PreToolUseHookInput`, `BashInput`, `FileWriteInput`, … of `@anthropic-ai/claude-agent-sdk` |
//! | Codex | `PreToolUse` | `codex-rs/hooks/schema/generated/pre-tool-use.command.input.schema.json` |
//! | Gemini CLI | `BeforeTool` | `docs/hooks/reference.md` of `google-gemini/gemini-cli` |
//! | opencode | `tool.execute.before` | `Hooks` of `@opencode-ai/plugin`; our plugin passes `input` and `output.args` on |

use std::str::FromStr;

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use crate::tool_guard::answer::{GuardAnswer, GuardRefusal};
use crate::tool_guard::scope::GuardScope;
use crate::tool_guard::walk::{AliasLookup, ShellWalk, quoted};

/// An agent whose tool calls can be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    /// opencode, through the plugin that `pdca init` writes.
    Opencode,
}

impl Agent {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// Returns the name of the agent's program.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }
}

impl FromStr for Agent {
    type Err = CallError;

    fn from_str(name: &str) -> Result<Self, CallError> {
        let found = Self::ALL.into_iter().find(|agent| agent.as_str() == name);
        found.ok_or_else(|| CallError::Agent { name: name.to_owned() })
    }
}

/// Failure to parse standard input as a tool call.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No agent has this name.
    #[error("unknown agent `{name}`")]
    Agent { name: String },
    #[error("the tool call is not JSON")]
    Json { source: serde_json::Error },
    /// The JSON does not have the shape that the agent writes.
    #[error("the tool call has no {missing}")]
    Shape {
        /// The field that is missing or of another type.
        missing: &'static str,
    },
}

/// The part of a tool call that is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub agent: Agent,
    /// The name of the tool, as the agent spells it.
    pub tool: String,
    /// The directory the tool starts in, if the agent names one.
    pub cwd: Option<Utf8PathBuf>,
    pub action: ToolAction,
}

/// The effect of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAction {
    /// Runs shell text.
    Shell(String),
    /// Writes these files.
    Write(Vec<String>),
    /// Neither runs nor writes anything.
    Other,
}

impl ToolCall {
    /// Parses a call. If `agent` is `None`, it is recognised by the shape of the JSON.
    pub fn parse(text: &str, agent: Option<Agent>) -> Result<Self, CallError> {
        let value: Value =
            serde_json::from_str(text).map_err(|source| CallError::Json { source })?;
        // The preset names its agent. Hooks that a person wrote by hand may not.
        let agent = agent.unwrap_or_else(|| guess(&value));
        let (tool, input) = match agent {
            Agent::Opencode => ("tool", "args"),
            Agent::Claude | Agent::Codex | Agent::Gemini => ("tool_name", "tool_input"),
        };
        let name = value.get(tool).and_then(Value::as_str);
        let name = name.ok_or(CallError::Shape {
            missing: if tool == "tool" { "`tool`" } else { "`tool_name`" },
        })?;
        let input = value.get(input).filter(|input| input.is_object() || input.is_string());
        let input = input.ok_or(CallError::Shape {
            missing: if tool == "tool" { "`args`" } else { "`tool_input`" },
        })?;
        let text =
            |names: &[&str]| names.iter().find_map(|name| input.get(name)).and_then(Value::as_str);
        let cwd = text(&["directory", "dir_path", "workdir"])
            .or_else(|| value.get("cwd").or_else(|| value.get("directory")).and_then(Value::as_str))
            .map(Utf8PathBuf::from);
        let action = action(name, input)?;
        Ok(Self { agent, tool: name.to_owned(), cwd, action })
    }

    /// Judges the call of a builder.
    pub fn judge(&self, scope: &GuardScope, git_alias: AliasLookup<'_>) -> GuardAnswer {
        let cwd = match &self.cwd {
            Some(cwd) => crate::tool_guard::scope::normal(&scope.lane().join(cwd)),
            None => scope.lane().to_owned(),
        };
        match &self.action {
            ToolAction::Shell(text) => crate::tool_guard::judge_shell(text, scope, &cwd, git_alias),
            ToolAction::Write(paths) => {
                let mut walk = ShellWalk::new(scope, git_alias, cwd);
                let part = |path: &String| format!("{} {path}", self.tool);
                let result: Result<(), GuardRefusal> = paths.iter().try_for_each(|path| {
                    crate::tool_guard::rule::files::write(path, &part(path), &mut walk)
                });
                GuardAnswer { refusal: result.err(), unseen: walk.unseen }
            }
            ToolAction::Other => GuardAnswer::default(),
        }
    }
}

/// Recognises the agent by fields that only it writes.
fn guess(value: &Value) -> Agent {
    if value.get("tool").is_some() && value.get("args").is_some() {
        Agent::Opencode
    } else if value.get("hook_event_name").and_then(Value::as_str) == Some("BeforeTool") {
        Agent::Gemini
    } else if value.get("turn_id").is_some() || value.get("model").is_some() {
        Agent::Codex
    } else {
        Agent::Claude
    }
}

/// Returns the effect of a tool, by its name and input.
fn action(tool: &str, input: &Value) -> Result<ToolAction, CallError> {
    let missing = |missing: &'static str| CallError::Shape { missing };
    let file = |names: &[&str]| {
        names.iter().find_map(|name| input.get(name)).and_then(Value::as_str).map(str::to_owned)
    };
    match tool {
        "Bash" | "bash" | "run_shell_command" | "shell" | "local_shell" | "exec_command"
        | "unified_exec" | "Monitor" => {
            match input.get("command").or_else(|| input.get("cmd")) {
                Some(Value::String(text)) => Ok(ToolAction::Shell(text.clone())),
                // An argument list: quoted, so that the lexer reads back exactly that list.
                Some(Value::Array(cmdline)) => {
                    let cmdline: Option<Vec<&str>> = cmdline.iter().map(Value::as_str).collect();
                    let cmdline = cmdline.ok_or(missing("`command` of strings"))?;
                    Ok(ToolAction::Shell(quoted(&cmdline)))
                }
                _ => Err(missing("`command`")),
            }
        }
        "apply_patch" | "patch" => {
            let text = input
                .as_str()
                .map(str::to_owned)
                .or_else(|| file(&["command", "patchText", "input", "patch"]));
            Ok(ToolAction::Write(patched(&text.ok_or(missing("patch text"))?)))
        }
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "write" | "edit" | "multiedit"
        | "write_file" | "replace" => {
            let path = file(&["file_path", "filePath", "notebook_path", "absolute_path", "path"]);
            Ok(ToolAction::Write(vec![path.ok_or(missing("file path"))?]))
        }
        // A tool that is not known is allowed: agents have many that only read, and the matchers of
        // the presets pass on those that run or write.
        _ => Ok(ToolAction::Other),
    }
}

/// Returns the files that a patch in Codex's own format writes.
fn patched(patch: &str) -> Vec<String> {
    const HEADERS: [&str; 4] =
        ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let file = |line: &str| {
        HEADERS.iter().find_map(|header| line.trim_end().strip_prefix(header)).map(str::to_owned)
    };
    patch.lines().filter_map(file).collect()
}

/// Returns the reason for a refusal, in words for the model.
pub fn reason(refusal: &GuardRefusal) -> String {
    format!("pdca guard: refused: {refusal}. Instead: {}.", refusal.instead)
}

/// Returns the JSON that the agent's protocol expects on standard output beside the exit code, if any.
///
/// All agents accept exit code 2 with the reason on standard error. The JSON repeats it for those that read it; the
/// others only look at the exit code.
pub fn decision(agent: Agent, refusal: &GuardRefusal) -> Option<String> {
    let reason = reason(refusal);
    let value = match agent {
        Agent::Claude | Agent::Codex => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}),
        Agent::Gemini => json!({"decision": "deny", "reason": reason}),
        // The plugin of opencode throws with what is on standard error, and reads no JSON.
        Agent::Opencode => return None,
    };
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn judged(text: &str, agent: Option<Agent>) -> GuardAnswer {
        let env = BTreeMap::from([
            ("PDCA_WORKTREE".to_owned(), "/w.lanes/lane-0/repo".to_owned()),
            ("PDCA_WORKSPACE".to_owned(), "/w".to_owned()),
        ]);
        let scope = GuardScope::from_env(env).expect("a builder's environment");
        ToolCall::parse(text, agent).unwrap().judge(&scope, &|_| None)
    }

    const CLAUDE: &str = r#"{"session_id":"a","transcript_path":"/t","cwd":"/w.lanes/lane-0/repo",
        "permission_mode":"bypassPermissions","hook_event_name":"PreToolUse","tool_name":"Bash",
        "tool_input":{"command":"COMMAND","description":"x"},"tool_use_id":"toolu_1"}"#;
    const CODEX: &str = r#"{"session_id":"a","turn_id":"t","transcript_path":null,"cwd":"/w.lanes/lane-0/repo",
        "hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"Bash",
        "tool_input":{"command":"COMMAND"},"tool_use_id":"c"}"#;
    const GEMINI: &str = r#"{"session_id":"a","transcript_path":"/t","cwd":"/w.lanes/lane-0/repo",
        "hook_event_name":"BeforeTool","timestamp":"2026-01-01T00:00:00Z","tool_name":"run_shell_command",
        "tool_input":{"command":"COMMAND","description":"x"}}"#;
    const OPENCODE: &str = r#"{"tool":"bash","sessionID":"s","callID":"c","args":{"command":"COMMAND","description":"x"}}"#;

    #[test]
    fn every_agent_is_understood_and_told_apart_by_its_shape() {
        for (agent, shape) in Agent::ALL.into_iter().zip([CLAUDE, CODEX, GEMINI, OPENCODE]) {
            let refused = shape.replace("COMMAND", "cd src && git push");
            let allowed = shape.replace("COMMAND", "git commit -m 'git push'");
            assert_eq!(ToolCall::parse(&refused, None).unwrap().agent, agent);
            for named in [None, Some(agent)] {
                assert!(!judged(&refused, named).is_allowed(), "{agent:?}");
                assert!(judged(&allowed, named).is_allowed(), "{agent:?}");
            }
        }
    }

    #[test]
    fn a_file_tool_is_judged_by_its_path() {
        let write = |tool: &str, key: &str, path: &str| {
            format!(r#"{{"tool_name":"{tool}","tool_input":{{"{key}":"{path}"}}}}"#)
        };
        for (tool, key) in [
            ("Write", "file_path"),
            ("Edit", "file_path"),
            ("NotebookEdit", "notebook_path"),
            ("write_file", "file_path"),
        ] {
            assert!(!judged(&write(tool, key, "/w/pdca.toml"), None).is_allowed(), "{tool}");
            assert!(
                judged(&write(tool, key, "/w.lanes/lane-0/repo/a.rs"), None).is_allowed(),
                "{tool}"
            );
            assert!(judged(&write(tool, key, "src/push.rs"), None).is_allowed(), "{tool}");
            assert!(
                !judged(&write(tool, key, "../../lane-1/repo/a.rs"), None).is_allowed(),
                "{tool}"
            );
        }
        let patch = |path: &str| {
            let text =
                format!("*** Begin Patch\\n*** Update File: {path}\\n+git push\\n*** End Patch");
            format!(
                r#"{{"tool_name":"apply_patch","turn_id":"t","tool_input":{{"command":"{text}"}}}}"#
            )
        };
        assert!(judged(&patch("src/a.rs"), None).is_allowed());
        assert!(!judged(&patch("/w/results/issue_1/SUMMARY.md"), None).is_allowed());
        assert!(!judged(r#"{"tool":"edit","args":{"filePath":"/w/x"}}"#, None).is_allowed());
    }

    #[test]
    fn a_tool_that_neither_runs_nor_writes_is_allowed() {
        assert!(
            judged(r#"{"tool_name":"Read","tool_input":{"file_path":"/w/pdca.toml"}}"#, None)
                .is_allowed()
        );
    }

    #[test]
    fn what_is_no_tool_call_is_an_error() {
        for text in [
            "",
            "git push",
            "[]",
            "{}",
            r#"{"tool_name":"Bash"}"#,
            r#"{"tool_name":"Bash","tool_input":{}}"#,
            r#"{"tool_name":"Bash","tool_input":{"command":7}}"#,
            r#"{"tool_name":"Write","tool_input":{"content":"x"}}"#,
            r#"{"tool":"bash"}"#,
        ] {
            assert!(ToolCall::parse(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn the_directory_of_the_call_counts() {
        let call = r#"{"tool_name":"run_shell_command","hook_event_name":"BeforeTool",
            "tool_input":{"command":"git commit -am x","dir_path":"/w"}}"#;
        assert!(!judged(call, None).is_allowed());
    }

    #[test]
    fn a_refusal_is_said_in_the_terms_of_the_agent() {
        let refusal = GuardRefusal::new("git push", "a builder does not push", "commit");
        let deny = |agent| decision(agent, &refusal).unwrap_or_default();
        assert!(deny(Agent::Claude).contains(r#""permissionDecision":"deny""#));
        assert!(deny(Agent::Gemini).contains(r#""decision":"deny""#));
        assert_eq!(decision(Agent::Opencode, &refusal), None);
        assert_eq!(
            reason(&refusal),
            "pdca guard: refused: `git push`: a builder does not push. Instead: commit."
        );
    }
}
