//! What stands in for a leaf that is not configured.
//!
//! A stub is deterministic, says that it is one, and claims nothing. The builder's change adds one
//! file that has no effect. The reviewer's table passes nothing: every row says that nothing was
//! reviewed, and one finding asks a person to do it. Planner, sign-off, Act and the resolver leave
//! nothing, as what they fill in is a person's to decide.

use std::{fmt::Write as _, time::Duration};

use camino::Utf8Path;
use fs_err as fs;
use pdca_state::{Artifact, BundleId, Element};

use crate::{
    call::Call,
    error::LeafError,
    outcome::{FoundIn, Guard, LeafOutcome, Produced},
    role::{Output, Role},
};

/// The directory to which the stub builder adds its file.
const DIR: &str = "pdca-stub";

/// Fills the role of a leaf without starting anything.
pub(crate) fn fill(call: &Call<'_>) -> Result<LeafOutcome, LeafError> {
    let role = call.inputs.role();
    let id = call.inputs.bundle().map(pdca_state::Bundle::id);
    let made = match (role, id) {
        (Role::Builder, Some(id)) => build(id, call.places.worktree)?,
        (Role::Reviewer, _) => vec![(role.output(), review())],
        (Role::Adviser, _) => vec![(role.output(), advise())],
        (Role::Publisher, Some(id)) => publish(id),
        (
            Role::Planner
            | Role::PlanAdviser
            | Role::Builder
            | Role::Signoff
            | Role::Publisher
            | Role::Act
            | Role::Resolver,
            _,
        ) => Vec::new(),
    };
    let produced = made.into_iter().map(|(output, text)| Produced {
        output,
        bytes: text.into_bytes(),
        found: FoundIn::Stub,
    });
    Ok(LeafOutcome {
        role,
        produced: produced.collect(),
        guard: Guard::Stub,
        attempts: 0,
        throttled: 0,
        duration: Duration::ZERO,
        reused: false,
        bundle_changed: Vec::new(),
        said: None,
        session: None,
        earlier_failures: None,
    })
}

/// Adds one file, in the checkout or as a patch.
fn build(id: &BundleId, worktree: Option<&Utf8Path>) -> Result<Vec<(Output, String)>, LeafError> {
    let name = format!("{DIR}/{id}.md");
    let lines = [
        format!("# Stub change for issue {id}"),
        String::new(),
        "Made by the stub builder because no builder is configured. It has no effect.".to_owned(),
    ];
    let notes = format!(
        "# Build notes — issue {id}\n\nStub: no builder is configured. The change adds `{name}` and \
         has no effect; nothing the brief asks for was done.\n"
    );
    let mut made = vec![(Output::Artifact(Artifact::BuildNotes), notes)];
    if let Some(worktree) = worktree {
        add(worktree, &name, &(lines.join("\n") + "\n")).map_err(LeafError::Job)?;
    } else {
        let added = lines.each_ref().map(|line| format!("+{line}\n")).concat();
        let patch = format!(
            "diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n\
             @@ -0,0 +1,{} @@\n{added}",
            lines.len()
        );
        made.push((Output::Artifact(Artifact::Patch), patch));
    }
    Ok(made)
}

/// Writes the stub's file into the checkout; a link in the target that has its name is not followed.
fn add(worktree: &Utf8Path, name: &str, text: &str) -> std::io::Result<()> {
    let dir = worktree.join(DIR);
    // The target may have a link of that name, which would lead the write out of the checkout. A
    // stub runs in the driver, without a sandbox.
    if fs::symlink_metadata(&dir).is_ok_and(|found| !found.is_dir()) {
        fs::remove_file(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    pdca_state::files::replace_unsynced(worktree.join(name), text.as_bytes())
}

fn review() -> String {
    let mut text =
        "Stub: no reviewer is configured. Nothing was reviewed, so nothing here speaks for \
                    the change.\n\n| Item | Verdict | Basis |\n|---|---|---|\n"
            .to_owned();
    for element in Element::ALL {
        let row = match element {
            Element::T5 => {
                "NEEDS-HUMAN | no reviewer is configured: nobody has reviewed this change"
            }
            Element::V => "NEEDS-HUMAN | decide whether the change serves its purpose",
            Element::C1
            | Element::C2
            | Element::C3
            | Element::C4
            | Element::C5
            | Element::T1
            | Element::T2
            | Element::T3
            | Element::T4 => "N/A | stub: nothing was reviewed",
        };
        let _infallible = writeln!(text, "| {} | {row} |", element.title());
    }
    text
}

fn advise() -> String {
    "Stub: no program is configured for this adviser. Nothing was looked at.\n".to_owned()
}

fn publish(id: &BundleId) -> Vec<(Output, String)> {
    let stub = "Stub: no publisher is configured, so nobody has described this change.";
    vec![
        (
            Output::Artifact(Artifact::CommitMessage),
            format!("issue {id}: stub message\n\n{stub}\n"),
        ),
        (Output::Artifact(Artifact::PrDescription), format!("# Issue {id}\n\n{stub}\n")),
        (Output::Artifact(Artifact::TrackerComment), format!("{stub}\n")),
    ]
}
