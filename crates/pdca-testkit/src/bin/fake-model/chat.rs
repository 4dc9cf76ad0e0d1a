//! `OpenAI` Chat Completions.

use serde_json::{Value, json};

use crate::{
    ask::{ModelAsk, ModelProtocol, ModelTool},
    http::StreamEvent,
    tools::{ModelReply, ToolInput},
};

pub(crate) fn read(body: &Value) -> ModelAsk {
    let tools = body["tools"].as_array().into_iter().flatten().filter_map(|tool| {
        let function = tool.get("function")?;
        let schema = Some(function["parameters"].clone());
        Some(ModelTool { name: function["name"].as_str()?.to_owned(), schema })
    });
    let stream = body["stream"].as_bool().unwrap_or_default();
    let is_result = |value: &Value| value["role"] == "tool";
    ModelAsk::new(ModelProtocol::Chat, body, stream, tools.collect(), is_result)
}

fn message(reply: &ModelReply, ask: &ModelAsk) -> (Value, &'static str) {
    match reply {
        ModelReply::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        ModelReply::Call { tool, input } => {
            let arguments = match input {
                ToolInput::Fields(fields) => fields.to_string(),
                ToolInput::Text(text) => json!({ "input": text }).to_string(),
            };
            let call = json!({
                "index": 0, "id": format!("call_{:04}", ask.answered), "type": "function",
                "function": {"name": tool, "arguments": arguments},
            });
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
    }
}

fn document(ask: &ModelAsk, object: &str, choices: &Value) -> Value {
    json!({
        "id": format!("chatcmpl-{:04}", ask.answered), "object": object, "created": 1_700_000_000,
        "model": ask.model, "choices": choices,
    })
}

fn usage() -> Value {
    json!({"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050})
}

pub(crate) fn whole(reply: &ModelReply, ask: &ModelAsk) -> Value {
    let (message, finish) = message(reply, ask);
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    let mut answer = document(ask, "chat.completion", &choices);
    answer["usage"] = usage();
    answer
}

pub(crate) fn events(reply: &ModelReply, ask: &ModelAsk) -> Vec<StreamEvent> {
    let (message, finish) = message(reply, ask);
    let chunk = |choices: Value| document(ask, "chat.completion.chunk", &choices);
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    let opening = json!({"role": "assistant", "content": ""});
    vec![
        StreamEvent::unnamed(&chunk(
            json!([{"index": 0, "delta": opening, "finish_reason": null}]),
        )),
        StreamEvent::unnamed(&chunk(
            json!([{"index": 0, "delta": message, "finish_reason": null}]),
        )),
        StreamEvent::unnamed(&chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]))),
        StreamEvent::unnamed(&last),
        StreamEvent { name: None, data: "[DONE]".to_owned() },
    ]
}
