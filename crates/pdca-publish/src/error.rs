//! What can go wrong with a program that speaks for somebody outside.

use std::io;

use pdca_process::{Tool, ToolError, ToolOutput};

/// As much of what a program says as is kept, in characters.
const SAID: usize = 1000;
/// What `sysexits.h` calls a failure that may pass.
const TEMPFAIL: i32 = 75;
/// How `gh` ends where nobody is logged in.
const NO_LOGIN: i32 = 4;

/// Why somebody outside was not reached, or would not.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// There is no such program.
    #[error("the program `{program}` is not there")]
    Missing {
        /// The program.
        program: String,
    },
    /// Nobody is logged in.
    #[error("nobody is logged in: {said}")]
    NotLoggedIn {
        /// What was said.
        said: String,
    },
    /// It may work later.
    #[error("cannot {doing} for now: {said}")]
    Passing {
        /// What was tried.
        doing: &'static str,
        /// What was said.
        said: String,
    },
    /// It will not work as it is.
    #[error("cannot {doing}: {said}")]
    Refused {
        /// What was tried.
        doing: &'static str,
        /// What was said.
        said: String,
    },
    /// The program could not be run.
    #[error("cannot {doing}")]
    Run {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        source: ToolError,
    },
    /// The answer is not what the program is known to say.
    #[error("cannot understand what came of trying to {doing}")]
    Answer {
        /// What was tried.
        doing: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// It was said to be there, and is not found.
    #[error("{what} was said to be there and is not found")]
    Unseen {
        /// What.
        what: &'static str,
    },
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ForgeError {
    /// Whether trying again may help.
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

/// How the words of a program are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Those of `gh`, which tells the status of HTTP and of the network.
    Gh,
    /// Those of a command of the project: exit code 75 is a failure that may pass.
    Command,
}

/// Runs a program to its end; what it printed, where it ended well.
pub(crate) fn ask(
    tool: &Tool,
    program: &str,
    dialect: Dialect,
    doing: &'static str,
) -> Result<Vec<u8>, ForgeError> {
    let output = match tool.run() {
        Ok(output) if output.success() => return Ok(output.stdout),
        Ok(output) => output,
        Err(ToolError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(ForgeError::Missing { program: program.to_owned() });
        }
        Err(ToolError::Cancelled { .. }) => return Err(ForgeError::Interrupted),
        // It may have done what it was asked for before; whoever asks looks.
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
        (Dialect::Gh, _) if said.contains("HTTP 401") => ForgeError::NotLoggedIn { said },
        (Dialect::Gh, _) if may_pass(&said) => ForgeError::Passing { doing, said },
        (Dialect::Command | Dialect::Gh, _) => ForgeError::Refused { doing, said },
    }
}

/// Whether what `gh` says is about the network or the forge's own trouble. There is no exit code for it.
fn may_pass(said: &str) -> bool {
    let said = said.to_lowercase();
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

/// What a program said about its failure, bounded and on one line.
fn said(output: &ToolOutput) -> String {
    let text_of = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = Some(text_of(&output.stderr)).filter(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| text_of(&output.stdout));
    if text.is_empty() {
        return format!("it ended with {} and said nothing", output.code);
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
