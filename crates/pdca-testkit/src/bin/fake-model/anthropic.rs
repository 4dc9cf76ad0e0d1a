//! Anthropic Messages.

use serde_json::{Value, json};

use crate::{
    ask::{ModelAsk, ModelProtocol, ModelTool},
    http::StreamEvent,
    tools::{ModelReply, ToolInput},
};

pub(crate) fn read(body: &Value) -> ModelAsk {
    let tools = body["tools"].as_array().into_iter().flatten().filter_map(|tool| {
        // A tool that the provider carries out has a type of its own and no schema.
        let schema = tool.get("input_schema")?.clone();
        Some(ModelTool { name: tool["name"].as_str()?.to_owned(), schema: Some(schema) })
    });
    let stream = body["stream"].as_bool().unwrap_or_default();
    let is_result = |value: &Value| value["type"] == "tool_result";
    ModelAsk::new(ModelProtocol::Anthropic, body, stream, tools.collect(), is_result)
}

fn block(reply: &ModelReply, ask: &ModelAsk) -> (Value, &'static str) {
    match reply {
        ModelReply::Say(text) => (json!({"type": "text", "text": text}), "end_turn"),
        ModelReply::Call { tool, input } => {
            let input = match input {
                ToolInput::Fields(fields) => fields.clone(),
                ToolInput::Text(text) => json!({ "input": text }),
            };
            let id = format!("toolu_{:04}", ask.answered);
            (json!({"type": "tool_use", "id": id, "name": tool, "input": input}), "tool_use")
        }
    }
}

pub(crate) fn whole(reply: &ModelReply, ask: &ModelAsk) -> Value {
    let (block, stop) = block(reply, ask);
    json!({
        "id": format!("msg_{:04}", ask.answered), "type": "message", "role": "assistant", "model": ask.model,
        "content": [block], "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": 1000, "output_tokens": 50},
    })
}

pub(crate) fn events(reply: &ModelReply, ask: &ModelAsk) -> Vec<StreamEvent> {
    let (mut block, stop) = block(reply, ask);
    let delta = if block["type"] == "text" {
        let text = std::mem::replace(&mut block["text"], json!(""));
        json!({"type": "text_delta", "text": text})
    } else {
        let input = std::mem::replace(&mut block["input"], json!({}));
        json!({"type": "input_json_delta", "partial_json": input.to_string()})
    };
    let mut message = whole(reply, ask);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    [
        ("message_start", json!({ "message": message })),
        ("content_block_start", json!({"index": 0, "content_block": block})),
        ("content_block_delta", json!({"index": 0, "delta": delta})),
        ("content_block_stop", json!({"index": 0})),
        (
            "message_delta",
            json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 50}}),
        ),
        ("message_stop", json!({})),
    ]
    .map(|(name, mut data)| {
        data["type"] = json!(name);
        StreamEvent::named(name, &data)
    })
    .into()
}
