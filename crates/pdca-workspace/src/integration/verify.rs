//! Re-verifies landing certificates.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::WorkspaceConfig;
use pdca_integrate::{Certificate, Drivers, MergeEngine, Store, Verified, VerifyError};
use pdca_state::files;
use serde::Serialize;

use super::IntegrationError;
use crate::config::Workspace;
use crate::{OpenWorkspace, OperationError};

/// The largest certificate that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// A certificate that holds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub certificate: Utf8PathBuf,
    pub holds: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub repository: Utf8PathBuf,
    pub base: String,
    pub commit: String,
    pub tree: String,
    pub reference: String,
    pub bundles: Vec<String>,
    pub git_version: String,
    /// The configured gates are exactly those of the certificate; null outside a workspace.
    pub same_gates: Option<bool>,
    /// Rows that were red and did not count.
    pub quarantined: Vec<String>,
}

/// Folds the changes of a certificate again, in the repository of the target that has them, and compares every id. The
/// certificate is the newest one if none is named. One that does not hold is an error, which names the place.
pub fn verify(
    open: &OpenWorkspace<'_>,
    certificate: Option<&Utf8Path>,
) -> Result<Verification, OperationError> {
    let path = match certificate {
        Some(path) => path.to_owned(),
        None => newest_certificate(open.workspace)?,
    };
    let text = read(&path)?;
    let config = open.driver_config()?;
    let (repository, verified) = among_targets(open.workspace, &config, &text)?;
    let verified =
        verified.map_err(|source| IntegrationError::Broken { path: path.clone(), source })?;
    let same_gates = config.gates().id() == verified.certificate.verdict.key.oracle;
    Ok(Verification::of(path, repository, verified, Some(same_gates)))
}

/// Like [`verify`], in any repository that has the objects, with or without a workspace.
pub fn verify_in(
    repository: &Utf8Path,
    certificate: &Utf8Path,
    workspace: Option<&Workspace>,
) -> Result<Verification, OperationError> {
    let text = read(certificate)?;
    // The repository may be outside of any workspace: nothing may be left beside it.
    let room = tempfile::tempdir()?;
    let room = Utf8Path::from_path(room.path()).ok_or(IntegrationError::TemporaryDirectory)?;
    let store = Store::open(repository, &room.join("git")).map_err(IntegrationError::from)?;
    let mut engine = MergeEngine::new(&store, drivers_of(workspace, &text));
    let verified = pdca_integrate::verify(&mut engine, &text)
        .map_err(|source| IntegrationError::Broken { path: certificate.to_owned(), source })?;
    Ok(Verification::of(certificate.to_owned(), repository.to_owned(), verified, None))
}

/// Returns the newest certificate of a workspace; their names sort by time.
pub fn newest_certificate(workspace: &Workspace) -> Result<Utf8PathBuf, OperationError> {
    let dir = workspace.process_dir.join("certificates");
    let none = || IntegrationError::NoCertificates { dir: dir.clone() };
    let entries = match dir.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(none().into()),
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
    Ok(found.into_iter().max().map(|(_, _, path)| path).ok_or_else(none)?)
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, IntegrationError> {
    files::read_bounded(path, LARGEST)
        .map_err(IntegrationError::ReadCertificate)?
        .ok_or_else(|| IntegrationError::NoCertificate { path: path.to_owned() })
}

/// Returns the merge drivers of the workspace, if the certificate is about exactly these. The repository need not be one
/// of this workspace, and there need not be a workspace; then there are none.
fn drivers_of(workspace: Option<&Workspace>, text: &[u8]) -> Drivers {
    // A certificate has only a digest of its drivers: what it names is never run.
    let named = Certificate::parse(text).ok().map(|certificate| certificate.verdict.key.drivers);
    let configured = workspace.and_then(|workspace| workspace.config.integrate.drivers().ok());
    configured.filter(|drivers| named == Some(drivers.digest())).unwrap_or_default()
}

/// Tries each target of the workspace; the first that has the objects answers.
fn among_targets(
    workspace: &Workspace,
    config: &WorkspaceConfig,
    text: &[u8],
) -> Result<(Utf8PathBuf, Result<Verified, VerifyError>), IntegrationError> {
    let mut answer = None;
    for target in &config.targets {
        let store = config.store(target)?;
        let drivers = workspace.config.integrate.drivers()?;
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
    answer.ok_or(IntegrationError::NoTarget)
}

impl Verification {
    fn of(
        path: Utf8PathBuf,
        repository: Utf8PathBuf,
        verified: Verified,
        same_gates: Option<bool>,
    ) -> Self {
        let Verified { certificate, git_version } = verified;
        Self {
            certificate: path,
            holds: true,
            repository,
            base: certificate.base.to_string(),
            commit: certificate.commit.to_string(),
            tree: certificate.tree.to_string(),
            bundles: certificate.results.iter().map(|result| result.id.to_string()).collect(),
            reference: certificate.reference,
            git_version,
            same_gates,
            quarantined: certificate.verdict.quarantined,
        }
    }
}
