//! The paths that a patch may affect, to tell without git that two patches cannot conflict.

use std::collections::BTreeSet;

use pdca_state::footprint;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchScope {
    paths: BTreeSet<String>,
    /// It deletes or moves files, or changes merge attributes, so it may affect more than the paths it
    /// names: a directory that was moved takes along the files that others add to it.
    beyond: bool,
}

impl PatchScope {
    /// Reads the paths of a patch. An unreadable patch may affect any path.
    pub(super) fn of(patch: &[u8]) -> Self {
        let Ok(paths) = footprint(patch) else {
            return Self { paths: BTreeSet::new(), beyond: true };
        };
        let moves: [&[u8]; 3] = [b"deleted file mode ", b"rename from ", b"copy from "];
        // Content lines begin with a sign or a space, so a match can only be in a header.
        let mut lines = patch.split(|byte| *byte == b'\n');
        let takes_away = lines.any(|line| moves.iter().any(|words| line.starts_with(words)));
        let attributes = |path: &String| path.rsplit('/').next() == Some(".gitattributes");
        let beyond = takes_away || paths.iter().any(attributes);
        Self { paths: paths.into_iter().collect(), beyond }
    }

    /// Returns whether the two may conflict. `false` is certain.
    pub(super) fn may_overlap(&self, other: &Self) -> bool {
        self.beyond || other.beyond || self.is_in_way_of(other) || other.is_in_way_of(self)
    }

    /// Returns whether a path of this one is a path of the other, or a parent directory of one.
    fn is_in_way_of(&self, other: &Self) -> bool {
        other.paths.iter().any(|path| {
            self.paths.contains(path)
                || path.match_indices('/').any(|(at, _)| self.paths.contains(&path[..at]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PatchScope;

    fn writes(path: &str) -> String {
        format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n")
    }

    fn adds(path: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+a\n"
        )
    }

    fn removes(path: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        )
    }

    fn moves(from: &str, to: &str) -> String {
        format!(
            "diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"
        )
    }

    #[test]
    fn two_meet_in_a_file_in_a_directory_and_wherever_one_moves_or_says_how_to_merge() {
        let table = [
            (writes("a"), writes("a"), true),
            (writes("a"), writes("b"), false),
            (writes("src/a"), writes("src/ab"), false),
            (writes("src/a"), adds("src/b"), false),
            (adds("a"), adds("a/b/c"), true),
            (adds("a.txt"), adds("a/b"), false),
            (moves("old/x", "new/x"), adds("old/y"), true),
            (removes("old/x"), adds("other"), true),
            (writes("src/.gitattributes"), writes("b"), true),
            ("no patch at all".to_owned(), writes("b"), true),
        ];
        for (one, other, meet) in table {
            let (ours, theirs) = (PatchScope::of(one.as_bytes()), PatchScope::of(other.as_bytes()));
            assert_eq!(ours.may_overlap(&theirs), meet, "{one}{other}");
            assert_eq!(theirs.may_overlap(&ours), meet, "{other}{one}");
        }
    }
}
