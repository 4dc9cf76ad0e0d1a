//! What is known about issues: one in full, all in a list, and those that wait for a sign-off.
//!
//! Each page of the command line about bundles is a rendering of one of these values: `status` of [`WorkspaceStatus`],
//! `status <id>` of [`Issue`], `queue` of [`ReviewQueue`]. Nothing is changed by reading them.

mod cost;
mod detail;
mod queue;
mod row;
mod status;

pub use cost::IssueCosts;
pub use detail::{Issue, IssueField, OpenDecisions, PublishedIssue};
pub use queue::{QueuedIssue, ReviewQueue, review_queue};
pub use row::{IssueRow, ListedState, UnreadableIssue};
pub use status::{BranchStatus, IgnoredEntry, StatusRequest, WorkspaceStatus, workspace_status};
