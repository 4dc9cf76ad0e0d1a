//! `stream-json` of Claude Code.

use std::time::Duration;

use serde_json::Value;

use super::{Complaint, End, Progress, Usage, dollars, number, status, text};

/// Its own first pauses are shorter than this.
const TOLD: Duration = Duration::from_secs(5);

pub(super) fn read(record: &Value, progress: &mut Progress) {
    match text(record, "/type") {
        Some("system") if text(record, "/subtype") == Some("init") => {
            progress.step();
            progress.session(text(record, "/session_id"));
            progress.transcript.model = text(record, "/model").map(str::to_owned);
        }
        Some("system") if text(record, "/subtype") == Some("api_retry") => {
            let text = text(record, "/error").unwrap_or("the request is tried again").to_owned();
            let status = status(record, "/error_status");
            // A short one is its own; a long one it was told.
            let delay = record.pointer("/retry_delay_ms").and_then(Value::as_f64).unwrap_or(0.0);
            let retry_after = Duration::try_from_secs_f64(delay / 1000.0).ok();
            let retry_after = retry_after.filter(|delay| *delay >= TOLD);
            progress.complain(Complaint { text, status, retry_after, ..Complaint::default() });
        }
        Some("assistant") => assistant(record, progress),
        // Results of tools come back to the model as messages of the user.
        Some("user") => {
            progress.step();
            for part in parts(record) {
                progress.close(text(part, "/tool_use_id"));
            }
        }
        Some("stream_event") => progress.step(),
        Some("rate_limit_event") => {
            let info = record.pointer("/rate_limit_info").unwrap_or(&Value::Null);
            if text(info, "/status") == Some("rejected") {
                let kind = text(info, "/rateLimitType").unwrap_or("usage");
                progress.complain(Complaint {
                    text: format!("rate limit: {kind} limit reached"),
                    resets_at: info.pointer("/resetsAt").and_then(Value::as_i64),
                    ..Complaint::default()
                });
            }
        }
        Some("result") => result(record, progress),
        Some(_) | None => {}
    }
}

fn assistant(record: &Value, progress: &mut Progress) {
    let said: Vec<&str> = parts(record).filter_map(|part| text(part, "/text")).collect();
    // A failure of the interface is printed as if the model had said it.
    if let Some(kind) = text(record, "/error") {
        let said = said.join("\n");
        let text = if said.is_empty() { kind.to_owned() } else { format!("{said} ({kind})") };
        progress.complain(Complaint { text, ..Complaint::default() });
        return;
    }
    progress.step();
    for part in parts(record).filter(|part| text(part, "/type") == Some("tool_use")) {
        progress.open(text(part, "/id"));
    }
    let is_own = record.pointer("/parent_tool_use_id").is_none_or(Value::is_null);
    // What a sub-agent says has a parent, and is not the answer.
    if is_own && !said.is_empty() {
        progress.say(&said.join("\n"));
    }
}

fn result(record: &Value, progress: &mut Progress) {
    progress.session(text(record, "/session_id"));
    progress.transcript.cost = dollars(record, "/total_cost_usd");
    if let Some(usage) = record.pointer("/usage") {
        let cached = number(usage, "/cache_read_input_tokens");
        let made = number(usage, "/cache_creation_input_tokens");
        progress.transcript.usage = Some(Usage {
            // Here `input_tokens` is without those of the cache; `Usage::input` is all of them.
            input: number(usage, "/input_tokens").saturating_add(cached).saturating_add(made),
            cached,
            output: number(usage, "/output_tokens"),
        });
    }
    progress.transcript.cost_tokens = model_tokens(record);
    let said = text(record, "/result").unwrap_or_default();
    let is_error = record.pointer("/is_error").and_then(Value::as_bool).unwrap_or(false);
    let subtype = text(record, "/subtype").unwrap_or("success");
    // After a failure of the provider `is_error` is set while `subtype` is `success` all the same.
    if is_error || subtype != "success" {
        let errors = record.pointer("/errors").and_then(Value::as_array);
        let errors = errors.into_iter().flatten().filter_map(Value::as_str);
        let said =
            if said.is_empty() { errors.collect::<Vec<_>>().join("; ") } else { said.into() };
        let text = match (said.is_empty(), subtype) {
            (true, subtype) => subtype.to_owned(),
            (false, "success") => said,
            (false, subtype) => format!("{said} ({subtype})"),
        };
        let status = status(record, "/api_error_status");
        progress.fail(Complaint { text, status, ..Complaint::default() });
        return;
    }
    if !said.is_empty() {
        progress.say(said);
    }
    progress.transcript.complaints.clear();
    progress.transcript.end = Some(End::Success);
}

/// The tokens of all models, as `total_cost_usd` counts them: those of the call up to 2.1.324, and those of the session
/// from then on. `usage` is that of the call in both.
fn model_tokens(record: &Value) -> Option<u64> {
    const KEYS: [&str; 4] =
        ["/inputTokens", "/outputTokens", "/cacheReadInputTokens", "/cacheCreationInputTokens"];
    let models = record.pointer("/modelUsage").and_then(Value::as_object)?;
    let counts = models.values().flat_map(|model| KEYS.map(|key| number(model, key)));
    Some(counts.fold(0, u64::saturating_add))
}

fn parts(record: &Value) -> impl Iterator<Item = &Value> {
    record.pointer("/message/content").and_then(Value::as_array).into_iter().flatten()
}
