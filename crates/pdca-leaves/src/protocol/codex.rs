//! `exec --json` of Codex.

use serde_json::Value;

use super::{Complaint, End, Progress, Usage, number, text};

pub(super) fn read(record: &Value, progress: &mut Progress) {
    let item = record.pointer("/item").unwrap_or(&Value::Null);
    let id = text(item, "/id");
    match text(record, "/type") {
        Some("thread.started") => {
            progress.step();
            progress.session(text(record, "/thread_id"));
        }
        Some("turn.started" | "item.updated") => progress.step(),
        Some("item.started") => {
            progress.step();
            if is_tool(item) {
                progress.open(id);
            }
        }
        Some("item.completed") => match text(item, "/type") {
            // A warning and not an end: the turn goes on.
            Some("error") => complain(text(item, "/message"), progress),
            Some("agent_message") => {
                progress.step();
                progress.say(text(item, "/text").unwrap_or_default());
            }
            Some(_) | None => {
                progress.step();
                if is_tool(item) && id.is_none_or(|id| !progress.open.contains(id)) {
                    // Changes of files are told when they are done.
                    progress.open(None);
                }
                progress.close(id);
            }
        },
        Some("turn.completed") => {
            progress.step();
            if let Some(usage) = record.pointer("/usage") {
                // Of the whole session, also after it was resumed.
                progress.tokens_so_far(Usage {
                    input: number(usage, "/input_tokens"),
                    cached: number(usage, "/cached_input_tokens"),
                    output: number(usage, "/output_tokens"),
                });
            }
            progress.transcript.end = Some(End::Success);
        }
        Some("turn.failed") => {
            let text = text(record, "/error/message").unwrap_or("the turn failed").to_owned();
            progress.fail(Complaint { text, ..Complaint::default() });
        }
        // `Reconnecting... 2/5` among others: no sign that anything goes on.
        Some("error") => complain(text(record, "/message"), progress),
        Some(_) | None => {}
    }
}

fn complain(message: Option<&str>, progress: &mut Progress) {
    let text = message.unwrap_or("an error without words").to_owned();
    progress.complain(Complaint { text, ..Complaint::default() });
}

fn is_tool(item: &Value) -> bool {
    !matches!(
        text(item, "/type"),
        None | Some("agent_message" | "reasoning" | "todo_list" | "error" | "user_message")
    )
}
