//! Tokens and money in words.

use pdca_state::{CostTotal, Usage};

/// Returns a count of tokens: `122`, `24.8k`, `1.2M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Returns the tokens: `24.8k tokens in (24.4k cached), 122 out`; `None` if none were told.
pub(crate) fn usage(usage: Usage) -> Option<String> {
    if usage == Usage::default() {
        return None;
    }
    let cached = match usage.cached {
        0 => String::new(),
        cached => format!(" ({} cached)", tokens(cached)),
    };
    let (input, output) = (tokens(usage.input), tokens(usage.output));
    Some(format!("{input} tokens in{cached}, {output} out"))
}

/// Returns the cost and the tokens of calls, as far as they are known.
pub(crate) fn total(total: &CostTotal) -> Option<String> {
    let parts: Vec<String> = [total.words(), usage(total.usage)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_cut_to_what_a_person_reads() {
        assert_eq!(
            [0, 999, 1_000, 24_763, 999_999, 1_000_000, 12_345_678].map(tokens),
            ["0", "999", "1.0k", "24.7k", "999.9k", "1.0M", "12.3M"]
        );
        let told = Usage { input: 24_763, cached: 24_448, output: 122 };
        assert_eq!(usage(told).as_deref(), Some("24.7k tokens in (24.4k cached), 122 out"));
        assert_eq!(usage(Usage::default()), None);
    }
}
