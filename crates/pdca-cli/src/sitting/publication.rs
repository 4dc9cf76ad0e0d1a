//! Publishes accepted changes with a driver, and shows progress and failures.
//!
//! [`publish_accepted`] follows each recorded acceptance, wherever a person or a rule made it: `signoff`, `signoff ask`,
//! `review`, the board, `flow`. `pdca signoff <id> accept` continues one that failed.

use std::io::Write;

use camino::Utf8Path;
use pdca_state::Bundle;
use pdca_workspace::publish::PublicationRequest;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::publish::PublishReport;
use crate::session;

/// Publishes the bundles of a request. Failures are printed on `err` and are part of the report.
pub(crate) fn publish(
    request: &PublicationRequest,
    events: Option<&Utf8Path>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<PublishReport, Failure> {
    for id in &request.unchanged {
        cx.note(err, &format!("{id} was closed without a change: nothing is published"))?;
    }
    let config = session::driver_config(cx)?;
    let dry_run = cx.globals.dry_run;
    let publication = session::work(cx, &config, events, err, |driver| {
        pdca_workspace::publish::publish(driver, request, dry_run)
    })?;
    let report = PublishReport::of(publication);
    for failure in report.failures() {
        failure.render(cx.err, &cx.env.cwd, err)?;
    }
    Ok(report)
}

/// Carries out `[signoff] on_accept` for accepted bundles; `None` if nothing follows an acceptance.
pub(crate) fn publish_accepted(
    accepted: &[Bundle],
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Option<PublishReport>, Failure> {
    let request = PublicationRequest::on_accept(cx.workspace()?, accepted)?;
    request.map(|request| publish(&request, None, cx, err)).transpose()
}
