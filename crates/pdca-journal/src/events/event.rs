//! The envelope: where and when a fact belongs.

use jiff::Timestamp;
use pdca_state::{BundleId, IdError};
use serde::{Deserialize, Serialize};

use crate::events::kind::EventKind;

/// The version of the stream. It changes only when a field is renamed or removed.
pub const SCHEMA: u32 = 1;

/// One fact, with its place in the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The version of the stream.
    pub schema: u32,
    /// The position in the run's stream, or in that of the command where there is no run. Only grows.
    pub seq: u64,
    /// The wall clock in UTC, to the millisecond. For people; nothing is ordered by it.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: Timestamp,
    /// The run or integration; absent for a command that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The part of the workspace that it is about.
    #[serde(flatten)]
    pub scope: Scope,
    /// The lane it happened in, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<u32>,
    /// The fact.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The part of a workspace that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ScopeFields", try_from = "ScopeFields")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "ScopeFields"))]
pub enum Scope {
    /// The workspace as a whole.
    Workspace,
    /// One bundle.
    Bundle(BundleId),
    /// The integration of accepted changes into a branch.
    Integration {
        /// The target repository.
        target: String,
        /// The branch.
        branch: String,
    },
    /// A branch by itself, gated before bundles are built on it.
    Base {
        /// The target repository.
        target: String,
        /// The branch.
        branch: String,
    },
}

// The `id` of events about no single bundle. `scope` tells them from a bundle that is called so.
const WORKSPACE: &str = "workspace+";
const INTEGRATION: &str = "integrate+";
const BASE: &str = "base+";

/// [`Scope`] as fields of the event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ScopeFields {
    scope: ScopeName,
    /// The bundle; `workspace+`, `integrate+` or `base+` where it is about no single one.
    id: String,
    /// The target repository of an integration or a base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The branch of an integration or a base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum ScopeName {
    Workspace,
    Bundle,
    Integration,
    Base,
}

impl From<Scope> for ScopeFields {
    fn from(scope: Scope) -> Self {
        let (scope, id, target, branch) = match scope {
            Scope::Workspace => (ScopeName::Workspace, WORKSPACE.to_owned(), None, None),
            Scope::Bundle(id) => (ScopeName::Bundle, id.as_str().to_owned(), None, None),
            Scope::Integration { target, branch } => {
                (ScopeName::Integration, INTEGRATION.to_owned(), Some(target), Some(branch))
            }
            Scope::Base { target, branch } => {
                (ScopeName::Base, BASE.to_owned(), Some(target), Some(branch))
            }
        };
        Self { scope, id, target, branch }
    }
}

impl TryFrom<ScopeFields> for Scope {
    type Error = IdError;

    fn try_from(fields: ScopeFields) -> Result<Self, Self::Error> {
        let (target, branch) =
            (fields.target.unwrap_or_default(), fields.branch.unwrap_or_default());
        Ok(match fields.scope {
            ScopeName::Workspace => Self::Workspace,
            ScopeName::Bundle => Self::Bundle(fields.id.parse()?),
            ScopeName::Integration => Self::Integration { target, branch },
            ScopeName::Base => Self::Base { target, branch },
        })
    }
}
