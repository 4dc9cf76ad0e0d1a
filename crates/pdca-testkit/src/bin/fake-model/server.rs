//! One request after the other: which protocol, which role, which answer.

use std::{
    fs::File,
    io::{self, Write as _},
    net::TcpStream,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    anthropic,
    ask::{ModelAsk, ModelProtocol},
    chat,
    fault::{FaultKind, ModelFault},
    gemini,
    http::{self, Extent, HttpRequest},
    responses,
    script::ModelScript,
    tools::ModelReply,
};

/// A script and what came of it so far.
#[derive(Debug)]
pub(crate) struct Server {
    script: ModelScript,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: File,
    /// For each fault of the script: how often it applied, and when first.
    faults: Vec<(u32, Option<Instant>)>,
}

impl Server {
    pub(crate) fn load(script: &str, log: &str) -> Result<Self, String> {
        let text = fs_err::read_to_string(script).map_err(|why| why.to_string())?;
        let script: ModelScript =
            toml::from_str(&text).map_err(|why| format!("{script}: {why}"))?;
        let log = File::options().create(true).append(true).open(log);
        let log = log.map_err(|why| format!("the log cannot be opened: {why}"))?;
        let state = Mutex::new(State { log, faults: vec![(0, None); script.faults.len()] });
        Ok(Self { script, started: Instant::now(), state })
    }

    pub(crate) fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let Some(request) = http::read(stream)? else { return Ok(()) };
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        if let Some(count) = token_count(&request) {
            self.log(&request, None, None, "count")?;
            return http::answer(stream, 200, &[], &count);
        }
        let Some(ask) = ask(&request, &body) else {
            self.log(&request, None, None, "unknown")?;
            let error = json!({"error": {"message": "no such path", "type": "not_found_error"}});
            return http::answer(stream, 404, &[], &error);
        };
        let role = self.script.role(&ask);
        let name = role.map(|role| role.name.as_str());
        let fault = self.fault(name);
        if let Some(fault) = fault {
            self.log(&request, Some(&ask), name, fault.kind.name())?;
            if let Some(refusal) = fault.refusal(&ask) {
                return http::answer(stream, refusal.status, &refusal.headers, &refusal.body);
            }
        }
        let reply = role.map_or_else(|| ModelReply::side_call(&ask), |role| role.reply(&ask));
        let extent = match fault.map(|fault| fault.kind) {
            Some(FaultKind::Stall) => Extent::Stalled,
            Some(_) => Extent::Cut,
            None => {
                self.log(&request, Some(&ask), name, reply.name())?;
                Extent::Whole
            }
        };
        let (whole, events): (Value, _) = match ask.protocol {
            ModelProtocol::Anthropic => {
                (anthropic::whole(&reply, &ask), anthropic::events(&reply, &ask))
            }
            ModelProtocol::Responses => {
                (responses::whole(&reply, &ask), responses::events(&reply, &ask))
            }
            ModelProtocol::Chat => (chat::whole(&reply, &ask), chat::events(&reply, &ask)),
            ModelProtocol::Gemini => (gemini::whole(&reply, &ask), gemini::events(&reply, &ask)),
        };
        match (ask.stream, extent) {
            (true, extent) => http::stream(stream, &events, extent),
            (false, Extent::Whole) => http::answer(stream, 200, &[], &whole),
            // Nothing of an answer that is not streamed arrives before all of it.
            (false, Extent::Cut) => Ok(()),
            (false, Extent::Stalled) => http::wait_for_close(stream),
        }
    }

    /// Returns the first fault that applies, and counts it.
    fn fault(&self, role: Option<&str>) -> Option<&ModelFault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (fault, (calls, first)) in self.script.faults.iter().zip(&mut state.faults) {
            let of_role = fault.role.as_deref().is_none_or(|wanted| role == Some(wanted));
            let in_calls = fault.calls.is_none_or(|most| *calls < most);
            let in_time = fault
                .seconds
                .is_none_or(|most| first.is_none_or(|first| first.elapsed().as_secs() < most));
            if of_role && in_calls && in_time {
                *calls += 1;
                first.get_or_insert_with(Instant::now);
                return Some(fault);
            }
        }
        None
    }

    fn log(
        &self,
        request: &HttpRequest,
        ask: Option<&ModelAsk>,
        role: Option<&str>,
        reply: &str,
    ) -> io::Result<()> {
        let found = |text: Option<&String>| -> Vec<&String> {
            let text = text.map_or("", String::as_str);
            self.script.watch.iter().filter(|word| text.contains(word.as_str())).collect()
        };
        let (told, shown) = (ask.map(|ask| &ask.told), ask.map(|ask| &ask.shown));
        let line = json!({
            "told": found(told), "shown": found(shown),
            "method": request.method, "path": request.path,
            "protocol": ask.map(|ask| ask.protocol.name()), "model": ask.map(|ask| &ask.model),
            "stream": ask.map(|ask| ask.stream), "role": role, "turn": ask.map(|ask| ask.answered),
            "tools": ask.map(|ask| ask.tools.len()), "reply": reply,
            "ms": u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.log.write_all(format!("{line}\n").as_bytes())
    }
}

/// Reads a request for an answer of the model; none for any other.
fn ask(request: &HttpRequest, body: &Value) -> Option<ModelAsk> {
    if request.method != "POST" {
        return None;
    }
    let path = request.path.as_str();
    if path.ends_with("/messages") {
        return Some(anthropic::read(body));
    }
    if path.ends_with("/responses") {
        return Some(responses::read(body));
    }
    if path.ends_with("/chat/completions") {
        return Some(chat::read(body));
    }
    let (model, method) = path.rsplit('/').next()?.split_once(':')?;
    match method {
        "generateContent" => Some(gemini::read(body, model, false)),
        "streamGenerateContent" => Some(gemini::read(body, model, true)),
        _ => None,
    }
}

/// Answers a request for the size of a prompt.
fn token_count(request: &HttpRequest) -> Option<Value> {
    if request.path.ends_with("/count_tokens") {
        return Some(json!({"input_tokens": 1000}));
    }
    request.path.ends_with(":countTokens").then(|| json!({"totalTokens": 1000}))
}
