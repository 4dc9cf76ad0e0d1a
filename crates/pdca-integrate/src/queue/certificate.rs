//! Landing certificates, which can be verified from the objects alone.
//!
//! A certificate names the inputs and their order, the trees, commits and gates, and the verdict. [`verify`]
//! trusts none of it: it reads the sealed commits, folds them again with git, and compares every id. Facts that
//! objects cannot prove (the verdict, digests of gates, the order of completion) are covered by one digest per
//! section, so that a changed byte is noticed and located. These digests are no signature: a forger can write
//! new ones.

use std::collections::BTreeMap;

use gix::ObjectId;
use pdca_state::{BundleId, sha256_hex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    git::engine::MergeEngine,
    git::fold::{FoldError, Recorded, fold},
    git::land::Landed,
    git::path::TreePath,
    git::seal::{SealError, SealRecord, Sealed},
    queue::candidate::AppliedCommit,
    queue::plan::{FoldPlan, Form, PlanEntry, PlanError, Strategy},
    queue::verdict::{Gated, Light, Verdict},
};

/// The version of the file format. Version 1 describes commits in the first [`Form`].
const SCHEMA: u32 = 2;

/// A landing and its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub schema: u32,
    /// The commit that the changes were folded onto.
    #[serde(with = "pdca_journal::object_id")]
    pub base: ObjectId,
    pub strategy: Strategy,
    /// The changes, in order.
    pub inputs: Vec<CertifiedInput>,
    /// The resulting commits, in the same order.
    pub results: Vec<CertifiedChange>,
    /// The commit that landed.
    #[serde(with = "pdca_journal::object_id")]
    pub commit: ObjectId,
    #[serde(with = "pdca_journal::object_id")]
    pub tree: ObjectId,
    /// Every path that the landing may change.
    pub footprint: Vec<TreePath>,
    /// The verdict about exactly this tree.
    pub verdict: Verdict,
    /// The version of git that merged.
    pub git_version: String,
    /// The ref that moved.
    pub reference: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedInput {
    pub seal: SealRecord,
    pub depends_on: Vec<BundleId>,
}

/// The commits that one change became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedChange {
    pub id: BundleId,
    pub commits: Vec<AppliedCommit>,
}

/// The content of a certificate file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    certificate: Certificate,
    /// The SHA-256 of each section, by name.
    sections: BTreeMap<String, String>,
    /// The SHA-256 of `sections`.
    sha256: String,
}

/// A certificate that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub certificate: Certificate,
    /// The version of git that verified it, which may differ from the one that merged.
    pub git_version: String,
}

/// The reasons why a certificate does not verify.
#[derive(Debug, Error)]
pub enum VerifyError {
    #[error("line {line}, column {column}: not a certificate")]
    Unreadable {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        #[source]
        source: serde_json::Error,
    },
    /// The content is a certificate, but not in the canonical bytes.
    #[error("line {line}, column {column}: not as it was written")]
    Bytes {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A section does not match its digest.
    #[error("`{place}` is not what was certified")]
    Changed { place: String },
    /// A field contradicts the objects.
    #[error("`{place}` says {says}, but the objects say {found}")]
    Wrong { place: String, says: String, found: String },
    /// A seal is not valid in this repository.
    #[error("`{place}` does not hold here")]
    Seal {
        place: String,
        #[source]
        source: Box<SealError>,
    },
    #[error("`inputs` have no order")]
    Order(#[source] PlanError),
    #[error("the changes could not be folded again")]
    Fold(#[source] Box<FoldError>),
}

impl Certificate {
    /// Returns the certificate of a landing.
    pub fn new(landed: &Landed, gated: &Gated) -> Self {
        Self::announced(gated, &landed.reference)
    }

    /// Returns the certificate of a landing that is about to happen. It is stored first, so that a crash between the
    /// landing and its certificate loses nothing.
    pub fn announced(gated: &Gated, reference: &str) -> Self {
        let candidate = &gated.candidate;
        let inputs = candidate.bundles.iter().map(|taken| CertifiedInput {
            seal: taken.entry.sealed().record().clone(),
            depends_on: taken.entry.depends_on().iter().cloned().collect(),
        });
        let results = candidate.bundles.iter().map(|taken| CertifiedChange {
            id: taken.entry.sealed().id().clone(),
            commits: taken.commits.clone(),
        });
        Self {
            schema: SCHEMA,
            base: candidate.base,
            strategy: candidate.strategy,
            inputs: inputs.collect(),
            results: results.collect(),
            commit: candidate.commit,
            tree: candidate.tree,
            footprint: candidate.footprint().into_iter().collect(),
            verdict: gated.verdict.clone(),
            git_version: candidate.git_version.clone(),
            reference: reference.to_owned(),
        }
    }

    /// Parses a file and checks that every byte is canonical and covered by its digest. Nothing is verified against
    /// a repository; [`verify`] does that.
    pub fn parse(text: &[u8]) -> Result<Self, VerifyError> {
        read(text)
    }

    /// Returns the text of the file.
    pub fn to_json(&self) -> Vec<u8> {
        let sections = sections(self);
        let sha256 = sha256_hex(&compact(&sections));
        pretty(&File { certificate: self.clone(), sections, sha256 })
    }
}

/// Verifies a certificate against any repository that has the objects.
///
/// The engine must have the same merge drivers as the one that folded the changes.
pub fn verify(engine: &mut MergeEngine<'_>, text: &[u8]) -> Result<Verified, VerifyError> {
    let certificate = read(text)?;
    let mut entries = Vec::new();
    for (place, input) in certificate.inputs.iter().enumerate() {
        let sealed = Sealed::check(engine.store(), input.seal.clone()).map_err(|source| {
            VerifyError::Seal { place: format!("inputs[{place}].seal"), source: Box::new(source) }
        })?;
        entries.push(PlanEntry::new(sealed, input.depends_on.iter().cloned()));
    }
    let plan = FoldPlan::new(certificate.base, certificate.strategy, entries)
        .map_err(VerifyError::Order)?;
    let form = if certificate.schema == 1 { Form::First } else { Form::Dated };
    let plan = plan.in_form(form).of_landed();
    // Without recorded steps: every merge is made again.
    let folded = fold(engine, &plan, &Recorded::default(), &mut |_| Ok(()))
        .map_err(|source| VerifyError::Fold(Box::new(source)))?;
    let candidate = folded.candidate();
    let results: Vec<_> = candidate.bundles.iter().collect();
    // `zip` below would ignore what one side has beyond the other.
    compare("results", &certificate.results.len(), &results.len())?;
    for (place, (says, taken)) in certificate.results.iter().zip(results).enumerate() {
        let (entry, commits) = (&taken.entry, &taken.commits);
        compare(&format!("results[{place}].id"), &says.id, entry.sealed().id())?;
        let name = format!("results[{place}].commits");
        compare(&name, &says.commits.len(), &commits.len())?;
        for (number, (says, found)) in says.commits.iter().zip(commits).enumerate() {
            let name = format!("{name}[{number}]");
            compare(&format!("{name}.source"), &says.source, &found.source)?;
            compare(&format!("{name}.applied"), &says.applied, &found.applied)?;
            compare(&format!("{name}.tree"), &says.tree, &found.tree)?;
        }
    }
    compare("commit", &certificate.commit, &candidate.commit())?;
    compare("tree", &certificate.tree, &candidate.tree())?;
    let footprint = candidate.footprint();
    let list = |paths: &mut dyn Iterator<Item = &TreePath>| {
        paths.map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    compare("footprint", &list(&mut certificate.footprint.iter()), &list(&mut footprint.iter()))?;
    // The verdict cannot be recomputed here, but it must be about the tree that was.
    compare("verdict.key.tree", &certificate.verdict.key.tree, &candidate.tree())?;
    compare("verdict.key.drivers", &certificate.verdict.key.drivers, &candidate.drivers)?;
    let light = |light| match light {
        Light::Green => "green",
        Light::Red => "red",
    };
    compare("verdict.light", light(certificate.verdict.light), light(Light::Green))?;
    let git_version = engine.store().git_version().to_owned();
    Ok(Verified { certificate, git_version })
}

/// Parses a certificate and checks that every byte is canonical and covered by its digest.
fn read(text: &[u8]) -> Result<Certificate, VerifyError> {
    let file: File = serde_json::from_slice(text).map_err(|source| VerifyError::Unreadable {
        line: source.line(),
        column: source.column(),
        source,
    })?;
    // Digests cover values and not bytes. Without this, white space and key order could change unnoticed.
    let canonical = pretty(&file);
    if canonical != text {
        let same = canonical.iter().zip(text).take_while(|(a, b)| a == b).count();
        let before = &text[..same.min(text.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        return Err(VerifyError::Bytes { line, column });
    }
    let changed = |place: &str| Err(VerifyError::Changed { place: place.to_owned() });
    if file.sha256 != sha256_hex(&compact(&file.sections)) {
        // Either the list or its digest was changed. If all sections match the list, it was the digest.
        let fits = sections(&file.certificate) == file.sections;
        return changed(if fits { "sha256" } else { "sections" });
    }
    for (name, digest) in sections(&file.certificate) {
        if file.sections.get(&name) != Some(&digest) {
            return changed(&format!("certificate.{name}"));
        }
    }
    // After the digests, so that a changed version is reported as a change and not as an unknown version.
    if file.certificate.schema != 1 {
        compare("schema", &file.certificate.schema, &SCHEMA)?;
    }
    Ok(file.certificate)
}

fn compare<T: PartialEq + ToString + ?Sized>(
    place: &str,
    says: &T,
    found: &T,
) -> Result<(), VerifyError> {
    if says == found {
        return Ok(());
    }
    let place = place.to_owned();
    Err(VerifyError::Wrong { place, says: says.to_string(), found: found.to_string() })
}

fn sections(certificate: &Certificate) -> BTreeMap<String, String> {
    let value = serde_json::to_value(certificate).expect("because every key is a string");
    let fields = value.as_object().expect("because a struct is an object");
    fields.iter().map(|(name, value)| (name.clone(), sha256_hex(&compact(value)))).collect()
}

fn compact(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("because every key is a string")
}

fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("because every key is a string");
    text.push(b'\n');
    text
}
