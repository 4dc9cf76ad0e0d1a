//! Assembles a word from pieces.

use super::{Piece, Word};

/// The pieces of a word that is being read.
#[derive(Default)]
pub(super) struct Pieces(pub(super) Vec<Piece>);

impl Pieces {
    pub(super) fn push(&mut self, c: char, is_quoted: bool) {
        if let Some(Piece::Text { text, quoted }) = self.0.last_mut()
            && *quoted == is_quoted
        {
            text.push(c);
            return;
        }
        self.0.push(Piece::Text { text: c.to_string(), quoted: is_quoted });
    }

    pub(super) fn text(&mut self, more: String, is_quoted: bool) {
        if let Some(Piece::Text { text, quoted }) = self.0.last_mut()
            && *quoted == is_quoted
        {
            text.push_str(&more);
            return;
        }
        self.0.push(Piece::Text { text: more, quoted: is_quoted });
    }

    pub(super) fn add(&mut self, piece: Piece) {
        self.0.push(piece);
    }

    pub(super) fn extend(&mut self, word: Word) {
        for piece in word.0 {
            match piece {
                Piece::Text { text, quoted } => self.text(text, quoted),
                other @ (Piece::Variable { .. }
                | Piece::Command { .. }
                | Piece::Process { .. }
                | Piece::Opaque(_)) => self.add(other),
            }
        }
    }

    pub(super) fn ends_with(&self, any: &[char]) -> bool {
        match self.0.last() {
            Some(Piece::Text { text, quoted: false }) => text.ends_with(any),
            _ => false,
        }
    }
}
