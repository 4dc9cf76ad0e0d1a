//! What goes wrong, in the words of each provider.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::{ModelAsk, ModelProtocol};

/// A fault of the script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelFault {
    pub(crate) kind: FaultKind,
    pub(crate) role: Option<String>,
    pub(crate) calls: Option<u32>,
    pub(crate) seconds: Option<u64>,
    retry_after: Option<u64>,
    /// In how many seconds a used-up plan is good again.
    #[serde(default = "an_hour")]
    resets_in: i64,
}

fn an_hour() -> i64 {
    3600
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultKind {
    Unauthorized,
    RateLimit,
    Overloaded,
    UsageLimit,
    Context,
    Cut,
    Stall,
}

impl FaultKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            FaultKind::Unauthorized => "unauthorized",
            FaultKind::RateLimit => "rate-limit",
            FaultKind::Overloaded => "overloaded",
            FaultKind::UsageLimit => "usage-limit",
            FaultKind::Context => "context",
            FaultKind::Cut => "cut",
            FaultKind::Stall => "stall",
        }
    }
}

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct ModelRefusal {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

impl ModelFault {
    /// Returns the provider's error; none for a fault of the connection.
    pub(crate) fn refusal(&self, ask: &ModelAsk) -> Option<ModelRefusal> {
        let (status, body) = match ask.protocol {
            ModelProtocol::Anthropic => self.anthropic()?,
            ModelProtocol::Responses | ModelProtocol::Chat => self.openai(&ask.model)?,
            ModelProtocol::Gemini => self.gemini()?,
        };
        let mut headers = Vec::new();
        if let (FaultKind::RateLimit | FaultKind::Overloaded, Some(seconds)) =
            (self.kind, self.retry_after)
        {
            headers.push(("retry-after", seconds.to_string()));
        }
        Some(ModelRefusal { status, headers, body })
    }

    fn resets_at(&self) -> Timestamp {
        Timestamp::now() + jiff::SignedDuration::from_secs(self.resets_in)
    }

    fn anthropic(&self) -> Option<(u16, Value)> {
        let (status, kind, message) = match self.kind {
            FaultKind::Unauthorized => {
                (401, "authentication_error", "invalid x-api-key".to_owned())
            }
            FaultKind::RateLimit => (
                429,
                "rate_limit_error",
                "This request would exceed the rate limit of your organization".to_owned(),
            ),
            FaultKind::Overloaded => (529, "overloaded_error", "Overloaded".to_owned()),
            FaultKind::UsageLimit => (
                400,
                "invalid_request_error",
                format!(
                    "You have reached your specified API usage limits. You will regain access on {} UTC.",
                    self.resets_at().strftime("%Y-%m-%d at %H:%M")
                ),
            ),
            FaultKind::Context => (
                400,
                "invalid_request_error",
                "prompt is too long: 205012 tokens > 200000 maximum".to_owned(),
            ),
            FaultKind::Cut | FaultKind::Stall => return None,
        };
        Some((status, json!({"type": "error", "error": {"type": kind, "message": message}})))
    }

    fn openai(&self, model: &str) -> Option<(u16, Value)> {
        let error = |kind: &str, code: &str, message: &str| json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
        Some(match self.kind {
            FaultKind::Unauthorized => {
                let message =
                    "Incorrect API key provided: fake. You can find your API key in the dashboard.";
                (401, error("invalid_request_error", "invalid_api_key", message))
            }
            FaultKind::RateLimit => {
                let wait =
                    self.retry_after.map(|seconds| format!(" Please try again in {seconds}s."));
                let message = format!(
                    "Rate limit reached for {model} on requests per min (RPM): Limit 3, Used 3, Requested 1.{}",
                    wait.unwrap_or_default()
                );
                (429, error("requests", "rate_limit_exceeded", &message))
            }
            FaultKind::Overloaded => {
                let message =
                    "The server is currently overloaded with other requests. Sorry about that!";
                (503, error("server_error", "server_is_overloaded", message))
            }
            FaultKind::UsageLimit => {
                let mut body = error("usage_limit_reached", "", "The usage limit has been reached");
                body["error"]["plan_type"] = json!("plus");
                body["error"]["resets_at"] = json!(self.resets_at().as_second());
                body["error"]["resets_in_seconds"] = json!(self.resets_in);
                (429, body)
            }
            FaultKind::Context => {
                let message = "This model's maximum context length is 128000 tokens. However, your messages \
                               resulted in 130012 tokens. Please reduce the length of the messages.";
                (400, error("invalid_request_error", "context_length_exceeded", message))
            }
            FaultKind::Cut | FaultKind::Stall => return None,
        })
    }

    fn gemini(&self) -> Option<(u16, Value)> {
        let quota = |id: &str| {
            json!({
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaMetric": "generativelanguage.googleapis.com/requests", "quotaId": id}],
            })
        };
        let retry = |seconds: i64| {
            let delay = format!("{seconds}s");
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
        };
        let (code, status, message, details) = match self.kind {
            FaultKind::Unauthorized => (
                401,
                "UNAUTHENTICATED",
                "Request had invalid authentication credentials.",
                Vec::new(),
            ),
            FaultKind::RateLimit => {
                let mut details = vec![quota("GenerateRequestsPerMinutePerProjectPerModel")];
                details.extend(self.retry_after.map(|seconds| retry(seconds.cast_signed())));
                (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", details)
            }
            FaultKind::Overloaded => {
                (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", Vec::new())
            }
            FaultKind::UsageLimit => {
                let details =
                    vec![quota("GenerateRequestsPerDayPerProjectPerModel"), retry(self.resets_in)];
                (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", details)
            }
            FaultKind::Context => (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200012) exceeds the maximum number of tokens allowed (1048576).",
                Vec::new(),
            ),
            FaultKind::Cut | FaultKind::Stall => return None,
        };
        let error = json!({"code": code, "message": message, "status": status, "details": details});
        Some((code, json!({ "error": error })))
    }
}
