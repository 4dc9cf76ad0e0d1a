//! Severity, component and kind from labels, for trackers that have no columns for them.

/// Words of severity, the gravest first; those of one rank are equal.
const RANKS: [&[&str]; 6] = [
    &[
        "blocker",
        "block",
        "critical",
        "crash",
        "urgent",
        "immediate",
        "highest",
        "p0",
        "s0",
        "showstopper",
    ],
    &["major", "high", "p1", "s1", "serious", "important", "severe"],
    &["normal", "medium", "moderate", "p2", "s2", "default"],
    &["minor", "low", "p3", "s3"],
    &["trivial", "lowest", "cosmetic", "tweak", "text", "p4", "s4", "p5"],
    &["enhancement", "feature", "wishlist"],
];

/// The rank of a severity that is not known: after those that are.
pub(crate) const UNKNOWN_RANK: usize = RANKS.len();

/// Words of a kind that are also labels by themselves.
const KINDS: [&str; 12] = [
    "bug",
    "defect",
    "regression",
    "enhancement",
    "feature",
    "feature request",
    "question",
    "documentation",
    "task",
    "support",
    "discussion",
    "epic",
];

/// Returns the rank of a severity: 0 is the gravest. Configured words replace the usual ones.
pub(crate) fn rank(severity: &str, configured: &[String]) -> usize {
    let severity = severity.trim();
    if !configured.is_empty() {
        let at = configured.iter().position(|word| word.eq_ignore_ascii_case(severity));
        return at.unwrap_or(configured.len());
    }
    known_rank(severity).unwrap_or(UNKNOWN_RANK)
}

fn known_rank(severity: &str) -> Option<usize> {
    let lower = severity.to_lowercase();
    // Some exports put a number before the word: `1 - Critical`, `P1 (high)`.
    let words = || lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let of = |word: &str| RANKS.iter().position(|rank| rank.contains(&word));
    of(lower.trim()).or_else(|| words().find_map(of))
}

/// Returns the severity that a list of labels names.
pub(crate) fn severity(labels: &str) -> Option<&str> {
    let prefixed =
        parts(labels).find_map(|label| after(label, &["severity", "priority", "sev", "prio"]));
    let bare = || {
        parts(labels).find(|label| {
            // Without the last rank: as labels, its words tell a kind.
            RANKS[..5]
                .iter()
                .flat_map(|rank| rank.iter())
                .any(|word| word.eq_ignore_ascii_case(label))
        })
    };
    prefixed.or_else(bare)
}

/// Returns the component that a list of labels names.
pub(crate) fn component(labels: &str) -> Option<&str> {
    parts(labels).find_map(|label| after(label, &["component", "area", "module", "comp", "a"]))
}

/// Returns the kind that a list of labels names.
pub(crate) fn kind(labels: &str) -> Option<&str> {
    let prefixed = parts(labels).find_map(|label| after(label, &["type", "kind"]));
    prefixed.or_else(|| parts(labels).find(|label| is_kind(label)))
}

/// Returns true for a severity that says what an issue is rather than how grave.
pub(crate) fn is_kind(word: &str) -> bool {
    KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(word.trim()))
}

fn parts(labels: &str) -> impl Iterator<Item = &str> {
    labels.split([',', ';']).map(str::trim).filter(|label| !label.is_empty())
}

/// Returns the rest of `area/parser`, `severity::high` or `A-parser` after one of these prefixes.
fn after<'l>(label: &'l str, prefixes: &[&str]) -> Option<&'l str> {
    let end = label.find([':', '/', '-', '='])?;
    let (prefix, rest) = label.split_at(end);
    if !prefixes.iter().any(|known| known.eq_ignore_ascii_case(prefix.trim())) {
        return None;
    }
    Some(rest.trim_start_matches([':', '/', '-', '=', ' ']).trim()).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_severity_component_and_kind() {
        for (labels, expected) in [
            ("bug, area/parser, severity::high", (Some("high"), Some("parser"), Some("bug"))),
            ("P1, A-ui, type: regression", (Some("P1"), Some("ui"), Some("regression"))),
            ("good first issue, help wanted", (None, None, None)),
            ("area-51, priority/", (None, Some("51"), None)),
            ("", (None, None, None)),
        ] {
            assert_eq!((severity(labels), component(labels), kind(labels)), expected, "{labels}");
        }
    }

    #[test]
    fn severities_are_ranked_by_their_usual_words() {
        let order = ["Blocker", "P1 (high)", "2 - Medium", "minor", "trivial", "feature", "???"];
        let ranks: Vec<usize> = order.iter().map(|word| rank(word, &[])).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5, UNKNOWN_RANK]);
        let own = ["now".to_owned(), "later".to_owned()];
        assert_eq!((rank("Later", &own), rank("blocker", &own)), (1, 2));
    }
}
