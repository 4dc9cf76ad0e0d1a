//! `--output-format stream-json` of Gemini CLI.

use serde_json::Value;

use super::{Complaint, End, Progress, Usage, number, status, text};

pub(super) fn read(record: &Value, progress: &mut Progress) {
    match text(record, "/type") {
        Some("init") => {
            progress.step();
            progress.session(text(record, "/session_id"));
            progress.transcript.model = text(record, "/model").map(str::to_owned);
        }
        Some("message") => {
            progress.step();
            let said = text(record, "/content").unwrap_or_default();
            match text(record, "/role") {
                Some("assistant") if record.pointer("/delta") == Some(&Value::Bool(true)) => {
                    progress.say_on(said);
                }
                Some("assistant") => progress.say(said),
                // The prompt is echoed as a message of the user. What the assistant says next is a
                // new message.
                Some(_) | None => progress.transcript.message = None,
            }
        }
        Some("tool_use") => {
            progress.step();
            progress.open(text(record, "/tool_id"));
            // What comes after it is another message.
            progress.transcript.message = None;
        }
        Some("tool_result") => {
            progress.step();
            progress.close(text(record, "/tool_id"));
        }
        Some("error") => {
            let text = text(record, "/message").unwrap_or("an error without words").to_owned();
            progress.complain(Complaint { text, ..Complaint::default() });
        }
        Some("result") => result(record, progress),
        Some(_) | None => {}
    }
}

fn result(record: &Value, progress: &mut Progress) {
    if let Some(stats) = record.pointer("/stats") {
        progress.transcript.usage = Some(Usage {
            input: number(stats, "/input_tokens"),
            cached: number(stats, "/cached"),
            output: number(stats, "/output_tokens"),
        });
    }
    if text(record, "/status") == Some("success") {
        progress.transcript.complaints.clear();
        progress.transcript.end = Some(End::Success);
        return;
    }
    let text = text(record, "/error/message").or_else(|| text(record, "/error/type"));
    let text = text.unwrap_or("it ended with an error").to_owned();
    let status = status(record, "/error/code");
    progress.fail(Complaint { text, status, ..Complaint::default() });
}
