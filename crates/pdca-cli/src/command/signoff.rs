//! `pdca signoff`: records a person's decision in §9, and ticks items of §6.

mod accept;
mod ask;
mod line;
#[cfg(test)]
mod tests;

use std::io::Write;

use pdca_state::{Bundle, BundleId, SignoffAction, Snapshot};
use pdca_workspace::review::{
    Checklist, Choice, DecideError, DecidedBatch, Decision, DecisionOutcome, Overridden, Signing,
    Ticks,
};

use crate::explain::decision::explain;
use crate::render::signoff::{DecisionsReport, remark, to_be_typed};
use crate::sitting::SittingRequest;
pub(super) use crate::sitting::{SignoffSignature, signer, with_signing};
pub(super) use line::ACTIONS;
use line::{Verb, Words};

use crate::context::Context;
use crate::failure::{Failure, FilePosition};
use crate::report::Response;

/// Record a decision about one bundle or many
///
/// `accept` is refused while §6 has an open item, while a gating check is red that `--override` does not name, if the
/// patch was edited after Check, or if the brief was and no `--note` says why it counts. `iterate-do` and `iterate-plan` archive the attempt and pass your note to the next one.
/// `discontinue` is possible in every unfinished state. All but `accept` need a note, and also take an acceptance back, as
/// long as the change has not landed; if others are based on it or its pull request is out, you are asked first. `clear` ticks items of §6 once you have decided them; you can also edit SUMMARY.md.
///
/// With several ids, every decision is checked before the first one is recorded: if one is refused, none is recorded.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "pdca signoff [OPTIONS] <ID>... <ACTION> [N]...",
    after_long_help = "\
Actions:
  accept         freeze it as done; `--clear` ticks the open items with it
  iterate-do     build it again from the same brief
  iterate-plan   plan it again
  discontinue    give it up
  clear          tick the items of §6 with these numbers, or `all`
  show           show §6 with its numbers, and change nothing
  ask            have the program of [leaves.signoff] propose a decision; you confirm it, or it waits as a draft

Examples:
  pdca signoff 36 show                                  # §6 with its numbers
  pdca signoff 36 clear 1 3 --note \"seen on staging\"
  pdca signoff 36 accept --by \"Ada\"
  pdca signoff 36 accept --publish                      # and what `pdca publish 36 --ready` does
  pdca signoff 12 15 20 accept --clear --note \"read all three\"
  pdca signoff 36 accept --override T3-tests --reason \"this machine has no browser\"
  pdca signoff 36 iterate-do --note \"the test passes without the fix\"
  pdca signoff 36 discontinue --note \"superseded by 41\"

Without any word, at a terminal, it is `pdca review`. The number of an item stays the same when others are cleared.
Who signs: --by, then [project] author or PDCA_AUTHOR, then $USER. Your text is recorded as it is.
The older spellings `--accept`, `--iterate-do`, `--iterate-plan` and `--delta` work too."
)]
pub(crate) struct Args {
    /// The bundles, then the action, then with `clear` the numbers of the items
    #[arg(value_name = "ID|ACTION")]
    words: Vec<std::ffi::OsString>,

    /// Name of the person who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// The reason, for the next attempt to read
    #[arg(long, visible_alias = "delta", value_name = "TEXT")]
    note: Option<String>,

    /// With `accept`: tick the open items of §6 first, all of them or those with these numbers
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "all")]
    clear: Option<Vec<String>>,

    /// With `accept`: a failed gating row to accept nevertheless; can be repeated
    #[arg(long = "override", value_name = "ROW", requires = "reason")]
    overridden: Vec<String>,

    /// The reason for `--override`; recorded in §9, in the seal and in the certificate
    #[arg(long, value_name = "TEXT", requires = "overridden")]
    reason: Option<String>,

    /// With `accept`: publish the change, mark its pull request as ready, and merge it where [publish] says so
    #[arg(long)]
    publish: bool,

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
    #[arg(long, hide = true)]
    accept: bool,
    #[arg(long, hide = true)]
    iterate_do: bool,
    #[arg(long, hide = true)]
    iterate_plan: bool,
    #[arg(long, hide = true)]
    discontinue: bool,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if args.is_bare() {
        let request = SittingRequest { ids: &[], by: args.by.as_deref() };
        return crate::sitting::review(request, cx, out, err);
    }
    let words = Words::parse(args)?;
    let bundles = cx.require_bundles(&words.ids)?;
    let is_accept = matches!(&words.verb, Verb::Decide(Choice::Accept { .. }));
    let follows = is_accept && !cx.workspace()?.config.signoff.on_accept.is_empty();
    if args.publish || follows {
        return accept::run(args, cx, &words.verb, &bundles, err);
    }
    match (words.verb, bundles.as_slice()) {
        (Verb::Show, [one]) => show(&one.load()?),
        (Verb::Ask, [one]) => ask::run(args, cx, one, err),
        (Verb::Show | Verb::Ask, _) => {
            Err(Failure::usage("it takes one bundle at a time").hint("`pdca signoff <id> show`"))
        }
        (Verb::Decide(choice), [one]) => {
            let note = reason(args.note.as_deref(), &choice, cx, err)?;
            let decision = decision(one.id(), choice, note.as_deref());
            decided(cx, &signed(args, cx, &decision)?, one, &decision, err)
        }
        (Verb::Decide(choice), many) => {
            let note = reason(args.note.as_deref(), &choice, cx, err)?;
            let decision = |one: &Bundle| decision(one.id(), choice.clone(), note.as_deref());
            let decisions: Vec<(Bundle, Decision)> =
                many.iter().map(|one| (one.clone(), decision(one))).collect();
            all_decided(args, cx, &decisions, err)
        }
    }
}

/// Shows open and cleared items.
fn show(snapshot: &Snapshot) -> Result<Response, Failure> {
    let id = &snapshot.id;
    Checklist::of(snapshot).map(Response::done).ok_or_else(|| {
        Failure::usage(format!("{id} has no summary yet"))
            .at(FilePosition::file(&*snapshot.dir))
            .hint(format!("`pdca run {id}` carries it to sign-off"))
    })
}

/// Returns the reason as typed, or asks for it where the choice needs one and a person is there.
pub(super) fn reason(
    typed: Option<&str>,
    choice: &Choice,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let is_needed = matches!(choice, Choice::IterateDo | Choice::IteratePlan | Choice::Discontinue);
    let has_one = typed.is_some_and(|note| !note.trim().is_empty());
    if has_one || !is_needed || !cx.may_ask() {
        return Ok(typed.map(str::to_owned));
    }
    let prompt = format!("{}: why? ", choice.word());
    Ok(Context::line_of(&prompt, err)?.filter(|line| !line.is_empty()))
}

/// Calls `decide`, and once more after the person confirmed that it concerns others, if it does.
pub(super) fn confirmed<T>(
    cx: &Context<'_>,
    signing: &Signing<'_>,
    bundle: &Bundle,
    err: &mut dyn Write,
    decide: impl Fn(&Signing<'_>) -> Result<T, DecideError>,
) -> Result<T, Failure> {
    match decide(signing) {
        Err(error @ DecideError::Unconfirmed { .. }) if cx.may_ask() => {
            cx.note(err, &error.to_string())?;
            if cx.confirm("Take the acceptance back all the same?", err)? {
                decide(&Signing { is_confirmed: true, ..*signing })
                    .map_err(|error| explain(error, bundle))
            } else {
                Err(explain(error, bundle))
            }
        }
        done => done.map_err(|error| explain(error, bundle)),
    }
}

fn decision(id: &BundleId, choice: Choice, note: Option<&str>) -> Decision {
    Decision { id: id.clone(), choice, note: note.map(str::to_owned) }
}

/// Returns the signature as typed. Ticking items needs no name.
fn signed(args: &Args, cx: &Context<'_>, decision: &Decision) -> Result<SignoffSignature, Failure> {
    let by = match decision.choice.action() {
        Some(_) => signer(args.by.as_deref(), cx)?,
        None => String::new(),
    };
    Ok(SignoffSignature { by, date: date(args, cx)? })
}

/// Records one decision and reports it.
fn decided(
    cx: &Context<'_>,
    signature: &SignoffSignature,
    bundle: &Bundle,
    decision: &Decision,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let outcome = with_signing(cx, signature, |signing| {
        confirmed(cx, signing, bundle, err, |signing| {
            pdca_workspace::review::decide(signing, bundle, decision)
        })
    })?;
    respond(cx, bundle, outcome, err)
}

/// Reports what came of a decision, after what follows an acceptance.
pub(super) fn respond(
    cx: &Context<'_>,
    bundle: &Bundle,
    outcome: DecisionOutcome,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let is_acceptance = outcome.is_acceptance();
    match outcome {
        DecisionOutcome::Cleared(cleared) => Ok(Response::done(cleared)),
        DecisionOutcome::Decided(decided) => {
            let decided = to_be_typed(cx, *decided);
            remark(cx, bundle, &decided, err)?;
            if is_acceptance {
                accept::respond(cx, bundle, decided, err)
            } else {
                Ok(Response::done(decided))
            }
        }
    }
}

/// Records decisions about several bundles, and says which were recorded.
fn all_decided(
    args: &Args,
    cx: &Context<'_>,
    decisions: &[(Bundle, Decision)],
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if decisions.is_empty() {
        return Err(Failure::usage("no bundle was named"));
    }
    let (report, failure) = record_all(args, cx, decisions, err)?;
    if failure.is_some() && report.batch.done.is_empty() {
        cx.note(err, "nothing was recorded")?;
    }
    Ok(Response::done(report).failed(failure))
}

/// Records decisions about several bundles. The failure is about those that were refused, beside which others may be
/// recorded.
fn record_all(
    args: &Args,
    cx: &Context<'_>,
    decisions: &[(Bundle, Decision)],
    err: &mut dyn Write,
) -> Result<(DecisionsReport, Option<Failure>), Failure> {
    let batch = match decisions.first() {
        None => {
            let dry_run = cx.globals.dry_run;
            DecidedBatch { dry_run, done: Vec::new(), failed: Vec::new() }
        }
        Some((_, first)) => with_signing(cx, &signed(args, cx, first)?, |signing| {
            Ok(pdca_workspace::review::decide_all(signing, decisions))
        })?,
    };
    let bundles: Vec<Bundle> = decisions.iter().map(|(bundle, _)| bundle.clone()).collect();
    DecisionsReport::of(batch, &bundles, cx, err)
}

impl Args {
    /// Returns whether nothing was asked for, so that a person at a terminal is shown what waits.
    fn is_bare(&self) -> bool {
        self.words.is_empty() && line::older(&self.older).is_none()
    }

    /// Returns the choice for an action, with the flags that go with it.
    fn choice(&self, action: SignoffAction) -> Result<Choice, Failure> {
        if action != SignoffAction::Accept && !self.overridden.is_empty() {
            return Err(Failure::usage(format!("{action} overrides nothing"))
                .hint("`--override ROW --reason TEXT` goes with `accept`"));
        }
        if action != SignoffAction::Accept && self.clear.is_some() {
            return Err(Failure::usage(format!("{action} ticks nothing"))
                .hint("`--clear` goes with `accept`; `pdca signoff <id> clear <n>…` ticks items by itself"));
        }
        let reason = self.reason.clone().unwrap_or_default();
        let overridden = (!self.overridden.is_empty())
            .then(|| Overridden { rows: self.overridden.clone(), reason });
        Ok(match action {
            SignoffAction::Accept => Choice::Accept {
                clear: self.clear.as_deref().map_or(Ok(Ticks::Nothing), line::ticks)?,
                overridden,
            },
            SignoffAction::IterateDo => Choice::IterateDo,
            SignoffAction::IteratePlan => Choice::IteratePlan,
            SignoffAction::Discontinue => Choice::Discontinue,
        })
    }
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
