//! The JSON Schema of each document that `--json` prints.

use schemars::{JsonSchema, Schema};

use super::{demo, flow, gates, guard, run, why};
use crate::json::{Empty, schema_of};
use crate::report::{Nothing, Report, TextPage};

/// Returns the schema of each kind of document, by kind.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("error", schema_of::<Empty>("error")),
        one::<Nothing>(),
        one::<TextPage>(),
        one::<pdca_workspace::recovery::AbortedRun>(),
        one::<pdca_workspace::act::BaselineDiff>(),
        one::<pdca_act::Index>(),
        one::<pdca_workspace::act::ActEntry>(),
        one::<pdca_workspace::act::WatchedSignals>(),
        one::<pdca_workspace::act::ReviewedEntry>(),
        one::<crate::render::cleanup::CleanupReport>(),
        one::<crate::render::config::ConfigReport>(),
        one::<pdca_workspace::config::TrustedFile>(),
        one::<crate::render::config::MigrateReport>(),
        one::<demo::DemoReport>(),
        one::<crate::render::doctor::Examination>(),
        one::<flow::output::FlowDocument>(),
        one::<flow::output::FlowDryRun>(),
        one::<pdca_workspace::integration::ForecastReport>(),
        one::<gates::GatesReport>(),
        one::<guard::Judgement>(),
        one::<crate::render::hosts::HostsReport>(),
        one::<crate::render::init::InitReport>(),
        either::<pdca_workspace::integration::Integration, pdca_workspace::integration::StatsReport>(
        ),
        one::<crate::render::lanes::LaneFindings>(),
        one::<crate::render::lanes::LaneEnvReport>(),
        one::<pdca_workspace::lanes::LaneList>(),
        one::<pdca_workspace::lanes::ProvisionedLanes>(),
        one::<pdca_workspace::lanes::LaneRemovals>(),
        one::<pdca_workspace::lanes::LaneResets>(),
        one::<crate::render::log::LogReport>(),
        one::<pdca_workspace::drafts::NewBundle>(),
        one::<crate::render::plan::PlanDocument>(),
        one::<crate::render::publish::PublishReport>(),
        one::<pdca_workspace::issue::ReviewQueue>(),
        one::<crate::render::recovery::RecoveryReport>(),
        one::<crate::render::replay::ReplayReport>(),
        one::<crate::batch_report::write::Written>(),
        one::<pdca_workspace::integration::ResolveReport>(),
        one::<run::RunDryRun>(),
        one::<run::RunReport>(),
        one::<pdca_workspace::drafts::Selection>(),
        one::<pdca_workspace::review::Card>(),
        one::<crate::render::change::ChangeReport>(),
        one::<crate::sitting::review::SittingReport>(),
        one::<crate::render::signoff::AcceptReport>(),
        one::<crate::render::signoff::ProposalReport>(),
        one::<pdca_workspace::review::Decided>(),
        one::<crate::render::signoff::DecisionsReport>(),
        one::<pdca_workspace::review::Checklist>(),
        one::<pdca_workspace::review::Cleared>(),
        one::<pdca_workspace::planning::SplitReport>(),
        one::<crate::render::status::StatusReport>(),
        one::<pdca_workspace::issue::Issue>(),
        one::<pdca_workspace::lanes::Sweep>(),
        one::<pdca_workspace::recovery::UnblockedRun>(),
        one::<pdca_workspace::integration::Verification>(),
        one::<why::WhyReport>(),
        one::<pdca_workspace::planning::Widened>(),
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
