//! `OpenAI` Chat Completions.

use serde_json::{Value, json};

use crate::{
    ask::{Ask, Protocol, Tool},
    http::Event,
    tools::{Input, Reply},
};

pub(crate) fn read(body: &Value) -> Ask {
    let tools = body["tools"].as_array().into_iter().flatten().filter_map(|tool| {
        let function = tool.get("function")?;
        let schema = Some(function["parameters"].clone());
        Some(Tool { name: function["name"].as_str()?.to_owned(), schema })
    });
    let stream = body["stream"].as_bool().unwrap_or_default();
    let is_result = |value: &Value| value["role"] == "tool";
    Ask::new(Protocol::Chat, body, stream, tools.collect(), is_result)
}

fn message(reply: &Reply, ask: &Ask) -> (Value, &'static str) {
    match reply {
        Reply::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Reply::Call { tool, input } => {
            let arguments = match input {
                Input::Fields(fields) => fields.to_string(),
                Input::Text(text) => json!({ "input": text }).to_string(),
            };
            let call = json!({
                "index": 0, "id": format!("call_{:04}", ask.answered), "type": "function",
                "function": {"name": tool, "arguments": arguments},
            });
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
    }
}

fn document(ask: &Ask, object: &str, choices: &Value) -> Value {
    json!({
        "id": format!("chatcmpl-{:04}", ask.answered), "object": object, "created": 1_700_000_000,
        "model": ask.model, "choices": choices,
    })
}

fn usage() -> Value {
    json!({"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050})
}

pub(crate) fn whole(reply: &Reply, ask: &Ask) -> Value {
    let (message, finish) = message(reply, ask);
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    let mut answer = document(ask, "chat.completion", &choices);
    answer["usage"] = usage();
    answer
}

pub(crate) fn events(reply: &Reply, ask: &Ask) -> Vec<Event> {
    let (message, finish) = message(reply, ask);
    let chunk = |choices: Value| document(ask, "chat.completion.chunk", &choices);
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    let opening = json!({"role": "assistant", "content": ""});
    vec![
        Event::unnamed(&chunk(json!([{"index": 0, "delta": opening, "finish_reason": null}]))),
        Event::unnamed(&chunk(json!([{"index": 0, "delta": message, "finish_reason": null}]))),
        Event::unnamed(&chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]))),
        Event::unnamed(&last),
        Event { name: None, data: "[DONE]".to_owned() },
    ]
}
