//! A fast overview of all bundles, with only what `status` and the planner need.
//!
//! It costs one listing per bundle and one read per file that the state depends on: no review, and the
//! patch only if it waits for sign-off. The work is spread over the cores; the rows keep the order of
//! the directories.

use std::num::NonZero;

use camino::Utf8PathBuf;

use crate::artifact::{Artifact, Artifacts};
use crate::brief::{Brief, BriefRemark, Part, parts};
use crate::bundle::Bundle;
use crate::contents::{self, Contents, LoadError};
use crate::gates::{GateReport, Overall};
use crate::id::BundleId;
use crate::id_list::IdList;
use crate::notes;
use crate::parallel::map_chunks;
use crate::proposal::SignoffProposal;
use crate::root::{BundleRoot, RootError};
use crate::signoff::SignoffAction;
use crate::snapshot::{Coverage, brief_fact, coverage, is_brief_edited};
use crate::state::{BriefFact, State};
use crate::summary::Summary;

/// One bundle of a survey.
#[derive(Debug)]
pub struct SurveyRow {
    /// The id of the bundle.
    pub id: BundleId,
    /// The directory of the bundle.
    pub dir: Utf8PathBuf,
    /// The overview, or the error of reading this bundle.
    pub result: Result<Glance, LoadError>,
}

/// The overview of one bundle. The fields of the brief are empty if it is an unfilled template.
#[derive(Debug)]
pub struct Glance {
    /// The derived state.
    pub state: State,
    /// The slug of the brief.
    pub slug: Option<String>,
    /// The labels that a person has to fill in before a draft of `pdca select` counts; empty for every other brief.
    pub missing: Vec<&'static str>,
    /// The bundles in `Depends on`.
    pub depends_on: IdList,
    /// The subset of `depends_on` that must have landed.
    pub depends_on_landed: IdList,
    /// The bundles in `Conflicts with`.
    pub conflicts_with: IdList,
    /// The parts of the brief, in the order in which they can be done; none if they cannot be read.
    pub parts: Vec<Part>,
    /// The globs in `Touches`.
    pub touches: Vec<String>,
    /// The lines of the brief that look like a field and are not read as one.
    pub remarks: Vec<BriefRemark>,
    /// The outcome that Plan expects.
    pub disposition_hint: Option<String>,
    /// True if there is a close disposition in place of a patch.
    pub closes: bool,
    /// The number of open boxes in §6 of the summary.
    pub open_items: usize,
    /// The number of those that are the standing validation question.
    pub standing_items: usize,
    /// The verdict of the gates, if they ran.
    pub overall: Option<Overall>,
    /// The relation of the gate report to the patch; computed only in the states
    /// [`State::Checked`] and [`State::AwaitingSignoff`].
    pub coverage: Coverage,
    /// True if the brief was edited after Check; computed in the same states.
    pub is_brief_edited: bool,
    /// The decision that the sign-off leaf proposes; read only in [`State::AwaitingSignoff`].
    pub proposed: Option<SignoffAction>,
    /// The number of the newest archived attempt; 0 if there is none.
    pub iterations: u32,
    /// The artifacts that lie in the directory, so that no caller has to look for one again.
    pub artifacts: Artifacts,
    /// The names of failed leaves' logs and of files that were set aside, sorted.
    pub leftovers: Vec<String>,
}

/// Surveys every active bundle of a root. One bad bundle is one bad row.
pub fn survey(root: &BundleRoot) -> Result<Vec<SurveyRow>, RootError> {
    Ok(survey_bundles(&root.list()?))
}

/// Surveys these bundles and keeps their order.
pub fn survey_bundles(bundles: &[Bundle]) -> Vec<SurveyRow> {
    const CHUNK: NonZero<usize> = NonZero::new(64).expect("because it is not zero");
    let results = map_chunks(bundles, CHUNK, |chunk| {
        // One buffer for a chunk: a survey reads three files of each bundle, and most are smaller
        // than this.
        let mut bytes = Vec::with_capacity(1 << 16);
        chunk.iter().map(|bundle| Glance::at(bundle, &mut bytes)).collect()
    });
    bundles
        .iter()
        .zip(results)
        .map(|(bundle, result)| SurveyRow {
            id: bundle.id().clone(),
            dir: bundle.dir().into(),
            result,
        })
        .collect()
}

impl Bundle {
    /// Surveys this bundle alone.
    pub fn glance(&self) -> Result<Glance, LoadError> {
        Glance::at(self, &mut Vec::new())
    }
}

impl Glance {
    /// Surveys a bundle. `bytes` is room for its files, used again from one bundle to the next.
    fn at(bundle: &Bundle, bytes: &mut Vec<u8>) -> Result<Self, LoadError> {
        let contents = bundle.contents()?;
        contents.require_change_is_a_file()?;
        let brief = if contents.read(Artifact::Brief, bytes)? {
            Some(Brief::parse(contents::text(bundle.dir(), Artifact::Brief, bytes)?))
        } else {
            None
        };
        let summary = if contents.read(Artifact::Summary, bytes)? {
            Some(Summary::parse(contents::text(bundle.dir(), Artifact::Summary, bytes)?))
        } else {
            None
        };
        // The same facts as in `Bundle::load`, with fewer reads: `status` and a driver must see one
        // state.
        let mut facts = contents.facts(brief_fact(brief.as_ref()));
        facts.summary = summary.is_some();
        facts.outcome = summary.as_ref().and_then(Summary::outcome);
        facts.pending = contents.pending()?.map(|pending| pending.reentry);
        // As in `Bundle::load`, notes or gates that cannot be read count as absent. They are read only
        // where the state can depend on them.
        let mut gates = None;
        match facts.brief {
            BriefFact::Absent | BriefFact::Placeholder if !facts.cycle_ran => {
                facts.resolved = contents.read(Artifact::Notes, bytes).unwrap_or(false)
                    && notes::is_resolved(bytes).unwrap_or(false);
            }
            BriefFact::Authored if facts.change => {
                if contents.read(Artifact::GatesJson, bytes).unwrap_or(false) {
                    gates = GateReport::parse(bytes).ok();
                }
                facts.gates = gates.is_some();
            }
            BriefFact::Absent | BriefFact::Placeholder | BriefFact::Authored => {}
        }
        let state = State::of(&facts);
        Ok(Glance {
            state,
            coverage: covered(&contents, state, gates.as_ref()),
            is_brief_edited: is_edited(&contents, state, gates.as_ref()),
            proposed: proposed(&contents, state, bytes),
            closes: contents.artifacts.contains(Artifact::CloseDisposition),
            open_items: summary.as_ref().map_or(0, |summary| summary.open_items().len()),
            standing_items: summary.as_ref().map_or(0, Summary::open_standing),
            overall: gates.map(|gates| gates.overall),
            iterations: contents.iterations.last().copied().unwrap_or(0),
            artifacts: contents.artifacts,
            missing: brief
                .as_ref()
                .filter(|brief| state == State::Unplanned && brief.has_triage())
                .map(Brief::missing)
                .unwrap_or_default(),
            leftovers: contents.leftovers,
            ..Glance::of_brief(brief.as_ref().filter(|_| facts.brief == BriefFact::Authored), state)
        })
    }
}

impl Glance {
    fn of_brief(brief: Option<&Brief>, state: State) -> Self {
        Self {
            state,
            slug: brief.and_then(Brief::slug),
            missing: Vec::new(),
            depends_on: brief.map(Brief::depends_on).unwrap_or_default(),
            depends_on_landed: brief.map(Brief::depends_on_landed).unwrap_or_default(),
            conflicts_with: brief.map(Brief::conflicts_with).unwrap_or_default(),
            parts: brief.and_then(|brief| parts(brief).ok()).unwrap_or_default(),
            touches: brief.map(Brief::touches).unwrap_or_default(),
            remarks: brief.map(Brief::remarks).unwrap_or_default(),
            disposition_hint: brief.and_then(Brief::disposition_hint).map(str::to_owned),
            closes: false,
            open_items: 0,
            standing_items: 0,
            overall: None,
            coverage: Coverage::Unknown,
            is_brief_edited: false,
            proposed: None,
            iterations: 0,
            artifacts: Artifacts::default(),
            leftovers: Vec::new(),
        }
    }
}

/// Returns the decision that waits for a person.
fn proposed(contents: &Contents<'_>, state: State, bytes: &mut Vec<u8>) -> Option<SignoffAction> {
    let waits = state == State::AwaitingSignoff && contents.artifacts.contains(Artifact::Proposal);
    let is_read = waits && contents.read(Artifact::Proposal, bytes).unwrap_or(false);
    is_read.then(|| SignoffProposal::parse(bytes).map(|proposal| proposal.action))?
}

/// Returns whether the brief was edited after Check, where a decision depends on it.
fn is_edited(contents: &Contents<'_>, state: State, gates: Option<&GateReport>) -> bool {
    let is_judged = matches!(state, State::Checked | State::AwaitingSignoff);
    // A brief that cannot be read now is not the one that was checked.
    let edited = |gates| is_brief_edited(contents.dir(), gates).unwrap_or(true);
    gates.filter(|_| is_judged).is_some_and(edited)
}

/// Reads the patch only if a person is about to rely on the verdict. A patch that cannot be read
/// counts as changed.
fn covered(contents: &Contents<'_>, state: State, gates: Option<&GateReport>) -> Coverage {
    let waits = matches!(state, State::Checked | State::AwaitingSignoff);
    let has_patch = contents.artifacts.contains(Artifact::Patch);
    gates.filter(|_| waits).map_or(Coverage::Unknown, |gates| {
        coverage(contents.dir(), has_patch, gates).unwrap_or(Coverage::Changed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BRIEF, GATES, Scene, summary};

    fn only(scene: &Scene) -> SurveyRow {
        let mut rows = survey(&scene.root()).unwrap();
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    #[test]
    fn a_row_tells_what_status_shows() {
        let scene = Scene::new();
        let brief = format!(
            "{BRIEF}- **Conflicts with:** PROJ-9\n- **Touches:** src/a.rs\n- **Disposition hint:** likely-fix\n"
        );
        scene.bundle(
            "7",
            &[
                ("brief.md", &brief),
                ("patch.diff", ""),
                ("check-gates.json", GATES),
                ("SUMMARY.md", &summary("")),
                ("iteration-v4/x", ""),
            ],
        );
        let glance = only(&scene).result.unwrap();
        assert_eq!(glance.state, State::AwaitingSignoff);
        assert_eq!(glance.slug.as_deref(), Some("a-slug"));
        assert_eq!(glance.depends_on.ids(), ["12", "15"].map(|id| id.parse().unwrap()));
        assert_eq!(glance.conflicts_with.ids(), ["PROJ-9".parse().unwrap()]);
        assert_eq!(glance.touches, ["src/a.rs"]);
        assert_eq!(glance.disposition_hint.as_deref(), Some("likely-fix"));
        assert_eq!((glance.open_items, glance.iterations, glance.closes), (1, 4, false));
        assert_eq!((glance.overall, glance.coverage), (Some(Overall::Pass), Coverage::Unknown));
    }

    #[test]
    fn a_patch_edited_after_check_shows_in_the_row() {
        let scene = Scene::new();
        let seen = crate::sha256_hex(b"the patch");
        let gates =
            GATES.replace(r#""overall""#, &format!(r#""patch_digest": "{seen}", "overall""#));
        scene.bundle(
            "7",
            &[
                ("brief.md", BRIEF),
                ("patch.diff", "the patch"),
                ("check-gates.json", &gates),
                ("SUMMARY.md", &summary("")),
            ],
        );
        assert_eq!(only(&scene).result.unwrap().coverage, Coverage::Same);
        scene.write("issue_7/patch.diff", "another");
        assert_eq!(only(&scene).result.unwrap().coverage, Coverage::Changed);
    }

    #[test]
    fn lesson_06_one_brief_in_latin_1_is_one_bad_row() {
        let scene = Scene::new();
        for id in ["1", "2", "3"] {
            scene.bundle(id, &[("brief.md", BRIEF)]);
        }
        scene.write("issue_2/brief.md", b"- **Slug:** x\n- **Scope:** caf\xe9\n");
        let rows = survey(&scene.root()).unwrap();
        let states: Vec<_> =
            rows.iter().map(|row| row.result.as_ref().ok().map(|glance| glance.state)).collect();
        assert_eq!(states, [Some(State::Planned), None, Some(State::Planned)]);
        let error = rows[1].result.as_ref().unwrap_err();
        assert_eq!((error.path(), error.line()), (&*rows[1].dir.join("brief.md"), Some(2)));
    }

    #[test]
    fn rows_come_in_the_order_of_the_ids_however_many_threads_look() {
        let scene = Scene::new();
        for id in 0..500 {
            scene.bundle(&id.to_string(), &[("brief.md", &format!("- **Slug:** s{id}\n"))]);
        }
        let rows = survey(&scene.root()).unwrap();
        assert_eq!(rows.len(), 500);
        assert!(rows.is_sorted_by(|a, b| a.id < b.id));
        for row in rows {
            assert_eq!(row.result.unwrap().slug, Some(format!("s{}", row.id)));
        }
    }

    #[test]
    fn an_empty_root_has_no_rows_and_a_missing_one_is_an_error() {
        let scene = Scene::new();
        assert!(survey(&scene.root()).unwrap().is_empty());
        assert!(matches!(survey(&scene.root().completed()), Err(RootError::Missing { .. })));
    }
}
