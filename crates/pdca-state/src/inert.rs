//! Neutralizes text from a brief before it is sent to a forge.
//!
//! A forge acts on text: `Fixes #12` closes an issue when the pull request is merged, `@name` notifies a person, an
//! image is loaded from its host, `[skip ci]` in a commit message disables the checks. A brief is often a report by
//! a stranger, so none of that may take effect. Whole fields are quoted as code blocks, in which a forge interprets
//! nothing; in short texts within a sentence an invisible character is inserted into each such sequence.

/// Zero-width space: it is invisible, and a forge does not recognize a reference that contains it.
const BREAK: char = '\u{200b}';
/// The lowercase texts that disable checks.
/// One list for GitHub, GitLab and Azure DevOps, because the forge behind a command is not known.
const SKIPS: [&str; 6] =
    ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "***no_ci***"];

/// Returns the text as a Markdown code block whose fence is longer than any run of backticks in the text.
pub(crate) fn quoted(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    // Markdown takes a lone carriage return as the end of a line, so it could close the fence.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    format!("{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// Returns the text for use in a Markdown sentence, without references, mentions, links, images or HTML.
pub(crate) fn in_markdown(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => tamed.push_str("&lt;"),
            '[' | ']' | '`' | '*' | '_' | '\\' | '|' => tamed.extend(['\\', c]),
            _ => tamed.push(c),
        }
    }
    tamed
}

/// Returns the text for use in a title or commit message: it closes no issue, notifies nobody, and skips no checks.
pub(crate) fn plain(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = SKIPS.iter().find(|skip| starts_with(rest, skip));
        let next = rest[c.len_utf8()..].chars().next();
        tamed.push(c);
        let acts = match c {
            // Only where a name or number follows, so that ordinary text such as `C#` stays as it is.
            '@' => next.is_some_and(|c| c.is_alphanumeric() || c == '_'),
            '#' | '!' => next.is_some_and(char::is_numeric),
            // A link to an issue closes it as its number does.
            ':' => rest.starts_with("://"),
            'g' | 'G' => starts_with(rest, "gh-"),
            _ => skip.is_some(),
        };
        if acts {
            tamed.push(BREAK);
        }
        rest = &rest[c.len_utf8()..];
    }
    tamed
}

fn starts_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_forge_acts_on_is_broken_and_the_rest_stays() {
        for text in [
            "Fixes #12",
            "closes owner/repo#1",
            "RESOLVES GH-7",
            "fixes https://github.com/o/r/issues/3",
            "thanks @octocat",
            "merge request !44",
            "now [Skip CI] please",
            "***NO_CI***",
        ] {
            let tamed = plain(text);
            assert_ne!(tamed, text);
            assert_eq!(tamed.replace(BREAK, ""), text);
        }
        for text in ["a # b", "C# and F#", "mail me @ home", "50 % !", "x: y", "ghost"] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn markdown_has_no_image_link_or_tag_left() {
        let text = in_markdown("![x](http://e/p.png) <img src=x> <!-- y --> `c` a|b");
        assert_eq!(
            text.replace(BREAK, ""),
            r"!\[x\](http://e/p.png) &lt;img src=x> &lt;!-- y --> \`c\` a\|b"
        );
    }

    #[test]
    fn a_fence_is_longer_than_any_in_its_text() {
        assert_eq!(quoted("a"), "```text\na\n```\n");
        assert_eq!(quoted("```\nFixes #1\r````"), "`````text\n```\nFixes #1\n````\n`````\n");
    }

    proptest! {
        #[test]
        fn no_line_of_a_quoted_text_ends_its_fence(text in "[`~ \\n\\ra#@-]{0,60}") {
            let quoted = quoted(&text);
            let fence = quoted.split("text\n").next().unwrap().to_owned();
            let lines: Vec<&str> = quoted.lines().collect();
            let (last, inside) = lines.split_last().unwrap();
            prop_assert_eq!(*last, fence.as_str());
            for line in &inside[1..] {
                prop_assert!(!line.trim().starts_with(&fence), "{quoted:?}");
            }
        }

        #[test]
        fn no_reference_survives(text in "(#|@|!|gh-|GH-|://|[a-z0-9 ]){0,30}") {
            let tamed = plain(&text);
            prop_assert!(!tamed.contains("://"));
            let chars: Vec<char> = tamed.chars().collect();
            for pair in chars.windows(2) {
                prop_assert!(!(matches!(pair[0], '#' | '!') && pair[1].is_numeric()));
                prop_assert!(!(pair[0] == '@' && pair[1].is_alphanumeric()));
            }
        }
    }
}
