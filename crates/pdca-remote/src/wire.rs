//! The bytes of one request or one answer: a mark line with sizes and a digest, a JSON head, and binary parts.
//!
//! ```text
//! \x01pdca-wire 1 <sha256> <bytes of the head> <bytes of part 0> …\n<head><part 0>…
//! ```
//!
//! A login shell on a host may print before the first byte of an answer, so a reader searches the mark. What is cut
//! short or altered on the way is an error and never a shorter message.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// The beginning of the mark line. It begins with a byte that no shell greets with.
const MARK: &[u8] = b"\x01pdca-wire 1 ";
/// The most bytes of greeting before the mark; an answer without a mark is not searched to its end.
const GREETING: usize = 64 << 10;

/// A head with its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireMessage<T> {
    pub head: T,
    pub parts: Vec<Vec<u8>>,
}

/// The reason why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("no message in the answer; it begins with {begin:?}")]
    NoMark { begin: String },
    #[error("the message is cut short: {have} of {need} bytes")]
    Short { have: usize, need: usize },
    #[error("the message was altered on the way")]
    Altered,
    #[error("the message cannot be read")]
    Head(#[from] serde_json::Error),
}

/// Returns the bytes of a message.
pub fn encode<T: Serialize>(head: &T, parts: &[&[u8]]) -> serde_json::Result<Vec<u8>> {
    use std::io::Write as _;
    let head = serde_json::to_vec(head)?;
    let pieces = || std::iter::once(head.as_slice()).chain(parts.iter().copied());
    let size: usize = pieces().map(<[u8]>::len).sum();
    let mut bytes = Vec::with_capacity(size + 256);
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(digest(pieces()).as_bytes());
    for piece in pieces() {
        write!(bytes, " {}", piece.len()).expect("because writing to memory cannot fail");
    }
    bytes.push(b'\n');
    pieces().for_each(|piece| bytes.extend_from_slice(piece));
    Ok(bytes)
}

/// Reads one message. Bytes before the mark and after the end are ignored.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<WireMessage<T>, WireError> {
    let no_mark = || WireError::NoMark {
        begin: String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim().to_owned(),
    };
    let window = &bytes[..bytes.len().min(GREETING + MARK.len())];
    let at = window.windows(MARK.len()).position(|one| one == MARK).ok_or_else(no_mark)?;
    let rest = &bytes[at + MARK.len()..];
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(no_mark)?;
    let line = std::str::from_utf8(&rest[..end]).map_err(|_| no_mark())?;
    let mut words = line.split(' ');
    let said = words.next().unwrap_or_default();
    let sizes = words.map(str::parse::<usize>).collect::<Result<Vec<_>, _>>();
    let sizes = sizes.map_err(|_| no_mark())?;
    let mut body = &rest[end + 1..];
    // Checked: the sizes come from the other side, and their sum could overflow.
    let need = sizes.iter().try_fold(0_usize, |sum, size| sum.checked_add(*size));
    let need = need.ok_or_else(no_mark)?;
    if body.len() < need {
        return Err(WireError::Short { have: body.len(), need });
    }
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, left) = body.split_at(size);
        pieces.push(piece);
        body = left;
    }
    if digest(pieces.iter().copied()) != said {
        return Err(WireError::Altered);
    }
    let (head, parts) = pieces.split_first().ok_or_else(no_mark)?;
    let head = serde_json::from_slice(head)?;
    Ok(WireMessage { head, parts: parts.iter().map(|part| part.to_vec()).collect() })
}

/// Hashes pieces with their lengths, so that no two lists have the same digest.
fn digest<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update((piece.len() as u64).to_le_bytes());
        hash.update(piece);
    }
    hex(&hash.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("because writing to a string cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_is_read_back_as_it_was_behind_any_greeting(
            greeting in "[ -~\n]{0,80}",
            head in "\\PC{0,40}",
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4),
        ) {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let mut bytes = greeting.into_bytes();
            bytes.extend(encode(&head, &slices).unwrap());
            let read: WireMessage<String> = decode(&bytes).unwrap();
            prop_assert_eq!(read, WireMessage { head, parts });
        }

        #[test]
        fn a_message_that_lost_or_changed_a_byte_is_no_message(cut in 0_usize..2000, flip in any::<bool>()) {
            let whole = encode(&"head", &[b"part", b"another"]).unwrap();
            let at = cut % whole.len();
            let bytes = if flip {
                let mut bytes = whole.clone();
                bytes[at] ^= 1;
                bytes
            } else {
                whole[..at].to_vec()
            };
            prop_assert!(decode::<String>(&bytes).is_err());
        }
    }

    #[test]
    fn an_answer_without_a_mark_is_quoted() {
        let error = decode::<String>(b"bash: pdca: command not found\n").unwrap_err();
        assert!(error.to_string().contains("command not found"), "{error}");
    }
}
