//! `pdca verify`: re-verifies landing certificates.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{Certificate, Drivers, MergeEngine, Store, Verified, VerifyError};
use pdca_state::files;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Report, Response};
use crate::session;

/// The largest certificate that is read, in bytes.
const LARGEST: u64 = 64 << 20;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    certificate: &'a str,
    holds: bool,
    repository: &'a str,
    base: String,
    commit: String,
    tree: String,
    reference: &'a str,
    bundles: Vec<&'a str>,
    git_version: &'a str,
    /// The configured gates are exactly those of the certificate; null outside a workspace.
    same_gates: Option<bool>,
    /// Rows that were red and did not count.
    quarantined: &'a [String],
}

/// Folds the changes of a certificate again and compares every id.
///
/// The certificate is the newest one if none is named; the repository is that of the workspace unless `repo` is given.
///
/// # Errors
/// When the certificate does not hold, or cannot be read; the failure names the place.
pub(crate) fn verify(
    certificate: Option<&Utf8Path>,
    repo: Option<&Utf8Path>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let path = match certificate {
        Some(path) => cx.env.cwd.join(path),
        None => newest(&cx.workspace()?.process_dir.join("certificates"))?,
    };
    let text = files::read_bounded(&path, LARGEST)
        .map_err(|error| Failure::from_error(Exit::Usage, &error))?
        .ok_or_else(|| Failure::usage(format!("{path} not found")).at(FilePosition::file(&path)))?;
    let (repository, verified) = match repo {
        Some(repo) => {
            // A repository outside of a workspace: nothing may be left beside it.
            let room = tempfile::tempdir()?;
            let room = Utf8Path::from_path(room.path())
                .ok_or_else(|| Failure::usage("the temporary directory is not UTF-8"))?;
            let repo = cx.env.cwd.join(repo);
            let store = Store::open(&repo, &room.join("git"))
                .map_err(|error| Failure::from_error(Exit::Usage, &error))?;
            let mut engine = MergeEngine::new(&store, drivers_of(cx, &text));
            (repo, pdca_integrate::verify(&mut engine, &text))
        }
        None => among_targets(cx, &text)?,
    };
    let verified = verified.map_err(|error| broken(&error, &path))?;
    let same_gates = match repo {
        Some(_) => None,
        None => Some(
            session::driver_config(cx)?.gates().id() == verified.certificate.verdict.key.oracle,
        ),
    };
    Ok(Response::done(Verification { path, repository, verified, same_gates }))
}

/// Returns the merge drivers of the workspace, if the certificate is about exactly these. The repository need not be one
/// of this workspace, and there need not be a workspace; then there are none.
fn drivers_of(cx: &Context<'_>, text: &[u8]) -> Drivers {
    // A certificate has only a digest of its drivers: what it names is never run.
    let named = Certificate::parse(text).ok().map(|certificate| certificate.verdict.key.drivers);
    let configured = cx.workspace().ok();
    let configured = configured.and_then(|workspace| workspace.config.integrate.drivers().ok());
    configured.filter(|drivers| named == Some(drivers.digest())).unwrap_or_default()
}

/// Tries each target of the workspace; the first that has the objects answers.
fn among_targets(
    cx: &Context<'_>,
    text: &[u8],
) -> Result<(Utf8PathBuf, Result<Verified, VerifyError>), Failure> {
    let site = session::driver_config(cx)?;
    let settings = &cx.workspace()?.config.integrate;
    let mut answer = None;
    for target in &site.targets {
        let store = site.store(target).map_err(|error| Failure::from_error(Exit::Usage, &error))?;
        let drivers =
            settings.drivers().map_err(|error| Failure::from_error(Exit::Usage, &error))?;
        let verified = pdca_integrate::verify(&mut MergeEngine::new(&store, drivers), text);
        // The commits of a seal are missing in the repository of another target. Any other failure is about
        // this certificate.
        let is_foreign = matches!(verified, Err(VerifyError::Seal { .. }));
        if !is_foreign || answer.is_none() {
            answer = Some((target.path.clone(), verified));
        }
        if !is_foreign {
            break;
        }
    }
    answer.ok_or_else(|| {
        Failure::usage("no target is configured").hint("name a repository: `--repo DIR`")
    })
}

/// Returns the newest certificate; their names sort by time.
fn newest(dir: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let none = || {
        Failure::new(Exit::NothingToDo, "there is no certificate yet")
            .at(FilePosition::file(dir))
            .hint("`pdca integrate` writes one for each landing")
    };
    let entries = match dir.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(none()),
        Err(error) => return Err(error.into()),
    };
    let mut found: Vec<(String, u64, Utf8PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry?.into_path();
        let Some(name) = path.file_name().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        // The name of a run has no `-`. As numbers, so that the tenth landing of a run comes after the second.
        let (run, number) = name.split_once('-').unwrap_or((name, "1"));
        found.push((run.to_owned(), number.parse().unwrap_or(0), path.clone()));
    }
    found.into_iter().max().map(|(_, _, path)| path).ok_or_else(none)
}

fn broken(error: &VerifyError, path: &Utf8Path) -> Failure {
    let place = match error {
        VerifyError::Unreadable { line, .. } | VerifyError::Bytes { line, .. } => {
            FilePosition::line(path, *line)
        }
        VerifyError::Changed { .. }
        | VerifyError::Wrong { .. }
        | VerifyError::Seal { .. }
        | VerifyError::Order(_)
        | VerifyError::Fold(_) => FilePosition::file(path),
    };
    let failure = Failure::from_error(Exit::Unexpected, error).at(place);
    match error {
        VerifyError::Seal { .. } => failure.hint(
            "is it the repository that has the objects? `git fetch <remote> '+refs/pdca/*:refs/pdca/*'`",
        ),
        VerifyError::Unreadable { .. }
        | VerifyError::Bytes { .. }
        | VerifyError::Changed { .. }
        | VerifyError::Wrong { .. }
        | VerifyError::Order(_)
        | VerifyError::Fold(_) => failure.hint("this certificate proves nothing"),
    }
}

#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Document<'static>"))]
/// A certificate that holds.
pub(crate) struct Verification {
    path: Utf8PathBuf,
    repository: Utf8PathBuf,
    verified: Verified,
    same_gates: Option<bool>,
}

impl Verification {
    fn ids(&self) -> Vec<&str> {
        self.verified.certificate.results.iter().map(|result| result.id.as_str()).collect()
    }
}

impl Serialize for Verification {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let certificate = &self.verified.certificate;
        let document = Document {
            certificate: self.path.as_str(),
            holds: true,
            repository: self.repository.as_str(),
            base: certificate.base.to_string(),
            commit: certificate.commit.to_string(),
            tree: certificate.tree.to_string(),
            reference: &certificate.reference,
            bundles: self.ids(),
            git_version: &self.verified.git_version,
            same_gates: self.same_gates,
            quarantined: &certificate.verdict.quarantined,
        };
        document.serialize(serializer)
    }
}

impl Report for Verification {
    const KIND: &'static str = "verify";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let certificate = &self.verified.certificate;
        let p = cx.out;
        let short = |id: pdca_integrate::ObjectId| id.to_hex_with_len(12).to_string();
        let (base, commit) = (short(certificate.base), short(certificate.commit));
        writeln!(out, "{}  {}", p.good("holds"), cx.show(&self.path))?;
        writeln!(out, "  {} onto {base} make {commit}, bit for bit", self.ids().join(" + "))?;
        writeln!(out, "  tree {} was gated green", short(certificate.tree))?;
        if !certificate.verdict.quarantined.is_empty() {
            let rows = certificate.verdict.quarantined.join(", ");
            writeln!(out, "  {} {rows} was red and in quarantine", p.warn("without:"))?;
        }
        if self.same_gates == Some(false) {
            let text = "by other gates than those that are configured now";
            writeln!(out, "  {} {text}; `pdca gates --working-tree` asks those", p.warn("gated"))?;
        }
        writeln!(out, "{}", p.faint(format_args!("  {}", self.verified.git_version)))?;
        Ok(())
    }
}
