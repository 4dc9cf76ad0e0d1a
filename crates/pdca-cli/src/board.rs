//! The terminal board: a state machine, its drawing, and the loop on a terminal.
//!
//! A [`Board`] is a state machine: [`Board::update`] takes an [`BoardInput`] and returns what the caller has to do as
//! [`BoardEffect`]s, [`draw`] paints it onto a frame. [`BoardData::load`] reads the workspace, and [`run`] is the loop around
//! them on a real terminal, over a [`Desk`] that has the workspace and the [`Tools`] of the person. `show_board` is all
//! of it for a workspace.
//!
//! ```
//! use pdca_cli::board::{Board, BoardEffect, BoardInput, BoardKey, View};
//!
//! let mut board = Board::new(pdca_workspace::review::UNDO_WINDOW);
//! board.update(BoardInput::Key(BoardKey::Char('2')));
//! assert_eq!(board.navigation().view(), View::Work);
//! assert_eq!(board.update(BoardInput::Key(BoardKey::Char('q'))), [BoardEffect::Quit]);
//! ```
//!
//! # Invariants
//! - Updating and drawing do no I/O: no file is read and no process is started for a frame.
//! - Nothing is decided here: a decision is a [`pdca_workspace::review::Decision`] that the caller records, the same as typed.
//! - Nothing is said by colour alone, and every row fits into the width that it has.

mod data;
mod deciding;
mod desk;
mod input;
mod navigation;
mod run;
mod state;
mod view;

pub use data::{BoardData, ChangeRow, Combined, LaneRow, Waiting, WorkRow};
pub use deciding::Deciding;
pub(crate) use desk::show_board;
pub use input::{BoardEffect, BoardInput, BoardKey};
pub use navigation::{Focus, Navigation, View};
pub use run::{Desk, Ended, Tools, run};
pub use state::{Board, Overlay, WorkItem};
pub use view::{Theme, draw};
