//! Bundles in a temporary directory.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{Bundle, BundleRoot};

use crate::records::ActRecords;

pub(crate) struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).expect("the temporary directory is UTF-8")
    }

    pub(crate) fn write(&self, file: impl AsRef<Utf8Path>, bytes: impl AsRef<[u8]>) -> Utf8PathBuf {
        let path = self.path().join(file);
        fs_err::create_dir_all(path.parent().expect("a file has a directory"))
            .expect("directories can be made");
        fs_err::write(&path, bytes).expect("a file can be written");
        path
    }

    pub(crate) fn remove(&self, file: &str) {
        fs_err::remove_file(self.path().join(file)).expect("a file can be removed");
    }

    /// Writes an accepted bundle with these items in §6, beside the standing one, and these in §10.
    pub(crate) fn frozen(&self, id: &str, items: &[&str], candidates: &[&str]) {
        let file = |name: &str| format!("results/issue_{id}/{name}");
        self.write(file("brief.md"), "- **Slug:** a-small-thing\n");
        self.write(file("patch.diff"), "(left out)\n");
        self.write(
            file("check-gates.json"),
            r#"{"issue_dir": "x", "overall": "pass", "rows": [{"check": "C4 verified", "result": "pass", "oracle": "x",
                "rule_id": "C4", "path_line": "", "gating": true, "element": "C4"}]}"#,
        );
        let boxes = bulleted("- [x] ", items);
        let hints = bulleted("- ", candidates);
        self.write(
            file("SUMMARY.md"),
            format!(
                "# Result — issue {id} / a-small-thing\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n{boxes}\
                 - [x] Validation — fitness-to-purpose — does it serve?\n\n## 7. Proven / not proven\n\n- Gates overall: pass\n\n\
                 ## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome: merged-wider\n\
                 - Iteration delta (if iterating):\n- By / date: Ada / 2026-11-15\n\n## 10. Act candidates\n\n- (empty is the common case)\n{hints}"
            ),
        );
    }

    pub(crate) fn bundles(&self) -> Vec<Bundle> {
        BundleRoot::new(self.path().join("results")).list().expect("the root can be listed")
    }

    pub(crate) fn records(&self) -> ActRecords {
        ActRecords::load(&self.path().join("process")).expect("the records can be read")
    }
}

fn bulleted(mark: &str, items: &[&str]) -> String {
    items.iter().flat_map(|item| [mark, item, "\n"]).collect()
}
