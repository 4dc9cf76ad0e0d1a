//! A digest of the bundle, taken before a child starts and compared after it ended.
//!
//! A file that a child writes into the bundle could move its state: a summary that signs itself, a patch
//! that was not built. Where possible the kernel keeps leaves and gates out of the bundle; the guard finds
//! what got through.
//!
//! 1. Write the digest to disk. If the driver dies from here on, the next one finds it.
//! 2. Run the child.
//! 3. Compare, and set aside changed files that decide the state; a driver that takes over does this before it
//!    derives any state.
//! 4. Remove the digest.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{Artifact, Bundle, BundleDigest, files};

use crate::leaf::keep_log;
use crate::run_bundle::{BeatError, Driver};

/// The artifacts that decide the state. Only the driver and the person at sign-off write them,
/// and the person does not while a child runs.
const STATE_MOVING: [Artifact; 5] = [
    Artifact::Patch,
    Artifact::CloseDisposition,
    Artifact::GatesJson,
    Artifact::Review,
    Artifact::Summary,
];

fn guard_file(cx: &Driver<'_>, bundle: &Bundle) -> Utf8PathBuf {
    cx.config.dirs.private().join("guards").join(format!("{}.json", bundle.id().dir_name()))
}

/// Records the digest of the bundle before a child starts.
pub(crate) fn stand_guard(cx: &Driver<'_>, bundle: &Bundle) -> Result<(), BeatError> {
    let file = guard_file(cx, bundle);
    let digest = bundle.digest()?;
    let note = || {
        fs_err::create_dir_all(file.parent().unwrap_or(&cx.config.dirs.root))?;
        let json = serde_json::to_vec(&digest).map_err(io::Error::other)?;
        files::replace_unsynced(&file, &json)
    };
    cx.effects.perform("guard", note).map_err(BeatError::Own)
}

/// Compares the bundle with the recorded digest, and sets aside files that decide the state and were not written
/// by the driver. Returns their names; none without a record.
pub(crate) fn relieve_guard(cx: &Driver<'_>, bundle: &Bundle) -> Result<Vec<String>, BeatError> {
    let file = guard_file(cx, bundle);
    let Some(before) = load(&file).map_err(BeatError::Own)? else { return Ok(Vec::new()) };
    let changed = bundle.digest()?.changed_since(&before);
    let mut intruders = Vec::new();
    for path in changed {
        let artifact = Artifact::from_file_name(path.as_str());
        if artifact.is_some_and(|artifact| STATE_MOVING.contains(&artifact)) {
            let aside = cx.effects.perform("set-aside", || bundle.set_aside_file(&path))?;
            intruders.push(match aside {
                Some(aside) => format!("{path} (now {aside})"),
                None => format!("{path} (removed)"),
            });
        }
    }
    // Only after everything was set aside: a driver that dies before compares again.
    cx.effects.perform("guard-done", || remove(&file)).map_err(BeatError::Own)?;
    Ok(intruders)
}

/// Compares the bundle with the guard of an earlier driver that may have died while a child ran. The caller must hold the
/// bundle.
pub fn require_untouched(cx: &Driver<'_>, bundle: &Bundle) -> Result<(), BeatError> {
    let written = relieve_guard(cx, bundle)?;
    refuse_writes(cx, bundle, written)
}

/// Returns an error, with its log in the bundle, if a child of an earlier driver wrote files into the bundle.
pub(crate) fn refuse_writes(
    cx: &Driver<'_>,
    bundle: &Bundle,
    written: Vec<String>,
) -> Result<(), BeatError> {
    if written.is_empty() {
        return Ok(());
    }
    let text = format!("Written into the bundle while a child ran:\n- {}\n", written.join("\n- "));
    let log = keep_log(cx, bundle, "breach", &text)?;
    Err(BeatError::Breach { role: "child of an earlier driver", log, written })
}

fn load(file: &Utf8Path) -> io::Result<Option<BundleDigest>> {
    match fs_err::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(file: &Utf8Path) -> io::Result<()> {
    match fs_err::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn without_a_note_nothing_is_compared() {
        let scene = Scene::planned();
        fs_err::write(scene.bundle().path(Artifact::Patch), "a patch\n").unwrap();
        let intruders = relieve_guard(&scene.driver(), &scene.bundle()).unwrap();
        assert_eq!(intruders, Vec::<String>::new());
        assert!(scene.bundle().path(Artifact::Patch).exists());
    }

    #[test]
    fn only_what_moves_the_state_is_set_aside() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        stand_guard(&scene.driver(), &bundle).unwrap();
        fs_err::write(bundle.path(Artifact::BuildNotes), "notes\n").unwrap();
        fs_err::write(bundle.path(Artifact::Review), "all is well\n").unwrap();
        let intruders = relieve_guard(&scene.driver(), &bundle).unwrap();
        assert_eq!(intruders.len(), 1, "{intruders:?}");
        assert!(intruders[0].starts_with(Artifact::Review.file_name()), "{intruders:?}");
        assert!(bundle.path(Artifact::BuildNotes).exists());
        assert!(!bundle.path(Artifact::Review).exists());
    }

    #[test]
    fn a_note_counts_once() {
        let scene = Scene::planned();
        let (driver, bundle) = (scene.driver(), scene.bundle());
        stand_guard(&driver, &bundle).unwrap();
        relieve_guard(&driver, &bundle).unwrap();
        fs_err::write(bundle.path(Artifact::Patch), "the driver's own\n").unwrap();
        assert_eq!(relieve_guard(&driver, &bundle).unwrap(), Vec::<String>::new());
        assert_eq!(scene.effects(), ["guard", "guard-done"]);
    }
}
