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
        .and_then(|heading| title_in(&heading))
        .or_else(|| slug().filter(|slug| !slug.is_empty() && !slug.starts_with('<')))
        .unwrap_or_else(|| format!("issue {id}"))
}

/// The part of a heading that describes the work, or `None` if it is only `Brief` or `Issue 7`.
fn title_in(heading: &str) -> Option<String> {
    let says_nothing = |text: &str| {
        let text = text.trim().to_lowercase();
        text.is_empty() || text.starts_with('<') || text == "brief" || text.starts_with("issue ")
    };
    let title = match heading.split_once(" — ") {
        Some((_, title)) => title,
        None if heading.to_lowercase().starts_with("brief") => return None,
        None => heading,
    };
    (!says_nothing(title)).then(|| title.trim().to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
