//! Adds position and remedy to the errors of integrations, forecasts and verifications.

use camino::Utf8Path;
use pdca_integrate::VerifyError;
use pdca_workspace::integration::IntegrationError;

use super::integrate::{conflict, ending, failed, standing, unsealable};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

impl From<IntegrationError> for Failure {
    fn from(error: IntegrationError) -> Self {
        let usage = Failure::from_error(Exit::Usage, &error);
        match error {
            IntegrationError::Branches(error) => standing(&error),
            IntegrationError::NoCertificate { path } => usage.at(FilePosition::file(path)),
            IntegrationError::NoCertificates { dir } => {
                Failure::of(Exit::NothingToDo, usage.problems)
                    .at(FilePosition::file(dir))
                    .hint("`pdca integrate` writes one for each landing")
            }
            IntegrationError::NoTarget => usage.hint("name a repository: `--repo DIR`"),
            IntegrationError::Broken { path, source } => broken(&source, &path),
            IntegrationError::Git(error) => error.into(),
            IntegrationError::UnknownTarget { configured, .. } => {
                usage.hint(format!("configured: {}", configured.join(", ")))
            }
            IntegrationError::Integrate { branch, source } => failed(&source, &branch),
            IntegrationError::Seal { bundle, source } => unsealable(&source, &bundle),
            IntegrationError::End(error) => ending(&error),
            IntegrationError::Return(failed) => {
                let (bundle, error) = *failed;
                super::decision::explain(error, &bundle)
            }
            IntegrationError::Resolve(error) => conflict(&error),
            IntegrationError::NoResolver { place, .. } => {
                let usage = usage.hint("install it, or mend its `argv`");
                place.into_iter().fold(usage, Failure::at)
            }
            IntegrationError::NotAccepted { id } => {
                usage.hint(format!("`pdca why {id}` says where it stands"))
            }
            IntegrationError::ReadCertificate(_)
            | IntegrationError::Store(_)
            | IntegrationError::Drivers(_)
            | IntegrationError::TemporaryDirectory => usage,
        }
    }
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
