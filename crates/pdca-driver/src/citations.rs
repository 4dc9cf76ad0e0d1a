//! Looks up the places that a review and the notes cite, in the tree that was reviewed.
//!
//! No model is asked. A place that is not there, or that does not say what is quoted, becomes an item of §6: a person sees it
//! before the words that lean on it. It changes no verdict.

use std::cell::OnceCell;

use pdca_lanes::Target;
use pdca_state::{Brief, Bundle, CitedTree, citations, sha256_hex};

use crate::run_bundle::Driver;
use crate::size::CitationCheck;
use pdca_journal::events::EventKind;

/// The number of citations of a document that its item names.
const NAMED: usize = 5;

/// The largest file that a citation is looked up in; a longer one is not judged.
const LARGEST: usize = 8 << 20;

/// The tree of a change, its base, and the files of its bundle.
struct ReviewedTree<'t> {
    target: &'t Target,
    head: &'t str,
    base: &'t str,
    bundle: &'t Bundle,
    /// All paths of the change's tree, read when a path is not found as it is written.
    paths: OnceCell<Vec<String>>,
}

impl CitedTree for ReviewedTree<'_> {
    fn files(&self, path: &str) -> Vec<String> {
        let read = |commit: &str, path: &str| {
            let bytes = self.target.file_at(commit, path.into()).ok().flatten()?;
            Some(String::from_utf8_lossy(&bytes[..bytes.len().min(LARGEST)]).into_owned())
        };
        // The base as well: the red side of a review is about lines that the change removed.
        let mut found: Vec<String> =
            [self.head, self.base].iter().filter_map(|commit| read(commit, path)).collect();
        let own = pdca_state::files::read_within(self.bundle.dir(), path.into(), LARGEST as u64);
        found.extend(own.ok().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        if found.is_empty() {
            let end = format!("/{path}");
            let paths =
                self.paths.get_or_init(|| self.target.paths_at(self.head).unwrap_or_default());
            let likely = paths.iter().filter(|path| path.ends_with(&end));
            found.extend(likely.take(20).filter_map(|path| read(self.head, path)));
        }
        found
    }
}

/// Returns an item for each document with citations that do not hold.
pub(crate) fn citation_items(
    cx: &Driver<'_>,
    bundle: &Bundle,
    brief: &Brief,
    patch: &[u8],
    documents: &[(String, &str)],
) -> Vec<String> {
    if cx.config.check.citations == CitationCheck::Off {
        return Vec::new();
    }
    let cited: Vec<_> = documents
        .iter()
        .map(|(name, text)| (name, citations(text)))
        .filter(|(_, all)| !all.is_empty())
        .collect();
    let attempt = cx.config.attempts().load(bundle.id()).ok().flatten();
    let (Some(attempt), false) = (attempt, cited.is_empty()) else { return Vec::new() };
    let opened = cx.config.target_of(brief).ok().flatten();
    let opened = opened.and_then(|spec| Target::open(&spec.name, &spec.path).ok());
    let head = attempt.head_of(&sha256_hex(patch));
    let (Some(target), Some(head)) = (opened, head) else {
        let text = "citations were not looked up: the commit of the change is not recorded";
        cx.tell(
            bundle,
            EventKind::notice(pdca_journal::events::WarningCode::NotStored, text.to_owned()),
        );
        return Vec::new();
    };
    let tree =
        ReviewedTree { target: &target, head, base: &attempt.base, bundle, paths: OnceCell::new() };
    cited.iter().filter_map(|(name, all)| item(name, all, &tree)).collect()
}

fn item(name: &str, all: &[pdca_state::Citation], tree: &ReviewedTree<'_>) -> Option<String> {
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|one| Some(format!("{one} (line {}: {})", one.line, one.flaw(tree)?)))
        .collect();
    let more = match wrong.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let named = wrong.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let (count, of) = (wrong.len(), all.len());
    (count > 0).then(|| format!("citations: {count} of {of} in {name} do not hold: {named}{more}"))
}
