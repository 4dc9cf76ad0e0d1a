//! Parser of the globs in a `Touches` field; [`super::Brief::touches`] has the rules.

use super::target::is_nothing;

/// The delimiters that are open at the scanner's position.
#[derive(Debug, Default)]
struct Inside {
    backticks: bool,
    parentheses: u32,
    braces: u32,
}

/// The globs of the value in order, without duplicates.
pub(super) fn globs(value: &str) -> Vec<String> {
    let mut globs: Vec<String> = Vec::new();
    for item in items(value) {
        let words: Vec<&str> = item.split_whitespace().collect();
        let words = match words.as_slice() {
            ["-" | "*" | "+", rest @ ..] if !rest.is_empty() => rest,
            words => words,
        };
        for word in words {
            let is_quoted = word.starts_with('`');
            let glob =
                word.trim_end_matches([';', ':']).trim_matches('`').trim_end_matches([';', ':']);
            let is_glob = is_quoted || words.len() == 1 || is_path_like(glob);
            if is_glob && !glob.is_empty() && !is_nothing(glob) {
                globs.push(glob.to_owned());
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    globs.retain(|glob| seen.insert(glob.clone()));
    globs
}

/// Splits at commas and line ends and drops text in parentheses.
fn items(value: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut inside = Inside::default();
    for c in value.chars() {
        let is_glob_text = inside.parentheses == 0 || inside.backticks;
        match c {
            '`' if inside.parentheses == 0 => inside.backticks = !inside.backticks,
            '(' if !inside.backticks => inside.parentheses += 1,
            ')' if !inside.backticks => {
                inside.parentheses = inside.parentheses.saturating_sub(1);
                continue;
            }
            '{' if is_glob_text => inside.braces += 1,
            '}' if is_glob_text => inside.braces = inside.braces.saturating_sub(1),
            '\n' => {
                // An unclosed backtick or brace must not swallow the following lines.
                inside.backticks = false;
                inside.braces = 0;
            }
            _ => {}
        }
        let ends_item = c == '\n' || (c == ',' && inside.braces == 0);
        if inside.parentheses > 0 && !inside.backticks {
            continue;
        }
        if ends_item {
            items.push(String::new());
        } else if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    items
}

fn is_path_like(word: &str) -> bool {
    let inner = word.trim_end_matches('.');
    inner.contains(['/', '.', '*', '?', '[', '{']) && !matches!(inner, "e.g" | "i.e")
}
