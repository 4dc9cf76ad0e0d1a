//! `pdca verify`: re-verifies landing certificates.

use camino::Utf8PathBuf;
use pdca_workspace::integration::{newest_certificate, verify, verify_in};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Re-verify landing certificates against the repository
///
/// The changes are read from the repository and folded again with git, and every id is compared. Nothing in the
/// certificate is trusted. Any repository that has the objects will do: a clone on another machine, for example, with
/// the refs below refs/pdca/ fetched.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca verify                                     # the newest certificate
  pdca verify process/certificates/01J….json
  pdca verify cert.json --repo /srv/clone         # in another clone, without a workspace

Exit code 0 where it holds, 1 where it does not; then the place is named.")]
pub(crate) struct Args {
    /// The certificate; the newest one if none is named
    #[arg(value_name = "CERTIFICATE", value_hint = clap::ValueHint::FilePath)]
    certificate: Option<Utf8PathBuf>,

    /// The repository to verify against, instead of the workspace's targets
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    repo: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let certificate = args.certificate.as_ref().map(|path| cx.env.cwd.join(path));
    let Some(repository) = &args.repo else {
        return Ok(Response::done(verify(&cx.open()?, certificate.as_deref())?));
    };
    let certificate = match certificate {
        Some(path) => path,
        None => newest_certificate(cx.workspace()?)?,
    };
    let repository = cx.env.cwd.join(repository);
    Ok(Response::done(verify_in(&repository, &certificate, cx.workspace().ok())?))
}
