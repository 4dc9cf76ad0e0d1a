//! What lanes do not support, and what to do about it.

use thiserror::Error;

/// What a private checkout would get wrong, and is refused by name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Feature {
    /// History ends early; `git fetch --unshallow` completes it.
    #[error("is a shallow clone")]
    Shallow,
    /// Objects are missing until someone asks the remote for them.
    #[error("is a partial clone of remote {remote:?}")]
    Partial {
        /// Who has the missing objects.
        remote: String,
    },
    /// Only a part of the tree is checked out; `git sparse-checkout disable` ends it.
    #[error("uses sparse checkout")]
    Sparse,
    /// Refs are kept in a format that this build cannot read.
    #[error("keeps its refs as {format:?}")]
    RefStorage {
        /// The value of `extensions.refStorage`.
        format: String,
    },
    /// Content passes through a program on its way to the working tree.
    #[error("needs the content filter {filter:?} ({file})")]
    Filter {
        /// The name of the filter.
        filter: String,
        /// The file that asks for it.
        file: String,
    },
    /// Content is rewritten in a way that differs between implementations.
    #[error("uses the attribute {attribute:?} ({file})")]
    Attribute {
        /// The name of the attribute.
        attribute: String,
        /// The file that sets it.
        file: String,
    },
}

impl Feature {
    /// What makes the repository fit: a command where there is one, else advice.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Shallow => "run `git fetch --unshallow` in it",
            Self::Partial { .. } => "use a full clone, made without `--filter`",
            Self::Sparse => "run `git sparse-checkout disable` in it",
            Self::RefStorage { .. } => {
                "use a clone of it, made with `git clone --ref-format=files`"
            }
            Self::Filter { filter, .. } if filter == "lfs" => {
                "LFS is not supported: use a repository that holds the files themselves, \
                 as `git lfs migrate export` makes it"
            }
            Self::Filter { .. } => {
                "remove the `filter` attribute from that file, \
                 or use a clone without the filter's configuration"
            }
            Self::Attribute { .. } => "remove the attribute from that file",
        }
    }
}
