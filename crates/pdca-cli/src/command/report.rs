//! `pdca report`: the record of a batch, for people and for CI.

#[cfg(test)]
mod tests;

use crate::batch_report::{ReportRequest, write_report};
use camino::Utf8PathBuf;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Write the record of a batch: one HTML file, a trace, `JUnit`, a summary
///
/// The HTML file stands alone: it asks nothing of a network and opens by a double click. What failed and what needs a
/// person comes first, then each bundle with its evidence, the integration, the certificates, the plan and the
/// timeline. Without an option it is written to .pdca/report.html.
///
/// Exit codes: 0 written, 2 the run is not known or a file cannot be written.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pdca report                                   # .pdca/report.html, about everything
  pdca report --run latest --html batch.html    # about the last run or integration alone
  pdca report --trace trace.json                # opens in https://ui.perfetto.dev or chrome://tracing
  pdca report --junit report.xml --annotations  # in CI: a test report, and red gates beside the change
  pdca report --summary >> \"$GITHUB_STEP_SUMMARY\"")]
pub(crate) struct Args {
    /// Only the bundles and events of this run or integration, or of `latest`
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// Write one self-contained HTML file
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    html: Option<Utf8PathBuf>,

    /// Write Chrome trace events: lanes, bundles, steps, gates over time
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    trace: Option<Utf8PathBuf>,

    /// Write a `JUnit` file: a suite for each bundle, a case for each gate
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    junit: Option<Utf8PathBuf>,

    /// Print a Markdown summary
    #[arg(long, conflicts_with = "annotations")]
    summary: bool,

    /// Print red gates as annotations of GitHub Actions
    #[arg(long)]
    annotations: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let request = ReportRequest {
        run: args.run.as_deref(),
        html: args.html.as_deref(),
        trace: args.trace.as_deref(),
        junit: args.junit.as_deref(),
        summary: args.summary,
        annotations: args.annotations,
    };
    write_report(&request, cx)
}
