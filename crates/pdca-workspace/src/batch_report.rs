//! The record of a batch as a value: bundles, runs and integrations, certificates, the plan.
//!
//! [`workspace_report`] reads a workspace once; the writers of pages and files render the value and read nothing.
//!
//! # Invariants
//! - Nothing is decided from a report.
//! - Text from outside is a [`Text`]: no control character reaches a page.
//! - Texts have a budget, so that a page stays small; a cut text says so where it is cut.

mod bundle;
mod history;
mod load;
mod model;
mod text;

pub use history::{RunHistory, RunKind, Span, SpanEnd, SpanKind, TimelineRow};
pub use load::{ReportError, workspace_report};
pub use model::{
    BundlePage, CardPart, CertificateView, DiffView, EvidenceView, GateView, PlanView, ReportGroup,
    WorkspaceReport,
};
pub use text::{Budget, Text};
