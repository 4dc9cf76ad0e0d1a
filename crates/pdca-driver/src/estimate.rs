//! Parses the duration that the author of a brief estimates.

use std::time::Duration;

use pdca_state::{Brief, Label};

/// Anything longer is taken for a typo.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Returns the duration at the start of the `Difficulty` line: `20 min`, `2h`, `1 h 30 min`, `90s (…)`.
/// `low`, `medium` and `high` are not durations.
pub(crate) fn declared_duration(brief: &Brief) -> Option<Duration> {
    duration(brief.known(Label::Difficulty)?.own_line)
}

fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start().trim_start_matches(['~', '≈', '`']);
    let mut total = Duration::ZERO;
    while let Some((part, after)) = part(rest) {
        total = total.checked_add(part)?;
        rest = after.trim_start();
    }
    (Duration::ZERO < total && total <= LONGEST).then_some(total)
}

/// Splits off a number with its unit.
fn part(text: &str) -> Option<(Duration, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..].trim_start();
    let end = unit.find(|c: char| !c.is_alphabetic()).unwrap_or(unit.len());
    let seconds = match unit[..end].to_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some((Duration::try_from_secs_f64(number * seconds).ok()?, &unit[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difficulty_that_starts_with_a_duration_is_one() {
        let table = [
            ("20 min", Some(1200)),
            ("2h", Some(7200)),
            ("90s", Some(90)),
            ("1h30m", Some(5400)),
            ("1 h 30 min", Some(5400)),
            ("1.5 hours, mostly reading", Some(5400)),
            ("~15 minutes (guess)", Some(900)),
            ("`45 min`", Some(2700)),
            ("2 Days", Some(172_800)),
            ("low", None),
            ("medium, 20 min", None),
            ("20", None),
            ("20-30 min", None),
            ("20 mines", None),
            ("3 of 5", None),
            ("0 min", None),
            ("99999999999999999999 h", None),
            ("1.2.3 h", None),
            ("31 days", None),
            ("", None),
        ];
        for (text, seconds) in table {
            assert_eq!(duration(text), seconds.map(Duration::from_secs), "{text:?}");
        }
    }

    #[test]
    fn only_the_line_of_the_label_counts() {
        let of = |text: &str| declared_duration(&Brief::parse(text));
        assert_eq!(of("- **Difficulty:** 10 min\n"), Some(Duration::from_secs(600)));
        assert_eq!(of("- **Difficulty:**\n  10 min\n"), None);
        assert_eq!(of("- **Slug:** x\n"), None);
    }
}
