//! `Size limit`: the size that the author of a brief expects of its change.

use super::Brief;

/// The limits of a brief; a number that is not given is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeLimit {
    /// Changed lines, added and removed.
    pub lines: Option<u64>,
    /// Changed files.
    pub files: Option<u64>,
}

/// Reads `Size limit: 300 lines, 10 files`; a number alone means lines. `None` if there is no such field, or it
/// has no number.
///
/// ```
/// use pdca_state::{Brief, SizeLimit, size_limit};
/// let brief = Brief::parse("- **Size limit:** 300 lines, 10 files (it is a rename)\n");
/// assert_eq!(size_limit(&brief), Some(SizeLimit { lines: Some(300), files: Some(10) }));
/// ```
pub fn size_limit(brief: &Brief) -> Option<SizeLimit> {
    let field = brief.field("size limit")?;
    let mut limit = SizeLimit::default();
    let words: Vec<&str> = field
        .own_line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '`'))
        .filter(|word| !word.is_empty())
        .collect();
    for (index, word) in words.iter().enumerate() {
        let Ok(number) = word.parse::<u64>() else { continue };
        let unit = words.get(index + 1).map(|unit| unit.to_lowercase());
        let place = match unit.as_deref() {
            Some(unit) if unit.starts_with("file") => &mut limit.files,
            Some(_) | None => &mut limit.lines,
        };
        place.get_or_insert(number);
    }
    (limit != SizeLimit::default()).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_and_its_unit() {
        let limit = |text: &str| {
            let limit = size_limit(&Brief::parse(&format!("- **Size limit:** {text}\n")));
            limit.map(|limit| (limit.lines, limit.files))
        };
        assert_eq!(limit("200"), Some((Some(200), None)));
        assert_eq!(limit("200 lines; 3 files"), Some((Some(200), Some(3))));
        assert_eq!(limit("12 Files"), Some((None, Some(12))));
        assert_eq!(limit("small"), None);
        assert_eq!(limit("<lines, files>"), None);
    }
}
