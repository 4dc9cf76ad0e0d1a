//! Dates as trackers write them. The time of day is ignored: ages are days.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// The order of day and month in a date that is written with numbers and slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Parses the day of a timestamp; `None` if it is in no known form, or ambiguous without an order.
pub(crate) fn day(text: &str, order: Option<DateOrder>) -> Option<Date> {
    let text = text.trim();
    if text.len() >= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return of_seconds(text);
    }
    let parts: Vec<&str> =
        text.split(['-', '/', '.', ',', ' ', 'T']).filter(|part| !part.is_empty()).collect();
    let [first, second, third, ..] = parts[..] else { return of_words(text, &parts) };
    if first.len() == 4 && number(first).is_some() {
        return date(number(first)?, number(second)?, number(third)?);
    }
    if number(first).is_none() || number(second).is_none() {
        return of_words(text, &parts);
    }
    let (first, second, year) = (number(first)?, number(second)?, year(third)?);
    // A dot is written between day and month where the day comes first.
    let by_dot = text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('.');
    match (order, first > 12, second > 12) {
        (Some(DateOrder::Dmy), _, false) | (None, true, false) => date(year, second, first),
        (Some(DateOrder::Mdy), false, _) | (None, false, true) => date(year, first, second),
        (None, false, false) if by_dot => date(year, second, first),
        (None, false, false) | (None, true, true) | (Some(_), _, _) => None,
    }
}

/// Parses `12/Jan/26`, `12 January 2026`, `Jan 12, 2026` and `Mon Jan 12 2026`.
fn of_words(text: &str, parts: &[&str]) -> Option<Date> {
    // `T` separates date and time, and is also a letter of weekdays; words are split without it.
    let words: Vec<&str> =
        text.split(['-', '/', '.', ',', ' ']).filter(|part| !part.is_empty()).collect();
    let words = if words.is_empty() { parts } else { &words[..] };
    let at = words.iter().take(3).position(|word| month(word).is_some())?;
    let month = month(words[at])?;
    let before = at.checked_sub(1).and_then(|before| number(words[before]));
    match before {
        Some(day) => date(year(words.get(at + 1)?)?, month, day),
        None => date(year(words.get(at + 2)?)?, month, number(words.get(at + 1)?)?),
    }
}

fn of_seconds(text: &str) -> Option<Date> {
    let seconds: i64 = text.parse().ok()?;
    // Milliseconds have three digits more.
    let seconds = if text.len() >= 12 { seconds / 1000 } else { seconds };
    let at = jiff::Timestamp::from_second(seconds).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).date())
}

fn month(word: &str) -> Option<i16> {
    let start = word.get(..3)?.to_lowercase();
    let at = MONTHS.iter().position(|month| *month == start)?;
    i16::try_from(at + 1).ok()
}

fn year(text: &str) -> Option<i16> {
    let number = number(text)?;
    match text.len() {
        4 => Some(number),
        2 if number < 70 => Some(2000 + number),
        2 => Some(1900 + number),
        _ => None,
    }
}

fn number(text: &str) -> Option<i16> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn date(year: i16, month: i16, day: i16) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Returns the whole days from `since` to `today`; a day in the future is no age.
pub(crate) fn age(since: Option<Date>, today: Date) -> Option<i64> {
    let days = (today - since?).get_days();
    Some(i64::from(days.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_trackers_are_read() {
        for (text, expected) in [
            ("2026-01-12", "2026-01-12"),
            ("2026-01-12T03:04:05Z", "2026-01-12"),
            ("2026-01-12T03:04:05.678+0200", "2026-01-12"),
            ("2026-01-12 03:04:05 UTC", "2026-01-12"),
            ("2026/1/2", "2026-01-02"),
            ("12/Jan/26 3:04 PM", "2026-01-12"),
            ("12-Jan-2026", "2026-01-12"),
            ("Jan 12, 2026", "2026-01-12"),
            ("Tue Jan 13 2026", "2026-01-13"),
            ("12 January 2026", "2026-01-12"),
            ("12.01.2026 14:00", "2026-01-12"),
            ("25/12/2025", "2025-12-25"),
            ("12/25/2025", "2025-12-25"),
            ("1768176000", "2026-01-12"),
            ("1768176000000", "2026-01-12"),
            ("12/Jan/98", "1998-01-12"),
        ] {
            let said = day(text, None).map(|date| date.to_string());
            assert_eq!(said.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_ambiguous_date_needs_the_order() {
        assert_eq!(day("03/04/2026", None), None);
        let said = |order| day("03/04/2026", Some(order)).map(|date| date.to_string());
        assert_eq!(said(DateOrder::Dmy).as_deref(), Some("2026-04-03"));
        assert_eq!(said(DateOrder::Mdy).as_deref(), Some("2026-03-04"));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in
            ["", "yesterday", "2026-13-01", "99/99/9999", "1", "-", "//", "é-é-é", "2026-02-30"]
        {
            assert_eq!(day(text, None), None, "{text}");
        }
    }
}
