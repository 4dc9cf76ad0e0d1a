//! The commits of an attempt: those of the builder, and those that the driver makes.
//!
//! The builder's commits are kept unchanged: number, order, authors, dates and messages. Changes that
//! it left uncommitted become one more commit, by the configured author and with a subject from the brief. The
//! commits are copied into the target's object store at the end of Do and kept by a ref, so that they
//! outlive the lane and accepting seals them.

use pdca_integrate::{
    Fence, Ingredients, LaneObjects, ObjectId, OutwardLink, RefError, RefNamespace, ReflogEntry,
    Signer, StepEffect, Store, keep_work, outward_links, work_ref,
};
use pdca_journal::events::WarningCode;
use pdca_lanes::{ApplyError, CommitSignature, PatchError, Target};
use pdca_state::{Artifact, Bundle, BundleId, chain, title_of};

use crate::attempt::ChangeCommit;
use crate::authorship::Author;
use crate::checkout::{Checkout, CheckoutError};
use crate::config::{TargetSpec, WorkspaceConfig};
use crate::leaf::keep_log;
use crate::run_bundle::{BeatError, Driver};

/// The number of tries to move a ref while other processes take the fence.
// A driver takes the fence once, so it rarely moves more than once while a ref is written.
const TRIES: u32 = 5;
/// The longest generated subject, in characters.
// The convention of git's own project, and where forges cut a subject.
const SUBJECT: usize = 72;

/// Returns the signer of the driver's own commits of an attempt. Recorded before the first commit, so that a driver
/// that takes over makes identical commits.
pub(crate) fn maker(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
) -> Result<Signer, CheckoutError> {
    let attempts = cx.config.attempts();
    let known = attempts.load(bundle.id()).map_err(CheckoutError::Record)?;
    if let Some(made) = known.and_then(|known| known.made) {
        return Ok(made);
    }
    let Author { name, email } = author_for(cx.config, &checkout.target);
    let made = Signer { name, email, seconds: cx.config.dates.now() };
    let note = || attempts.update(bundle.id(), |attempt| attempt.made = Some(made.clone()));
    cx.effects.perform("attempt", note).map_err(CheckoutError::Record)?;
    Ok(made)
}

/// Commits the changes in the checkout, and returns the patch since the base with its head commit.
/// The patch is empty if nothing changed.
pub(crate) fn harvest_commits(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    message: &str,
) -> Result<(Vec<u8>, String), BeatError> {
    let made = maker(cx, bundle, checkout)?;
    // From here on nothing comes from the repository that the builder could write: the patch, the commits, the gates'
    // checkout and the reviewer's copy are made of what was imported.
    cx.effects.perform("import", || checkout.lane.import()).map_err(CheckoutError::from)?;
    let commit = || checkout.lane.commit_all(message, &signature(&made));
    cx.effects.perform("commit", commit).map_err(CheckoutError::from)?;
    let head = checkout.head()?;
    let patch = checkout.lane.diff(&checkout.attempt.base, &head).map_err(CheckoutError::from)?;
    if patch.is_empty() {
        return Ok((patch, head));
    }
    let head = keep_change(cx, bundle, checkout, &head, &patch, message)?;
    Ok((patch, head))
}

/// Copies the commits of a change into the target's object store and records them for the patch.
/// Returns the head, which is a new commit if they had to be squashed.
pub(crate) fn keep_change(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    head: &str,
    patch: &[u8],
    message: &str,
) -> Result<String, BeatError> {
    let made = maker(cx, bundle, checkout)?;
    let store = cx.config.store_of(&checkout.attempt.target)?;
    let base = commit_id(&checkout.attempt.base)?;
    let mut head = commit_id(head)?;
    let repository = checkout.lane.repository();
    let take = || LaneObjects::open(&store, &repository)?.take_in(base, head);
    // Into the target's store, because the lane is reset and its objects may go (decision 019).
    let line = cx.effects.perform("take-in", take).map_err(CheckoutError::Objects)?;
    if line.is_none() {
        let text = "its commits are not one line from the base: they become one commit";
        cx.warn(bundle, WarningCode::CommitsSquashed, text);
        let one = Ingredients {
            base,
            patch,
            message,
            name: &made.name,
            email: &made.email,
            seconds: made.seconds,
        };
        let squash = || LaneObjects::open(&store, &repository)?.squash(head, &one);
        head = cx.effects.perform("squash", squash).map_err(CheckoutError::Objects)?;
    }
    refuse_outward_links(cx, bundle, &store, (base, head), patch)?;
    // The ref first: gc must not collect a commit that the record names.
    keep_ref(cx, &store, bundle.id(), (base, head))?;
    let change = ChangeCommit { patch: pdca_state::sha256_hex(patch), head: head.to_string() };
    let note = || {
        cx.config.attempts().update(bundle.id(), |attempt| {
            // A driver that takes over records the same change again.
            if attempt.changes.last() != Some(&change) {
                attempt.changes.push(change.clone());
            }
        })
    };
    cx.effects.perform("attempt", note).map_err(CheckoutError::Record)?;
    Ok(head.to_string())
}

/// Refuses a change that makes, moves or edits a link so that it leads out of the tree.
///
/// Judged by the trees: a rename without an edit says in no line of the patch that it moves a link.
fn refuse_outward_links(
    cx: &Driver<'_>,
    bundle: &Bundle,
    store: &Store,
    (base, head): (ObjectId, ObjectId),
    patch: &[u8],
) -> Result<(), BeatError> {
    let links = outward_links(store, base, head).map_err(CheckoutError::Objects)?;
    let Some(OutwardLink { path, target }) = links.into_iter().next() else { return Ok(()) };
    let link = path.to_string();
    let text = String::from_utf8_lossy(patch);
    let before = text.lines().take_while(|line| !line.ends_with(&link)).count();
    let source = ApplyError::Refused(PatchError::outward_link(before + 1, link, target));
    let text = format!("The change cannot be taken: {}\n", chain(&source));
    Err(BeatError::Patch { log: keep_log(cx, bundle, "builder", &text)?, source })
}

/// Protects the commits of an attempt from gc with a ref.
pub(crate) fn keep_ref(
    cx: &Driver<'_>,
    store: &Store,
    id: &BundleId,
    commits: (ObjectId, ObjectId),
) -> Result<(), BeatError> {
    let name = work_ref(&cx.config.dirs.mark(), id);
    let seconds = cx.config.dates.now();
    let log = ReflogEntry { message: "pdca: work on a bundle", seconds };
    let keep =
        || under_fence(cx.config, store, |fence| keep_work(store, fence, &name, commits, log));
    cx.effects.perform("work-ref", keep).map_err(CheckoutError::Ref)?;
    Ok(())
}

impl WorkspaceConfig {
    pub(crate) fn spec_of(&self, target: &str) -> Option<&TargetSpec> {
        self.targets.iter().find(|spec| spec.name == target)
    }

    pub(crate) fn store_of(&self, target: &str) -> Result<Store, CheckoutError> {
        let missing = || CheckoutError::Unconfigured { name: target.to_owned() };
        let spec = self.spec_of(target).ok_or_else(missing)?;
        self.store(spec).map_err(CheckoutError::Objects)
    }
}

/// Changes refs under the present fence. Taking a new one would fence out a running driver, and these refs are not
/// what a fence protects.
pub(crate) fn under_fence(
    config: &WorkspaceConfig,
    store: &Store,
    change: impl Fn(&Fence) -> Result<StepEffect, RefError>,
) -> Result<StepEffect, RefError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let fence = match Fence::current(store)? {
            Some(fence) => fence,
            // The repository has no fence yet, so there is no driver that this one could fence out.
            None => Fence::take(store, &ref_run(config), 0)?,
        };
        match change(&fence) {
            Err(RefError::Fenced { .. } | RefError::Moved { .. }) if tries < TRIES => {}
            answer => return answer,
        }
    }
}

/// Returns the name of this run, as far as a ref can carry it.
fn ref_run(config: &WorkspaceConfig) -> RefNamespace {
    let plain = || "pdca".parse().expect("because it is letters only");
    config.run.parse().unwrap_or_else(|_| plain())
}

/// Returns the author of the driver's own commits in a target.
pub(crate) fn author_for(config: &WorkspaceConfig, target: &Target) -> Author {
    let user = || target.user().map(|(name, email)| Author { name, email });
    config.author.clone().or_else(user).unwrap_or_else(Author::nobody)
}

/// Returns the message of a commit that the driver makes for a bundle.
pub(crate) fn message_for(bundle: &Bundle) -> String {
    let text = |artifact| bundle.read(artifact).ok().flatten();
    let written =
        text(Artifact::CommitMessage).map(|text| String::from_utf8_lossy(&text).into_owned());
    if let Some(written) = written.filter(|written| !written.trim().is_empty()) {
        return format!("{}\n", written.trim());
    }
    let brief = text(Artifact::Brief).unwrap_or_default();
    let title = title_of(&String::from_utf8_lossy(&brief), bundle.id());
    let mut subject: String = title.chars().take(SUBJECT).collect();
    if subject.len() < title.len() {
        // A title without a space in its second half is cut inside a word rather than lost.
        let whole = subject.rfind(' ').filter(|at| *at > SUBJECT / 2).unwrap_or(subject.len());
        subject.truncate(whole);
    }
    format!("{}\n", subject.trim_end())
}

pub(crate) fn signature(signer: &Signer) -> CommitSignature<'_> {
    CommitSignature { name: &signer.name, email: &signer.email, seconds: signer.seconds }
}

/// Parses a commit id out of a record.
pub(crate) fn commit_id(text: &str) -> Result<ObjectId, CheckoutError> {
    ObjectId::from_hex(text.as_bytes())
        .map_err(|_| CheckoutError::NoCommit { given: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_written_message_wins_and_a_blank_one_does_not_count() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        let from_brief = message_for(&bundle);
        let file = bundle.path(Artifact::CommitMessage);
        fs_err::write(&file, "\n  Fix it\n\nBecause.\n\n").unwrap();
        assert_eq!(message_for(&bundle), "Fix it\n\nBecause.\n");
        fs_err::write(&file, " \n\n").unwrap();
        assert_eq!(message_for(&bundle), from_brief);
    }

    #[test]
    fn a_long_title_is_cut_between_two_words() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        let title = "word ".repeat(20);
        fs_err::write(bundle.path(Artifact::Brief), format!("# 7 — {title}\n")).unwrap();
        assert_eq!(message_for(&bundle), format!("{}\n", "word ".repeat(14).trim_end()));
        let title = "x".repeat(90);
        fs_err::write(bundle.path(Artifact::Brief), format!("# 7 — {title}\n")).unwrap();
        assert_eq!(message_for(&bundle).trim_end().len(), SUBJECT, "one long word is cut anywhere");
    }

    #[test]
    fn a_run_that_no_ref_can_carry_goes_by_a_plain_name() {
        let scene = Scene::planned();
        let named = |run: &str| {
            ref_run(&WorkspaceConfig { run: run.to_owned(), ..scene.config.clone() }).to_string()
        };
        assert_eq!(named("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_eq!(named("by hand: 1"), "pdca");
    }
}
