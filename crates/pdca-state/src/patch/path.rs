//! Checks that paths in patches and trees stay inside the checkout.

use super::PatchFault;

/// Returns bytes as text. Invalid UTF-8 is replaced.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the reason why a path may not be used in a tree, if any.
pub fn unfit_path(path: &[u8]) -> Option<PatchFault> {
    let shown = || lossy(path);
    if path.starts_with(b"/") {
        return Some(PatchFault::Absolute(shown()));
    }
    if path.contains(&0)
        || path.split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b".."))
    {
        return Some(PatchFault::Leaves(shown()));
    }
    // A backslash separates directories on Windows, so it must not hide a `..` or a `.git` either.
    let parts = || path.split(|byte| matches!(byte, b'/' | b'\\'));
    if parts().any(|part| part == b"..") {
        return Some(PatchFault::Leaves(shown()));
    }
    parts().any(is_dot_git).then(|| PatchFault::Repository(shown()))
}

/// Returns true if some filesystem takes this name for `.git`.
fn is_dot_git(part: &[u8]) -> bool {
    // HFS+ ignores these characters when it compares names.
    let seen: String = lossy(part).chars().filter(|letter| !is_invisible(*letter)).collect();
    // NTFS ignores a stream name, and blanks and dots at the end.
    let seen = seen
        .split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches([' ', '.'])
        .to_ascii_lowercase();
    // NTFS gives `.git` a short name of this form.
    let short = seen.strip_prefix("git~").is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    seen == ".git" || short
}

fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Returns true if a link at `path` would lead out of the tree or into its `.git`.
///
/// `..` is only allowed at the start of the target: there it is resolved from the known location of the link, while
/// after another name its meaning depends on what that name is when the link is followed.
pub fn leaves(path: &[u8], target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return true;
    }
    let mut depth = path.split(|byte| *byte == b'/').count() - 1;
    let mut down = false;
    for part in target.split(|byte| matches!(byte, b'/' | b'\\')) {
        match part {
            b"" | b"." => {}
            b".." if down || depth == 0 => return true,
            b".." => depth -= 1,
            part if is_dot_git(part) => return true,
            _ => down = true,
        }
    }
    false
}

/// Parses a name quoted by git. Returns it and the rest of the text.
pub fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (escape, after) = rest.split_first()?;
                rest = after;
                name.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    b'0'..=b'3' => {
                        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                        rest = &rest[2..];
                        (escape - b'0') * 64 + u8::from_str_radix(digits, 8).ok()?
                    }
                    _ => return None,
                });
            }
            byte => name.push(*byte),
        }
    }
}
