//! What the model is told to answer.

use serde::Deserialize;

use crate::{
    ask::ModelAsk,
    fault::ModelFault,
    tools::{self, ModelReply},
};

/// Answers per role, and what goes wrong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelScript {
    #[serde(default, rename = "role")]
    pub(crate) roles: Vec<RoleScript>,
    #[serde(default, rename = "fault")]
    pub(crate) faults: Vec<ModelFault>,
    /// Words whose arrival is logged.
    #[serde(default)]
    pub(crate) watch: Vec<String>,
}

/// The answers to one kind of request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleScript {
    pub(crate) name: String,
    when: String,
    turns: Vec<Turn>,
}

/// One answer, before it is put into words of a protocol.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Turn {
    Say(String),
    Shell(String),
    Read(String),
    Write { path: String, text: String },
    Edit { path: String, old: String, new: String },
}

impl ModelScript {
    /// Returns the role that the request is of: the first one whose words are in it.
    pub(crate) fn role(&self, ask: &ModelAsk) -> Option<&RoleScript> {
        self.roles.iter().find(|role| ask.text.contains(&role.when))
    }
}

impl RoleScript {
    /// Returns the answer to the request. Past the last turn the last one is given again.
    pub(crate) fn reply(&self, ask: &ModelAsk) -> ModelReply {
        if ask.tools.is_empty() {
            return if ask.text.contains("SEARCH/REPLACE") {
                ModelReply::Say(self.edit_blocks(ask))
            } else {
                ModelReply::side_call(ask)
            };
        }
        match self.turns.get(ask.answered).or(self.turns.last()) {
            Some(turn) => tools::reply(&turn.filled(ask), &ask.tools),
            None => ModelReply::side_call(ask),
        }
    }

    /// Puts all edits and words of the role into one text, for an agent that has no tools.
    fn edit_blocks(&self, ask: &ModelAsk) -> String {
        let blocks = self.turns.iter().filter_map(|turn| match turn.filled(ask) {
            Turn::Say(text) => Some(text),
            Turn::Edit { path, old, new } => Some(block(&path, &old, &new)),
            // A block for a file outside the repository would void all others.
            Turn::Write { path, text } if !path.starts_with('/') => Some(block(&path, "", &text)),
            Turn::Write { .. } | Turn::Shell(_) | Turn::Read(_) => None,
        });
        blocks.collect::<Vec<_>>().join("\n\n")
    }
}

fn block(path: &str, old: &str, new: &str) -> String {
    let lines =
        |text: &str| if text.is_empty() { String::new() } else { format!("{}\n", text.trim_end()) };
    format!(
        "{path}\n```\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n```",
        lines(old),
        lines(new)
    )
}

impl Turn {
    /// Puts paths of the request in the place of `${NAME}`.
    fn filled(&self, ask: &ModelAsk) -> Turn {
        let fill = |text: &str| ask.fill(text);
        match self {
            Turn::Say(text) => Turn::Say(fill(text)),
            Turn::Shell(line) => Turn::Shell(fill(line)),
            Turn::Read(path) => Turn::Read(fill(path)),
            Turn::Write { path, text } => Turn::Write { path: fill(path), text: fill(text) },
            Turn::Edit { path, old, new } => {
                Turn::Edit { path: fill(path), old: fill(old), new: fill(new) }
            }
        }
    }
}
