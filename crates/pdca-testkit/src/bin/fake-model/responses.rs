//! `OpenAI` Responses.

use serde_json::{Value, json};

use crate::{
    ask::{ModelAsk, ModelProtocol, ModelTool},
    http::StreamEvent,
    tools::{ModelReply, ToolInput},
};

pub(crate) fn read(body: &Value) -> ModelAsk {
    let tools = body["tools"].as_array().into_iter().flatten().filter_map(|tool| {
        let schema = match tool["type"].as_str()? {
            "function" => Some(tool["parameters"].clone()),
            "custom" => None,
            // A tool that the provider carries out.
            _ => return None,
        };
        Some(ModelTool { name: tool["name"].as_str()?.to_owned(), schema })
    });
    let stream = body["stream"].as_bool().unwrap_or_default();
    let is_result = |value: &Value| {
        matches!(value["type"].as_str(), Some("function_call_output" | "custom_tool_call_output"))
    };
    ModelAsk::new(ModelProtocol::Responses, body, stream, tools.collect(), is_result)
}

fn item(reply: &ModelReply, ask: &ModelAsk) -> Value {
    let (id, call) = (format!("item_{:04}", ask.answered), format!("call_{:04}", ask.answered));
    match reply {
        ModelReply::Say(text) => json!({
            "type": "message", "id": id, "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        ModelReply::Call { tool, input: ToolInput::Fields(fields) } => json!({
            "type": "function_call", "id": id, "status": "completed", "call_id": call, "name": tool,
            "arguments": fields.to_string(),
        }),
        ModelReply::Call { tool, input: ToolInput::Text(text) } => json!({
            "type": "custom_tool_call", "id": id, "status": "completed", "call_id": call, "name": tool,
            "input": text,
        }),
    }
}

pub(crate) fn whole(reply: &ModelReply, ask: &ModelAsk) -> Value {
    json!({
        "id": format!("resp_{:04}", ask.answered), "object": "response", "created_at": 1_700_000_000,
        "status": "completed", "model": ask.model, "output": [item(reply, ask)],
        "usage": {
            "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1050,
        },
    })
}

pub(crate) fn events(reply: &ModelReply, ask: &ModelAsk) -> Vec<StreamEvent> {
    let done = item(reply, ask);
    let mut opened = done.clone();
    opened["status"] = json!("in_progress");
    let (field, delta, text) = match reply {
        ModelReply::Say(text) => ("content", "response.output_text.delta", text.clone()),
        ModelReply::Call { input: ToolInput::Fields(fields), .. } => {
            ("arguments", "response.function_call_arguments.delta", fields.to_string())
        }
        ModelReply::Call { input: ToolInput::Text(text), .. } => {
            ("input", "response.custom_tool_call_input.delta", text.clone())
        }
    };
    opened[field] = if field == "content" { json!([]) } else { json!("") };
    let finished = whole(reply, ask);
    let mut started = finished.clone();
    started["status"] = json!("in_progress");
    started["output"] = json!([]);
    started["usage"] = Value::Null;
    [
        ("response.created", json!({ "response": started })),
        ("response.output_item.added", json!({"output_index": 0, "item": opened})),
        (
            delta,
            json!({"item_id": done["id"], "output_index": 0, "content_index": 0, "delta": text}),
        ),
        ("response.output_item.done", json!({"output_index": 0, "item": done})),
        ("response.completed", json!({ "response": finished })),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, (name, mut data))| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
        StreamEvent::named(name, &data)
    })
    .collect()
}
