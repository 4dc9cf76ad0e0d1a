//! The record of a batch that one can open, show and keep.
//!
//! [`write_report`] is the operation behind `pdca report`. [`WorkspaceReport::load`] reads a workspace once; [`html`], [`trace`], [`junit`], [`summary`] and [`annotations`] render the
//! same value.
//!
//! ```
//! use pdca_report::Text;
//!
//! // Text of a model is harmless before it reaches any page.
//! let text = Text::new("\u{1b}[31m<script>alert(1)</script>\u{1b}[0m");
//! assert_eq!(text.as_str(), "<script>alert(1)</script>");
//! assert_eq!(maud::html! { (text) }.into_string(), "&lt;script&gt;alert(1)&lt;/script&gt;");
//! ```
//!
//! # Invariants
//! - Rendering is a pure function of the report; nothing is decided from it.
//! - Text from outside is a [`Text`]: no control character reaches a page, and each writer escapes what is markup to it.
//! - The page asks no network for anything, and its policy allows no script but its own.
//! - Texts have a budget, so that a page stays small; what is cut is said where it is cut.

mod bundle;
mod history;
mod html;
mod junit;
mod load;
mod markdown;
mod model;
mod text;
mod trace;
mod write;

pub use history::{RunHistory, RunKind, Span, SpanEnd, SpanKind, TimelineRow};
pub use html::html;
pub use junit::junit;
pub use load::{ReportError, ReportSource};
pub use markdown::{annotations, summary};
pub use model::{
    BundlePage, CardPart, CertificateView, DiffView, EvidenceView, GateView, PlanView, ReportGroup,
    WorkspaceReport,
};
pub use text::{Budget, Text};
pub use trace::trace;
pub use write::{ReportRequest, Written, write_report};
