//! Each protocol of `fake-model`, spoken over a plain connection.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

const TURNS: &str = r#"
[[role]]
name = "builder"
when = "build-notes.md"
turns = [
  { shell = "cat ${brief.md}" },
  { edit = { path = "a.txt", old = "one", new = "two" } },
  { say = "notes are in ${build-notes.md}" },
]
"#;

const PROMPT: &str = "Read `/view/brief.md`, then write notes to `/view/build-notes.md`.";

struct Model {
    program: Child,
    port: u16,
    home: TempDir,
}

impl Model {
    #[expect(clippy::disallowed_methods, reason = "what is tested is the program itself")]
    fn start(script: &str) -> Self {
        let home = TempDir::new().unwrap();
        let path = home.path().join("script.toml");
        fs_err::write(&path, script).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_fake-model"))
            .arg(path)
            .arg(home.path().join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { port: line.trim().parse().unwrap(), program, home }
    }

    /// Sends a request and gives all bytes that came back.
    fn post(&self, path: &str, body: &Value) -> String {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: here\r\nx-api-key: hidden\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn json(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn log(&self) -> String {
        fs_err::read_to_string(self.home.path().join("log")).unwrap()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
    }
}

/// The data of each event of a stream that came to its end.
fn events(answer: &str) -> Vec<Value> {
    assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn anthropic(stream: bool, results: usize) -> Value {
    let tool = |name: &str, properties: Value| json!({"name": name, "input_schema": {"type": "object", "properties": properties}});
    let mut messages = vec![json!({"role": "user", "content": PROMPT})];
    for _ in 0..results {
        let result = json!({"type": "tool_result", "tool_use_id": "x", "content": "fine"});
        messages.push(json!({"role": "user", "content": [result]}));
    }
    json!({"model": "m", "stream": stream, "messages": messages, "tools": [
        tool("Bash", json!({"command": {"type": "string"}})),
        tool("Edit", json!({"file_path": {}, "old_string": {}, "new_string": {}})),
    ]})
}

#[test]
fn anthropic_goes_from_turn_to_turn_by_the_results_that_a_request_carries() {
    let model = Model::start(TURNS);
    let turn = |results| model.json("/v1/messages", &anthropic(false, results));
    let first = turn(0);
    assert_eq!(first["stop_reason"], "tool_use");
    assert_eq!(first["content"][0]["name"], "Bash");
    assert_eq!(first["content"][0]["input"], json!({"command": "cat /view/brief.md"}));
    assert_eq!(turn(0), first, "a request that is sent again gets the same answer");
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    assert_eq!(turn(1)["content"][0]["input"], edit);
    let last = turn(2);
    assert_eq!(last["stop_reason"], "end_turn");
    assert_eq!(last["content"][0]["text"], "notes are in /view/build-notes.md");
}

#[test]
fn anthropic_streams_a_tool_call_in_parts() {
    let model = Model::start(TURNS);
    let events = events(&model.post("/v1/messages?beta=true", &anthropic(true, 0)));
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[0], "message_start");
    assert_eq!(kinds.last(), Some(&"message_stop"));
    assert_eq!(events[1]["content_block"]["input"], json!({}));
    assert_eq!(events[2]["delta"]["partial_json"], r#"{"command":"cat /view/brief.md"}"#);
    let count = model.json("/v1/messages/count_tokens", &anthropic(false, 0));
    assert!(count["input_tokens"].is_u64());
}

fn responses(results: usize) -> Value {
    let mut input = vec![json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": PROMPT},
    ]})];
    for _ in 0..results {
        input.push(json!({"type": "function_call_output", "call_id": "x", "output": "fine"}));
    }
    let shell = json!({"type": "function", "name": "exec_command", "parameters": {
        "type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"],
    }});
    let patch = json!({"type": "custom", "name": "apply_patch"});
    json!({"model": "m", "stream": true, "input": input, "tools": [shell, patch]})
}

#[test]
fn responses_calls_the_shell_that_is_offered_and_patches_in_free_text() {
    let model = Model::start(TURNS);
    let shell = events(&model.post("/v1/responses", &responses(0)));
    let done = &shell[3]["item"];
    assert_eq!((&done["type"], &done["name"]), (&json!("function_call"), &json!("exec_command")));
    assert_eq!(done["arguments"], r#"{"cmd":"cat /view/brief.md"}"#);
    assert_eq!(shell[4]["type"], "response.completed");
    let patch = events(&model.post("/v1/responses", &responses(1)));
    assert_eq!(
        patch[3]["item"]["input"],
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
    );
}

#[test]
fn chat_streams_a_call_of_a_function() {
    let model = Model::start(TURNS);
    let bash = json!({"type": "function", "function": {"name": "bash", "parameters": {
        "type": "object", "required": ["command", "description"],
        "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
    }}});
    let body = json!({"model": "m", "stream": true, "tools": [bash], "messages": [
        {"role": "user", "content": PROMPT},
    ]});
    let events = events(&model.post("/v1/chat/completions", &body));
    let call = &events[1]["choices"][0]["delta"]["tool_calls"][0]["function"];
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["command"], "cat /view/brief.md");
    assert!(arguments["description"].is_string(), "what is required is there");
    assert_eq!(events[2]["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn chat_without_tools_gets_all_edits_as_blocks_when_it_asks_for_them() {
    let model = Model::start(TURNS);
    let ask = |system: &str| {
        let body = json!({"model": "m", "messages": [
            {"role": "system", "content": system}, {"role": "user", "content": PROMPT},
        ]});
        let answer = model.json("/v1/chat/completions", &body);
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let block = "a.txt\n```\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n```";
    assert!(ask("Answer with SEARCH/REPLACE blocks.").starts_with(block));
    assert!(!ask("Give it a title.").contains("SEARCH"));
}

#[test]
fn a_side_call_that_asks_for_a_form_gets_one_that_fits() {
    let model = Model::start(TURNS);
    let schema = json!({"type": "object", "properties": {
        "why": {"type": "string"}, "choice": {"type": "string", "enum": ["small", "large"]},
    }});
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema},
    });
    let answer = model.json("/v1beta/models/gemini-x:generateContent", &body);
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    let form: Value = serde_json::from_str(text).unwrap();
    assert_eq!(form["choice"], "small");
    assert!(form["why"].is_string());
}

#[test]
fn gemini_calls_a_declared_function_and_finishes() {
    let model = Model::start(TURNS);
    let body = |results: usize| {
        let mut contents = vec![json!({"role": "user", "parts": [{"text": PROMPT}]})];
        for _ in 0..results {
            let result = json!({"functionResponse": {"name": "x", "response": {}}});
            contents.push(json!({"role": "user", "parts": [result]}));
        }
        let shell = json!({"name": "run_shell_command", "parametersJsonSchema": {
            "type": "object", "properties": {"command": {"type": "string"}},
        }});
        json!({"contents": contents, "tools": [{"functionDeclarations": [shell]}]})
    };
    let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
    let events = events(&model.post(path, &body(0)));
    let call = &events[1]["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!(call["args"]["command"], "cat /view/brief.md");
    let last = model.json("/v1beta/models/gemini-x:generateContent", &body(2));
    let candidate = &last["candidates"][0];
    assert_eq!(candidate["finishReason"], "STOP");
    assert_eq!(candidate["content"]["parts"][0]["text"], "notes are in /view/build-notes.md");
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

#[test]
fn a_fault_with_calls_goes_away_after_so_many() {
    let fault = "[[fault]]\nkind = \"rate-limit\"\ncalls = 2\nretry_after = 7\n";
    let model = Model::start(&format!("{TURNS}{fault}"));
    let ask = || model.post("/v1/messages", &anthropic(false, 0));
    let first = ask();
    assert_eq!(status(&first), "429");
    assert!(first.contains("retry-after: 7\r\n"), "{first}");
    assert_eq!(status(&ask()), "429");
    assert_eq!(status(&ask()), "200");
}

#[test]
fn a_fault_of_a_role_leaves_the_others_alone() {
    let fault = "[[fault]]\nkind = \"unauthorized\"\nrole = \"reviewer\"\n";
    let model = Model::start(&format!("{TURNS}{fault}"));
    assert_eq!(status(&model.post("/v1/messages", &anthropic(false, 0))), "200");
}

#[test]
fn each_provider_has_its_own_words_for_a_fault() {
    let ask = |kind: &str, path: &str| {
        let model = Model::start(&format!("[[fault]]\nkind = \"{kind}\"\n"));
        let answer = model.post(path, &json!({}));
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let error = serde_json::from_str::<Value>(body).unwrap()["error"].clone();
        (status(&answer).to_owned(), error)
    };
    let (status, error) = ask("overloaded", "/v1/messages");
    assert_eq!((status.as_str(), &error["type"]), ("529", &json!("overloaded_error")));
    let (status, error) = ask("context", "/v1/messages");
    assert_eq!(status, "400");
    assert!(error["message"].as_str().unwrap().starts_with("prompt is too long"), "{error}");
    let (status, error) = ask("usage-limit", "/v1/responses");
    assert_eq!((status.as_str(), &error["type"]), ("429", &json!("usage_limit_reached")));
    assert!(error["resets_at"].is_u64(), "{error}");
    let (status, error) = ask("context", "/v1/chat/completions");
    assert_eq!((status.as_str(), &error["code"]), ("400", &json!("context_length_exceeded")));
    let (status, error) = ask("rate-limit", "/v1beta/models/g:generateContent");
    assert_eq!((status.as_str(), &error["status"]), ("429", &json!("RESOURCE_EXHAUSTED")));
}

#[test]
fn a_cut_stream_has_a_beginning_and_no_end() {
    for (path, body) in [("/v1/messages", anthropic(true, 0)), ("/v1/responses", responses(0))] {
        let model = Model::start(&format!("{TURNS}[[fault]]\nkind = \"cut\"\n"));
        let answer = model.post(path, &body);
        assert_eq!(status(&answer), "200");
        assert!(answer.contains("data: ") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    }
}

#[test]
fn a_stalled_stream_stays_open_until_the_client_goes() {
    let model = Model::start(&format!("{TURNS}[[fault]]\nkind = \"stall\"\ncalls = 1\n"));
    let body = anthropic(true, 0).to_string();
    let mut stalled = TcpStream::connect(("127.0.0.1", model.port)).unwrap();
    let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    stalled.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(&stalled);
    while !first.contains("data: ") {
        reader.read_line(&mut first).unwrap();
    }
    // The connection is open and the next request is served beside it.
    assert_eq!(status(&model.post("/v1/messages", &anthropic(false, 0))), "200");
    assert!(!first.contains("message_stop"));
}

#[test]
fn the_log_has_a_line_for_each_request_and_no_secret() {
    let model = Model::start(TURNS);
    model.post("/v1/messages", &anthropic(false, 1));
    model.post("/v1/elsewhere", &json!({}));
    let log = model.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let said = [&lines[0]["role"], &lines[0]["turn"], &lines[0]["reply"], &lines[1]["reply"]];
    assert_eq!(said, [&json!("builder"), &json!(1), &json!("Edit"), &json!("unknown")]);
    assert!(!log.contains("hidden") && !log.contains("brief.md"), "{log}");
}
