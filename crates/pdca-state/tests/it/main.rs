//! The formats of a bundle as other crates see them.

mod claims;
mod hostile_text;
mod lessons;
