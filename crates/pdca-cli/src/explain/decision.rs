//! Adds position and remedy to the errors of a decision.

use pdca_integrate::ReturnError;
use pdca_state::{Artifact, Bundle, SignoffError, State};
use pdca_workspace::review::{ChecklistError, DecideError};

use crate::exit::Exit;
use crate::explain::integrate::{standing as unknown, unsealable};
use crate::failure::{Failure, FilePosition};

/// Explains why a decision was not recorded.
pub(crate) fn explain(error: DecideError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    match error {
        DecideError::Admission(error) => crate::session::refused(&error),
        DecideError::NotAwaiting { state, .. } => not_awaiting(state, bundle),
        DecideError::PatchEdited { gated, now, .. } => {
            let now = now.unwrap_or_else(|| "no patch at all".to_owned());
            Failure::usage("patch edited after Check: what was gated is not what is there")
                .at(FilePosition::file(bundle.path(Artifact::Patch)))
                .detail(format!("gated: {gated}"))
                .detail(format!("now:   {now}"))
                .hint(format!(
                    "put the gated patch back, or `pdca signoff {id} iterate-do --note \"…\"` to build and check again"
                ))
        }
        DecideError::BriefEdited { checked, now, .. } => {
            let now = now.unwrap_or_else(|| "no brief at all".to_owned());
            Failure::usage("brief edited after Check: what was checked is not what it asks for now")
                .at(FilePosition::file(bundle.path(Artifact::Brief)))
                .detail(format!("checked: {checked}"))
                .detail(format!("now:     {now}"))
                .hint(format!(
                    "`pdca run {id}` has it checked and reviewed again, `pdca gates {id} --record` gated alone; \
                     or say why it counts: `pdca signoff {id} accept --note \"why\"`"
                ))
        }
        DecideError::NotUtf8 { file } => Failure::usage("the summary is not UTF-8")
            .at(FilePosition::file(file))
            .hint("save it as UTF-8"),
        DecideError::Checklist(error) => unticked(&error, bundle),
        DecideError::Signoff(error) => refusal(&error, bundle),
        DecideError::Sealing(error) => unsealable(&error, bundle),
        DecideError::Unconfirmed { .. } => Failure::from_error(Exit::Usage, &error)
            .at(FilePosition::file(bundle.dir()))
            .hint("add `-y` to take the acceptance back all the same; at a terminal you are asked"),
        DecideError::Return(error) => not_returned(&error, bundle),
        DecideError::Load(error) => error.into(),
        DecideError::Write(error) => error.into(),
        DecideError::Archive(error) => error.into(),
        DecideError::Attempt(_) => Failure::from_error(Exit::Unexpected, &error)
            .at(FilePosition::file(bundle.dir()))
            .hint("make room and make `.pdca` writable; the acceptance itself counts"),
    }
}

/// Explains why there is nothing to sign.
pub(crate) fn not_awaiting(state: State, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let what = format!("{id} is {state}, so there is nothing to sign");
    let hint = match state {
        State::Complete => format!(
            "`pdca why {id}` shows where it stands; `pdca reopen {id} --note \"…\"` takes it back until it has landed"
        ),
        State::Discontinued => format!("a decision is final; `pdca why {id}` shows it"),
        State::Unplanned | State::Resolved => format!("`pdca why {id}` says what is missing"),
        State::AwaitingSignoff
        | State::Planned
        | State::Built
        | State::Checked
        | State::Iterate(_) => format!("`pdca run {id}` carries it to sign-off"),
    };
    Failure::usage(what).at(FilePosition::file(bundle.dir())).hint(hint)
}

fn unticked(error: &ChecklistError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let summary = FilePosition::file(bundle.path(Artifact::Summary));
    let show = format!("`pdca signoff {id} show` lists the items with their numbers");
    match error {
        ChecklistError::NothingOpen => Failure::from_error(Exit::NothingToDo, error)
            .at(summary)
            .hint(format!("`pdca signoff {id} accept`")),
        ChecklistError::NothingNamed => Failure::usage("which item is to be cleared?").hint(show),
        ChecklistError::NoSuchItem { .. } | ChecklistError::AlreadyTicked { .. } => {
            Failure::from_error(Exit::Usage, error).at(summary).hint(show)
        }
        ChecklistError::Ambiguous => Failure::from_error(Exit::Usage, error)
            .at(summary)
            .hint("tick them by hand: `- [ ]` becomes `- [x]`"),
    }
}

fn refusal(error: &SignoffError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let failure = Failure::from_error(Exit::Usage, error)
        .at(FilePosition::file(bundle.path(Artifact::Summary)));
    match error {
        SignoffError::Unrecordable { .. } => failure.hint(
            "mend the headings of SUMMARY.md; §9 must be there once, with its `- Outcome:` line",
        ),
        SignoffError::AlreadyDecided { .. } => {
            failure.hint(format!("a decision is final; `pdca why {id}` shows it"))
        }
        SignoffError::NoSigner => failure.hint("add `--by NAME`"),
        SignoffError::NotAccepted => failure.hint(format!("`pdca signoff {id} accept`")),
        SignoffError::ReasonRequired { .. } => failure.hint("add `--reason \"why\"`"),
        SignoffError::NothingToOverride { failed, .. } if failed.is_empty() => {
            failure.hint("no gating row failed: accept without `--override`")
        }
        SignoffError::NothingToOverride { failed, .. } => {
            failure.hint(format!("what failed: {}", failed.join(", ")))
        }
        SignoffError::NoteRequired { action } => {
            failure.hint(format!("`pdca signoff {id} {action} --note \"why\"`"))
        }
        SignoffError::NoNeedsHuman => failure.hint(format!(
            "a summary without §6 cannot be accepted; `pdca signoff {id} iterate-do --note \"why\"`"
        )),
        SignoffError::NoGateReport => failure.hint(format!("`pdca gates {id}` checks it again")),
        SignoffError::Undecided { .. } => failure.hint(format!(
            "`pdca gates {id} --record` asks the gates again; or say why: `pdca signoff {id} accept --note \"why\"`"
        )),
        SignoffError::NotAcceptable { failed, .. } => not_acceptable(failed, bundle),
    }
}

fn not_acceptable(failed: &[String], bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let mut failure = Failure::usage(format!("{id} cannot be accepted yet"))
        .at(FilePosition::file(bundle.path(Artifact::Summary)));
    let summary = bundle.load().ok().and_then(|snapshot| snapshot.summary);
    let items = summary.as_ref().map(pdca_state::Summary::items).unwrap_or_default();
    for item in items.iter().filter(|item| item.open) {
        failure = failure.detail(format!("open in §6: {} {}", item.number, item.text));
    }
    for check in failed {
        failure = failure.detail(format!("gate red: {check}"));
    }
    failure.hint(if failed.is_empty() {
        format!("decide each, then `pdca signoff {id} clear <n>…`, then accept again")
    } else {
        format!(
            "`pdca signoff {id} iterate-do --note \"…\"`; a red row is accepted only on the record: `pdca signoff {id} accept --override ROW --reason \"…\"`"
        )
    })
}

/// Explains why an acceptance was not taken back.
fn not_returned(error: &ReturnError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let failure = Failure::from_error(Exit::Usage, error).at(FilePosition::file(bundle.dir()));
    match error {
        ReturnError::NotAccepted { state, .. } => failure.hint(match state {
            State::AwaitingSignoff => {
                format!("`pdca signoff {id} iterate-do --note \"…\"` sends it back")
            }
            State::Unplanned
            | State::Resolved
            | State::Planned
            | State::Built
            | State::Checked
            | State::Complete
            | State::Iterate(_)
            | State::Discontinued => format!("`pdca why {id}` says where it stands"),
        }),
        ReturnError::Landed { .. } | ReturnError::Merged { .. } => failure.hint(format!(
            "what has landed is mended by another bundle: `pdca new {id}-follow-up --title \"…\"`"
        )),
        ReturnError::NoReason { .. } => {
            failure.hint(format!("`pdca signoff {id} iterate-do --note \"why\"`"))
        }
        ReturnError::TargetBranch(error) => unknown(error),
        ReturnError::Root(_)
        | ReturnError::Load(_)
        | ReturnError::Store(_)
        | ReturnError::Archive(_) => failure.hint(format!(
            "`pdca doctor` says more; the same command finishes it, or `pdca run {id}`"
        )),
    }
}
