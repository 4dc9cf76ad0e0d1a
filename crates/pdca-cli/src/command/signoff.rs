//! `pdca signoff`: records a person's decision in §9, and ticks items of §6.

pub(super) mod back;
pub(super) mod checklist;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use pdca_driver::Effects;
use pdca_driver::integrate::{Hand, Sealing};
use pdca_events::WarningCode;
use pdca_leaves::{Proposal, Role};
use pdca_state::{
    Artifact, Bundle, BundleId, Coverage, Override, Reentry, SignoffAction, SignoffDecision,
    SignoffError, Snapshot, State, archive_plan, given_up, record, sha256_hex,
};
use serde::Serialize;

pub(super) use back::{ReturnedRow, return_culprits, take_back};

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::{Nothing, Report, Response};
use crate::session;

/// The time that a driver gets to release a bundle that became ready for sign-off.
const PATIENCE: Duration = Duration::from_secs(5);

/// Record a decision about a bundle
///
/// `accept` is refused while §6 has an open item, while a gating check is red that `--override` does not name, or if the
/// patch was edited after Check. `iterate-do` and `iterate-plan` archive the attempt and pass your note to the next one.
/// `discontinue` needs a note, and is possible in every unfinished state. All but `accept` also take an acceptance back, as
/// long as the change has not landed. `clear` ticks items of §6 once you have decided them; you can also edit SUMMARY.md.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca signoff 36 show                                  # §6 with its numbers
  pdca signoff 36 clear 1 3 --note \"seen on staging\"
  pdca signoff 36 accept --by \"Ada\"
  pdca signoff 36 accept --override T3-tests --reason \"this machine has no browser\"
  pdca signoff 36 iterate-do --note \"the test passes without the fix\"
  pdca signoff 36 discontinue --note \"superseded by 41\"

Who signs: --by, then [project] author or PDCA_AUTHOR, then $USER. Your text is recorded as it is.
The older spellings `--accept`, `--iterate-do`, `--iterate-plan` and `--delta` work too.")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,

    /// The decision
    #[arg(value_name = "ACTION", value_enum, required_unless_present_any = ["accept", "iterate_do", "iterate_plan", "discontinue"])]
    action: Option<Verb>,

    /// With `clear`: the numbers of the items, or `all`
    #[arg(value_name = "N")]
    items: Vec<String>,

    /// Name of the person who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// The reason, for the next attempt to read
    #[arg(long, visible_alias = "delta", value_name = "TEXT")]
    note: Option<String>,

    /// With `accept`: a failed gating row to accept nevertheless; can be repeated
    #[arg(long = "override", value_name = "ROW", requires = "reason")]
    overridden: Vec<String>,

    /// The reason for `--override`; recorded in §9, in the seal and in the certificate
    #[arg(long, value_name = "TEXT", requires = "overridden")]
    reason: Option<String>,

    /// The date to record, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,

    #[command(flatten)]
    older: Older,
}

/// The actions as older instances spell them.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that somebody's script still types"
)]
struct Older {
    #[arg(long, hide = true, conflicts_with = "action")]
    accept: bool,
    #[arg(long, hide = true, conflicts_with = "action")]
    iterate_do: bool,
    #[arg(long, hide = true, conflicts_with = "action")]
    iterate_plan: bool,
    #[arg(long, hide = true, conflicts_with = "action")]
    discontinue: bool,
}

/// What can be done at sign-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Verb {
    /// Freeze it as done
    Accept,
    /// Build it again from the same brief
    IterateDo,
    /// Plan it again
    IteratePlan,
    /// Discontinue it
    Discontinue,
    /// Discuss it with the program of `[leaves.signoff]`, and record your decision
    Ask,
    /// Tick items of §6
    Clear,
    /// Show §6 and change nothing
    Show,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let verb = match (args.action, &args.older) {
        (Some(verb), _) => verb,
        (None, Older { iterate_do: true, .. }) => Verb::IterateDo,
        (None, Older { iterate_plan: true, .. }) => Verb::IteratePlan,
        (None, Older { discontinue: true, .. }) => Verb::Discontinue,
        (None, Older { .. }) => Verb::Accept,
    };
    if verb != Verb::Clear && !args.items.is_empty() {
        return Err(
            Failure::usage("only `clear` takes numbers").hint("`pdca signoff <id> clear 1 2`")
        );
    }
    let bundle = cx.require_bundle(&args.id)?;
    // A driver that holds the bundle must not see it change.
    let _taken = match verb {
        Verb::Show => None,
        Verb::Accept
        | Verb::IterateDo
        | Verb::IteratePlan
        | Verb::Discontinue
        | Verb::Ask
        | Verb::Clear => Some(take(cx, &bundle)?),
    };
    let snapshot = bundle.load()?;
    let case = Case { args, cx, bundle: &bundle, snapshot: &snapshot };
    let mut typed = |action| case.decide(action, args.note.clone(), err);
    match verb {
        Verb::Show => checklist::show(&snapshot),
        Verb::Clear => checklist::clear(cx, &bundle, &snapshot, &args.items, args.note.as_deref()),
        Verb::Ask => case.ask(err),
        Verb::Accept => typed(SignoffAction::Accept),
        Verb::IterateDo => typed(SignoffAction::IterateDo),
        Verb::IteratePlan => typed(SignoffAction::IteratePlan),
        Verb::Discontinue => typed(SignoffAction::Discontinue),
    }
}

/// Takes the bundle, so that no other process writes it meanwhile.
pub(super) fn take(cx: &Context<'_>, bundle: &Bundle) -> Result<pdca_driver::Held, Failure> {
    let is_due = bundle.glance().is_ok_and(|seen| seen.state == State::AwaitingSignoff);
    let patience = if is_due { PATIENCE } else { Duration::ZERO };
    let taken = session::driver_config(cx)?.locks().take_within(bundle.id(), patience);
    taken.map_err(|error| session::refused(&error))
}

/// A decision, recorded or to be recorded.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Decided {
    dry_run: bool,
    id: BundleId,
    action: &'static str,
    outcome: &'static str,
    by: String,
    date: String,
    state: &'static str,
    archived: Option<String>,
    #[serde(skip)]
    painted_as: State,
}

impl Decided {
    fn of(cx: &Context<'_>, bundle: &Bundle, decision: &SignoffDecision, state: State) -> Self {
        Self {
            dry_run: cx.globals.dry_run,
            id: bundle.id().clone(),
            action: decision.action.as_str(),
            outcome: decision.action.outcome().as_str(),
            by: decision.by.clone(),
            date: decision.date.clone(),
            state: state.as_str(),
            archived: None,
            painted_as: state,
        }
    }

    /// Writes the decision, or that it would be recorded.
    fn line(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let Decided { id, outcome, by, date, .. } = self;
        if self.dry_run {
            writeln!(out, "would record {outcome} by {by} / {date} for {id}")?;
        } else {
            let state = super::status::paint(cx.out, Some(self.painted_as), self.state);
            writeln!(out, "{} is {state}", cx.out.strong(id))?;
        }
        Ok(())
    }
}

impl Report for Decided {
    const KIND: &'static str = "signoff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        self.line(cx, out)
    }
}

/// A bundle to decide about.
#[derive(Clone, Copy)]
struct Case<'a> {
    args: &'a Args,
    cx: &'a Context<'a>,
    bundle: &'a Bundle,
    snapshot: &'a Snapshot,
}

impl Case<'_> {
    /// Runs the sign-off leaf with the person, and records the resulting decision.
    ///
    /// The leaf cannot tick or sign anything: it leaves a proposal, which has to pass the same rules
    /// as a typed decision.
    fn ask(&self, err: &mut dyn Write) -> Result<Response, Failure> {
        let Case { args, cx, bundle, snapshot } = *self;
        require_awaiting(bundle, snapshot)?;
        session::require_leaf(cx, Role::Signoff)?;
        let site = session::driver_config(cx)?;
        let proposed =
            session::work(cx, &site, None, err, |driver| pdca_driver::propose(driver, bundle))?;
        let Some(proposed) = proposed.map_err(|error| session::explain(bundle, error))? else {
            let message = "no decision was made".to_owned();
            cx.note(err, &message)?;
            return Ok(Response::new(Nothing { message }, Exit::Waiting));
        };
        let proposal = Proposal::parse(&proposed).map_err(|error| {
            Failure::from_error(Exit::Usage, &error).hint(format!(
                "nothing was recorded; decide yourself with `pdca signoff {} …`",
                bundle.id()
            ))
        })?;
        let note = args.note.clone().or(proposal.note);
        self.decide(proposal.action, note, err)
    }

    /// Seals the reviewed commit. The decision is recorded only after that: after a crash between
    /// the two, accepting again finds the same seal.
    fn seal(
        &self,
        signed: &str,
        effects: &dyn Effects,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Case { cx, bundle, snapshot, .. } = *self;
        let site = session::driver_config(cx)?;
        let hand = Hand { summary: signed };
        let sealed = pdca_driver::integrate::seal(&site, bundle, snapshot, hand, effects)
            .map_err(|error| super::integrate::unsealable(&error, bundle))?;
        if let Sealing::Unknown { what } = sealed {
            let text = format!(
                "{} is accepted without a seal: its report does not say {what}; it cannot be integrated",
                bundle.id()
            );
            cx.warn(err, WarningCode::Unsealed, text)?;
        }
        Ok(())
    }

    /// Records a decision, and archives the attempt if it is sent back.
    fn decide(
        &self,
        action: SignoffAction,
        note: Option<String>,
        err: &mut dyn Write,
    ) -> Result<Response, Failure> {
        let Case { args, cx, bundle, snapshot } = *self;
        let is_taken_back = snapshot.state == State::Complete && action != SignoffAction::Accept;
        if is_taken_back {
            // Already decided, but the decision may change until the change has landed.
        } else if action == SignoffAction::Discontinue {
            require_unfinished(bundle, snapshot)?;
        } else {
            require_awaiting(bundle, snapshot)?;
        }
        let decision = SignoffDecision {
            action,
            by: signer(args.by.as_deref(), cx)?,
            date: date(args, cx)?,
            note,
            overrides: overrides(args, action)?,
        };
        if is_taken_back {
            return take_back(cx, bundle, &decision, err);
        }
        if action == SignoffAction::Accept {
            require_same_patch(bundle, snapshot)?;
        }
        let text = summary_text(bundle, snapshot)?;
        let signed = record(&text, snapshot.gates.as_ref(), &decision)
            .map_err(|error| refusal(&error, bundle, snapshot))?;
        if cx.globals.dry_run {
            return Ok(Response::done(Decided::of(cx, bundle, &decision, snapshot.state)));
        }
        let effects = crate::faults::effects(cx)?;
        let effects: &dyn Effects = effects.as_ref();
        if action == SignoffAction::Accept {
            self.seal(&signed, effects, err)?;
        }
        // Archived first, or the decision would go into the archive with the attempt.
        if let State::Iterate(reentry) = snapshot.state {
            archive(bundle, reentry, effects)?;
        }
        if snapshot.state != State::AwaitingSignoff {
            // An existing summary is about something else, and is kept.
            effects.perform("set-aside", || bundle.set_aside(Artifact::Summary))?;
        }
        effects.perform("sign-off", || bundle.publish(Artifact::Summary, signed.as_bytes()))?;
        // The decision is recorded now; an interrupted archive is finished by `pdca run`.
        let archived = match action {
            SignoffAction::Accept | SignoffAction::Discontinue => None,
            SignoffAction::IterateDo => Some(archive(bundle, Reentry::Do, effects)?),
            SignoffAction::IteratePlan => Some(archive(bundle, Reentry::Plan, effects)?),
        };
        let state = bundle.load()?.state;
        if action == SignoffAction::Discontinue {
            tell_dependants(cx, bundle, err)?;
        }
        if let Some(archived) = &archived {
            cx.note(err, &format!("the attempt is in {}", cx.show(&bundle.dir().join(archived))))?;
        }
        Ok(Response::done(Decided { archived, ..Decided::of(cx, bundle, &decision, state) }))
    }
}

fn require_awaiting(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), Failure> {
    let id = bundle.id();
    let what = format!("{id} is {}, so there is nothing to sign", snapshot.state);
    let (exit, hint) = match snapshot.state {
        State::AwaitingSignoff => return Ok(()),
        State::Complete => (
            Exit::Usage,
            format!(
                "`pdca why {id}` shows where it stands; `pdca reopen {id} --note \"…\"` takes it back until it has landed"
            ),
        ),
        State::Discontinued => {
            (Exit::Usage, format!("a decision is final; `pdca why {id}` shows it"))
        }
        State::Unplanned | State::Resolved => {
            (Exit::Usage, format!("`pdca why {id}` says what is missing"))
        }
        State::Planned | State::Built | State::Checked | State::Iterate(_) => {
            (Exit::Usage, format!("`pdca run {id}` carries it to sign-off"))
        }
    };
    Err(Failure::new(exit, what).at(Place::file(bundle.dir())).hint(hint))
}

/// Returns an error for a bundle with a final decision; any other can be discontinued.
fn require_unfinished(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), Failure> {
    match snapshot.state {
        State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => Ok(()),
        State::Resolved | State::Complete | State::Discontinued => {
            require_awaiting(bundle, snapshot)
        }
    }
}

/// Warns about bundles whose dependency can no longer be met.
fn tell_dependants(cx: &Context<'_>, bundle: &Bundle, err: &mut dyn Write) -> Result<(), Failure> {
    let overview = crate::session::snapshot(cx)?;
    let needs = |entry: &&pdca_snapshot::Entry| {
        entry.blocked_by.iter().any(|blocker| blocker.id == *bundle.id())
    };
    let ids: Vec<&str> =
        overview.entries.iter().filter(needs).map(|entry| entry.id.as_ref()).collect();
    if !ids.is_empty() {
        let text = format!(
            "{} waits for it in vain: change `Depends on` there, or give it up too",
            ids.join(", ")
        );
        cx.warn(err, WarningCode::DependencyGivenUp, text)?;
    }
    Ok(())
}

/// Returns the failed rows to accept nevertheless.
fn overrides(args: &Args, action: SignoffAction) -> Result<Vec<Override>, Failure> {
    if action != SignoffAction::Accept && !args.overridden.is_empty() {
        return Err(Failure::usage(format!("{action} overrides nothing"))
            .hint("`--override ROW --reason TEXT` goes with `accept`"));
    }
    let reason = args.reason.as_deref().unwrap_or("");
    let of = |row: &String| Override { row: row.clone(), reason: reason.to_owned() };
    Ok(args.overridden.iter().map(of).collect())
}

/// Returns who decides: as typed, as configured, or the user who is logged in.
pub(super) fn signer(by: Option<&str>, cx: &Context<'_>) -> Result<String, Failure> {
    let config = cx.workspace()?.config.project.author.as_deref();
    let user = cx.env.var_text("USER").or_else(|| cx.env.var_text("LOGNAME"));
    let by = by.or(config).or(user).map(str::trim).filter(|by| !by.is_empty());
    by.map(str::to_owned).ok_or_else(|| {
        Failure::usage("no sign-off author").hint("pass `--by NAME` or set `author` in [project]")
    })
}

fn date(args: &Args, cx: &Context<'_>) -> Result<String, Failure> {
    let Some(given) = &args.date else { return Ok(cx.env.today()) };
    match given.parse::<jiff::civil::Date>() {
        Ok(date) => Ok(date.to_string()),
        Err(_) => {
            Err(Failure::usage(format!("`{given}` is not a date")).hint("write it as 2026-11-16"))
        }
    }
}

/// Returns an error if the patch was edited after Check.
fn require_same_patch(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), Failure> {
    if snapshot.coverage()? != Coverage::Changed {
        return Ok(());
    }
    let checked =
        snapshot.gates.as_ref().and_then(|gates| gates.patch_digest.clone()).unwrap_or_default();
    let now = bundle
        .read(Artifact::Patch)?
        .map_or_else(|| "no patch at all".to_owned(), |patch| sha256_hex(&patch));
    Err(Failure::usage("patch edited after Check: what was gated is not what is there")
        .at(Place::file(bundle.path(Artifact::Patch)))
        .detail(format!("gated: {}", checked.trim_start_matches("sha256:")))
        .detail(format!("now:   {now}"))
        .hint(format!(
            "put the gated patch back, or `pdca signoff {} iterate-do --note \"…\"` to build and check again",
            bundle.id()
        )))
}

/// Returns the summary to sign; a bundle that is discontinued before it has one gets one that claims nothing.
fn summary_text(bundle: &Bundle, snapshot: &Snapshot) -> Result<String, Failure> {
    let is_of_attempt = matches!(snapshot.state, State::AwaitingSignoff | State::Complete);
    let bytes = bundle.read(Artifact::Summary)?.filter(|_| is_of_attempt);
    let Some(bytes) = bytes else {
        return Ok(given_up(bundle.id(), snapshot.authored_brief(), snapshot.state));
    };
    // `load` has read it as text, so it must have been edited in between.
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage("the summary is not UTF-8")
            .at(Place::file(bundle.path(Artifact::Summary)))
            .hint("save it as UTF-8")
    })
}

fn archive(bundle: &Bundle, reentry: Reentry, effects: &dyn Effects) -> Result<String, Failure> {
    let plan = archive_plan(bundle, reentry)?;
    for step in &plan.steps {
        effects.perform(step.name(), || step.apply())?;
    }
    Ok(format!("iteration-v{}", plan.number))
}

fn refusal(error: &SignoffError, bundle: &Bundle, snapshot: &Snapshot) -> Failure {
    let id = bundle.id();
    let failure =
        Failure::from_error(Exit::Usage, error).at(Place::file(bundle.path(Artifact::Summary)));
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
        SignoffError::NoteRequired { .. } => failure.hint("add `--note \"why\"`"),
        SignoffError::NoNeedsHuman => failure.hint(format!(
            "a summary without §6 cannot be accepted; `pdca signoff {id} iterate-do`"
        )),
        SignoffError::NoGateReport => failure.hint(format!("`pdca gates {id}` checks it again")),
        SignoffError::NotAcceptable { failed, .. } => {
            let mut failure = Failure::usage(format!("{id} cannot be accepted yet"))
                .at(Place::file(bundle.path(Artifact::Summary)));
            let open = snapshot.summary.as_ref().map(super::queue::open_texts).unwrap_or_default();
            for (index, item) in open.iter().enumerate() {
                failure = failure.detail(format!("open in §6: {} {item}", index + 1));
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
    }
}
