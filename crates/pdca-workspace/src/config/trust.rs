//! Restricts the user's config file to keys that need no trust.
//!
//! A builder may run without a sandbox that protects the user's home. A change that it leaves in the user's
//! file must not decide which programs run next, or in which sandbox. So a key of that file counts only if it
//! is known to be harmless, if its value makes a sandbox stronger, or if a person trusts exactly this
//! text: for one command with `--trust-user-config`, or on record with `pdca config trust`. The record is
//! in the workspace's `.pdca`, which no child can write.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{files, sha256_hex};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::layer::join;
use crate::config::problem::Problem;

/// The trust in the user's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FileTrust {
    /// Only harmless keys count.
    #[default]
    Harmless,
    /// The text with this digest is trusted.
    Text(String),
    /// Every key counts, for this command.
    Everything,
}

/// Keys that decide neither which programs run nor their sandbox. One that ends in a dot stands for all below it.
const HARMLESS: [&str; 3] = ["project.", "tracker.issue_url_pattern", "driver.lanes"];

/// Values that are no weaker than the default, by the last part of their key.
// `landlock` is not among them: where `auto` would take `bwrap`, it is the weaker wall.
const STRONG: [(&str, &[&str]); 3] = [
    ("sandbox", &["auto", "require", "bwrap"]),
    ("network", &["off"]),
    ("reset", &["clean", "pristine"]),
];

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    /// SHA-256 of the trusted text of the user's file.
    user_config: Option<String>,
}

impl FileTrust {
    /// Loads the record of a workspace. An unreadable record trusts nothing.
    pub fn load(workspace: &Utf8Path) -> Self {
        let bytes = fs_err::read(file(workspace)).unwrap_or_default();
        let record: Record = serde_json::from_slice(&bytes).unwrap_or_default();
        record.user_config.map_or(Self::Harmless, Self::Text)
    }

    /// Records a text of the user's file as trusted.
    pub fn record(workspace: &Utf8Path, text: &str) -> std::io::Result<Utf8PathBuf> {
        let file = file(workspace);
        let record = Record { user_config: Some(sha256_hex(text.as_bytes())) };
        let mut json = serde_json::to_vec_pretty(&record)?;
        json.push(b'\n');
        fs_err::create_dir_all(file.parent().unwrap_or(workspace))?;
        files::replace(&file, &json)?;
        Ok(file)
    }

    /// Returns whether this text counts unrestricted.
    fn covers(&self, text: &str) -> bool {
        match self {
            Self::Harmless => false,
            Self::Text(digest) => *digest == sha256_hex(text.as_bytes()),
            Self::Everything => true,
        }
    }

    /// Removes keys that do not count, and returns their paths.
    pub(super) fn restrict(&self, text: &str, table: &mut Table) -> Vec<String> {
        let mut removed = Vec::new();
        if !self.covers(text) {
            take_out(table, "", &mut removed);
        }
        removed
    }
}

/// Returns the warning about a key that does not count.
pub(super) fn ignored(path: &str) -> Problem {
    Problem::new(format!(
        "`{path}` does not count: in the user's file it needs trust; read the file, then `pdca config trust`, or add `--trust-user-config`"
    ))
}

fn file(workspace: &Utf8Path) -> Utf8PathBuf {
    workspace.join(".pdca").join("trust.json")
}

fn take_out(table: &mut Table, prefix: &str, removed: &mut Vec<String>) {
    table.retain(|key, value| {
        let path = join(prefix, key);
        if let Value::Table(below) = value {
            take_out(below, &path, removed);
            return !below.is_empty();
        }
        // A list of tables, such as `gates.checks`, is one value here and counts as a whole or not
        // at all.
        let counts = is_harmless(&path) || is_strong(key, value);
        if !counts {
            removed.push(path);
        }
        counts
    });
}

fn is_harmless(path: &str) -> bool {
    HARMLESS.iter().any(
        |known| {
            if known.ends_with('.') { path.starts_with(known) } else { path == *known }
        },
    )
}

fn is_strong(key: &str, value: &Value) -> bool {
    let strong = STRONG.iter().find(|(name, _)| *name == key);
    let text = value.as_str();
    strong.is_some_and(|(_, values)| text.is_some_and(|text| values.contains(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str, trust: &FileTrust) -> (String, Vec<String>) {
        let mut table: Table = text.parse().unwrap();
        let removed = trust.restrict(text, &mut table);
        (table.to_string(), removed)
    }

    #[test]
    fn every_key_that_decides_what_runs_or_behind_which_wall_needs_trust() {
        for text in [
            "[leaves.builder]\nsandbox = \"off\"",
            "[leaves.builder]\nsandbox = \"landlock\"",
            "[leaves.reviewer]\nargv = [\"sh\"]",
            "[leaves.builder]\nwritable = [\"~\"]",
            "[leaves.builder]\nnetwork = \"on\"",
            "[leaves.builder.env]\nA = \"b\"",
            "[gates]\nsandbox = \"off\"",
            "[tracker]\nnotes_cmd = \"sh\"",
            "[select]\ncmd = \"sh\"",
            "[gates]\nrunner = \"sh\"",
            "[[gates.checks]]\nid = \"x\"\ntier = \"T3\"\ncmd = \"true\"",
            "[lanes]\nreset = \"tracked\"",
            "[lanes]\ncache = [\"**\"]",
            "[lanes.hydrate]\ninstall = \"x\"",
            "[driver]\nmax_attempts = 0",
            "[driver]\nclose_dispositions = [\"fix\"]",
            "[driver]\ngate_base = \"off\"",
            "[integrate]\nland = \"push\"",
            "[schedule]\ndrift = \"off\"",
            "[paths]\nbundle_root = \"/tmp/x\"",
            "[[targets]]\npath = \"../x\"",
        ] {
            let (kept, removed) = left(text, &FileTrust::Harmless);
            assert_eq!((kept.as_str(), removed.len()), ("", 1), "{text}");
            let (kept, removed) = left(text, &FileTrust::Everything);
            assert!(!kept.is_empty() && removed.is_empty(), "{text}");
        }
    }

    #[test]
    fn names_numbers_of_lanes_and_stronger_walls_need_none() {
        let text = "[project]\nauthor = \"Ada\"\n[driver]\nlanes = 3\n[gates]\nsandbox = \"require\"\n[leaves.builder]\nnetwork = \"off\"\n[lanes]\nreset = \"pristine\"\n[tracker]\nissue_url_pattern = \"x\"\n";
        assert_eq!(left(text, &FileTrust::Harmless).1, Vec::<String>::new());
    }

    #[test]
    fn trust_is_in_one_text_and_ends_with_its_first_changed_byte() {
        let home = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(home.path()).unwrap();
        let text = "[gates]\nsandbox = \"off\"\n";
        assert_eq!(FileTrust::load(home), FileTrust::Harmless);
        FileTrust::record(home, text).unwrap();
        let trust = FileTrust::load(home);
        assert!(left(text, &trust).1.is_empty());
        assert_eq!(left(&format!("{text}#"), &trust).1, ["gates.sandbox"]);
        fs_err::write(file(home), "{").unwrap();
        assert_eq!(FileTrust::load(home), FileTrust::Harmless);
    }
}
