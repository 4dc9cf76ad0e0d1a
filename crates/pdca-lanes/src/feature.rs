//! Repository features that lanes do not support, and their remedies.

use thiserror::Error;

/// A feature that a private checkout would get wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Feature {
    /// The history is incomplete; `git fetch --unshallow` completes it.
    #[error("is a shallow clone")]
    Shallow,
    /// Some objects are only on the remote.
    #[error("is a partial clone of remote {remote:?}")]
    Partial {
        /// The remote that has the missing objects.
        remote: String,
    },
    /// Only a part of the tree is checked out; `git sparse-checkout disable` ends it.
    #[error("uses sparse checkout")]
    Sparse,
    /// The refs are stored in a format that gix cannot read.
    #[error("keeps its refs as {format:?}")]
    RefStorage {
        /// The value of `extensions.refStorage`.
        format: String,
    },
    /// A program converts content on its way to the working tree.
    #[error("needs the content filter {filter:?} ({file})")]
    Filter {
        /// The name of the filter.
        filter: String,
        /// The file that asks for it.
        file: String,
    },
    /// Content is converted in a way that differs between implementations.
    #[error("uses the attribute {attribute:?} ({file})")]
    Attribute {
        /// The name of the attribute.
        attribute: String,
        /// The file that sets it.
        file: String,
    },
}

impl Feature {
    /// Returns the command that makes the repository usable, or advice if there is none.
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
