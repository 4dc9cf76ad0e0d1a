//! Bundles on disk: ids, artifact names, file formats and the state derived from them.
//!
//! A bundle is a directory of artifacts, one per beat of the cycle. Its state is never stored:
//! [`State::of`] derives it from the artifacts that are present, so a crashed run resumes from
//! whatever reached the disk. Parsers are lenient, except where a file *grants* something: a
//! malformed gate report or sign-off grants nothing.
//!
//! ```
//! use pdca_state::{Artifact, Bundle, BundleRoot, State};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = camino::Utf8Path::from_path(dir.path()).ok_or("not UTF-8")?;
//! let root = BundleRoot::new(path.join("results"));
//! let bundle = root.create(&"#36".parse()?, "- **Slug:** crash-on-empty-input\n")?;
//! assert_eq!(bundle.load()?.state, State::Planned);
//!
//! bundle.publish(Artifact::Patch, b"diff --git a/x b/x\n")?;
//! assert_eq!(bundle.load()?.state, State::Built);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - This is the only crate that knows the name of a file inside a bundle.
//! - Deriving a state does no I/O and cannot fail; along the cycle it only moves forward.
//! - A file appears whole or not at all, and nothing of an attempt is ever deleted or overwritten:
//!   it is moved into `iteration-v<N>/`, and an interrupted move is finished into the same N.
//! - No path is built from an id that was not parsed as a [`BundleId`], and no content of a bundle
//!   makes this crate read or write outside of it.
//! - One bad bundle is one bad [`SurveyRow`], never a failed survey.
//! - Nothing is printed, and neither the environment nor the clock is read.

#![warn(missing_docs)]

mod artifact;
mod failure;
mod id;
mod id_list;
mod lines;
pub mod parallel;

mod brief;
mod citations;
mod claims;
mod gates;
mod notes;
pub mod patch;
mod proposal;
mod review;
mod signoff;
mod summary;

mod state;

mod bundle;
mod contents;
mod digest;
pub mod files;
mod root;
mod snapshot;
mod survey;
pub mod text;
mod title;
mod when;

mod money;

mod archive;
mod attempts;
mod calls;
mod carried;
mod carry_forward;
mod close;
mod default_texts;
mod inert;
mod last_attempt;
mod returned;

#[cfg(test)]
mod testing;

pub use archive::{
    ArchiveError, ArchivePlan, ArchiveStep, Pending, archive_auto, archive_plan, archive_returned,
    archive_stale, archive_superseded, resume_archive,
};
pub use artifact::{Artifact, Artifacts};
pub use attempts::Attempts;
pub use brief::{
    Awaits, Brief, BriefField, BriefRemark, Label, OntoBranch, Part, PartsError, RepoTarget,
    SPLIT_FROM, SPLIT_INTO, SizeLimit, SplitOff, Splitting, TRIAGE_VERDICT, Unread, Widening,
    WideningError, asked_digest, held_parts, may_have_parts, note_split, parts, repoint,
    size_limit,
};
pub use bundle::{Bundle, CreateError, WriteError};
pub use calls::{
    BundleCalls, CallRecord, CostBasis, CostTotal, InstructionsRecord, KeptCall, LastSession,
    SessionSoFar, Usage, last_session,
};
pub use carried::{PlanAdvice, carried_items};
pub use citations::{Citation, CitationFlaw, CitedTree, citations};
pub use claims::{CHECKED_TRAILER, SEALED_TRAILER, has_claims, quote_claims, quote_claims_in};
pub use close::{close_disposition, close_text, same_disposition};
pub use contents::LoadError;
pub use default_texts::DefaultTexts;
pub use digest::{BundleDigest, sha256_hex};
pub use failure::chain;
pub use gates::{
    EVIDENCE_MAX, Element, ElementError, ElementKind, GateReport, GateReportError, GateResult,
    GateRow, Overall, Provenance, evidence,
};
pub use id::{BundleId, IdError, IdFlaw};
pub use id_list::{IdList, Named, parse_id_list};
pub use last_attempt::LastAttempt;
pub use money::{Dollars, Money, MoneyError};
pub use patch::{
    PatchError, PatchFault, PatchFile, PatchScan, footprint, named_paths, patch_files,
};
pub use proposal::SignoffProposal;
pub use returned::Returned;
pub use review::{MissingReview, Review, ReviewRow, declared_dependencies};
pub use root::{BundleRoot, Listing, RootError, RootNames, Strangeness, Stranger};
pub use signoff::{
    Accepted, Override, SignoffAction, SignoffDecision, SignoffError, SignoffOutcome,
    UnknownOutcome, overrule, record, require_accepted,
};
pub use snapshot::{Coverage, Snapshot, SnapshotProblem};
pub use state::{BriefFact, Reentry, State, StateFacts};
pub use summary::{
    Advisory, NeedsHuman, RecordedSignoff, Summary, SummaryFlaw, SummaryInputs, SummaryItem,
    assemble, given_up, protected_item, tracker_comment,
};
pub use survey::{Glance, SurveyRow, survey, survey_bundles};
pub use title::title_of;
pub use when::{Texts, When, WhenText};
