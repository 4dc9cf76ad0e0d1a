//! One way to digest named parts, so that they cannot run into each other.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// A digest being made.
#[derive(Clone, Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    /// Adds one named part.
    pub(crate) fn bytes(&mut self, name: &str, bytes: &[u8]) {
        for piece in [name.as_bytes(), bytes] {
            self.0.update((piece.len() as u64).to_le_bytes());
            self.0.update(piece);
        }
    }

    /// Adds one named part that is a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.bytes(name, text.as_bytes());
    }

    /// The digest in hexadecimal.
    pub(crate) fn hex(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        })
    }
}
