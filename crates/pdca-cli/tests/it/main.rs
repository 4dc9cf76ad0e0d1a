//! The binary that users get, and what the board shows.

mod board_screens;
mod plain;
