//! `pdca report`: what is asked for is rendered and written.

use std::io::Write;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Report, Response};
use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{BundleId, files};
use serde::Serialize;

use crate::batch_report::{annotations, html, junit, summary, trace};
use pdca_workspace::batch_report::{BundlePage, ReportGroup, WorkspaceReport, workspace_report};

/// What to write, and about what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReportRequest<'a> {
    /// The run or integration, or `latest`; everything if none is named.
    pub(crate) run: Option<&'a str>,
    pub(crate) html: Option<&'a Utf8Path>,
    pub(crate) trace: Option<&'a Utf8Path>,
    pub(crate) junit: Option<&'a Utf8Path>,
    /// Prints the Markdown summary.
    pub(crate) summary: bool,
    /// Prints annotations.
    pub(crate) annotations: bool,
}

/// What was written, and what it says in short.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Written {
    project: String,
    /// The run that it is limited to.
    run: Option<String>,
    files: Vec<WrittenFile>,
    bundles: Vec<ReportRow>,
    /// The Markdown, with `--summary`.
    summary: Option<String>,
    /// The annotations, with `--annotations`.
    annotations: Option<String>,
    /// Nothing was written.
    dry_run: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WrittenFile {
    format: WrittenFormat,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    path: Utf8PathBuf,
    bytes: usize,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum WrittenFormat {
    Html,
    Trace,
    Junit,
}

impl WrittenFormat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Trace => "trace",
            Self::Junit => "junit",
        }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportRow {
    id: BundleId,
    group: ReportGroup,
    why: String,
    next: Option<String>,
}

/// Writes what is asked for, or the page to `.pdca/report.html`.
pub(crate) fn write_report(
    request: &ReportRequest<'_>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let report = workspace_report(&cx.open()?, request.run)?;
    let mut files = Vec::new();
    for (format, path, render) in outputs(request, cx)? {
        let text = render(&report);
        if !cx.globals.dry_run {
            write(&path, &text)?;
        }
        files.push(WrittenFile { format, path, bytes: text.len() });
    }
    let row = |bundle: &BundlePage| ReportRow {
        id: bundle.id.clone(),
        group: bundle.group,
        why: bundle.why.to_string(),
        next: bundle.next.as_deref().map(|next| cx.typed(next)),
    };
    Ok(Response::done(Written {
        project: report.project.to_string(),
        run: report.run.clone(),
        files,
        bundles: report.bundles.iter().map(row).collect(),
        summary: request.summary.then(|| summary(&report)),
        annotations: request.annotations.then(|| annotations(&report)),
        dry_run: cx.globals.dry_run,
    }))
}

type Output = (WrittenFormat, Utf8PathBuf, fn(&WorkspaceReport) -> String);

/// Returns what to write; the page, if nothing is asked for.
fn outputs(request: &ReportRequest<'_>, cx: &Context<'_>) -> Result<Vec<Output>, Failure> {
    let at = |path: &Utf8Path| cx.env.cwd.join(path);
    let mut outputs: Vec<Output> = Vec::new();
    outputs.extend(request.html.map(|path| (WrittenFormat::Html, at(path), html as _)));
    outputs.extend(request.trace.map(|path| (WrittenFormat::Trace, at(path), trace as _)));
    outputs.extend(request.junit.map(|path| (WrittenFormat::Junit, at(path), junit as _)));
    if outputs.is_empty() && !request.summary && !request.annotations {
        let path = cx.workspace()?.root.join(".pdca").join("report.html");
        outputs.push((WrittenFormat::Html, path, html));
    }
    Ok(outputs)
}

fn write(path: &Utf8Path, text: &str) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        Failure::from_error(Exit::Usage, error)
            .at(FilePosition::file(path))
            .hint("name a file in a directory that exists and can be written")
    };
    if path.is_dir() {
        return Err(Failure::usage(format!("{path} is a directory"))
            .at(FilePosition::file(path))
            .hint("name a file"));
    }
    let is_private = path.parent().and_then(Utf8Path::file_name) == Some(".pdca");
    if is_private && let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent).map_err(|error| failed(&error))?;
    }
    // Not synced: a report that a crash loses can be made again.
    files::replace_unsynced(path, text.as_bytes()).map_err(|error| failed(&error))
}

impl Report for Written {
    const KIND: &'static str = "report";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let would = if self.dry_run { "would write" } else { "wrote" };
        for file in &self.files {
            let size = file.bytes.div_ceil(1024);
            // With a text on standard output, that alone is the data.
            if self.summary.is_none() && self.annotations.is_none() {
                let path = cx.out.accent(cx.show(&file.path));
                writeln!(out, "{would} {path} ({size} KiB, {})", file.format.as_str())?;
            }
        }
        for text in [&self.summary, &self.annotations].into_iter().flatten() {
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}
