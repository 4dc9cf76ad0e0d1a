//! Which accepted changes are published, and how far; and what came of it.

use std::time::Duration;

use pdca_driver::Driver;
use pdca_forge::publish::{PublishDryRun, PublishRequest, PublishSettings, PublishedBundle};
use pdca_state::{Artifact, Bundle, BundleId, LoadError};
use serde::Serialize;

use crate::config::Workspace;
use crate::publish::accept::AcceptSteps;
use crate::publish::{PublicationError, in_stack_order, predict_publication, publish_bundle};

/// The longest wait for another publication of the same bundle: a flow delivers what a person has just accepted.
const PATIENCE: Duration = Duration::from_secs(120);

/// The options of a publication.
#[derive(Debug, Clone, Copy, Default)]
pub struct PublishOptions {
    /// Marks the pull request as ready, and merges it where `[publish]` says so.
    pub ready: bool,
    /// Pushes commits below the change, too, that the remote lacks.
    pub include_base: bool,
}

/// The reason for a publication. Repeating the command behind it continues the publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicationCause {
    /// `pdca publish`, or an acceptance with `--publish`.
    Command,
    /// `[signoff] on_accept`, after an acceptance.
    Acceptance,
}

/// Bundles to publish, and how.
#[derive(Debug, Clone)]
pub struct PublicationRequest {
    /// The bundles, those that others are based on first.
    pub bundles: Vec<Bundle>,
    /// Bundles that were closed without a change, so that there is nothing to publish.
    pub unchanged: Vec<BundleId>,
    pub cause: PublicationCause,
    settings: PublishSettings,
    options: PublishOptions,
}

/// What publishing several bundles came to.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Publications {
    pub dry_run: bool,
    pub published: Vec<PublishedBundle>,
    /// The steps that a publication would carry out; only of a dry run.
    pub would: Vec<PublishDryRun>,
    /// The bundles that were not published, or not completely.
    #[serde(skip)]
    pub failed: Vec<FailedPublication>,
    #[serde(skip)]
    pub cause: PublicationCause,
}

/// A bundle that was not published, or not completely.
#[derive(Debug)]
pub struct FailedPublication {
    pub bundle: Bundle,
    pub error: PublicationError,
}

impl PublicationRequest {
    /// Asks for the publication of exactly these bundles.
    pub fn new(workspace: &Workspace, bundles: &[Bundle], options: PublishOptions) -> Self {
        Self {
            bundles: in_stack_order(bundles),
            unchanged: Vec::new(),
            cause: PublicationCause::Command,
            settings: workspace.config.publish.clone(),
            options,
        }
    }

    /// Asks for the publication of accepted bundles as far as `[publish]` goes: marked as ready, and merged where it says so.
    pub fn of_accepted(workspace: &Workspace, accepted: &[Bundle]) -> Result<Self, LoadError> {
        let (changed, unchanged) = by_change(accepted)?;
        let options = PublishOptions { ready: true, include_base: false };
        Ok(Self { unchanged, ..Self::new(workspace, &changed, options) })
    }

    /// Asks for what `[signoff] on_accept` names; `None` if nothing follows an acceptance.
    pub fn on_accept(
        workspace: &Workspace,
        accepted: &[Bundle],
    ) -> Result<Option<Self>, LoadError> {
        let Some(steps) = AcceptSteps::of(&workspace.config.signoff) else { return Ok(None) };
        let mut request = Self::of_accepted(workspace, accepted)?;
        request.cause = PublicationCause::Acceptance;
        request.options.ready = steps.ready;
        request.settings = steps.applied_to(&request.settings);
        Ok(Some(request))
    }
}

/// Separates the bundles that have a change from those that were closed without one.
fn by_change(bundles: &[Bundle]) -> Result<(Vec<Bundle>, Vec<BundleId>), LoadError> {
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for bundle in bundles {
        if bundle.load()?.artifacts.contains(Artifact::Patch) {
            changed.push(bundle.clone());
        } else {
            unchanged.push(bundle.id().clone());
        }
    }
    Ok((changed, unchanged))
}

/// Publishes the bundles of a request, or with `dry_run` looks what would be done. A failure is about one bundle alone; after
/// an interruption the remaining bundles are not tried.
pub fn publish(driver: &Driver<'_>, request: &PublicationRequest, dry_run: bool) -> Publications {
    let patience = match request.cause {
        PublicationCause::Command => Duration::ZERO,
        PublicationCause::Acceptance => PATIENCE,
    };
    let PublishOptions { ready, include_base } = request.options;
    let settings = &request.settings;
    let each = PublishRequest { settings, ready, include_base };
    let mut publications = Publications {
        dry_run,
        published: Vec::new(),
        would: Vec::new(),
        failed: Vec::new(),
        cause: request.cause,
    };
    for bundle in &request.bundles {
        let result = if dry_run {
            let predicted = predict_publication(driver, bundle, each);
            predicted.map(|predicted| publications.would.push(predicted))
        } else {
            let done = publish_bundle(driver, bundle, each, patience);
            done.map(|done| publications.published.push(done))
        };
        if let Err(error) = result {
            let is_interrupted = error.is_interruption();
            publications.failed.push(FailedPublication { bundle: bundle.clone(), error });
            if is_interrupted {
                break;
            }
        }
    }
    publications
}
