//! Gemini `generateContent`.

use serde_json::{Value, json};

use crate::{
    ask::{ModelAsk, ModelProtocol, ModelTool},
    http::StreamEvent,
    tools::{ModelReply, ToolInput},
};

/// Reads a request; the model and whether to stream are in its path.
pub(crate) fn read(body: &Value, model: &str, stream: bool) -> ModelAsk {
    let declared = body["tools"].as_array().into_iter().flatten();
    let declared = declared.filter_map(|tool| tool["functionDeclarations"].as_array());
    let tools = declared.flatten().filter_map(|tool| {
        let schema = tool.get("parametersJsonSchema").or(tool.get("parameters"))?.clone();
        Some(ModelTool { name: tool["name"].as_str()?.to_owned(), schema: Some(schema) })
    });
    let is_result = |value: &Value| value.get("functionResponse").is_some();
    let mut ask = ModelAsk::new(ModelProtocol::Gemini, body, stream, tools.collect(), is_result);
    model.clone_into(&mut ask.model);
    ask
}

fn answer(ask: &ModelAsk, part: &Value, finish: &Value) -> Value {
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": [part]}, "index": 0, "finishReason": finish,
        }],
        "usageMetadata": {
            "promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050,
        },
        "modelVersion": ask.model,
    })
}

pub(crate) fn whole(reply: &ModelReply, ask: &ModelAsk) -> Value {
    let part = match reply {
        ModelReply::Say(text) => json!({ "text": text }),
        ModelReply::Call { tool, input } => {
            let args = match input {
                ToolInput::Fields(fields) => fields.clone(),
                ToolInput::Text(text) => json!({ "input": text }),
            };
            json!({"functionCall": {"name": tool, "args": args}})
        }
    };
    answer(ask, &part, &json!("STOP"))
}

pub(crate) fn events(reply: &ModelReply, ask: &ModelAsk) -> Vec<StreamEvent> {
    // The first event has no end, so that an answer that is cut after it lacks one.
    let opening = answer(ask, &json!({"text": ""}), &Value::Null);
    vec![StreamEvent::unnamed(&opening), StreamEvent::unnamed(&whole(reply, ask))]
}
