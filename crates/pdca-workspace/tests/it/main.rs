//! Workspaces on disk, as a caller of the library reads them.

mod card;
