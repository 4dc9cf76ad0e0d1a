//! A model behind the protocols of its providers, that answers what its script says.
//!
//! ```text
//! fake-model SCRIPT LOG
//! ```
//!
//! It listens on a free port of 127.0.0.1, prints the port as one line, and serves until it is killed. Real coding agents are
//! pointed at it to see what they do: it needs no account, no key and no network.
//!
//! | protocol | request |
//! |---|---|
//! | Anthropic Messages | `POST /v1/messages`, `POST /v1/messages/count_tokens` |
//! | `OpenAI` Responses | `POST /v1/responses` |
//! | `OpenAI` Chat Completions | `POST /v1/chat/completions` |
//! | Gemini | `POST /v1beta/models/MODEL:generateContent`, `:streamGenerateContent`, `:countTokens` |
//!
//! # Script
//! ```toml
//! watch = ["words"]                   # the log says where they arrived
//!
//! [[role]]
//! name = "builder"
//! when = "build-notes.md"             # the first role whose words are in the request
//! turns = [
//!   { shell = "cat ${brief.md}" },    # the first absolute path of the request that ends so
//!   { edit = { path = "a.txt", old = "one", new = "two" } },
//!   { write = { path = "${build-notes.md}", text = "changed a.txt\n" } },
//!   { say = "done" },
//! ]
//!
//! [[fault]]
//! kind = "rate-limit"
//! calls = 2
//! retry_after = 1
//! ```
//!
//! A turn is one answer. The model keeps nothing between requests: which turn it is, is the number of tool results that the
//! request carries, so that a request that is sent again gets the same answer. `shell`, `read`, `write` and `edit` become
//! calls of the tools that the request offers. A request that offers no tools is a side call (a title, a summary, a choice of model)
//! and gets a word, or what its schema asks for; one that asks for SEARCH/REPLACE blocks gets all edits at once as text.
//!
//! # Faults
//! The first fault that applies replaces the answer: `calls` limits it to that many requests, `seconds` to a time from its first
//! one, `role` to the requests of a role.
//!
//! | kind | answer |
//! |---|---|
//! | `unauthorized` | 401 |
//! | `rate-limit` | 429, with `retry-after` where `retry_after` has seconds |
//! | `overloaded` | 529 or 503, as the provider has it |
//! | `usage-limit` | the provider's answer to a used-up plan, with the time `resets_in` seconds ahead |
//! | `context` | the provider's answer to a prompt that is too long |
//! | `cut` | the connection is closed within the answer |
//! | `stall` | the answer starts and does not go on |
//!
//! A connection that is refused needs no fault: name a port that nothing listens on.
//!
//! # Log
//! One JSON line for each request: `path`, `protocol`, `model`, `role`, `turn`, `tools` (how many), `reply`, `ms` since the start, and which
//! words of `watch` are in it: `told` where no tool gave them back, `shown` where one did. Neither headers nor prompts are in it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "a program that stands for a provider"
)]

mod anthropic;
mod ask;
mod chat;
mod fault;
mod gemini;
mod http;
mod responses;
mod script;
mod server;
mod tools;

use std::{io::Write as _, net::TcpListener, process::exit, sync::Arc, thread};

use server::Server;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [script, log] = args.as_slice() else {
        fail("usage: fake-model SCRIPT LOG");
    };
    let server = Server::load(script, log).unwrap_or_else(|why| fail(&why));
    let server = Arc::new(server);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap_or_else(|why| fail(&why.to_string()));
    let port = listener.local_addr().unwrap_or_else(|why| fail(&why.to_string())).port();
    println!("{port}");
    std::io::stdout().flush().unwrap_or_else(|why| fail(&why.to_string()));
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => {
                let server = Arc::clone(&server);
                thread::spawn(move || {
                    // A client that goes away within an answer is none of ours to repair.
                    if let Err(why) = server.serve(&stream) {
                        eprintln!("fake-model: {why}");
                    }
                });
            }
            Err(why) => eprintln!("fake-model: {why}"),
        }
    }
}

fn fail(why: &str) -> ! {
    eprintln!("fake-model: {why}");
    exit(1)
}
