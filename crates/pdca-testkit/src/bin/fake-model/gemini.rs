//! Gemini `generateContent`.

use serde_json::{Value, json};

use crate::{
    ask::{Ask, Protocol, Tool},
    http::Event,
    tools::{Input, Reply},
};

/// Reads a request; the model and whether to stream are in its path.
pub(crate) fn read(body: &Value, model: &str, stream: bool) -> Ask {
    let declared = body["tools"].as_array().into_iter().flatten();
    let declared = declared.filter_map(|tool| tool["functionDeclarations"].as_array());
    let tools = declared.flatten().filter_map(|tool| {
        let schema = tool.get("parametersJsonSchema").or(tool.get("parameters"))?.clone();
        Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: Some(schema) })
    });
    let is_result = |value: &Value| value.get("functionResponse").is_some();
    let mut ask = Ask::new(Protocol::Gemini, body, stream, tools.collect(), is_result);
    model.clone_into(&mut ask.model);
    ask
}

fn answer(ask: &Ask, part: &Value, finish: &Value) -> Value {
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

pub(crate) fn whole(reply: &Reply, ask: &Ask) -> Value {
    let part = match reply {
        Reply::Say(text) => json!({ "text": text }),
        Reply::Call { tool, input } => {
            let args = match input {
                Input::Fields(fields) => fields.clone(),
                Input::Text(text) => json!({ "input": text }),
            };
            json!({"functionCall": {"name": tool, "args": args}})
        }
    };
    answer(ask, &part, &json!("STOP"))
}

pub(crate) fn events(reply: &Reply, ask: &Ask) -> Vec<Event> {
    // The first event has no end, so that an answer that is cut after it lacks one.
    let opening = answer(ask, &json!({"text": ""}), &Value::Null);
    vec![Event::unnamed(&opening), Event::unnamed(&whole(reply, ask))]
}
