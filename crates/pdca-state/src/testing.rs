//! A temporary bundle root for unit tests.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Bundle, BundleRoot};

pub(crate) struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { dir: tempfile::tempdir().unwrap() };
        fs_err::create_dir(scene.path().join("results")).unwrap();
        scene
    }

    /// A temporary directory that contains the bundle root.
    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).unwrap()
    }

    pub(crate) fn root(&self) -> BundleRoot {
        BundleRoot::new(self.path().join("results"))
    }

    /// Writes a file at a path relative to the bundle root.
    pub(crate) fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) -> Utf8PathBuf {
        let path = self.root().path().join(relative);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn bundle(&self, id: &str, files: &[(&str, &str)]) -> Bundle {
        let bundle = self.root().bundle(&id.parse().unwrap());
        fs_err::create_dir_all(bundle.dir()).unwrap();
        for (name, text) in files {
            self.write(&format!("issue_{id}/{name}"), text);
        }
        bundle
    }
}

/// A brief that counts as authored.
pub(crate) const BRIEF: &str = "# Brief\n\n- **Slug:** a-slug\n- **Depends on:** 12, #15\n";

/// A valid gate report with one passing row.
pub(crate) const GATES: &str = r#"{"issue_dir": "issue_7", "overall": "pass", "rows": [
    {"check": "C4 Verification", "result": "pass", "oracle": "true", "rule_id": "C4", "path_line": "ok",
     "gating": true, "element": "C4"}]}"#;

/// A summary with one open item and this outcome.
pub(crate) fn summary(outcome: &str) -> String {
    format!(
        "# Result — issue 7 / a-slug\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n\
         - [ ] look at it\n\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome: {outcome}\n\
         - Iteration delta (if iterating): the cache is stale\n- By / date: someone\n"
    )
}
