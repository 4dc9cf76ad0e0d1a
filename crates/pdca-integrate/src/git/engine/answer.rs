//! Parser of the output of `git merge-tree --stdin -z`.
//!
//! ```text
//! 1 NUL tree NUL                                            NUL     clean
//! 0 NUL tree NUL (mode SP id SP stage TAB path NUL)*  NUL
//!                (count NUL path NUL… kind NUL text NUL)*   NUL     conflicted
//! ```

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};

use crate::{conflict::ConflictStage, git::path::TreePath};

/// The beginning of an advice that older versions of git print after the last message if a submodule conflicts.
const ADVICE: &[u8] = b"Recursive merging with submodules";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeAnswer {
    pub(crate) clean: bool,
    /// The tree, with conflict markers in its files if it is not clean.
    pub(crate) tree: ObjectId,
    pub(crate) stages: Vec<(TreePath, ConflictStage)>,
    pub(crate) messages: Vec<Message>,
}

/// A message of git about some paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) paths: Vec<TreePath>,
    /// A text that is stable between versions, such as `CONFLICT (contents)`.
    pub(crate) kind: BString,
    pub(crate) text: BString,
}

/// Parses all complete answers, up to the first that is invalid.
pub(crate) fn parse_all(bytes: &[u8]) -> Vec<MergeAnswer> {
    let mut fields = Fields { bytes, at: 0 };
    std::iter::from_fn(|| read(&mut fields)).collect()
}

struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.find_byte(0)?;
        self.at += end + 1;
        Some(&rest[..end])
    }
}

/// Parses one answer, or returns `None` if the rest is incomplete or invalid.
fn read(fields: &mut Fields<'_>) -> Option<MergeAnswer> {
    let clean = match fields.next()? {
        b"1" => true,
        b"0" => false,
        _ => return None,
    };
    let tree = ObjectId::from_hex(fields.next()?).ok()?;
    let (mut stages, mut messages) = (Vec::new(), Vec::new());
    loop {
        match fields.next()? {
            [] => break,
            entry => stages.push(stage(entry)?),
        }
    }
    if !clean {
        loop {
            let count = fields.next()?;
            // The advice has no zero byte of its own, so it takes the place of the empty field that ends the
            // messages.
            if count.is_empty() || count.starts_with(ADVICE) {
                break;
            }
            let count: usize = count.to_str().ok()?.parse().ok()?;
            let mut paths = Vec::new();
            for _ in 0..count {
                paths.push(TreePath::new(fields.next()?));
            }
            let (kind, text) = (fields.next()?.into(), fields.next()?.into());
            messages.push(Message { paths, kind, text });
        }
    }
    Some(MergeAnswer { clean, tree, stages, messages })
}

fn stage(entry: &[u8]) -> Option<(TreePath, ConflictStage)> {
    let (facts, path) = entry.split_once_str("\t")?;
    let mut facts = facts.to_str().ok()?.split(' ');
    let mode = u32::from_str_radix(facts.next()?, 8).ok()?;
    let id = ObjectId::from_hex(facts.next()?.as_bytes()).ok()?;
    let number = facts.next()?.parse().ok()?;
    // A further fact would be a format that this parser does not know.
    facts.next().is_none().then(|| (TreePath::new(path), ConflictStage { number, mode, id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0c0e72cc3517072c0788e320050a049f1f20e9db";

    fn conflicted() -> Vec<u8> {
        let mut text = format!("0\0{TREE}\0100644 {TREE} 1\tf\0100644 {TREE} 3\tf\0\0");
        text += "1\0f\0CONFLICT (modify/delete)\0CONFLICT (modify/delete): f\n\0\0";
        text.into_bytes()
    }

    #[test]
    fn an_answer_is_there_only_with_its_last_byte() {
        let clean = format!("1\0{TREE}\0\0").into_bytes();
        for last in [conflicted(), clean.clone()] {
            let both = [clean.clone(), last].concat();
            for cut in clean.len()..both.len() {
                assert_eq!(parse_all(&both[..cut]).len(), 1, "{cut}");
            }
            assert_eq!(parse_all(&both).len(), 2);
        }
    }

    #[test]
    fn a_conflict_has_its_stages_and_its_kind() {
        let answer = parse_all(&conflicted()).remove(0);
        let numbers: Vec<u8> = answer.stages.iter().map(|(_, stage)| stage.number).collect();
        assert_eq!((answer.clean, numbers), (false, vec![1, 3]));
        assert_eq!(answer.messages[0].kind, "CONFLICT (modify/delete)");
    }

    #[test]
    fn advice_about_submodules_ends_the_messages() {
        let mut text = conflicted();
        let end = text.pop();
        text.extend_from_slice(b"Recursive merging with submodules currently only\n  git add f\n");
        text.extend(end);
        let both = [text, conflicted()].concat();
        assert_eq!(parse_all(&both), parse_all(&[conflicted(), conflicted()].concat()));
    }

    #[test]
    fn what_has_no_sense_is_no_answer() {
        for text in ["2\0x\0\0\0", "1\0x\0\0", "1\0\0\0"] {
            assert_eq!(parse_all(text.as_bytes()), [], "{text:?}");
        }
    }
}
