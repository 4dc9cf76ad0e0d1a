//! Translates keys of older instances that mean the same as a key of ours.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Rewrites older spellings in place, and calls `tell` for each.
///
/// - `[publisher.checkouts] "owner/repo" = "../path"` is a `[[targets]]` with that `repo` and `path`;
/// - `timeout_secs = 0` of a gate, "no limit", becomes the limit that applies to every gate.
///
/// Other unknown keys are left for the check to report.
pub(super) fn translate(
    root: &mut Spanned<DeTable<'_>>,
    tell: &mut dyn FnMut(String, Range<usize>),
) {
    let root = root.get_mut();
    checkouts(root, tell);
    unbounded_gates(root, tell);
}

fn checkouts(root: &mut DeTable<'_>, tell: &mut dyn FnMut(String, Range<usize>)) {
    let Some(DeValue::Table(publisher)) = root.get_mut("publisher").map(Spanned::get_mut) else {
        return;
    };
    let Some((key, checkouts)) = publisher.remove_entry("checkouts") else { return };
    let DeValue::Table(checkouts) = checkouts.into_inner() else { return };
    let mut targets = match root.remove("targets").map(Spanned::into_inner) {
        Some(DeValue::Array(targets)) => targets,
        _ => DeArray::new(),
    };
    for (repo, path) in checkouts {
        let span = repo.span();
        let entry = DeTable::from_iter([
            (
                spanned_key("repo", &span),
                Spanned::new(span.clone(), DeValue::String(repo.into_inner())),
            ),
            (spanned_key("path", &span), path),
        ]);
        targets.push(Spanned::new(span, DeValue::Table(entry)));
    }
    if !targets.is_empty() {
        tell("[publisher.checkouts] is read as [[targets]]".to_owned(), key.span());
        root.insert(
            spanned_key("targets", &key.span()),
            Spanned::new(key.span(), DeValue::Array(targets)),
        );
    }
}

fn unbounded_gates(root: &mut DeTable<'_>, tell: &mut dyn FnMut(String, Range<usize>)) {
    let Some(DeValue::Table(gates)) = root.get_mut("gates").map(Spanned::get_mut) else { return };
    let Some(DeValue::Array(rows)) = gates.get_mut("checks").map(Spanned::get_mut) else { return };
    for row in rows.iter_mut() {
        let DeValue::Table(row) = row.get_mut() else { continue };
        let bound = row.get("timeout_secs").and_then(|bound| bound.get_ref().as_integer());
        if bound.is_some_and(|bound| bound.as_str() == "0") {
            let gone = row.remove_entry("timeout_secs");
            let span = gone.map_or(0..0, |(key, _)| key.span());
            tell("`timeout_secs = 0` is not taken: every gate has a bound".to_owned(), span);
        }
    }
}

fn spanned_key<'a>(name: &'static str, span: &Range<usize>) -> Spanned<Cow<'a, str>> {
    Spanned::new(span.clone(), Cow::Borrowed(name))
}
