//! The JSON Schema of each document that `--json` prints.

use schemars::{JsonSchema, Schema};

use super::{
    abort, act, cleanup, config_show, demo, doctor, forecast, gates, guard, init, integrate, lanes,
    log, new, plan, publish, queue, recover, replay, resolve, run, select, signoff, status, sweep,
    unblock, verify, why, widen,
};
use crate::json::{Empty, schema_of};
use crate::report::{Nothing, Page, Report};

/// Returns the schema of each kind of document, by kind.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("error", schema_of::<Empty>("error")),
        one::<Nothing>(),
        one::<Page>(),
        one::<abort::AbortReport>(),
        one::<act::diff::BaselineDiff>(),
        one::<act::index::ActIndex>(),
        one::<act::log::LogEntry>(),
        one::<act::resolve::WatchedSignals>(),
        one::<act::review::Reviewed>(),
        one::<cleanup::CleanupReport>(),
        one::<config_show::ConfigReport>(),
        one::<config_show::Trusted>(),
        one::<demo::DemoReport>(),
        one::<doctor::Examination>(),
        one::<forecast::Forecast>(),
        one::<gates::Gated>(),
        one::<guard::Judgement>(),
        one::<init::InitReport>(),
        either::<integrate::output::IntegrateReport, integrate::stats::StatsReport>(),
        one::<lanes::doctor::Findings>(),
        one::<lanes::env::LaneEnv>(),
        one::<lanes::list::LaneList>(),
        one::<lanes::provision::ProvisionReport>(),
        one::<lanes::remove::Removal>(),
        one::<lanes::reset::ResetReport>(),
        one::<log::LogReport>(),
        one::<new::NewReport>(),
        one::<plan::PlanReport>(),
        one::<publish::output::PublishReport>(),
        one::<queue::Queue>(),
        one::<recover::RecoverReport>(),
        one::<replay::ReplayReport>(),
        one::<resolve::output::ResolveReport>(),
        one::<run::DryRun>(),
        one::<run::RunReport>(),
        one::<select::output::SelectReport>(),
        either::<signoff::Decided, signoff::back::TakenBack>(),
        one::<signoff::checklist::Checklist>(),
        one::<signoff::checklist::ClearReport>(),
        one::<status::StatusReport>(),
        one::<status::detail::BundleReport>(),
        one::<sweep::SweepReport>(),
        one::<unblock::UnblockReport>(),
        one::<verify::Verification>(),
        one::<why::Explanation>(),
        one::<widen::Widened>(),
    ]
}

fn one<T: Report + JsonSchema + 'static>() -> (&'static str, Schema) {
    (T::KIND, schema_of::<T>(T::KIND))
}

/// Two reports of one kind.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is of use")]
enum Either<A, B> {
    First(A),
    Second(B),
}

fn either<A, B>() -> (&'static str, Schema)
where
    A: Report + JsonSchema + 'static,
    B: Report + JsonSchema + 'static,
{
    assert_eq!(A::KIND, B::KIND, "two reports of one kind");
    (A::KIND, schema_of::<Either<A, B>>(A::KIND))
}
