//! A digest over named parts, each with its length, so that parts cannot be shifted into one another.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

#[derive(Clone, Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn bytes(&mut self, name: &str, bytes: &[u8]) {
        for piece in [name.as_bytes(), bytes] {
            self.0.update((piece.len() as u64).to_le_bytes());
            self.0.update(piece);
        }
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.bytes(name, text.as_bytes());
    }

    pub(crate) fn hex(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        })
    }
}
