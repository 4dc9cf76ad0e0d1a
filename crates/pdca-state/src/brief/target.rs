//! Values that are read from the own line of a field: targets, branches, paths, dependencies.

use camino::Utf8PathBuf;

/// The repository and branch that a brief targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoTarget {
    /// `owner/repo`, or the name that the workspace gives the repository.
    pub repo: String,
    /// The branch; `None` if the brief leaves it to the workspace.
    pub branch: Option<String>,
}

/// An existing branch that the work is stacked onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OntoBranch {
    /// The name of the remote; `origin` if the brief names none.
    pub remote: String,
    /// The name of the branch on that remote.
    pub branch: String,
}

pub(super) fn repo_target(value: &str) -> Option<RepoTarget> {
    let (repo, branch) = value.split_once('@').unwrap_or((value, ""));
    let repo = reference(repo);
    let branch = reference(branch);
    (!repo.is_empty()).then(|| RepoTarget {
        repo: repo.to_owned(),
        branch: (!branch.is_empty()).then(|| branch.to_owned()),
    })
}

pub(super) fn onto_branch(value: &str) -> Option<OntoBranch> {
    let value = reference(value);
    if value.is_empty() || is_nothing(value) {
        return None;
    }
    let (remote, branch) = value.split_once('/').unwrap_or(("origin", value));
    let remote = if remote.is_empty() { "origin" } else { remote };
    (!branch.is_empty())
        .then(|| OntoBranch { remote: remote.to_owned(), branch: branch.to_owned() })
}

/// Returns true for dashes and for words that people write in place of an empty value.
pub(super) fn is_nothing(word: &str) -> bool {
    let is_dash = |c: char| matches!(c, '-' | '–' | '—');
    word.chars().all(is_dash)
        || ["none", "n/a", "na", "tbd"].iter().any(|nothing| word.eq_ignore_ascii_case(nothing))
}

/// The ref or repository on one side of the `@`.
///
/// Neither can contain a space, so it is the first word. A span in backticks counts only at the
/// start, because a later one is usually an aside about another branch.
fn reference(side: &str) -> &str {
    let side = side.trim();
    let quoted = side
        .strip_prefix('`')
        .and_then(|rest| rest.split_once('`'))
        .map(|(quoted, _)| quoted)
        .filter(|quoted| !quoted.is_empty());
    let word = quoted.unwrap_or_else(|| side.split_whitespace().next().unwrap_or(""));
    word.trim_matches('`').trim_end_matches([',', '.', ';', ':'])
}

/// Finds every word that looks like a path with a file extension.
pub(super) fn paths(value: &str) -> Vec<Utf8PathBuf> {
    let is_part = |c: char| is_word(c) || matches!(c, '.' | '/' | '-');
    let mut paths = Vec::new();
    for run in value.split(|c| !is_part(c)) {
        if let Some(end) = extension_end(run) {
            paths.push(Utf8PathBuf::from(&run[..end]));
        }
    }
    paths
}

/// The end of the last file extension in a run of path characters.
fn extension_end(run: &str) -> Option<usize> {
    let mut end = run.len();
    while let Some(dot) = run[..end].rfind('.') {
        let after = &run[dot + 1..];
        let length: usize = after.chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
        if dot > 0 && length > 0 {
            return Some(dot + 1 + length);
        }
        end = dot;
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Splits a text that starts with `(note)` into the note and the rest.
///
/// `closing` is the length of the value after its last `)`. If no more than that is left, there is
/// no annotation; this keeps the parser linear on a value with many opening parentheses.
fn annotation(text: &str, closing: usize) -> (&str, &str) {
    if text.len() <= closing {
        return ("", text);
    }
    text.trim_start().strip_prefix('(').and_then(|note| note.split_once(')')).unwrap_or(("", text))
}

/// Far more than any real brief declares; bounds the work that a hostile one can cause.
const MAX_TOKENS: usize = 1_000;

/// The words in backticks, without duplicates and without those that cannot be checked.
pub(super) fn dependency_tokens(value: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    if value.trim_end_matches('.').eq_ignore_ascii_case("none") {
        return tokens;
    }
    let closing = value.len() - value.rfind(')').map_or(0, |at| at + 1);
    let mut rest = value;
    while let Some(open) = rest.find('`') {
        let Some((token, after)) = rest[open + 1..].split_once('`') else {
            break;
        };
        if token.is_empty() {
            // Of two backticks in a row, the second may open a span.
            rest = &rest[open + 1..];
            continue;
        }
        let (note, after) = annotation(after, closing);
        rest = after;
        let note = note.to_lowercase();
        let token = token.trim();
        let is_exempt = note.contains("no-check") || note.contains("topology");
        if !token.is_empty() && !is_exempt && !tokens.iter().any(|known| known == token) {
            tokens.push(token.to_owned());
        }
        if tokens.len() >= MAX_TOKENS {
            break;
        }
    }
    tokens
}
