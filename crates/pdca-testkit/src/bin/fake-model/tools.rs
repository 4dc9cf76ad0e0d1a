//! Turns as calls of the tools that an agent offers.

use serde_json::{Map, Value, json};

use crate::{
    ask::{ModelAsk, ModelTool},
    script::Turn,
};

/// An answer of the model.
#[derive(Debug, Clone)]
pub(crate) enum ModelReply {
    Say(String),
    Call { tool: String, input: ToolInput },
}

/// What a tool is called with.
#[derive(Debug, Clone)]
pub(crate) enum ToolInput {
    Fields(Value),
    Text(String),
}

impl ModelReply {
    /// Answers a request that is not part of the conversation, such as one for a title.
    pub(crate) fn side_call(ask: &ModelAsk) -> Self {
        ModelReply::Say(match &ask.form {
            Some(schema) => filler(schema).to_string(),
            None => "A small change".to_owned(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            ModelReply::Say(_) => "say",
            ModelReply::Call { tool, .. } => tool,
        }
    }
}

const SHELLS: [&str; 6] =
    ["Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command"];
const READERS: [&str; 3] = ["Read", "read", "read_file"];
const WRITERS: [&str; 3] = ["Write", "write", "write_file"];
const EDITORS: [&str; 3] = ["Edit", "edit", "replace"];
const PATCHER: &str = "apply_patch";

/// Chooses the tool for a turn. What has no tool of its own goes through the shell; without a shell the turn is told in words.
pub(crate) fn reply(turn: &Turn, tools: &[ModelTool]) -> ModelReply {
    let offered =
        |names: &[&str]| names.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name));
    let shell = |line: String| match offered(&SHELLS) {
        Some(tool) => call(tool, &[(&["command", "cmd"], &line)]),
        None => ModelReply::Say(format!("no shell to run: {line}")),
    };
    match turn {
        Turn::Say(text) => ModelReply::Say(text.clone()),
        Turn::Shell(line) => shell(line.clone()),
        Turn::Read(path) => match offered(&READERS) {
            Some(tool) => call(tool, &[(&["file_path", "filePath", "path"], path)]),
            None => shell(format!("cat {}", quoted(path))),
        },
        Turn::Write { path, text } => match (offered(&WRITERS), offered(&[PATCHER])) {
            (Some(tool), _) => {
                call(tool, &[(&["file_path", "filePath", "path"], path), (&["content"], text)])
            }
            (None, Some(tool)) => {
                patch(tool, &format!("*** Add File: {path}\n{}", marked('+', text)))
            }
            (None, None) => shell(format!("printf %s {} > {}", quoted(text), quoted(path))),
        },
        Turn::Edit { path, old, new } => match (offered(&EDITORS), offered(&[PATCHER])) {
            (Some(tool), _) => call(
                tool,
                &[
                    (&["file_path", "filePath", "path"], path),
                    (&["old_string", "oldString"], old),
                    (&["new_string", "newString"], new),
                ],
            ),
            (None, Some(tool)) => patch(
                tool,
                &format!("*** Update File: {path}\n@@\n{}{}", marked('-', old), marked('+', new)),
            ),
            (None, None) => shell(format!(
                "python3 - {} {} {} <<'END'\nimport sys\np, a, b = sys.argv[1:]\nt = open(p).read()\nopen(p, 'w').write(t.replace(a, b, 1))\nEND",
                quoted(path),
                quoted(old),
                quoted(new)
            )),
        },
    }
}

fn marked(mark: char, text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{mark}{line}\n")).collect();
    lines.concat()
}

/// A word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn patch(tool: &ModelTool, change: &str) -> ModelReply {
    let text = format!("*** Begin Patch\n{change}*** End Patch\n");
    let input = match &tool.schema {
        Some(_) => ToolInput::Fields(json!({ "input": text })),
        None => ToolInput::Text(text),
    };
    ModelReply::Call { tool: tool.name.clone(), input }
}

/// Calls a tool with values under the first name that its schema knows; other required fields are filled with what they may be.
fn call(tool: &ModelTool, values: &[(&[&str], &String)]) -> ModelReply {
    let schema = tool.schema.clone().unwrap_or_default();
    let properties = &schema["properties"];
    let mut fields = Map::new();
    for (names, value) in values {
        let name = names.iter().find(|name| properties.get(**name).is_some()).unwrap_or(&names[0]);
        let value = match properties[*name]["type"].as_str() {
            Some("array") => json!(["bash", "-c", value]),
            _ => json!(value),
        };
        fields.insert((*name).to_owned(), value);
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            fields.insert(name.to_owned(), filler(&properties[name]));
        }
    }
    ModelReply::Call { tool: tool.name.clone(), input: ToolInput::Fields(Value::Object(fields)) }
}

/// Any value that the schema allows.
fn filler(schema: &Value) -> Value {
    let first = schema["enum"].as_array().and_then(|values| values.first());
    match (first, schema["type"].as_str().map(str::to_lowercase).as_deref()) {
        (Some(value), _) => value.clone(),
        (None, Some("boolean")) => json!(false),
        (None, Some("integer" | "number")) => json!(50),
        (None, Some("array")) => json!([]),
        (None, Some("object")) => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), filler(schema))).collect()
        }
        (None, _) => json!("as the script says"),
    }
}
