//! `run --format json` of opencode.

use std::time::Duration;

use serde_json::Value;

use super::{Complaint, End, Progress, Usage, dollars, number, status, text};

pub(super) fn read(record: &Value, progress: &mut Progress) {
    progress.session(text(record, "/sessionID"));
    let part = record.pointer("/part").unwrap_or(&Value::Null);
    match text(record, "/type") {
        Some("step_start" | "reasoning") => progress.step(),
        Some("text") => {
            progress.step();
            progress.say(text(part, "/text").unwrap_or_default());
        }
        // A tool is told when it has ended.
        Some("tool_use") => {
            progress.step();
            progress.open(None);
        }
        Some("step_finish") => {
            progress.step();
            let cached = number(part, "/tokens/cache/read");
            let made = number(part, "/tokens/cache/write");
            progress.use_tokens(Usage {
                input: number(part, "/tokens/input").saturating_add(cached).saturating_add(made),
                cached,
                output: number(part, "/tokens/output"),
            });
            // Told step by step, so it is summed; Claude Code tells the sum of the call once.
            if let Some(cost) = dollars(part, "/cost") {
                let all = progress.transcript.cost.get_or_insert_default();
                *all = all.plus(cost);
            }
            if text(part, "/reason") == Some("stop") {
                progress.transcript.end = Some(End::Success);
            }
        }
        Some("error") => {
            let said =
                text(record, "/error/data/message").or_else(|| text(record, "/error/message"));
            let name = text(record, "/error/name").unwrap_or("error");
            let after = text(record, "/error/data/responseHeaders/retry-after");
            progress.fail(Complaint {
                text: format!("{} ({name})", said.unwrap_or("an error without words")),
                status: status(record, "/error/data/statusCode"),
                retry_after: after.and_then(|after| after.parse().ok()).map(Duration::from_secs),
                resets_at: None,
            });
        }
        Some(_) | None => {}
    }
}
