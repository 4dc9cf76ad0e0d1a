//! Going on in the session of an earlier call, and what shows that this did not work.

use pdca_process::{ChildVerdict, Ending};

use crate::{attempt::Judgment, call::Call, class::FailureClass, protocol::Transcript};

/// The longest name of a session that is used.
const LONGEST: usize = 200;

/// Returns true if a text can be the name of a session. It comes out of an agent's output and becomes an argument, so it must
/// not be taken for a flag or a path.
pub(crate) fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=LONGEST).contains(&text.len())
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text.bytes().all(allowed)
}

/// Returns true if a try that was to go on in a session did so. An agent whose session is gone ends at once: without a word of
/// its own, without a tool call, and without success.
pub(crate) fn took_up(
    call: &Call<'_>,
    verdict: &ChildVerdict,
    judgment: &Judgment,
    said: &Transcript,
) -> bool {
    let has_ended = matches!(verdict.ending, Ending::Exited(_) | Ending::Signaled(_));
    // A builder may end well without a file, so nothing left is no sign by itself; its checkout
    // tells.
    let may_be_gone = match judgment {
        Judgment::Done(produced) => {
            produced.is_empty() && !call.has_work.is_some_and(|has_work| has_work())
        }
        Judgment::Failed | Judgment::Nothing(_) => true,
        Judgment::Throttled(_) => false,
        Judgment::Diagnosed(found) => match found.class {
            // The new session is shorter.
            FailureClass::ContextTooLong => return false,
            // A refusal is the model's answer only if there was one; what was said tells that.
            FailureClass::Refused => true,
            FailureClass::Auth | FailureClass::Host | FailureClass::Throttled => false,
        },
    };
    if !may_be_gone || !has_ended {
        return true;
    }
    // claude, codex, gemini and opencode end at once where the session is not there, each with
    // another exit code and without a call of the model. A message or a tool call shows that one
    // was made.
    said.tool_calls > 0 || said.message.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_a_flag_or_a_path_is_none() {
        for good in ["11111111-2222-4333-8444-555555555555", "ses_7f3a", "a", "2026.11:3"] {
            assert!(is_name(good), "{good}");
        }
        let long = "x".repeat(LONGEST + 1);
        for bad in ["", "-rf", "--last", "a b", "../x", "a/b", "a\n", "é", "$(x)", &long] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
