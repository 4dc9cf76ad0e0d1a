//! A request, whatever protocol it came in.

use serde_json::Value;

/// The protocols that are spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelProtocol {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

impl ModelProtocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ModelProtocol::Anthropic => "anthropic",
            ModelProtocol::Responses => "responses",
            ModelProtocol::Chat => "chat",
            ModelProtocol::Gemini => "gemini",
        }
    }
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct ModelAsk {
    pub(crate) protocol: ModelProtocol,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) tools: Vec<ModelTool>,
    /// All text of the request, one string a line.
    pub(crate) text: String,
    /// The part of that text which no tool gave back: instructions, prompts, the model's own words.
    pub(crate) told: String,
    /// The part that tools gave back.
    pub(crate) shown: String,
    /// How many tool results it carries.
    pub(crate) answered: usize,
    /// The JSON Schema that the answer must have, where it asks for one.
    pub(crate) form: Option<Value>,
}

/// Where each protocol has the schema of an answer.
const FORMS: [&str; 4] = [
    "/output_config/format/schema",
    "/text/format/schema",
    "/response_format/json_schema/schema",
    "/generationConfig/responseJsonSchema",
];

/// A tool that the agent offers.
#[derive(Debug)]
pub(crate) struct ModelTool {
    pub(crate) name: String,
    /// The JSON Schema of its input; none where the input is free text.
    pub(crate) schema: Option<Value>,
}

impl ModelAsk {
    pub(crate) fn new(
        protocol: ModelProtocol,
        body: &Value,
        stream: bool,
        tools: Vec<ModelTool>,
        is_result: fn(&Value) -> bool,
    ) -> Self {
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let form = FORMS.iter().find_map(|pointer| body.pointer(pointer)).cloned();
        let (text, told, shown) = (String::new(), String::new(), String::new());
        let mut ask = Self { protocol, model, stream, tools, text, told, shown, answered: 0, form };
        for part in ["system", "instructions", "systemInstruction", "messages", "input", "contents"]
        {
            ask.walk(&body[part], is_result, false);
        }
        ask
    }

    fn walk(&mut self, value: &Value, is_result: fn(&Value) -> bool, inside: bool) {
        let inside = if is_result(value) {
            self.answered += 1;
            true
        } else {
            inside
        };
        match value {
            Value::String(text) => {
                let part = if inside { &mut self.shown } else { &mut self.told };
                for to in [&mut self.text, part] {
                    to.push_str(text);
                    to.push('\n');
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.walk(item, is_result, inside);
                }
            }
            Value::Object(fields) => {
                for item in fields.values() {
                    self.walk(item, is_result, inside);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Puts the first absolute path of the request that ends in `/NAME` in the place of each `${NAME}`.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, tail)) = after.split_once('}') else { break };
            filled.push_str(before);
            filled.push_str(self.path(name).unwrap_or(name));
            rest = tail;
        }
        filled + rest
    }

    fn path(&self, name: &str) -> Option<&str> {
        let outside = |letter: char| letter.is_whitespace() || "`'\"<>()".contains(letter);
        let ending = format!("/{name}");
        self.text
            .split(outside)
            .map(|word| word.trim_end_matches([',', '.', ':', ';']))
            .find(|word| word.starts_with('/') && word.ends_with(&ending))
    }
}
