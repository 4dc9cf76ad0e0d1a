//! The size of a change, as a signal that a bundle asks for more than one.
//!
//! A large change is reviewed worse and conflicts more. Above the limits of `[check]`, or of the brief's own `Size limit`,
//! §6 asks a person whether it should be split. Nothing is refused: a rename of a directory is large and harmless.

use pdca_state::{Brief, SizeLimit, patch_files, size_limit};
use serde::{Deserialize, Serialize};

/// `[check]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckSettings {
    /// The changed lines above which §6 asks whether to split; 0 disables the check.
    pub max_lines: u64,
    /// The changed files above which §6 asks whether to split; 0 disables the check.
    pub max_files: u64,
    /// The KiB of the patch above which §6 asks whether to split; 0 disables the check.
    pub max_kb: u64,
    /// Whether places that reviews and notes cite are looked up.
    pub citations: CitationCheck,
}

/// `citations` in `[check]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CitationCheck {
    /// A citation that does not hold is an item of §6.
    #[default]
    Items,
    /// Nothing is looked up.
    Off,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self { max_lines: 1000, max_files: 50, max_kb: 0, citations: CitationCheck::default() }
    }
}

/// Returns the question of §6 about a change that is larger than it was meant to be.
pub(crate) fn size_item(settings: CheckSettings, brief: &Brief, patch: &[u8]) -> Option<String> {
    let changed = patch_files(patch);
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let added: u64 = changed.iter().map(|file| count(file.added)).sum();
    let removed: u64 = changed.iter().map(|file| count(file.removed)).sum();
    let (found_lines, found_files) = (added + removed, count(changed.len()));
    let own = size_limit(brief);
    let (lines, files, kb, whose) = match own {
        Some(SizeLimit { lines, files }) => {
            (lines.unwrap_or(0), files.unwrap_or(0), 0, "the brief's `Size limit`")
        }
        None => (settings.max_lines, settings.max_files, settings.max_kb, "[check] in pdca.toml"),
    };
    let found_kb = count(patch.len()) / 1024;
    let limits =
        [(found_lines, lines, "lines"), (found_files, files, "files"), (found_kb, kb, "KiB")];
    let set = limits.into_iter().filter(|(_, limit, _)| *limit > 0);
    if !set.clone().any(|(found, limit, _)| found > limit) {
        return None;
    }
    let limit: Vec<String> = set.map(|(_, limit, what)| format!("{limit} {what}")).collect();
    let weight = if kb > 0 { format!(", {found_kb} KiB") } else { String::new() };
    Some(format!(
        "size: the change has {found_lines} lines in {found_files} files (+{added} −{removed}{weight}), and {whose} says {}; is it one change? `pdca split` makes several of a bundle",
        limit.join(" and "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(files: usize, lines: usize) -> Vec<u8> {
        let mut text = String::new();
        for file in 0..files {
            let head = format!("diff --git a/f{file} b/f{file}\n--- a/f{file}\n+++ b/f{file}\n");
            let added = "+x\n".repeat(lines);
            text.extend([head, format!("@@ -1,0 +1,{lines} @@\n"), added]);
        }
        text.into_bytes()
    }

    #[test]
    fn a_change_within_the_limits_asks_nothing() {
        let settings =
            CheckSettings { max_lines: 10, max_files: 2, max_kb: 0, ..CheckSettings::default() };
        let brief = Brief::parse("- **Slug:** s\n");
        let asks = |patch: &[u8]| size_item(settings, &brief, patch).is_some();
        assert!(!asks(&patch(2, 5)));
        assert!(asks(&patch(1, 11)));
        assert!(asks(&patch(3, 1)));
        let off =
            CheckSettings { max_lines: 0, max_files: 0, max_kb: 0, ..CheckSettings::default() };
        assert_eq!(size_item(off, &brief, &patch(300, 300)), None);
        let by_weight = CheckSettings { max_kb: 2, ..off };
        let asked = size_item(by_weight, &brief, &patch(1, 2000)).unwrap();
        assert!(asked.contains(", 5 KiB)") && asked.contains("says 2 KiB;"), "{asked}");
        assert_eq!(size_item(by_weight, &brief, &patch(1, 600)), None);
    }

    #[test]
    fn the_brief_s_own_limit_counts_in_place_of_the_configured_one() {
        let settings =
            CheckSettings { max_lines: 10, max_files: 2, max_kb: 0, ..CheckSettings::default() };
        let item = |limit: &str, patch: &[u8]| {
            let brief = Brief::parse(&format!("- **Slug:** s\n- **Size limit:** {limit}\n"));
            size_item(settings, &brief, patch)
        };
        assert_eq!(item("500 lines", &patch(4, 100)), None);
        let asked = item("20 lines, 3 files", &patch(1, 21)).unwrap();
        assert!(asked.contains("21 lines in 1 files"), "{asked}");
        assert!(asked.contains("`Size limit` says 20 lines and 3 files"), "{asked}");
    }
}
