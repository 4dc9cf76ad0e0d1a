//! The words of aider: one line tells tokens and cost.

use super::{Progress, Usage};

pub(super) fn read(line: &str, progress: &mut Progress) {
    progress.step();
    // `Tokens: 2.3k sent, 120 received. Cost: $0.01 message, $0.02 session.`
    let Some(told) = line.trim().strip_prefix("Tokens: ") else { return };
    let number =
        |marker: &str| told.split(marker).next().and_then(|before| before.rsplit(' ').next());
    let tokens =
        |marker: &str| told.contains(marker).then(|| number(marker)).flatten().and_then(count);
    progress.use_tokens(Usage {
        input: tokens(" sent").unwrap_or(0),
        cached: 0,
        output: tokens(" received").unwrap_or(0),
    });
    let cost = number(" session").and_then(|text| text.strip_prefix('$')?.parse().ok());
    progress.transcript.cost = cost.or(progress.transcript.cost);
}

/// `120`, `2.3k` or `1.2M`.
fn count(text: &str) -> Option<u64> {
    let (number, factor) = match (text.strip_suffix('k'), text.strip_suffix('M')) {
        (Some(number), _) => (number, 1_000),
        (None, Some(number)) => (number, 1_000_000),
        (None, None) => (text, 1),
    };
    let (whole, part) = number.replace(',', "").split_once('.').map_or_else(
        || (number.replace(',', ""), String::new()),
        |(whole, part)| (whole.to_owned(), part.to_owned()),
    );
    let whole: u64 = whole.parse().ok()?;
    let tenth =
        part.bytes().next().filter(u8::is_ascii_digit).map_or(0, |digit| u64::from(digit - b'0'));
    Some(whole.saturating_mul(factor).saturating_add(tenth * factor / 10))
}
