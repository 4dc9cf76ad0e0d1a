//! `publish.json` as older instances write it: what they have out already.

use serde::Deserialize;

/// A publication by an older instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LegacyRecord {
    /// The address of the pull request.
    #[serde(rename = "pr_url")]
    pub url: String,
    /// The branch it was opened from.
    #[serde(default)]
    pub branch: String,
}

impl LegacyRecord {
    /// Parses a record; `None` for anything that names no pull request.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // The current format has no `pr_url`, so it is not taken for an old one.
        let record: Self = serde_json::from_slice(bytes).ok()?;
        Some(record).filter(|record| {
            record.url.starts_with("https://") || record.url.starts_with("http://")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_request_that_an_older_instance_opened_is_known() {
        let older = br#"{"mode": "new-pr", "branch": "fix/7-x", "pr_url": "https://forge.example/pull/9", "base": "main"}"#;
        let record = LegacyRecord::parse(older).unwrap();
        assert_eq!(
            (record.url.as_str(), record.branch.as_str()),
            ("https://forge.example/pull/9", "fix/7-x")
        );
        for other in [&b"{}"[..], b"{\"pr_url\": \"\"}", b"[]", b"{\"schema\": 1, \"key\": \"k\"}"]
        {
            assert_eq!(LegacyRecord::parse(other), None);
        }
    }
}
