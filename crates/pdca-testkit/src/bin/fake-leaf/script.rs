//! Lines, words and what stands for other words in them.

use std::{env, ops::RangeInclusive};

/// A script, read but not yet carried out.
#[derive(Debug)]
pub(crate) struct LeafScript {
    pub(crate) lines: Vec<ScriptLine>,
}

/// One action.
#[derive(Debug)]
pub(crate) struct ScriptLine {
    /// Counted from 1, for messages.
    pub(crate) number: usize,
    /// On which calls it is carried out; none means on each.
    pub(crate) calls: Option<RangeInclusive<u32>>,
    pub(crate) words: Vec<String>,
}

impl LeafScript {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = Vec::new();
        let mut rest = text.split_inclusive('\n').enumerate();
        while let Some((index, line)) = rest.next() {
            let number = index + 1;
            let mut words = words(line).map_err(|why| format!("line {number}: {why}"))?;
            let Some(first) = words.first() else { continue };
            if first.starts_with('#') {
                continue;
            }
            let calls = calls(first);
            if calls.is_some() {
                words.remove(0);
            }
            if let Some(end) =
                words.last().and_then(|last| last.strip_prefix("<<")).map(str::to_owned)
            {
                words.pop();
                let body: String = rest
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| line.trim() != end)
                    .collect();
                words.push(body);
            }
            lines.push(ScriptLine { number, calls, words });
        }
        Ok(Self { lines })
    }
}

/// Reads `[2]`, `[2+]` or `[-2]`.
fn calls(word: &str) -> Option<RangeInclusive<u32>> {
    let inner = word.strip_prefix('[')?.strip_suffix(']')?;
    if let Some(first) = inner.strip_suffix('+') {
        return Some(first.parse().ok()?..=u32::MAX);
    }
    if let Some(last) = inner.strip_prefix('-') {
        return Some(0..=last.parse().ok()?);
    }
    let only = inner.parse().ok()?;
    Some(only..=only)
}

fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut letters = line.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        let mut word = String::new();
        if letter == '"' {
            loop {
                match letters.next().ok_or("a quote is not closed")? {
                    '"' => break,
                    '\\' => word.push(escape(letters.next())?),
                    other => word.push(other),
                }
            }
        } else {
            word.push(letter);
            while let Some(next) = letters.next_if(|next| !next.is_whitespace()) {
                word.push(next);
            }
        }
        words.push(word);
    }
    Ok(words)
}

fn escape(letter: Option<char>) -> Result<char, &'static str> {
    match letter {
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        Some('0') => Ok('\0'),
        Some(same @ ('"' | '\\')) => Ok(same),
        Some(_) | None => Err("an escape is not known"),
    }
}

/// Puts environment variables and arguments in the place of `${…}`.
pub(crate) fn expand(word: &str, args: &[String]) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        match name.parse::<usize>() {
            Ok(number) => out.push_str(
                number.checked_sub(1).and_then(|at| args.get(at)).map_or("", String::as_str),
            ),
            Err(_) => out.push_str(&env::var_os(name).unwrap_or_default().to_string_lossy()),
        }
        rest = tail;
    }
    out + rest
}
