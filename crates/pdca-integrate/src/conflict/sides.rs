//! Both sides of a conflict: an accepted change, and the branch that it no longer merges with.

use std::fmt::Write as _;

use pdca_state::BundleId;

use crate::{Conflict, ObjectId, Sealed, StoreError, contains};

use crate::queue::held::{HeldChange, HeldReason};
use crate::queue::target_branch::{AcceptedChange, ChangeState, TargetBranch};

#[derive(Debug)]
pub struct Sides {
    pub sealed: Sealed,
    /// The tip of the branch.
    pub tip: ObjectId,
    /// The merged tree, with conflict markers.
    pub tree: ObjectId,
    pub conflicts: Vec<Conflict>,
    /// The bundles that landed in those files since; empty if other commits changed them.
    pub partners: Vec<BundleId>,
    /// True if one of them is staged, and not merged yet.
    pub is_staged: bool,
}

impl Sides {
    pub(crate) fn new(
        branch: &TargetBranch,
        sealed: &Sealed,
        (tip, tree): (ObjectId, ObjectId),
        conflicts: Vec<Conflict>,
    ) -> Result<Self, StoreError> {
        let (mut partners, mut is_staged) = (Vec::new(), false);
        for change in &branch.changes {
            if is_partner(branch, sealed, change, &conflicts)? {
                partners.push(change.bundle.id().clone());
                is_staged |= matches!(change.standing, ChangeState::Staged { .. });
            }
        }
        Ok(Self { sealed: sealed.clone(), tip, tree, conflicts, partners, is_staged })
    }

    /// Describes the conflict in one sentence.
    pub fn sentence(&self) -> String {
        let (partners, conflicts) = (self.partners.clone(), self.conflicts.clone());
        let blank = HeldChange::blank(self.sealed.id(), HeldReason::Conflict);
        HeldChange { partners, conflicts, ..blank }.sentence()
    }

    /// Returns the document for the resolver. Text from files is indented, so that no line of it becomes a heading.
    pub fn document(&self, branch: &str) -> String {
        let record = self.sealed.record();
        let partners: Vec<&str> = self.partners.iter().map(BundleId::as_str).collect();
        let others = if partners.is_empty() {
            format!("{branch} as it is now")
        } else {
            let how = if self.is_staged { "is staged" } else { "landed" };
            format!("{branch} as it is now, with what {how} of {}", partners.join(", "))
        };
        let id = self.sealed.id();
        let mut text = format!(
            "# Conflict — issue {id}\n\n{}.\n\n| side | commit | what it is |\n|---|---|---|\n\
             | base | {} | what the accepted change was made on |\n\
             | ours | {} | {others} |\n\
             | theirs | {} | the accepted change of {id} |\n\n\
             The checkout is at `ours` with `theirs` merged into it. Markers carry these ids: `<<<<<<<` that of ours, \
             `>>>>>>>` that of theirs.\n",
            self.sentence(),
            record.base,
            self.tip,
            record.head,
        );
        for conflict in &self.conflicts {
            describe(&mut text, conflict);
        }
        text
    }
}

/// Returns true if a bundle landed or was staged in a conflicting file after the change was made.
fn is_partner(
    branch: &TargetBranch,
    sealed: &Sealed,
    change: &AcceptedChange,
    conflicts: &[Conflict],
) -> Result<bool, StoreError> {
    let (ChangeState::Landed { sealed: other, commit, .. }
    | ChangeState::Staged { sealed: other, commit, .. }) = &change.standing
    else {
        return Ok(false);
    };
    let footprint = &other.record().footprint;
    let touches = conflicts.iter().any(|conflict| footprint.contains(&conflict.path));
    // What the base of the change contains was there when the change was made, and cannot conflict with it.
    Ok(touches && !contains(&branch.store, sealed.record().base, *commit)?)
}

fn describe(text: &mut String, conflict: &Conflict) {
    let infallible = "because writing to a string cannot fail";
    writeln!(text, "\n## {}\n\n{}", conflict.path, conflict.kind).expect(infallible);
    for hunk in &conflict.hunks {
        for (side, lines) in [("ours", &hunk.ours), ("theirs", &hunk.theirs)] {
            writeln!(text, "\nLine {}, {side}:\n", hunk.line).expect(infallible);
            for line in lines.lines() {
                writeln!(text, "    {line}").expect(infallible);
            }
        }
    }
}
