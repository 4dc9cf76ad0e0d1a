//! The class of a failure: from the agent's own records, then from the last lines that it printed.
//!
//! Words count only where an attempt failed or came to nothing, and only the last ones: a builder that works on code about
//! rate limits prints those words all day.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::protocol::{Complaint, Transcript};

/// How many of the last lines are looked at.
// Few, because a builder that works on code about rate limits prints those words in its own output.
const LINES: usize = 15;
/// How much of the evidence is quoted.
const EVIDENCE: usize = 300;
/// Added to a wait until a moment: the clock of the provider may be some seconds behind this one.
const MARGIN: Duration = Duration::from_secs(5);

/// What kept an agent from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// It was told to come back later.
    Throttled,
    /// Its key, login or account is not accepted: no call will be.
    Auth,
    /// What it had to read is more than its model takes.
    ContextTooLong,
    /// Its model does not want to.
    Refused,
    /// Its model cannot be reached, or the connection was cut.
    Host,
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Throttled => "throttled",
            Self::Auth => "auth",
            Self::ContextTooLong => "context too long",
            Self::Refused => "refused",
            Self::Host => "host",
        })
    }
}

/// A class with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub(crate) class: FailureClass,
    /// The words that say so, on one line.
    pub(crate) evidence: String,
    /// When to come back, where that was said.
    pub(crate) wait: Option<Wait>,
}

/// When a limit ends, as an agent says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    For(Duration),
    /// Seconds since 1970.
    Until(i64),
    /// Minutes since midnight, by the clock on the wall.
    TimeOfDay(u32),
    /// Another day.
    Long,
}

/// The clock on the wall, for limits that end at a time of day.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    /// Seconds since 1970.
    pub now: fn() -> i64,
    /// How far local time is ahead of UTC, in seconds.
    pub offset: fn() -> i32,
}

impl Wait {
    /// How long that is from now; not known without a clock.
    pub(crate) fn as_pause(self, clock: Option<WallClock>) -> Option<Duration> {
        const DAY: i64 = 24 * 60 * 60;
        let seconds =
            |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)) + MARGIN;
        match (self, clock) {
            (Self::For(span), _) => Some(span),
            // More than any configured `max_wait_secs`, so the call gives up at once instead of
            // asking every quarter of an hour until tomorrow.
            (Self::Long, _) => Some(Duration::MAX),
            (Self::Until(_) | Self::TimeOfDay(_), None) => None,
            (Self::Until(at), Some(clock)) => Some(seconds(at.saturating_sub((clock.now)()))),
            (Self::TimeOfDay(minutes), Some(clock)) => {
                let of_day = ((clock.now)() + i64::from((clock.offset)())).rem_euclid(DAY);
                // A time of day that has passed is tomorrow's.
                Some(seconds((i64::from(minutes) * 60 - of_day).rem_euclid(DAY)))
            }
        }
    }
}

/// Lines that say nothing about the call: opencode cannot fetch its list of models, and works on with the one it has; aider says that
/// of a refused connection too.
const BESIDE: [&str; 3] =
    ["models.dev", "models.opencode.ai", "API provider's servers are down or overloaded"];

/// What the records say, the newest first; then the last lines of `printed`.
pub(crate) fn diagnose(transcript: &Transcript, printed: &str) -> Option<Diagnosis> {
    let records = transcript.complaints.iter().rev();
    let mut found = records.clone().find_map(of_complaint).or_else(|| {
        // Lines that are records are passed over. Their complaints were looked at already, and the
        // rest quotes anything: what tools print stands in them.
        let lines = printed.lines().rev().filter(|line| !line.trim_start().starts_with("{\""));
        let is_beside = |line: &&str| BESIDE.iter().any(|word| line.contains(word));
        let lines = lines.filter(|line| !line.trim().is_empty() && !is_beside(line)).take(LINES);
        lines
            .map(|line| Complaint { text: line.to_owned(), ..Complaint::default() })
            .find_map(|line| of_complaint(&line))
    })?;
    // Claude Code tells the end of a limit in a `rate_limit_event`, and ends the work with a
    // `result` that has no time in it.
    if found.class == FailureClass::Throttled && found.wait.is_none() {
        // The record that names the limit is another than the one that ends the work.
        found.wait = records.clone().find_map(wait_of);
    }
    Some(found)
}

fn of_complaint(complaint: &Complaint) -> Option<Diagnosis> {
    let class = of_status(complaint.status).or_else(|| of_words(&complaint.text.to_lowercase()))?;
    let evidence = complaint.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let evidence = pdca_process::printable(evidence.as_bytes());
    let evidence = evidence.chars().take(EVIDENCE).collect();
    Some(Diagnosis { class, evidence, wait: wait_of(complaint) })
}

fn of_status(status: Option<u16>) -> Option<FailureClass> {
    match status? {
        401..=403 => Some(FailureClass::Auth),
        413 => Some(FailureClass::ContextTooLong),
        // A 5xx is the provider's to mend and passes by itself, so it is waited for as a limit is,
        // and spends no attempt.
        429 | 500..=599 => Some(FailureClass::Throttled),
        _ => None,
    }
}

/// Words of each class, in the order in which they count, and status codes that stand for it in a text.
const WORDS: [(FailureClass, &[&str], &[&str]); 6] = [
    (
        FailureClass::ContextTooLong,
        &[
            "prompt is too long",
            "context_length_exceeded",
            "contextwindowexceeded",
            "context window",
            "maximum context length",
            "input is too long",
            "input token count",
            "maximum number of tokens",
            // aider, whose own list of remedies ends with the address.
            "has hit a token limit",
            "troubleshooting/token-limits",
        ],
        &["413"],
    ),
    (
        FailureClass::Auth,
        &[
            "invalid api key",
            "incorrect api key",
            "api key not valid",
            "invalid x-api-key",
            "invalid authentication",
            "authentication_error",
            "authentication_failed",
            "authenticationerror",
            "unauthorized",
            "not logged in",
            "run /login",
            "oauth token",
            "missing api key",
            "api_key_invalid",
            "set an auth method",
            "credit balance is too low",
            "insufficient_quota",
            "billing_error",
        ],
        &["401", "403"],
    ),
    (
        FailureClass::Throttled,
        &[
            "too many requests",
            "rate limit",
            "rate_limit",
            "ratelimit",
            "usage limit",
            "overloaded",
            "at capacity",
            "resource_exhausted",
            "exceeded your current quota",
            "serviceunavailable",
            "service unavailable",
            "bad gateway",
            "gateway timeout",
        ],
        &["429", "529"],
    ),
    (
        FailureClass::Refused,
        &["usage policy", "content policy", "content_filter", "prohibited_content", "\"refusal\""],
        &[],
    ),
    (
        FailureClass::Host,
        &[
            "connection refused",
            "econnrefused",
            "econnreset",
            "enotfound",
            "eai_again",
            "fetch failed",
            "connection error",
            "connection reset",
            "connectionrefused",
            "apiconnectionerror",
            "unable to connect",
            "could not connect",
            "cannot connect to api",
            "connection was closed",
            "error sending request",
            "stream disconnected",
            "stream closed",
            "socket hang up",
            "network error",
            "premature close",
            "server disconnected",
        ],
        &[],
    ),
    // litellm calls a refused connection an error of the server too, so that these count last.
    (
        FailureClass::Throttled,
        &["internalservererror", "internal server error", "server_error"],
        &[],
    ),
];

fn of_words(text: &str) -> Option<FailureClass> {
    // A code must be a word of its own: `line 14290` has a 429 in it.
    let is_code = |code: &&str| words(text).any(|word| word == *code);
    let says = |(_, phrases, codes): &&(_, &[&str], &[&str])| {
        phrases.iter().any(|phrase| text.contains(phrase)) || codes.iter().any(is_code)
    };
    WORDS.iter().find(says).map(|(class, ..)| *class)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
}

/// When to come back, by this record.
fn wait_of(complaint: &Complaint) -> Option<Wait> {
    let said = complaint.retry_after.map(Wait::For).or(complaint.resets_at.map(Wait::Until));
    said.or_else(|| wait_in(&complaint.text.to_lowercase()))
}

fn wait_in(text: &str) -> Option<Wait> {
    let after = |marker: &&str| text.find(*marker).map(|at| &text[at + marker.len()..]);
    let moments = [
        "try again at ",
        "resets at ",
        "reset at ",
        "resets ",
        "reached|",
        "until ",
        "regain access on ",
    ];
    if let Some(moment) = moments.iter().filter_map(after).find_map(moment) {
        return Some(moment);
    }
    let spans = [
        "retry-after",
        "retry after",
        "retry in",
        "try again in",
        "retrydelay",
        "reset in",
        "resets in",
    ];
    spans.iter().filter_map(after).find_map(span).map(Wait::For)
}

/// A point in time at the start of a text: seconds since 1970, a time of day, or a date.
fn moment(text: &str) -> Option<Wait> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let text = text.trim_start();
    // The whole word, which may be cut short as in `nov`: `until maybe later` names no day.
    let word = text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    if word.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(word)) {
        return Some(Wait::Long);
    }
    if let Some(at) = date(text) {
        return Some(Wait::Until(at));
    }
    let (number, rest) = digits(text)?;
    // Ten digits are seconds since 1970: from 2017 to 2286. Anything smaller is an hour.
    if (1_500_000_000..10_000_000_000).contains(&number) {
        return i64::try_from(number).ok().map(Wait::Until);
    }
    let (minutes, rest) = match rest.strip_prefix(':').and_then(digits) {
        Some((minutes, rest)) => (minutes, rest.trim_start()),
        None => (0, rest.trim_start()),
    };
    let hour = match number {
        1..=12 if rest.starts_with("pm") => number % 12 + 12,
        1..=12 if rest.starts_with("am") => number % 12,
        _ => return None,
    };
    (minutes < 60).then(|| u32::try_from(hour * 60 + minutes).ok().map(Wait::TimeOfDay))?
}

/// `2026-11-17 at 12:11 utc` at the start of a text, in seconds since 1970.
fn date(text: &str) -> Option<i64> {
    let (year, rest) = digits(text)?;
    let (month, rest) = digits(rest.strip_prefix('-')?)?;
    let (day, rest) = digits(rest.strip_prefix('-')?)?;
    let rest = rest.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let (hour, rest) = digits(rest)?;
    let (minute, _) = digits(rest.strip_prefix(':')?)?;
    let in_range = (1970..10_000).contains(&year) && (1..=12).contains(&month);
    if !in_range || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    // Years begin in March, so that the day that some have more is their last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    // The number of days from the first of March of the year 0 to the first of January 1970.
    let days = days.checked_sub(719_468)?;
    i64::try_from(((days * 24 + hour) * 60 + minute) * 60).ok()
}

/// A span near the start of a text, such as `: 20`, `20s`, `1m30s` or `5 minutes`. A bare number is seconds.
fn span(text: &str) -> Option<Duration> {
    // The number stands next to its marker: `: 20`, `": "34s`. One further off belongs to another
    // sentence.
    let start = text.find(|letter: char| letter.is_ascii_digit()).filter(|at| *at <= 6)?;
    let mut rest = &text[start..];
    let mut all = Duration::ZERO;
    let mut is_first = true;
    while let Some((number, after)) = digits(rest) {
        // `12.5s` is 12 seconds: the fraction is dropped.
        let after = after.strip_prefix('.').and_then(digits).map_or(after, |(_, after)| after);
        let unit = after.trim_start();
        let letters = unit.chars().take_while(char::is_ascii_alphabetic).collect::<String>();
        let seconds = match letters.as_str() {
            "ms" | "milliseconds" => number.div_ceil(1000),
            "m" | "min" | "mins" | "minute" | "minutes" => number.saturating_mul(60),
            "h" | "hour" | "hours" => number.saturating_mul(60 * 60),
            "d" | "day" | "days" => number.saturating_mul(24 * 60 * 60),
            "s" | "sec" | "secs" | "second" | "seconds" => number,
            _ if is_first => number,
            _ => break,
        };
        all = all.saturating_add(Duration::from_secs(seconds));
        is_first = false;
        rest = &unit[letters.len()..];
    }
    // `0.5s` was cut to nothing above, and a pause of no length would ask again at once.
    Some(all.max(Duration::from_secs(1)))
}

/// The number at the start of a text, and what follows it.
fn digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Protocol, ProtocolReader};

    fn of(text: &str) -> Option<FailureClass> {
        diagnose(&Transcript::default(), text).map(|found| found.class)
    }

    #[test]
    fn the_words_of_agents_have_their_classes() {
        use FailureClass::{Auth, ContextTooLong, Host, Refused, Throttled};
        for (text, class) in [
            ("exceeded retry limit, last status: 429 Too Many Requests", Throttled),
            ("You've hit your usage limit. Upgrade to Pro or try again at 3:41 PM.", Throttled),
            ("Selected model is at capacity. Please try a different model.", Throttled),
            ("API Error: Request rejected (429)", Throttled),
            ("API Error: Repeated 529 Overloaded errors", Throttled),
            ("Rate limit reached for requests", Throttled),
            ("{'error': {'code': 429, 'status': 'RESOURCE_EXHAUSTED'}}", Throttled),
            ("litellm.RateLimitError: RateLimitError: OpenAIException", Throttled),
            ("unexpected status 401 Unauthorized: , url: http://x/responses", Auth),
            ("Invalid API key · Please run /login", Auth),
            ("litellm.AuthenticationError: AuthenticationError: bad", Auth),
            ("litellm.InternalServerError: OpenAIException - Connection error.", Host),
            ("litellm.InternalServerError: OpenAIException - it broke", Throttled),
            ("API key not valid. Please pass a valid API key.", Auth),
            ("API Error: 400 You have reached your specified API usage limits.", Throttled),
            ("Prompt is too long", ContextTooLong),
            ("litellm.ContextWindowExceededError: too long", ContextTooLong),
            ("Model fake has hit a token limit!", ContextTooLong),
            ("Your input exceeds the context window of this model.", ContextTooLong),
            ("This request violates our usage policy", Refused),
            ("stream disconnected before completion: error sending request for url", Host),
            ("Unable to connect to API (ConnectionRefused)", Host),
        ] {
            assert_eq!(of(text), Some(class), "{text}");
        }
        for text in ["error in line 14290", "wrote 4 files", "port 4291 is open", ""] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_last_lines_count_and_no_line_of_a_protocol() {
        let far = format!("429 Too Many Requests\n{}", "fine\n".repeat(LINES));
        assert_eq!(of(&far), None);
        assert_eq!(of("{\"output\":\"429 Too Many Requests\"}\n"), None);
        let beside =
            "level=ERROR message=\"Failed to fetch models.dev\" cause=\"Unable to connect.\"\n";
        assert_eq!(of(beside), None, "it works on without");
    }

    #[test]
    fn the_moment_of_return_is_read_in_each_form() {
        let clock = Some(WallClock { now: || 1_700_000_000, offset: || 3600 });
        // 1_700_000_000 is 22:13:20 UTC, so 23:13:20 here.
        for (text, seconds) in [
            ("try again at 11:15 PM", Some(100 + 5)),
            ("resets 3am", Some(3 * 3600 + 46 * 60 + 40 + 5)),
            ("try again at 11:13 PM.", Some(24 * 3600 - 20 + 5)),
            ("usage limit reached|1700000060", Some(60 + 5)),
            ("resets at 1700000060", Some(60 + 5)),
            ("you will regain access on 2023-11-14 at 22:15 UTC.", Some(100 + 5)),
            ("retry-after: 20", Some(20)),
            ("Please retry in 12.5s.", Some(12)),
            ("Please try again in 1m30s.", Some(90)),
            ("Try again in 5 minutes", Some(300)),
            ("\"retryDelay\": \"34s\"", Some(34)),
            ("try again at Nov 20th, 2026 3:41 PM", Some(u64::MAX)),
            ("try again at Sept. 3, 2026", Some(u64::MAX)),
            ("not available until maybe tomorrow", None),
            ("try again at noon", None),
            ("try again later", None),
        ] {
            let wait = wait_in(&text.to_lowercase()).and_then(|wait| wait.as_pause(clock));
            assert_eq!(wait.map(|wait| wait.as_secs()), seconds, "{text}");
        }
        assert_eq!(Wait::TimeOfDay(7).as_pause(None), None, "a time of day needs a clock");
    }

    #[test]
    fn a_record_that_names_the_limit_gives_the_wait_of_the_one_that_ends_the_work() {
        let text = concat!(
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1700000060,"rateLimitType":"five_hour"}}"#,
            "\n",
            r#"{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit (429)"}"#,
        );
        let found = diagnose(&ProtocolReader::read(Protocol::Claude, text.as_bytes()), "").unwrap();
        assert_eq!(found.class, FailureClass::Throttled);
        assert_eq!(found.evidence, "You've hit your limit (429)");
        assert_eq!(found.wait, Some(Wait::Until(1_700_000_060)));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", number in proptest::num::u64::ANY) {
            diagnose(&Transcript::default(), &text);
            for marker in ["try again at ", "retry-after: ", "resets at ", "try again in "] {
                let text = format!("{marker}{number}{text}");
                wait_in(&text.to_lowercase()).map(|wait| wait.as_pause(Some(WallClock { now: || 0, offset: || i32::MIN })));
            }
        }
    }
}
