//! Converts library errors, adding remedy and exit code.

use pdca_act::RecordsError;
use pdca_process::{GitError, OLDEST_GIT};
use pdca_state::files::FileReadError;
use pdca_state::{ArchiveError, CreateError, IdError, LoadError, RootError, WriteError};
use pdca_workspace::config::ConfigError;
use pdca_workspace::config::scaffold::ScaffoldError;

use super::{Failure, FilePosition};
use crate::exit::Exit;

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::of(Exit::Usage, error.problems)
    }
}

impl From<ScaffoldError> for Failure {
    fn from(error: ScaffoldError) -> Self {
        match error {
            ScaffoldError::Config(error) => error.into(),
            ScaffoldError::Read(error) => error.into(),
            ScaffoldError::Write { path, source } => Failure::from_error(Exit::Unexpected, &source)
                .at(FilePosition::file(path))
                .hint("make the directory writable"),
        }
    }
}

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Failure::from_error(Exit::Usage, &error).hint("ids look like 36, #36, issue_36 or PROJ-12")
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let failure = Failure::from_error(Exit::Usage, &error);
        failure.hint(match &error {
            GitError::NotFound { .. } | GitError::TooOld { .. } => install_git(),
            GitError::Untrusted { .. } => {
                "install git where agents and gates cannot write, then `pdca doctor`".to_owned()
            }
            GitError::Failed { .. } | GitError::Tool { .. } => {
                "run `git --version` in this shell: it must print a version".to_owned()
            }
        })
    }
}

/// Returns the remedy for a missing or too old git.
pub(crate) fn install_git() -> String {
    format!("install git {OLDEST_GIT} or newer and put it first on PATH, then `pdca doctor`")
}

impl From<RootError> for Failure {
    fn from(error: RootError) -> Self {
        match &error {
            RootError::Missing { path } => Failure::from_error(Exit::Usage, &error)
                .at(FilePosition::file(&**path))
                .hint("`pdca new <id>` makes it; [paths] bundle_root or PDCA_BUNDLE_ROOT names another"),
            RootError::List { path, .. } => Failure::from_error(Exit::Usage, &error)
                .at(FilePosition::file(&**path))
                .hint("[paths] bundle_root must be a readable directory; see `pdca config show paths`"),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let failure = Failure::from_error(Exit::Usage, &error);
        let place = match error.line() {
            Some(line) => FilePosition::line(error.path(), line),
            None => FilePosition::file(error.path()),
        };
        failure.at(place).hint(match &error {
            LoadError::Missing { .. } => "`pdca status` lists the bundles there are",
            LoadError::LeadsOut { .. } => "replace the link by a directory",
            LoadError::List { .. } => "make the directory readable",
            LoadError::File(error) => read_hint(error),
            LoadError::NotUtf8 { .. } => "save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`",
            LoadError::Pending { .. } => {
                "move what is left of the attempt by hand, then remove the record"
            }
        })
    }
}

impl From<FileReadError> for Failure {
    fn from(error: FileReadError) -> Self {
        Failure::from_error(Exit::Usage, &error)
            .at(FilePosition::file(error.path()))
            .hint(read_hint(&error))
    }
}

fn read_hint(error: &FileReadError) -> &'static str {
    match error {
        FileReadError::NotAFile { .. } => "replace it by a regular file",
        FileReadError::LeadsOut { .. } => "replace the link by a copy of the file",
        FileReadError::TooLarge { .. } => {
            "an artifact is a text for people; check what was written there"
        }
        FileReadError::Io { .. } => "make the file readable",
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match &error {
            WriteError::Outside { dir, .. } => Failure::from_error(Exit::Usage, &error)
                .at(FilePosition::file(&**dir))
                .hint("a bundle's files stay inside its directory"),
            WriteError::Io { path, .. } => Failure::from_error(Exit::Unexpected, &error)
                .at(FilePosition::file(&**path))
                .hint("make room and make the directory writable, then repeat the command"),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Write(error) => error.into(),
            CreateError::Exists { ref dir } => Failure::from_error(Exit::Usage, &error)
                .at(FilePosition::file(&**dir))
                .hint("`pdca status <id>` shows what is there"),
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Load(error) => error.into(),
            ArchiveError::Write(error) => error.into(),
            ArchiveError::NoNumberLeft { ref dir } => Failure::from_error(Exit::Unexpected, &error)
                .at(FilePosition::file(&**dir))
                .hint("an `iteration-v…` directory has an absurd number; rename it"),
        }
    }
}

impl From<RecordsError> for Failure {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::Read(error) => error.into(),
            RecordsError::Ledger { ref path, .. } => Failure::from_error(Exit::Usage, &error)
                .at(FilePosition::file(&**path))
                .hint("mend the file, or move it away: then a new one is begun"),
            RecordsError::Encode(_) => Failure::from_error(Exit::Unexpected, &error),
            RecordsError::Busy { ref dir } => Failure::from_error(Exit::Usage, &error)
                .at(FilePosition::file(&**dir))
                .hint("repeat the command when that is done"),
            RecordsError::Lock { ref dir, ref source } => {
                Failure::from_error(Exit::Unexpected, source)
                    .at(FilePosition::file(&**dir))
                    .hint("make the directory writable")
            }
            RecordsError::Replace { ref path, ref source } => {
                Failure::from_error(Exit::Unexpected, source)
                    .at(FilePosition::file(&**path))
                    .hint("make room and make the directory writable, then repeat the command")
            }
        }
    }
}
