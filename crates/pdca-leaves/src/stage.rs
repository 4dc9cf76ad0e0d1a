//! The staged view: copies of a role's inputs in a private directory.
//!
//! A leaf never sees the real bundle. What it may see is copied, byte for byte and never as a
//! link, so nothing it does to the copies can reach the originals, and what is not on the
//! role's list is not there to be found.

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_state::{Artifact, Brief, Bundle, BundleId, files, sha256_hex};
use thiserror::Error;

use crate::instructions::Instructions;
use crate::role::{CONFLICT, Role, inputs};

/// The largest test that is staged.
const MAX_TEST: u64 = 16 * 1024 * 1024;

/// What a leaf of one role may see of one bundle.
///
/// The only ways to make one are the role's list in code and, for Act and the resolver, what the driver
/// puts together: a reviewer's inputs cannot hold anything that is not on the reviewer's list.
#[derive(Clone, Debug)]
pub struct Inputs {
    role: Role,
    bundle: Option<Bundle>,
    /// The issues of a planning session, which has no bundle of its own.
    session: Vec<BundleId>,
    files: Vec<(Utf8PathBuf, Vec<u8>)>,
    /// The project's own part of the prompt.
    instructions: Option<Instructions>,
}

/// Why the inputs could not be brought together or laid out.
#[derive(Debug, Error)]
pub enum StageError {
    /// An artifact cannot be read.
    #[error("an input of the {role} cannot be read")]
    Load {
        /// The role it was for.
        role: Role,
        /// Why.
        source: pdca_state::LoadError,
    },
    /// The test that the brief names cannot be read.
    #[error("the test that the brief names cannot be read")]
    Test(#[source] pdca_state::files::FileReadError),
    /// An input is a symbolic link, which could name something that is not on the list.
    #[error("{path} is a symbolic link, and the {role} may see only what is on its list")]
    Link {
        /// The input.
        path: Utf8PathBuf,
        /// The role it was for.
        role: Role,
    },
    /// A path that leads out of the view.
    #[error("{path} does not name a file in the view")]
    Path {
        /// The path.
        path: Utf8PathBuf,
    },
    /// The view could not be written.
    #[error("the staged view cannot be written")]
    Io(#[from] io::Error),
}

impl Inputs {
    /// Reads what `role` may see of `bundle`, and the test that its brief names.
    pub fn gather(role: Role, bundle: &Bundle) -> Result<Self, StageError> {
        let mut files = Vec::new();
        for artifact in inputs(role) {
            let read =
                bundle.read(*artifact).map_err(|source| StageError::Load { role, source })?;
            if let Some(bytes) = read {
                // `patch.diff` could be a link to `build-notes.md`, and the reviewer would read the
                // notes under a name that is on its list.
                refuse_links(role, bundle, Utf8Path::new(artifact.file_name()))?;
                files.push((Utf8PathBuf::from(artifact.file_name()), bytes));
            }
        }
        let brief = files.iter().find(|(name, _)| name == Artifact::Brief.file_name());
        if let Some((_, text)) = brief {
            let brief = Brief::parse(&String::from_utf8_lossy(text));
            for test in brief.local_test_files() {
                // `./tests/a.rs` and `tests/a.rs` are one file, and are one in the view.
                let test: Utf8PathBuf = test.components().filter(is_name).collect();
                if let Some(bytes) = read_test(role, bundle, &test)?
                    && !files.iter().any(|(name, _)| *name == test)
                {
                    files.push((test, bytes));
                }
            }
        }
        // These two come on top of the builder's list in `ROLES`: their names carry numbers and
        // ids, so they are no artifacts.
        if role == Role::Builder {
            // What an accepted attempt did not go together with may not be in the checkout yet.
            let partners = bundle
                .attempts()
                .partner_patches()
                .map_err(|source| StageError::Load { role, source })?;
            files.extend(partners.into_iter().map(|(name, patch)| (name.into(), patch)));
            let last =
                bundle.attempts().last().map_err(|source| StageError::Load { role, source })?;
            files.extend(last.into_iter().flat_map(|last| last.files));
        }
        Ok(Self {
            role,
            bundle: Some(bundle.clone()),
            session: Vec::new(),
            files,
            instructions: None,
        })
    }

    /// What the driver puts together for Act, which looks at many bundles.
    pub fn for_act(
        files: impl IntoIterator<Item = (Utf8PathBuf, Vec<u8>)>,
    ) -> Result<Self, StageError> {
        Self::put_together(Role::Act, Vec::new(), files)
    }

    /// What a planner may see of several issues: the files of each lie in a directory with the name of its bundle. `more`
    /// is for all of them, such as templates.
    pub fn for_planning(
        bundles: &[Bundle],
        more: impl IntoIterator<Item = (Utf8PathBuf, Vec<u8>)>,
    ) -> Result<Self, StageError> {
        let mut files = Vec::new();
        for bundle in bundles {
            let own = Self::gather(Role::Planner, bundle)?.files;
            let dir = Utf8PathBuf::from(bundle.id().dir_name());
            files.extend(own.into_iter().map(|(path, bytes)| (dir.join(path), bytes)));
        }
        files.extend(more);
        let session = bundles.iter().map(|bundle| bundle.id().clone()).collect();
        Self::put_together(Role::Planner, session, files)
    }

    fn put_together(
        role: Role,
        session: Vec<BundleId>,
        files: impl IntoIterator<Item = (Utf8PathBuf, Vec<u8>)>,
    ) -> Result<Self, StageError> {
        let files: Vec<_> = files.into_iter().collect();
        match files.iter().find(|(path, _)| !is_plain(path)) {
            Some((path, _)) => Err(StageError::Path { path: path.clone() }),
            None => Ok(Self { role, bundle: None, session, files, instructions: None }),
        }
    }

    /// What a resolver may see of `bundle`, and the text in which the driver names both sides.
    pub fn for_resolver(bundle: &Bundle, conflict: Vec<u8>) -> Result<Self, StageError> {
        let mut inputs = Self::gather(Role::Resolver, bundle)?;
        // The brief may name a test that is called `conflict.md`. The driver's file must win.
        inputs.files.retain(|(name, _)| name != CONFLICT);
        inputs.files.push((CONFLICT.into(), conflict));
        Ok(inputs)
    }

    /// Adds the project's own part of the prompt. The caller read it where no leaf can have written it.
    #[must_use]
    pub fn instructed(self, instructions: Option<Instructions>) -> Self {
        Self { instructions, ..self }
    }

    /// The project's own part of the prompt.
    pub fn instructions(&self) -> Option<&Instructions> {
        self.instructions.as_ref()
    }

    /// The role they are for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The bundle they are from; Act has none.
    pub fn bundle(&self) -> Option<&Bundle> {
        self.bundle.as_ref()
    }

    /// The issues of a planning session; empty in every other call.
    pub fn session(&self) -> &[BundleId] {
        &self.session
    }

    /// The ids that the call is about, as a person lists them; Act has none.
    pub(crate) fn ids(&self) -> Option<String> {
        let several =
            || self.session.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let one = self.bundle.as_ref().map(|bundle| bundle.id().to_string());
        one.or_else(|| (!self.session.is_empty()).then(several))
    }

    /// The files of the view, in order.
    pub fn names(&self) -> impl Iterator<Item = &Utf8Path> {
        self.files.iter().map(|(name, _)| name.as_path())
    }

    /// Returns the directory with the attempt before this one, if the view has one.
    pub(crate) fn previous(&self) -> Option<&str> {
        let dirs = self.files.iter().filter_map(|(path, _)| path.as_str().split_once('/'));
        dirs.map(|(dir, _)| dir).find(|dir| dir.starts_with("iteration-v"))
    }

    /// A file of the view.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(own, _)| own == name).map(|(_, bytes)| bytes.as_slice())
    }

    /// Replaces a file of the view.
    pub fn replace(&mut self, name: &Utf8Path, bytes: Vec<u8>) {
        if let Some(file) = self.files.iter_mut().find(|(own, _)| own == name) {
            file.1 = bytes;
        }
    }

    /// The sha256 over role, names and bytes: part of the key of the job.
    pub fn digest(&self) -> String {
        // Lengths keep names and sums from running into each other.
        let file = |(name, bytes): &(Utf8PathBuf, Vec<u8>)| {
            format!("{} {name} {}", name.as_str().len(), sha256_hex(bytes))
        };
        let files: Vec<String> = self.files.iter().map(file).collect();
        let mut text = format!("{} {}", self.role, files.join(" "));
        if let Some(instructions) = &self.instructions {
            text.push_str(" instructions ");
            text.push_str(&instructions.digest);
        }
        sha256_hex(text.as_bytes())
    }

    /// Lays the view out at `dir`, in place of whatever is there.
    pub(crate) fn write_to(&self, dir: &Utf8Path) -> Result<(), StageError> {
        match fs::symlink_metadata(dir) {
            Ok(found) if found.is_dir() => files::remove_tree(dir)?,
            // A leaf may have replaced its view by a link. It is removed as a link; otherwise the files
            // below would be written where it points.
            Ok(_) => fs::remove_file(dir)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        fs::create_dir_all(dir)?;
        for (name, bytes) in &self.files {
            let path = dir.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

/// Reads the test at `path`, if it lies in the bundle; most tests lie in the checkout.
fn read_test(role: Role, bundle: &Bundle, path: &Utf8Path) -> Result<Option<Vec<u8>>, StageError> {
    // A brief that names `build-notes.md` as its test would show it to the reviewer.
    if !is_plain(path) || is_of_the_driver(path) {
        return Ok(None);
    }
    match fs::symlink_metadata(bundle.dir().join(path)) {
        Ok(found) if found.is_dir() => return Ok(None),
        Ok(_) => {}
        Err(_) => return Ok(None),
    }
    refuse_links(role, bundle, path)?;
    files::read_within(bundle.dir(), path, MAX_TEST).map_err(StageError::Test)
}

/// Whether a path of the bundle belongs to the cycle itself, however its name is cased.
fn is_of_the_driver(path: &Utf8Path) -> bool {
    // Only the first component counts: `iteration-v1/build-notes.md` and `gate-logs/C4.log` are
    // closed with their directories. Case does not count, because `BUILD-NOTES.md` is the same file
    // on a filesystem that ignores case.
    let first = path.components().next().map_or("", |first| first.as_str()).to_lowercase();
    Artifact::ALL.iter().any(|artifact| artifact.file_name().to_lowercase() == first)
        || ["iteration-v", "check-", "."].iter().any(|start| first.starts_with(start))
        || first.ends_with(".error.log")
}

/// Refuses an input of an independent role that is reached through a symbolic link.
fn refuse_links(role: Role, bundle: &Bundle, path: &Utf8Path) -> Result<(), StageError> {
    // The other roles may follow a link out of the bundle: they can read everything that the user
    // can, so a link shows them nothing new.
    if !role.is_independent() {
        return Ok(());
    }
    let mut at = bundle.dir().to_owned();
    for part in path.components() {
        at.push(part);
        if fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink()) {
            return Err(StageError::Link { path: at, role });
        }
    }
    Ok(())
}

/// Whether a relative path consists of names alone.
fn is_plain(path: &Utf8Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| is_name(&part))
}

fn is_name(part: &Utf8Component<'_>) -> bool {
    matches!(part, Utf8Component::Normal(_))
}

#[cfg(test)]
mod tests {
    use pdca_state::BundleRoot;
    use tempfile::TempDir;

    use super::*;

    /// A bundle whose brief names this test.
    fn bundle(test: &str) -> (TempDir, Bundle) {
        let dir = TempDir::new().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().join("results");
        let brief = format!("- **Slug:** x\n- **Test file:** {test}\n");
        let bundle = BundleRoot::new(root).create(&"7".parse().unwrap(), &brief).unwrap();
        bundle.publish(Artifact::Patch, b"patch").unwrap();
        bundle.publish(Artifact::BuildNotes, b"secret").unwrap();
        (dir, bundle)
    }

    fn names(inputs: &Inputs) -> Vec<&str> {
        inputs.names().map(Utf8Path::as_str).collect()
    }

    #[test]
    fn a_directory_that_a_leaf_closed_keeps_no_view_from_being_laid_out_anew() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, bundle) = bundle("none");
        let inputs = Inputs::gather(Role::Reviewer, &bundle).unwrap();
        let view = Utf8Path::from_path(dir.path()).unwrap().join("view");
        fs::create_dir_all(view.join("closed/deeper")).unwrap();
        fs::set_permissions(view.join("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
        inputs.write_to(&view).unwrap();
        assert!(!view.join("closed").exists() && view.join("patch.diff").exists());
    }

    #[test]
    fn a_test_that_lies_in_the_bundle_is_an_input_under_its_own_path() {
        let (_dir, bundle) = bundle("`./tests/a.rs`");
        bundle.publish_file("tests/a.rs".into(), b"test").unwrap();
        let inputs = Inputs::gather(Role::Reviewer, &bundle).unwrap();
        assert_eq!(names(&inputs), ["brief.md", "patch.diff", "tests/a.rs"]);
        assert_eq!(inputs.get("tests/a.rs"), Some(b"test".as_slice()));
    }

    #[test]
    fn a_test_that_lies_in_the_checkout_is_none() {
        for test in ["src/lib.rs", "/etc/passwd", "../issue_8/build-notes.md", "tests"] {
            let (_dir, bundle) = bundle(test);
            bundle.publish_file("tests/a.rs".into(), b"test").unwrap();
            let inputs = Inputs::gather(Role::Reviewer, &bundle).unwrap();
            assert_eq!(names(&inputs), ["brief.md", "patch.diff"], "{test}");
        }
    }

    #[test]
    fn no_brief_can_pass_a_file_of_the_cycle_off_as_a_test() {
        let tests = [
            "build-notes.md",
            "./build-notes.md",
            "BUILD-NOTES.md",
            "iteration-v1/build-notes.md",
            "check-advisory-a.md",
            "gate-logs/C4.log",
            "builder.error.log",
            ".hidden",
        ];
        for test in tests {
            let (_dir, bundle) = bundle(test);
            bundle.publish_file(Utf8Path::new(test), b"secret").unwrap();
            let inputs = Inputs::gather(Role::Reviewer, &bundle).unwrap();
            assert_eq!(names(&inputs), ["brief.md", "patch.diff"], "{test}");
        }
    }

    #[test]
    fn an_independent_role_gets_nothing_through_a_link() {
        let (_dir, bundle) = bundle("tests/a.rs");
        fs::create_dir(bundle.dir().join("tests")).unwrap();
        let link = bundle.dir().join("tests/a.rs");
        std::os::unix::fs::symlink("../build-notes.md", link).unwrap();
        let error = Inputs::gather(Role::Reviewer, &bundle).unwrap_err();
        assert!(matches!(error, StageError::Link { .. }), "{error:?}");

        let (_dir, bundle) = self::bundle("none");
        let patch = bundle.path(Artifact::Patch);
        fs::remove_file(&patch).unwrap();
        std::os::unix::fs::symlink("build-notes.md", patch).unwrap();
        for role in [Role::Reviewer, Role::Adviser] {
            let error = Inputs::gather(role, &bundle).unwrap_err();
            assert!(matches!(error, StageError::Link { .. }), "{role}: {error:?}");
        }
    }

    #[test]
    fn what_act_is_given_stays_in_its_view() {
        for path in ["../x", "/x", "a/../../x", "", "."] {
            let error = Inputs::for_act([(path.into(), Vec::new())]).unwrap_err();
            assert!(matches!(error, StageError::Path { .. }), "{path}");
        }
    }

    #[test]
    fn the_digest_changes_with_every_byte_and_with_the_role() {
        let (_dir, bundle) = bundle("none");
        let digest = |role| Inputs::gather(role, &bundle).unwrap().digest();
        let first = digest(Role::Reviewer);
        assert_eq!(first, digest(Role::Reviewer));
        assert_ne!(first, digest(Role::Adviser));
        bundle.publish(Artifact::BuildNotes, b"other").unwrap();
        assert_eq!(first, digest(Role::Reviewer), "the notes are no input");
        bundle.publish(Artifact::Patch, b"patcH").unwrap();
        assert_ne!(first, digest(Role::Reviewer));
    }

    #[test]
    fn laying_out_twice_is_laying_out_once() {
        let (dir, bundle) = bundle("none");
        let view = Utf8Path::from_path(dir.path()).unwrap().join("job/view");
        let inputs = Inputs::gather(Role::Builder, &bundle).unwrap();
        inputs.write_to(&view).unwrap();
        fs::write(view.join("left-over"), "x").unwrap();
        fs::write(view.join("brief.md"), "x").unwrap();
        inputs.write_to(&view).unwrap();
        assert!(!view.join("left-over").exists());
        assert_eq!(fs::read(view.join("brief.md")).unwrap(), inputs.get("brief.md").unwrap());
    }

    #[test]
    fn a_view_that_was_swapped_for_a_link_is_replaced_and_what_it_led_to_is_kept() {
        let (dir, bundle) = bundle("none");
        let view = Utf8Path::from_path(dir.path()).unwrap().join("view");
        std::os::unix::fs::symlink(bundle.dir(), &view).unwrap();
        let inputs = Inputs::gather(Role::Builder, &bundle).unwrap();
        inputs.write_to(&view).unwrap();
        assert!(!view.is_symlink());
        assert_eq!(fs::read(bundle.path(Artifact::BuildNotes)).unwrap(), b"secret");
    }

    #[test]
    fn a_builder_sees_the_attempt_before_and_what_it_did_not_go_together_with() {
        let (_dir, bundle) = bundle("none");
        let partners = [("71".parse().unwrap(), b"their change".to_vec())];
        let record = pdca_state::Returned::default();
        let plan =
            pdca_state::archive_returned(&bundle, pdca_state::Reentry::Do, &record, &partners);
        plan.unwrap().apply().unwrap();
        let inputs = Inputs::gather(Role::Builder, &bundle).unwrap();
        let last = ["iteration-v1/patch.diff", "iteration-v1/build-notes.md"];
        assert_eq!(names(&inputs), ["brief.md", "partner-71.diff", last[0], last[1]]);
        assert_eq!(inputs.get("partner-71.diff"), Some(b"their change".as_slice()));
        let reviewer = Inputs::gather(Role::Reviewer, &bundle).unwrap();
        assert_eq!(names(&reviewer), ["brief.md"], "the reviewer's list stays as it is");
    }

    #[test]
    fn a_resolver_sees_the_brief_the_sealed_patch_and_both_sides_and_no_notes() {
        let (_dir, bundle) = bundle("none");
        for artifact in [Artifact::Patch, Artifact::BuildNotes, Artifact::Summary] {
            bundle.publish(artifact, b"text\n").unwrap();
        }
        let inputs = Inputs::for_resolver(&bundle, b"both sides\n".to_vec()).unwrap();
        let names: Vec<&Utf8Path> = inputs.names().collect();
        assert_eq!(names, ["brief.md", "patch.diff", "conflict.md"]);
        assert_eq!(inputs.get("conflict.md"), Some(b"both sides\n".as_slice()));
    }
}
