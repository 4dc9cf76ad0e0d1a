//! Errors of the programs that talk to a forge or a tracker, classified by whether a retry can help.

use std::io;

use pdca_process::{ProgramError, Tool, ToolError, ToolOutput};

/// The maximum length, in characters, of a program's message that an error keeps.
/// An error is shown to a person, and a proxy may answer with a page of HTML.
const SAID: usize = 1000;
/// `EX_TEMPFAIL` of `sysexits.h`.
/// The one agreement with a command of the project, whose messages have no known form.
const TEMPFAIL: i32 = 75;
/// The exit code of `gh` without a login.
const NO_LOGIN: i32 = 4;

/// The reasons why a call of a forge or tracker program failed.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("program `{program}` not found on PATH")]
    Missing { program: String },
    #[error("not logged in: {said}")]
    NotLoggedIn { said: String },
    /// A transient failure, such as the network or a rate limit.
    #[error("cannot {doing} for now: {said}")]
    Passing { doing: &'static str, said: String },
    /// A permanent failure.
    #[error("cannot {doing}: {said}")]
    Refused { doing: &'static str, said: String },
    /// The program could not be run.
    #[error("cannot {doing}")]
    Run { doing: &'static str, source: ToolError },
    /// The output is not the JSON that the program is documented to print.
    #[error("cannot {doing}: unexpected answer")]
    Answer { doing: &'static str, source: serde_json::Error },
    /// The program reported success, but a lookup does not find what it made.
    #[error("{what} was reported as made, but is not found")]
    Unseen { what: &'static str },
    #[error("interrupted")]
    Interrupted,
}

impl ForgeError {
    /// Returns true for a transient failure, after which a retry may succeed.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Passing { .. } => true,
            Self::Missing { .. }
            | Self::NotLoggedIn { .. }
            | Self::Refused { .. }
            | Self::Run { .. }
            | Self::Answer { .. }
            | Self::Unseen { .. }
            | Self::Interrupted => false,
        }
    }
}

/// The program whose exit codes and messages are to be classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `gh`, which reports HTTP status and network errors in its message.
    Gh,
    /// A command from the project's configuration; exit code 75 means a transient failure.
    Command,
}

/// Runs a program and returns its standard output, or the classified failure.
pub(crate) fn ask(
    tool: &Tool,
    program: &str,
    dialect: Dialect,
    doing: &'static str,
) -> Result<Vec<u8>, ForgeError> {
    let output = match tool.run() {
        Ok(output) if output.success() => return Ok(output.stdout),
        Ok(output) => output,
        Err(ToolError::Program(ProgramError::NotFound { .. })) => {
            return Err(ForgeError::Missing { program: program.to_owned() });
        }
        Err(ToolError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(ForgeError::Missing { program: program.to_owned() });
        }
        Err(ToolError::Cancelled { .. }) => return Err(ForgeError::Interrupted),
        // The request may have been carried out before the process ended; the caller looks it up before asking again.
        Err(error @ (ToolError::TimedOut { .. } | ToolError::Signaled { .. })) => {
            return Err(ForgeError::Passing { doing, said: error.to_string() });
        }
        Err(source) => return Err(ForgeError::Run { doing, source }),
    };
    Err(fault(&output, dialect, doing))
}

fn fault(output: &ToolOutput, dialect: Dialect, doing: &'static str) -> ForgeError {
    let said = said(output);
    match (dialect, output.code) {
        (Dialect::Command, TEMPFAIL) => ForgeError::Passing { doing, said },
        (Dialect::Gh, NO_LOGIN) => ForgeError::NotLoggedIn { said },
        // Code 4 is that of a missing login; an expired one ends with code 1.
        (Dialect::Gh, _) if said.contains("HTTP 401") => ForgeError::NotLoggedIn { said },
        (Dialect::Gh, _) if may_pass(&said) => ForgeError::Passing { doing, said },
        (Dialect::Command | Dialect::Gh, _) => ForgeError::Refused { doing, said },
    }
}

/// Recognizes network errors and server errors in a message of `gh`, which has no exit code for them.
fn may_pass(said: &str) -> bool {
    let said = said.to_lowercase();
    // Exactly three digits: `HTTP 5` may be part of a title that the message quotes.
    let is_server_s = said.match_indices("http 5").any(|(at, found)| {
        let digits = said[at + found.len()..].bytes().take_while(u8::is_ascii_digit).count();
        digits == 2
    });
    let network = [
        "http 429",
        "rate limit",
        "error connecting to",
        "connection reset",
        "connection refused",
        "connection timed out",
        "no such host",
        "could not resolve host",
        "i/o timeout",
        "tls handshake timeout",
        "unexpected eof",
        "network is unreachable",
    ];
    is_server_s || network.iter().any(|words| said.contains(words))
}

/// Returns standard error, or else standard output, shortened and on one line.
fn said(output: &ToolOutput) -> String {
    let text_of = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = Some(text_of(&output.stderr)).filter(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| text_of(&output.stdout));
    if text.is_empty() {
        return format!("exit code {} without a message", output.code);
    }
    text.chars().take(SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(dialect: Dialect, code: i32, said: &str) -> &'static str {
        let output = ToolOutput { code, stdout: Vec::new(), stderr: said.as_bytes().to_vec() };
        match fault(&output, dialect, "look") {
            ForgeError::NotLoggedIn { .. } => "login",
            ForgeError::Passing { .. } => "passing",
            ForgeError::Refused { .. } => "refused",
            other @ (ForgeError::Missing { .. }
            | ForgeError::Run { .. }
            | ForgeError::Answer { .. }
            | ForgeError::Unseen { .. }
            | ForgeError::Interrupted) => panic!("{other}"),
        }
    }

    #[test]
    fn what_gh_says_is_sorted_by_what_helps() {
        for (code, said, expected) in [
            (4, "To get started with GitHub CLI, please run:  gh auth login", "login"),
            (1, "HTTP 401: Bad credentials (https://api.github.com/graphql)", "login"),
            (1, "HTTP 502: Bad Gateway (https://api.github.com/graphql)", "passing"),
            (1, "non-200 OK status code: 503 Service Unavailable\nHTTP 503", "passing"),
            (1, "error connecting to api.github.com", "passing"),
            (1, "dial tcp: lookup api.github.com: no such host", "passing"),
            (1, "HTTP 403: API rate limit exceeded", "passing"),
            (1, "GraphQL: Could not resolve to a Repository", "refused"),
            (1, "pull request create failed: HTTP 5 apples", "refused"),
            (1, "HTTP 422: Validation Failed", "refused"),
            (1, "", "refused"),
        ] {
            assert_eq!(word(Dialect::Gh, code, said), expected, "{said}");
        }
    }

    #[test]
    fn a_command_says_with_75_that_it_may_work_later() {
        assert_eq!(word(Dialect::Command, 75, "busy"), "passing");
        assert_eq!(word(Dialect::Command, 1, "HTTP 502"), "refused");
    }

    #[test]
    fn a_flood_of_words_is_cut() {
        let output = ToolOutput { code: 1, stdout: Vec::new(), stderr: vec![b'x'; 1 << 16] };
        assert_eq!(said(&output).len(), SAID);
    }
}
