//! The title of a bundle, for lists and commit messages.

use crate::brief::Brief;
use crate::id::BundleId;
use crate::lines::lines;

/// Returns the title of a bundle: the heading of its brief without a leading `Brief: issue 7 —`, else
/// its slug in words, else its id.
///
/// ```
/// let id = "7".parse()?;
/// assert_eq!(pdca_state::title_of("# Parser: read dates\n", &id), "Parser: read dates");
/// assert_eq!(pdca_state::title_of("# Brief: issue 7 — read dates\n", &id), "read dates");
/// assert_eq!(pdca_state::title_of("# Brief\n\n- **Slug:** read-dates\n", &id), "read dates");
/// assert_eq!(pdca_state::title_of("", &id), "issue 7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn title_of(brief: &str, id: &BundleId) -> String {
    let heading = lines(brief).find_map(|line| line.text.strip_prefix("# ").map(one_line));
    let slug = || Brief::parse(brief).slug().map(|slug| one_line(&slug.replace('-', " ")));
    heading
        .and_then(|heading| title_in(&heading, id))
        .or_else(|| slug().filter(|slug| !slug.is_empty() && !slug.starts_with('<')))
        .unwrap_or_else(|| format!("issue {id}"))
}

/// The part of a heading that describes the work, or `None` if it is only `Brief` or `Issue 7`.
fn title_in(heading: &str, id: &BundleId) -> Option<String> {
    let says_nothing = |text: &str| {
        let text = text.trim().to_lowercase();
        text.is_empty() || text.starts_with('<') || text == "brief" || text.starts_with("issue ")
    };
    let is_label = |text: &str| {
        let is_id = text.trim().trim_start_matches('#') == id.as_str();
        is_id || says_nothing(text) || text.to_lowercase().starts_with("brief")
    };
    let title = match heading.split_once(" — ") {
        Some((label, title)) if is_label(label) => title,
        Some(_) | None if is_label(heading) => return None,
        // A dash of the title's own.
        Some(_) | None => heading,
    };
    (!says_nothing(title)).then(|| title.trim().to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_label_before_the_dash_is_left_out_of_a_title() {
        let id = "7".parse().unwrap();
        for (heading, expected) in [
            ("Cache: evict — and log", "Cache: evict — and log"),
            ("Brief: issue 7 — evict — and log", "evict — and log"),
            ("Issue 7 — evict", "evict"),
            ("7 — evict", "evict"),
            ("#7 — evict", "evict"),
            ("Brief — issue 7", "issue 7"),
            ("Brief: issue 7", "issue 7"),
        ] {
            assert_eq!(title_of(&format!("# {heading}\n"), &id), expected, "{heading}");
        }
    }
}
