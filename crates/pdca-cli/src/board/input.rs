//! What happens to a board, and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use pdca_state::BundleId;
use pdca_workspace::review::{Card, Decision};

use crate::board::data::BoardData;

/// A key, as far as the board knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardKey {
    Char(char),
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum BoardInput {
    Key(BoardKey),
    /// The left button, at column and row.
    Click(u16, u16),
    /// The wheel, at column and row; positive is down.
    Scroll(u16, u16, i8),
    /// The terminal has another size: a frame is due, and nothing else.
    Resized,
    /// A new reading of the workspace.
    Data(Arc<BoardData>),
    /// The card of a bundle, or why it cannot be read.
    Card(BundleId, Result<Arc<Card>, String>),
    /// The time since the board began.
    Tick(Duration),
    /// A decision was recorded.
    Recorded(BundleId, String),
    /// A decision was refused; the bundle waits as before.
    Refused(BundleId, String),
    /// What follows an acceptance was not done, or not all of it.
    Unpublished(String),
    /// A note came back from the editor.
    Note(String),
    /// Something to say in the line above the footer.
    Say(String),
}

/// Something that the caller has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardEffect {
    /// Load the card of this bundle and give it back.
    LoadCard(BundleId),
    /// Record these decisions, in this order, and tell each.
    Record(Vec<Decision>),
    /// Show the change of a bundle in a pager.
    Diff(BundleId),
    /// Show the logs of a bundle in a pager.
    Log(BundleId),
    /// Show the whole card in a pager.
    Whole(BundleId),
    /// Open a shell in a throwaway checkout with the change.
    Shell(BundleId),
    /// Edit the note for a bundle, and give it back.
    EditNote(BundleId, String),
    /// Stop this process until it is resumed.
    Suspend,
    Quit,
}
